"""The distortion study in tables and figures: how far methods are from the free distribution, where
that comes from, and what it depends on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from experiments.answers.asked import asked_models
from experiments.answers.populations import PARTICLES
from experiments.run.executors import Row
from experiments.run.report import Figure, grid, panels
from experiments.run.tables import (
    Column,
    Group,
    Table,
    count,
    highest,
    interval,
    quantiles,
    several,
    share,
    table,
    total,
)
from experiments.shared.shown import (
    CANONICAL,
    LIFT,
    PALE,
    absent,
    by,
    in_lines,
    in_order,
    label,
    mark,
    named,
)
from experiments.show import fixed, is_missing, percent, small, whole
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
    points,
    share_of_lift,
    where_kl_is_finite,
    within_tolerance,
)

INTERVALS = (
    "[ ]: 95 % intervals by drawing questions with replacement, variants together; each for "
    "itself, so of a hundred of them some miss"
)
MODEL = Column("model", lambda group: label(group["model"].iloc[0]))
CASES = Column("cases", count, whole)
SAME = f"the cases are those within {TOLERANCE} of exact at every temperature"
FARTHER = Column("lift : canonical\nfarther", farther, several(whole, " : "))
THREE_DIGITS, FOUR_DIGITS = interval(fixed(3)), interval(fixed(4))
"""Cases in each of the two tables of worst ones."""


def tables(rows: pd.DataFrame, manifest: Row) -> list[Table]:
    """Those that have a line."""
    del manifest
    every = points(rows)
    if every.empty:
        return []
    found = within_tolerance(every)
    drawn = at_draws(found)
    methods = of_methods(found)
    complete = at_every_temperature(found)
    lengths = drawn["ids"].map(lambda ids: str(ids) if ids < 4 else "4 or more")
    left_out = (
        f"{len(every) - len(found)} of {len(every)} cases and temperatures are left out here and "
        f"in all summaries: a distance may be off by more than {TOLERANCE}"
    )
    made = [
        distances(drawn, methods, [left_out, *asked_models(rows)]),
        paired(drawn),
        by_family(drawn),
        by_mass(drawn),
        by_target(of_targets(found)),
        parts(
            "The effect of length: ids of the longest answer, canonically",
            named("model: ids", "length"),
            by(drawn.assign(length=lengths), "length"),
        ),
        parts(
            "The effect of temperature",
            named("model: temperature", "temperature"),
            by(complete, "temperature"),
            ["the free distribution is the model's own at that temperature", SAME],
        ),
        canonical_share(complete),
        accuracy(methods),
    ]
    return [table for table in made if table.rows]


def distances(drawn: Points, methods: pd.DataFrame, more: Sequence[str] = ()) -> Table:
    """All methods."""
    there = methods[methods["tv"].notna()]
    samplers = [of for row in drawn["row"] for way in row["draws"].values() for of in way.values()]
    error = max((size["error"] for of in samplers for size in of.values()), default=0.0)
    columns = [
        named("method", "method"),
        CASES,
        Column("TV median", median("tv"), FOUR_DIGITS),
        Column("TV mean", mean("tv"), THREE_DIGITS),
        Column("TV 90 %", quantiles("tv", 0.9), several(fixed(3))),
        Column("TV worst", highest("tv"), fixed(3)),
        Column("KL median", where_kl_is_finite(median("kl")), FOUR_DIGITS),
        Column("KL mean", where_kl_is_finite(mean("kl")), THREE_DIGITS),
        Column("KL infinite\ncases", infinite_kl, whole),
    ]
    notes = [
        "at the temperature nearest to 1, at which draws are simulated, as where none is named",
        "the questions were written to cover kinds of constraints, before any was measured, and "
        "are no sample: intervals say how much depends on which of them are taken",
        "free: the model's own distribution of id sequences that end exactly where an answer does, "
        "given that it writes one; ids that run past the end of an answer are not counted, and no "
        "end of sequence is asked for",
        "TV: total variation distance to the free distribution, with no answer as an outcome where "
        f"a method has dead ends; cases: those where it is within {TOLERANCE} of exact. "
        f"{INTERVALS}",
        "KL: KL(free || method) in nats; median and mean of the cases where it is finite. It is "
        "infinite where an answer that the model gives was not found under the method",
        "weighted: what importance weights and SMC converge to, the free distribution given what "
        "the method can write. The lift's is the free distribution itself; the others cannot reach "
        "it where their sequences lack free mass",
        f"of {' or '.join(map(str, PARTICLES))}: the distribution of one draw from a weighted "
        "population of that size, simulated. On average each of these distances is off by at most "
        f"{error:.3f} (half the sum of its standard errors, in the worst case), "
        "which makes small ones larger; the KL of a simulated distribution says nothing",
        "outlines: the index of outlines-core; chop: the lift with the heuristic for forced text",
        *absent(drawn["row"]),
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
        Column("TV lift\nmean", mean("lift"), THREE_DIGITS),
        *(Column(f"{part}\nmean", mean(part), THREE_DIGITS) for part in THREE),
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
        "Shapley: the mean of both orders in which the two can be taken away. The lift with "
        "weights is exact, so if masking goes first, myopia is all of TV lift, and tokenization is "
        "-rest: its Shapley value cannot exceed one half",
        "farther: in how many cases either is farther from the free distribution by more than "
        f"{CLEARLY}. {INTERVALS}",
    ]
    return table(title, groups, columns, [*told, *notes])


def paired(drawn: Points) -> Table:
    """The lift against canonical, case by case."""
    columns = [
        MODEL,
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
    notes = ["mass: the model's probability of all answers of a case together, unasked"]
    notes += [
        f"{label(model)}: rank correlation of mass with TV lift {_correlation(some, 'lift')}, with "
        f"TV canonical {_correlation(some, 'canonical')}"
        for (model,), some in by(drawn)
    ]
    first = named("model: mass", "masses")
    groups = by(in_order(drawn, "masses", tuple(MASSES)), "masses")
    return parts("The effect of the mass of the answers", first, groups, notes)


def by_target(lines: pd.DataFrame) -> Table:
    """What can be meant by "the model writes this answer", and what changes with it."""
    columns = [
        MODEL,
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
        "that the model writes an answer can mean: ids that spell it exactly come next (sequence, "
        "as in all other tables); its text begins with it, so that the last id may go past its end "
        "(prefix); ids that spell it, then the end (complete)",
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
    every = in_order(pd.concat([drawn.assign(family="all"), drawn]), "family", families)
    first = named("model: family", "family")
    return parts("Where the error comes from, by family", first, by(every, "family"))


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
        "share of the free probability of a case's answers that is canonically tokenized",
        SAME,
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


# The figures of the study: case by case, and by family.

INCHES = 9.0
"""Of the figures, from side to side."""
COLORS = dict(zip((*SHAPLEY, "rest"), (LIFT, "#edae49", "#8d6a9f"), strict=True))


def figures(rows: pd.DataFrame, manifest: Row) -> list[Figure]:
    """None where there is no point."""
    del manifest
    found = within_tolerance(points(rows))
    drawn = at_draws(found)
    return [case_figure(drawn), family_figure(drawn)] if len(found) else []


def case_figure(drawn: Points) -> Figure:
    """A mark for each case: how far the lift and canonical are from the free distribution."""
    figure, axes = _panels(drawn, 5.0)
    counts = []
    for panel, (model, own) in zip(axes, _models(drawn), strict=True):
        panel.axline((0, 0), (1, 1), color=PALE, linewidth=1)
        colors = own["tokenization"].map(_side_color)
        marks = {"s": 22, "c": colors, "alpha": 0.7, "linewidths": 0, "zorder": 2}
        panel.scatter(own["lift"], own["canonical"], **marks)
        panel.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
        panel.set_xlabel("TV of the lift to the free distribution")
        of_lift, of_canonical = farther(own)
        counts.append(f"{label(str(model))} {of_lift} : {of_canonical}")
    axes[0].set_ylabel("TV of canonical to the free distribution")
    note = (
        f"A mark is a case: one of {drawn['name'].nunique()} questions under one model. "
        f"Clearly, by more than {CLEARLY}: red where the lift is, blue where canonical is. "
        f"Temperature {_temperature(drawn)}; exact, or each distance within {TOLERANCE} of it."
    )
    headline = f"Clearly farther off, lift : canonical: {', '.join(counts)}"
    return Figure("distortion_study_cases", figure, in_lines(headline, INCHES), note)


def family_figure(drawn: Points) -> Figure:
    """Mean error of the lift, taken apart, for each family of constraints."""
    families = sorted(drawn["family"].unique(), reverse=True)
    figure, axes = _panels(drawn, 1.6 + 0.4 * len(families), sharex=True, sharey=True)
    for panel, (_, own) in zip(axes, _models(drawn), strict=True):
        for family, some in own.groupby("family"):
            for shift, (part, color) in zip((0.22, 0.0, -0.22), COLORS.items(), strict=True):
                height = families.index(family) + shift
                mark(panel, height, mean(part)(some), color, is_flat=True)
        panel.axvline(0, color=PALE, linewidth=1)
        panel.set_xlabel("mean part of the TV of the lift")
        grid(panel, "x")
    counts = drawn["family"].value_counts()
    names = [f"{family.replace('_', ' ')} ({counts[family]})" for family in families]
    axes[0].set_yticks(range(len(families)), names)
    axes[0].tick_params(axis="y", length=0)
    for name, color in zip(THREE, COLORS.values(), strict=True):
        axes[-1].scatter([], [], color=color, label=name)
    axes[-1].legend(loc="upper right", frameon=False)
    note = (
        "tokenization, myopia: what canonical ids, and what weights take away from the TV of the "
        "lift to the free distribution, as the mean of both orders; rest: TV of canonical with "
        f"weights. Temperature {_temperature(drawn)}. Lines: 95 % intervals by drawing questions "
        "with replacement; in brackets: cases of all models"
    )
    shares = [
        f"{label(str(model))} {own[SHAPLEY[0]].sum() / error:.0%} : "
        f"{own[SHAPLEY[1]].sum() / error:.0%}"
        for model, own in _models(drawn)
        if (error := own["lift"].sum()) > 0
    ]
    headline = f"The lift's error, tokenization : myopia: {', '.join(shares)}"
    return Figure("distortion_study_families", figure, in_lines(headline, INCHES), note)


def _panels(drawn: Points, height: float, **options: Any) -> tuple[Any, list[Any]]:
    """In a line, one for each model."""
    figure, axes = panels(1, drawn["model"].nunique(), (INCHES, height), **options)
    for panel, (model, own) in zip(axes[0], _models(drawn), strict=True):
        panel.set_title(f"{label(str(model))}, {len(own)} cases", loc="left", fontsize=11)
    return figure, list(axes[0])


def _models(found: Points) -> pd.api.typing.DataFrameGroupBy[Any, Any]:
    return found.groupby("model", observed=True)


def _side_color(more: float) -> str:
    if abs(more) <= CLEARLY:
        return PALE
    return LIFT if more > 0 else CANONICAL


def _temperature(drawn: Points) -> str:
    return ", ".join(f"{value:g}" for value in sorted(drawn["temperature"].unique()))
