"""The distortion study in tables and figures: how far methods are from the free distribution, where
that comes from, what it depends on, and single cases in full."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from experiments.answers.asked import asked_models
from experiments.answers.methods import OUR_METHODS
from experiments.answers.populations import PARTICLES
from experiments.run.executors import Row
from experiments.run.files import require
from experiments.run.report import Figure, grid, panels
from experiments.run.tables import (
    Column,
    Group,
    Table,
    count,
    fixed,
    highest,
    interval,
    is_missing,
    percent,
    quantiles,
    records,
    several,
    share,
    small,
    table,
    total,
    values,
    whole,
)
from experiments.shared.shown import (
    CANONICAL,
    LIFT,
    PALE,
    absent,
    by,
    in_order,
    label,
    mark,
    named,
)
from experiments.study.distortion_study.points import (
    CLEARLY,
    MASSES,
    SHAPLEY,
    TARGET_LINES,
    THREE,
    TOLERANCE,
    Points,
    at_draws,
    at_every_temperature,
    farther,
    infinite_kl,
    mean,
    median,
    of_methods,
    of_targets,
    pairs_of,
    points,
    share_of_lift,
    where_kl_is_finite,
    within_tolerance,
)

SAME = f"The cases are those within {TOLERANCE} of exact at every temperature"
INTERVALS = (
    "[ ]: 95 % intervals by drawing questions with replacement, variants together; each for "
    "itself, so of a hundred of them some miss"
)
CASES = Column("cases", count, whole)
FARTHER = Column("lift : canonical\nfarther", farther, several(whole, " : "))
THREE_DIGITS, FOUR_DIGITS = interval(fixed(3)), interval(fixed(4))
WORST = 10
"""Cases in each of the two tables of worst ones."""


def tables(rows: pd.DataFrame, manifest: Row) -> list[Table]:
    """Those that have a line."""
    del manifest
    every, notes = points(rows), asked_models(rows)
    if every.empty:
        return []
    found = within_tolerance(every)
    drawn = at_draws(found)
    methods = of_methods(found)
    complete = at_every_temperature(found)
    lengths = drawn["ids"].map(lambda ids: str(ids) if ids < 4 else "4 or more")
    made = [
        distances(drawn, methods, notes),
        paired(drawn),
        by_family(drawn),
        by_mass(drawn),
        by_target(of_targets(found)),
        worst("the lift", drawn.sort_values("tokenization", ascending=False, kind="stable")),
        worst("canonical", drawn.sort_values("tokenization", kind="stable")),
        parts(
            "The effect of length: ids of the longest answer, canonically",
            named("model: ids", "length"),
            by(drawn.assign(length=lengths), "length"),
        ),
        parts(
            "The effect of temperature",
            named("model: temperature", "temperature"),
            by(complete, "temperature"),
            [f"the free distribution is the model's own at that temperature. {SAME}"],
        ),
        variants(drawn, "style", "plain", "The effect of the prompt's style", notes),
        variants(drawn, "boundary", "space", "The effect of the boundary"),
        healing(drawn),
        canonical_share(complete),
        accuracy(methods),
        engines(drawn, methods),
        beyond_tolerance(every[~every["is_within_tolerance"]]),
    ]
    return [table for table in made if table.rows]


def distances(drawn: Points, methods: pd.DataFrame, more: Sequence[str] = ()) -> Table:
    """All methods."""
    there = methods[methods["tv"].notna()]
    samplers = (each for row in drawn["row"] for each in row["draws"].values())
    sizes = (size for each in samplers for one in each.values() for size in one.values())
    error = max((size["error"] for size in sizes), default=0.0)
    columns = [
        named("method", "method"),
        CASES,
        Column("TV median", median("tv"), FOUR_DIGITS),
        Column("TV mean", mean("tv"), THREE_DIGITS),
        Column("TV 90 %", quantiles("tv", 0.9), several(fixed(3))),
        Column("TV worst", highest("tv"), fixed(3)),
        Column("TV over\n0.1", lambda group: (group["tv"] > 0.1).mean(), percent()),
        Column("KL median", where_kl_is_finite(median("kl")), FOUR_DIGITS),
        Column("KL mean", where_kl_is_finite(mean("kl")), THREE_DIGITS),
        Column("KL infinite\ncases", infinite_kl, whole),
    ]
    notes = [
        "at the temperature nearest to 1, at which draws are simulated, as where none is named",
        "the questions are no sample of a population: they were written to cover kinds of "
        "constraints, before any was measured. Intervals say how much depends on which of them "
        "are taken, not what holds for other questions",
        "free: the model's own distribution of id sequences that end exactly where an answer does, "
        "given that it writes one; ids that run past the end of an answer are not counted, and no "
        "end of sequence is asked for",
        "TV: total variation distance to the free distribution, with no answer as an outcome where "
        f"a method has dead ends; cases: those where it is within {TOLERANCE} of exact. "
        f"{INTERVALS}",
        "KL: divergence of the method's distribution from the free one, KL(free || method), in "
        "nats; median and mean of the cases where it is finite. It is infinite where an answer "
        "that the model gives was not found under the method",
        "weighted: what importance weights and SMC converge to, the free distribution given what "
        "the method can write. The lift's is the free distribution itself; the others cannot reach "
        'it where their sequences lack free mass (see "Engines beside the lift")',
        f"of {' or '.join(map(str, PARTICLES))}: the distribution of one draw from a weighted "
        "population of that size, simulated. On average each of these distances is off by at most "
        f"{error:.3f} (half the sum of its standard errors, in the worst case), "
        "which makes small ones larger; the KL of a simulated distribution says nothing",
        "outlines: the index of outlines-core; chop: the lift with the published heuristic for "
        "forced text",
        *more,
    ]
    return table("Distance to the model's own distribution", by(there, "method"), columns, notes)


def parts(
    title: str, first: Column, groups: Iterable[tuple[Any, Group]], notes: Sequence[str] = ()
) -> Table:
    """The lift's error taken apart."""
    shares = interval(lambda value: "-" if is_missing(value) else percent()(value))
    columns = [
        first,
        CASES,
        Column("TV lift\nmedian", median("lift"), FOUR_DIGITS),
        Column("TV canonical\nmedian", median("canonical"), FOUR_DIGITS),
        *(Column(f"{_TV[part]}\nmean", mean(part), THREE_DIGITS) for part in _TV),
        *(Column(f"{part}\nshare", share_of_lift(part), shares) for part in THREE),
        *(
            Column(f"{name}\nShapley", share_of_lift(part), shares)
            for name, part in zip(THREE, SHAPLEY, strict=False)
        ),
        FARTHER,
    ]
    told = [
        "TV lift = tokenization (TV lift - TV canonical) + myopia (TV canonical - TV canonical "
        "weighted) + rest (TV canonical weighted); means add up, medians do not",
        "share: of the sum of TV lift over the cases, so that cases without error weigh nothing; "
        "below 0 where canonical, or the weights, make it worse",
        "Shapley: the same, as the mean of both orders in which other tokenizations and masking "
        "step by step can be taken away. The lift with weights is exact, so if masking is taken "
        "away first, myopia is all of TV lift, and tokenization is -rest: its Shapley value cannot "
        "exceed one half",
        "farther: in how many cases either is farther from the free distribution by more than "
        f"{CLEARLY}. {INTERVALS}",
    ]
    return table(title, groups, columns, [*told, *notes])


_TV = {"lift": "TV lift", **{part: part for part in THREE}}


def paired(drawn: Points) -> Table:
    """The lift against canonical, case by case."""
    columns = [
        Column("model", lambda group: label(group["model"].iloc[0])),
        CASES,
        Column("TV lift - TV canonical\nmean", mean("tokenization"), FOUR_DIGITS),
        Column("median", median("tokenization"), FOUR_DIGITS),
        Column("quartiles", quantiles("tokenization", 0.25, 0.75), several(fixed(4))),
        FARTHER,
    ]
    notes = [
        "the median of the differences is far below the difference of the medians: where canonical "
        f"is nearer, it often is by little. {INTERVALS}"
    ]
    return table("The lift against canonical, case by case", by(drawn), columns, notes)


def by_mass(drawn: Points) -> Table:
    """How likely it is that the model writes any of the answers unasked."""
    note = "mass: the model's probability of all answers of a case together, unasked"
    correlations = [
        f"{label(model)}: rank correlation of mass with TV lift {_correlation(some, 'lift')}, with "
        f"TV canonical {_correlation(some, 'canonical')}"
        for (model,), some in by(drawn)
    ]
    first = named("model: mass", "masses")
    groups = by(in_order(drawn, "masses", tuple(MASSES)), "masses")
    return parts("The effect of the mass of the answers", first, groups, [note, *correlations])


def by_target(lines: pd.DataFrame) -> Table:
    """What can be meant by "the model writes this answer", and what changes with it."""
    columns = [
        Column("model", lambda group: label(group["model"].iloc[0])),
        Column("target", lambda group: TARGET_LINES[group["target"].iloc[0]]),
        CASES,
        Column("mass, of\nsequence's", lambda group: group["mass"].median(), small),
        Column("TV to\nsequence, median", lambda group: group["moved"].median(), small),
        Column(f"over\n{CLEARLY}", lambda group: int((group["moved"] > CLEARLY).sum()), whole),
        Column("TV lift\nmean", mean("lift"), THREE_DIGITS),
        Column("median", median("lift"), FOUR_DIGITS),
        Column("TV canonical\nmean", mean("canonical"), THREE_DIGITS),
        Column("median", median("canonical"), FOUR_DIGITS),
        FARTHER,
        Column("turned", total("turned"), whole),
    ]
    notes = [
        "the free distribution given that the model writes an answer, which can mean: ids that "
        "spell it exactly come next (sequence, as in all other tables); its text begins with it, "
        "so that the last id may go past its end (prefix); ids that spell it, then the end "
        "(complete)",
        "turned: cases in which the order of lift and canonical is reversed, both times by more "
        f"than {CLEARLY}",
        "complete: where it is rarely written, the ids that were not read might in theory hold "
        "more of it than those that were; the last line has all cases, and the ids that "
        f"make up 99.9 % of the sequence's mass. {INTERVALS}",
    ]
    return table("Three targets", by(lines, "target"), columns, notes)


def _correlation(found: Points, part: str) -> str:
    """Of ranks; "-" where one of the two is the same everywhere."""
    if min(found["log10_mass"].nunique(), found[part].nunique()) < 2:
        return "-"
    return f"{spearmanr(found['log10_mass'], found[part]).statistic:.2f}"


def by_family(drawn: Points) -> Table:
    """All families of a model together first."""
    families = ("all", *sorted(drawn["family"].unique()))
    every = pd.concat([drawn.assign(family="all"), drawn])
    groups = by(in_order(every, "family", families), "family")
    title = "Where the error comes from, by family"
    return parts(title, named("model: family", "family"), groups)


def variants(
    drawn: Points, attribute: str, reference: str, title: str, notes: Sequence[str] = ()
) -> Table:
    """Of questions that are asked in several ways: each way against the reference, in pairs."""
    columns = [named(f"model: {attribute}", attribute), Column("pairs", count, whole)]
    for part in ("lift", "canonical", "rest"):
        columns += [
            Column(f"TV {part}\nmean", mean(part), lambda found: fixed(3)(found[0])),
            Column(f"against\n{reference}", mean(f"{part}_difference"), THREE_DIGITS),
        ]
    columns.append(Column("healed", lambda group: int(_is_healed(group).sum()), whole))
    told = [
        f"against {reference}: mean difference to the same question with it. {INTERVALS}",
        "healed: cases in which ids at the end of the prompt had to be given back, for all "
        "methods; another table says what happens if they are not",
    ]
    pairs = pairs_of(drawn, attribute, reference)
    return table(title, by(pairs, attribute), columns, [*told, *notes])


def _is_healed(found: Points) -> pd.Series[bool]:
    return found["row"].map(lambda row: row["healing"] is not None).astype(bool)


def healing(drawn: Points) -> Table:
    """What a prompt does to the answer that ends where no tokenizer would cut."""
    healed = drawn[_is_healed(drawn)]
    names = ["model", "base", "way", "tv"]
    lines = pd.DataFrame(_as_it_stands(healed), columns=names).astype({"tv": float})
    columns = [
        named("as the prompt stands", "way"),
        CASES,
        Column("median", median("tv"), THREE_DIGITS),
        Column("mean", mean("tv"), THREE_DIGITS),
        Column("worst", highest("tv"), fixed(3)),
    ]
    notes = [
        "total variation distance to the free distribution of the same answers once the prompt's "
        "last ids are given back; free: without a mask, so that the prompt alone does it. "
        f"{INTERVALS}",
        f"{len(healed) - len(lines) // 2} cases are left out: they may be off by more than "
        f"{TOLERANCE}",
    ]
    groups = by(in_order(in_order(lines, "model"), "way", ("free", "lift")), "way")
    return table("Prompts that end inside a token", groups, columns, notes)


def _as_it_stands(healed: Points) -> list[Row]:
    """Two lines for each point that is within `TOLERANCE` of exact."""
    lines = []
    for point in records(healed):
        kept = point["row"]["healing"]["temperatures"][str(point["temperature"])]
        if point["at"]["free_slack"] + kept["slack"] <= TOLERANCE:
            asked = {"model": point["model"], "base": point["base"]}
            lines += [{**asked, "way": way, "tv": kept[f"tv_{way}"]} for way in ("free", "lift")]
    return lines


def canonical_share(found: Points) -> Table:
    """How much of the answers' free mass is canonical."""
    other = found["at"].map(lambda at: max(0.0, 1.0 - at["methods"]["canonical"]["share"]))

    def least(q: float) -> Callable[[Group], float]:
        return lambda group: 1 - float(np.quantile(group["other"], q, method="lower"))

    columns = [
        named("model: temperature", "temperature"),
        CASES,
        Column("median", least(0.5), small),
        Column("10 %", least(0.9), small),
        Column("1 %", least(0.99), small),
        Column("least", least(1), small),
        Column("under 0.9", lambda group: int((group["other"] > 0.1).sum()), whole),
    ]
    notes = [
        f"share of the free probability of a case's answers that is canonically tokenized. {SAME}",
        "10 %, 1 %: quantiles over the cases; in so many of them the share is no higher",
    ]
    groups = by(found.assign(other=other.astype(float)), "temperature")
    return table("How much of the free mass is canonical", groups, columns, notes)


def accuracy(methods: pd.DataFrame) -> Table:
    """Where right answers are known."""
    columns = [
        named("method", "method"),
        CASES,
        Column("P(right)\nmean", mean("p_right"), THREE_DIGITS),
        Column("above free", mean("above_free"), THREE_DIGITS),
        Column("likeliest\nis right", share("is_right"), percent(1)),
        Column("likeliest is\nthe free one", share("same_answer"), percent(1)),
    ]
    groups = by(methods[methods["p_right"].notna()], "method")
    return table("Right answers", groups, columns, [f"above free: in pairs. {INTERVALS}"])


def engines(drawn: Points, methods: pd.DataFrame) -> Table:
    """Where outlines-core and chop are not the lift."""
    columns = [
        named("method", "method"),
        CASES,
        Column("other\nsequences", total("other"), whole),
        Column(f"nearer by\nover {CLEARLY}", total("nearer"), whole),
        Column(f"farther by\nover {CLEARLY}", total("farther"), whole),
        Column("most\nlost", highest("lost"), small),
        Column("free mass it\ncan write, mean", mean("share"), FOUR_DIGITS),
        Column("least", lambda group: min(values(group, "share")), small),
    ]
    notes = [
        "other sequences: cases in which it allows other ids than the lift; nearer, farther: to "
        "the free distribution than the lift; lost: probability of running into a dead end",
        f"free mass it can write: what it lacks is out of reach of its weights too. {INTERVALS}",
        *absent(drawn["row"]),
    ]
    lines = methods[methods["method"].isin(("outlines", "chop"))]
    other, beyond = lines["other"].astype(bool), lines["beyond"].astype(float)
    lines = lines.assign(nearer=other & (beyond < -CLEARLY), farther=other & (beyond > CLEARLY))
    return table("Engines beside the lift", by(lines, "method"), columns, notes)


def worst(method: str, ordered: Points) -> Table:
    """The cases in which a method is farther from the free distribution than the other of lift and
    canonical, in full; those that differ most come first."""
    is_worse = ordered["tokenization"] > 0 if method == "the lift" else ordered["tokenization"] < 0
    chosen = records(ordered[is_worse].head(WORST))
    columns = [
        Column("case", "case", missing=""),
        Column("answer", "answer"),
        *(Column(name, name, fixed(4)) for name in ("free", "lift", "canonical")),
        Column("canonical\nweighted", "weighted", fixed(4)),
        Column("ids", "ids"),
        Column("TV lift", "tv_lift", small, missing=""),
        Column("TV canonical", "tv_canonical", small, missing=""),
    ]
    notes = []
    for place, point in enumerate(chosen, start=1):
        row, healed = point["row"], point["row"]["healing"]
        given_back = f", {healed['text']!r} given back" if healed else ""
        notes.append(f"{place}. after {row['prompt']!r} ({row['style']}{given_back})")
    return table(
        f"Worst cases: {method} is farther from the model's distribution",
        pd.DataFrame(_answers(chosen), dtype=object),
        columns,
        ["*: a right answer; ids: of its own tokenization", *notes],
    )


def _answers(chosen: Sequence[Row]) -> Iterator[Row]:
    """A line for each answer of each point; what is said of the point is in its first."""
    for place, point in enumerate(chosen, start=1):
        row, methods = point["row"], point["at"]["methods"]
        own = {
            "case": f"{place}. {label(point['model'])}: {point['name']}",
            "tv_lift": point["lift"],
            "tv_canonical": point["canonical"],
        }
        for k, answer in enumerate(row["answers"]):
            yield {
                **(own if k == 0 else dict.fromkeys(own)),
                "answer": repr(answer) + (" *" if answer in row["truth"] else ""),
                "free": point["at"]["free"][k],
                "lift": methods["lift"]["law"][k],
                "canonical": methods["canonical"]["law"][k],
                "weighted": methods["canonical"]["weighted"][k],
                "ids": row["canonical_tokens"][k],
            }


def beyond_tolerance(found: Points) -> Table:
    """Points that enter no summary."""
    fields = pd.json_normalize(found["at"].tolist()).assign(
        name=[
            f"{label(model)}: {name}, {temperature:g}"
            for model, name, temperature in found[["model", "name", "temperature"]].to_numpy()
        ],
        asked=[row["asked"] for row in found["row"]],
    )
    columns = [
        Column("case, temperature", "name"),
        Column("positions", "asked", whole),
        Column("free", "free_slack", small),
        Column("lift", "methods.lift.slack", small),
        Column("canonical", "methods.canonical.slack", small),
        Column("canonical\nweighted", "methods.canonical.weighted_slack", small),
    ]
    notes = [
        "probability of each distribution that belongs to no answer yet. Left out of all "
        f"summaries: a distance may be off by more than {TOLERANCE}"
    ]
    return table("Cases that are too large for their budget", fields, columns, notes)


# The three figures of the study: case by case, by family, and by how the question is put.

REST, MYOPIA = "#8d6a9f", "#edae49"
BOTH = {"lift": LIFT, "canonical": CANONICAL}
COLORS = dict(zip((*SHAPLEY, "rest"), (LIFT, MYOPIA, REST), strict=True))
"""Behind text that may lie on marks."""
DISTANCE = "total variation distance to the free distribution"
MARKERS = ("o", "s", "^", "D")
"""Of the models, in their order."""


def figures(rows: pd.DataFrame, manifest: Row) -> list[Figure]:
    """None where there is no point."""
    del manifest
    found = within_tolerance(points(rows))
    if found.empty:
        return []
    return [case_figure(at_draws(found)), family_figure(at_draws(found)), way_figure(found)]


def case_figure(drawn: Points) -> Figure:
    """A mark for each case: how far the lift and canonical are from the free distribution."""
    figure, axes = _panels(drawn["model"].nunique(), (5.6, 5.8))
    counts: dict[str, dict[str, int]] = {
        str(model): dict(zip(OUR_METHODS, farther(own), strict=True))
        for model, own in _models(drawn)
    }
    for panel, (model, own) in zip(axes, _models(drawn), strict=True):
        panel.axline((0, 0), (1, 1), color=PALE, linewidth=1)
        colors = own["tokenization"].map(_side_color)
        marks = {"s": 26, "c": colors, "alpha": 0.7, "linewidths": 0, "zorder": 2}
        panel.scatter(own["lift"], own["canonical"], **marks)
        panel.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
        of = counts[str(model)]
        told = f"of {len(own)} cases, lift farther in {of['lift']}, canonical in {of['canonical']}"
        _named(panel, f"{label(model)}: {told}", f"lift: {DISTANCE}")
    axes[0].set_ylabel(f"canonical: {DISTANCE}")
    each = [f"{label(m)} {of['lift']} : {of['canonical']}" for m, of in counts.items()]
    headline = f"Cases in which the lift : canonical is clearly farther off: {', '.join(each)}"
    note = (
        f"A mark is a case: one of {drawn['name'].nunique()} questions under one model. "
        f"Clearly, by more than {CLEARLY}: red where the lift is, green where canonical is.\n"
        f"Temperature {_temperature(drawn)}; exact, or each distance within {TOLERANCE} of it."
    )
    return Figure("distortion_study_cases", figure, headline, note)


def _models(found: Points) -> pd.api.typing.DataFrameGroupBy[Any, Any]:
    return found.groupby("model", observed=True)


def _side_color(more: float) -> str:
    if abs(more) <= CLEARLY:
        return PALE
    return LIFT if more > 0 else CANONICAL


def family_figure(drawn: Points) -> Figure:
    """Mean error of the lift, taken apart, for each family of constraints."""
    families = sorted(drawn["family"].unique(), reverse=True)
    size = (6.2, 1.6 + 0.55 * len(families))
    figure, axes = _panels(drawn["model"].nunique(), size, sharex=True, sharey=True)
    for panel, (model, own) in zip(axes, _models(drawn), strict=True):
        for family, some in own.groupby("family"):
            for shift, (part, color) in zip((0.22, 0.0, -0.22), COLORS.items(), strict=True):
                height = families.index(family) + shift
                mark(panel, height, mean(part)(some), color, is_flat=True)
        panel.axvline(0, color=PALE, linewidth=1)
        title = f"{label(model)}, {len(own)} cases"
        _named(panel, title, "mean part of the total variation distance")
        grid(panel, "x")
    counts = drawn["family"].value_counts()
    names = [f"{family.replace('_', ' ')} ({counts[family]})" for family in families]
    axes[0].set_yticks(range(len(families)), names)
    axes[0].tick_params(axis="y", length=0)
    handles = [
        _legend_mark("o", color, name) for name, color in zip(THREE, COLORS.values(), strict=True)
    ]
    axes[-1].legend(handles=handles, loc="lower right", frameon=False)
    note = (
        "tokenization, myopia: what canonical ids, and what weights take away from TV lift, as the "
        "mean of both orders; rest: TV canonical weighted. Temperature "
        f"{_temperature(drawn)}.\nLines: 95 % intervals by drawing questions with replacement; in "
        "brackets: cases of all models"
    )
    return Figure("distortion_study_families", figure, _family_headline(drawn), note)


def _family_headline(drawn: Points) -> str:
    told = []
    for model, own in _models(drawn):
        share = own[list(SHAPLEY)].sum() / (own["lift"].sum() or 1.0)
        told.append(f"{share[SHAPLEY[0]]:.0%} and {share[SHAPLEY[1]]:.0%} ({label(model)})")
    return f"Of the lift's error tokenization and myopia are {', '.join(told)}"


def way_figure(found: Points) -> Figure:
    """Mean errors of both by temperature, and differences by style and boundary in pairs."""
    figure, axes = _panels(3, (4.4, 5.2))
    complete, drawn = at_every_temperature(found), at_draws(found)
    markers = {model: MARKERS[k % len(MARKERS)] for k, (model, _) in enumerate(_models(found))}
    _temperatures(axes[0], complete, markers)
    _differences(axes[1], drawn, "style", "plain", markers)
    _differences(axes[2], drawn, "boundary", "space", markers)
    handles = [_legend_mark(shape, PALE, label(model)) for model, shape in markers.items()]
    line = require("matplotlib.lines").Line2D
    handles += [line([], [], color=color, label=name) for name, color in BOTH.items()]
    axes[0].set_ylim(top=1.25 * axes[0].get_ylim()[1])  # room for the legend
    axes[0].legend(handles=handles, frameon=False, fontsize=9, ncols=2, loc="upper left")
    note = (
        f"Left: means over the {len(at_draws(complete))} cases of {len(drawn)} that are within "
        f"{TOLERANCE} of exact at every temperature. Middle, right: mean difference to the same "
        "question asked the\nother way, in pairs. Lines: 95 % intervals by drawing questions with "
        "replacement; in brackets: pairs of all models"
    )
    return Figure("distortion_study_ways", figure, _way_headline(complete), note)


def _way_headline(found: Points) -> str:
    """found: the same cases at every temperature."""
    if found.empty:
        return "No case is exact enough at every temperature"
    told = []
    for model, own in _models(found):
        means = own.groupby("temperature")[["lift", "canonical"]].mean()
        first, last = means.iloc[0], means.iloc[-1]
        ends = [f"{first[method]:.2f} to {last[method]:.2f}" for method in OUR_METHODS]
        told.append(f"{label(model)} {ends[0]}, {ends[1]}")
    low, high = found["temperature"].min(), found["temperature"].max()
    return f"Lift, canonical, temperature {low:g} to {high:g}: {'; '.join(told)}"


def _temperatures(panel: Any, found: Points, markers: Mapping[str, str]) -> None:
    for k, (model, own) in enumerate(_models(found)):
        each = own.groupby("temperature")
        for part, color in BOTH.items():
            means = each[part].mean()
            panel.plot(means.index + 0.02 * (k - 0.5), means, color=color, alpha=0.4)
            for temperature, some in each:
                place = temperature + 0.02 * (k - 0.5)
                mark(panel, place, mean(part)(some), color, markers[model])
    panel.set_ylim(bottom=0)
    panel.set_xticks(sorted(found["temperature"].unique()))
    _named(panel, "Temperature", "temperature", f"mean {DISTANCE}")


def _differences(
    panel: Any, drawn: Points, attribute: str, reference: str, markers: Mapping[str, str]
) -> None:
    """Against the reference's way of asking."""
    pairs, models = pairs_of(drawn, attribute, reference), list(markers)
    ways = sorted(pairs[attribute].unique())
    for (model, way), some in pairs.groupby(["model", attribute], observed=True):
        for side, (part, color) in enumerate(BOTH.items()):
            place = ways.index(way) + 0.14 * (2 * models.index(model) + side - 1.5)
            mark(panel, place, mean(f"{part}_difference")(some), color, markers[model])
    panel.axhline(0, color=PALE, linewidth=1)
    counts = pairs[attribute].value_counts()
    panel.set_xticks(
        range(len(ways)), [f"{way.replace('_', ' ')}\n({counts[way]})" for way in ways]
    )
    title = f"{attribute.capitalize()}, against {reference}"
    _named(panel, title, attribute, f"difference to {reference}")


def _named(panel: Any, title: str, x: str, y: str = "") -> None:
    panel.set_title(title, loc="left", fontsize=11)
    panel.set(xlabel=x, ylabel=y)


def _legend_mark(marker: str, color: str, name: str) -> Any:
    line = require("matplotlib.lines").Line2D
    return line([], [], marker=marker, linestyle="", color=color, label=name)


def _panels(count: int, size: tuple[float, float], **options: Any) -> tuple[Any, list[Any]]:
    """In a line."""
    figure, axes = panels(1, count, (size[0] * max(count, 1.6), size[1]), **options)
    return figure, list(axes[0])


def _temperature(drawn: Points) -> str:
    return ", ".join(f"{value:g}" for value in sorted(drawn["temperature"].unique()))
