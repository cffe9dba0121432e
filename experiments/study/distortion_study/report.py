"""The distortion study as tables, facts, figures, and what the README says of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from experiments.answers.cases import PLAIN
from experiments.answers.methods import OUR_METHODS
from experiments.answers.targets import COMPLETE, PREFIX
from experiments.run import statistics
from experiments.run.executors import Row
from experiments.run.files import require
from experiments.run.report import Figure, grid, panels
from experiments.run.tables import Table, markdown, records
from experiments.shared.shown import CANONICAL, LIFT, PALE, mark
from experiments.study.distortion_study.asked import SAMPLED
from experiments.study.enumerated import tables as enumerated
from experiments.study.enumerated.points import (
    CLEARLY,
    MASSES,
    PARTS,
    SHAPLEY,
    THREE,
    TOLERANCE,
    Points,
    at_draws,
    at_every_temperature,
    farther,
    label,
    mean,
    of_methods,
    of_targets,
    pairs_of,
    points,
    share_of_lift,
    within_tolerance,
)
from experiments.study.sampled import tables as sampled

TITLE = "How much a constraint distorts a model, where it comes from, and what removes it"


def tables(rows: pd.DataFrame, manifest: Row) -> list[Table]:
    """Those that have a line."""
    del manifest
    every, large = points(rows), records(rows[rows["kind"] == SAMPLED])
    exact = [] if every.empty else enumerated.tables(every, asked_models(rows))
    made = [*exact[:-1], *sampled.tables(large), *exact[-1:]]
    return [table for table in made if table.rows]


def figures(rows: pd.DataFrame, manifest: Row) -> list[Figure]:
    """None where there is no point."""
    del manifest
    found = within_tolerance(points(rows))
    if found.empty:
        return []
    return [by_case(at_draws(found)), by_family(at_draws(found)), by_way(found)]


def asked_models(rows: pd.DataFrame) -> list[str]:
    """A note on each: which it is, and how it is asked in chats."""
    notes = []
    for row in records(rows[rows["kind"] == "model"]):
        format_ = row["chat_format"]
        chats = "in plain text" if format_ == PLAIN else f"with the marks of the format {format_}"
        notes.append(
            f"{label(row['source'])}: {row['model']}, its chats {chats}, without a system message. "
            f"{row['note']}".strip()
        )
    return notes


def facts(rows: pd.DataFrame, manifest: Row) -> Row:
    """By model, at the temperature of the draws; what the README needs and others may read.

    finite: how many cases have enumerated answers and are within `TOLERANCE` of exact; large: how
    many are sampled; both under however many models. points, settled: cases under one model at one
    temperature, and those of them within `TOLERANCE`.
    """
    del manifest
    every = points(rows)
    found = within_tolerance(every)
    kinds = {kind: records(group) for kind, group in rows.groupby("kind")}
    methods, targets = of_methods(found), of_targets(found)
    return {
        "finite": int(at_draws(found)["name"].nunique()),
        "large": len({row["name"] for row in kinds.get(SAMPLED, [])}),
        "points": len(every),
        "settled": len(found),
        "models": {
            str(model): _model_facts(some, methods[methods["model"] == model])
            | {"targets": _target_facts(targets[targets["model"] == model])}
            for model, some in at_draws(found).groupby("model", observed=True)
        },
        "notes": {row["source"]: row["note"] for row in kinds.get("model", [])},
    }


def _model_facts(drawn: Points, methods: pd.DataFrame) -> Row:
    lift, canonical = farther(drawn)
    single = drawn[drawn["ids"] == 1]
    worst = {"lift": drawn["tokenization"].idxmax(), "canonical": drawn["tokenization"].idxmin()}
    divergences = dict([*methods.groupby("method", observed=True)["kl"]])
    return {
        "cases": len(drawn),
        "lift_farther": lift,
        "canonical_farther": canonical,
        "parts": {name: _part_facts(drawn, name) for name in PARTS},
        "shares": {name: _share_facts(drawn, name) for name in (*THREE, *SHAPLEY)},
        "masses": {
            str(name): {
                "cases": len(some),
                **{part: float(some[part].mean()) for part in OUR_METHODS},
            }
            for name, some in drawn.groupby("masses")
        },
        "kl": {
            name: _kl_facts(divergences[name])
            for name in ("lift", "canonical", "canonical, weighted")
        },
        "single": len(single),
        "single_parts": {name: _part_facts(single, name) for name in PARTS},
        "worst": {
            name: {"case": p["name"], "lift": p["lift"], "canonical": p["canonical"]}
            for name, p in ((name, drawn.loc[place]) for name, place in worst.items())
        },
    }


def _target_facts(lines: pd.DataFrame) -> Row:
    """By target: cases, the mean distances of both, and in how many cases they change places."""
    return {
        str(name): {
            "cases": len(some),
            "turned": int(some["turned"].sum()),
            **{method: float(some[method].mean()) for method in OUR_METHODS},
        }
        for name, some in lines.groupby("target", observed=True)
    }


def _part_facts(found: Points, part: str) -> Row:
    """Nothing of nothing."""
    made = mean(part)(found)
    if made is None:
        return {}
    value, low, high = made
    values = found[part].tolist()
    return {
        "mean": value,
        "mean_interval": (low, high),
        "median": statistics.quantile(values, 0.5),
        "upper": statistics.quantile(values, 0.9),
        "highest": max(values),
        "over_0.1": float(np.mean(found[part] > 0.1)),
    }


def _share_facts(found: Points, part: str) -> Row:
    """Of the lift's error, summed up over the cases; None for what nothing can be said of."""
    made = share_of_lift(part)(found) or (np.nan,) * 3
    value, *ends = (None if np.isnan(v) else v for v in made)
    return {"value": value, "interval": ends}


def _kl_facts(found: pd.Series[float]) -> Row:
    """In nats; None where no case is finite."""
    finite = found[np.isfinite(found)].tolist()
    return {
        "median": statistics.quantile(finite, 0.5) if finite else None,
        "mean": float(np.mean(finite)) if finite else None,
        "infinite": len(found) - len(finite),
    }


def readme(facts: Row) -> dict[str, str]:
    """A line of a table for each model, and the whole of it in a paragraph."""
    if not facts:
        return {}
    return {"distortion-study": _paragraph(facts), "distortion-study in short": _in_short(facts)}


def _in_short(facts: Row) -> str:
    columns = "model", "cases", "lift: mean", "median", "canonical: mean", "median"
    lines = []
    for model, found in facts["models"].items():
        errors = [found["parts"][way] for way in OUR_METHODS]
        shown = [f"{error[kind]:.3f}" for error in errors for kind in ("mean", "median")]
        lines.append((label(model), str(found["cases"]), *shown))
    return markdown(columns, lines)


def _paragraph(facts: Row) -> str:
    sentences = [_sentence(model, found) for model, found in facts["models"].items()]
    return "\n".join(
        [
            f"`python -m experiments run distortion-study` asks {facts['finite']} cases of "
            f"listed answers exactly (or within {TOLERANCE}), and {facts['large']} of larger "
            f"languages by sampling, under {len(facts['models'])} models "
            "([all tables](paper_figures/distortion-study.md)). The error is the total variation "
            "distance to the model's own distribution of id sequences that end where an answer "
            "does, given that it writes one; *mass* is the probability that it does. Two things "
            "can be taken away from the lift's error: other *tokenizations* (by canonical ids), "
            "and the *myopia* of masking step by step (by importance weights). What is taken away "
            "first matters: weights alone make the lift exact, so what is left to tokenization "
            "after them is nothing, and the mean over both orders, its Shapley value, cannot "
            "exceed one half. The *rest* is the effect of free mass that is not canonical. The "
            "questions were written for this, to cover kinds of constraints; they are no sample of "
            "what people ask.",
            "",
            *sentences,
        ]
    )


def _sentence(model: str, found: Row) -> str:
    parts, kl = found["parts"], found["kl"]
    told = (
        f"- *{label(model)}*, {found['cases']} cases: the lift's error is "
        f"{parts['lift']['mean']:.3f} on average (median {parts['lift']['median']:.4f}), "
        f"canonical's {parts['canonical']['mean']:.3f} ({parts['canonical']['median']:.4f}); case "
        f"by case they differ by {parts['tokenization']['mean']:.3f} (median "
        f"{parts['tokenization']['median']:.4f}). {_by_mass(found['masses'])}"
        f"{_shares(found['shares'])}The median KL divergence is {_nats(kl['lift'])} of the "
        f"lift, {_nats(kl['canonical'])} of canonical. By more than {CLEARLY}, the lift is farther "
        f"off in {found['lift_farther']} cases, canonical in {found['canonical_farther']}"
    )
    if found["canonical_farther"]:
        worst = found["worst"]["canonical"]
        told += (
            f" (most in `{worst['case']}`: {worst['canonical']:.2f} against {worst['lift']:.2f})"
        )
    told += f". {_by_target(found['targets'])}"
    single = found["single_parts"]
    if found["single"]:
        told += (
            f" Where each answer is one token ({found['single']} cases), the two are "
            f"{single['lift']['mean']:.3f} and {single['canonical']['mean']:.4f} off: canonical "
            "masks one step then, so only the mass on other tokenizations is lost."
        )
    return told


def _by_target(found: Row) -> str:
    """Nothing of rows from before there were targets."""
    if PREFIX not in found:
        return ""
    told = [f"Against the texts that begin with an answer the two are {_off(found[PREFIX])}"]
    if COMPLETE in found:
        told.append(f"against answers with the end behind them {_off(found[COMPLETE])}")
    return f"{', '.join(told)}: neither mask knows whether the model would stop there."


def _off(target: Row) -> str:
    return (
        f"{target['lift']:.3f} and {target['canonical']:.3f} off in {target['cases']} cases (their "
        f"order is reversed in {target['turned']})"
    )


def _shares(found: Row) -> str:
    """Nothing where there is no error."""
    if any(found[name]["value"] is None for name in THREE):
        return ""
    first, then = (found[name]["value"] for name in ("tokenization", "myopia"))
    own, steps = (found[name]["value"] for name in SHAPLEY)
    rest = found["rest"]["value"]
    return (
        f"Of the lift's errors, summed up, canonical ids take away {first:.0%} if they come first "
        f"(weights then {then:.0%}, and {rest:.0%} stay), and nothing if weights do; the Shapley "
        f"values are {own:.0%} tokenization and {steps:.0%} myopia. "
    )


def _by_mass(found: Row) -> str:
    """How far both are off by how likely the answers are."""
    told = [
        f"{found[name]['lift']:.3f} and {found[name]['canonical']:.3f} where the answers have a "
        f"mass {name} ({found[name]['cases']} cases)"
        for name in MASSES
        if name in found
    ]
    return f"The two are {', '.join(told)}. "


def _nats(found: Row) -> str:
    if found["median"] is None:
        return "infinite"
    more = f" (infinite in {found['infinite']} cases)" if found["infinite"] else ""
    return f"{found['median']:.4f} nats{more}"


# The three figures of the study: case by case, by family, and by how the question is put.

REST, MYOPIA = "#8d6a9f", "#edae49"
BOTH = {"lift": LIFT, "canonical": CANONICAL}
COLORS = dict(zip((*SHAPLEY, "rest"), (LIFT, MYOPIA, REST), strict=True))
"""Behind text that may lie on marks."""
DISTANCE = "total variation distance to the free distribution"
MARKERS = ("o", "s", "^", "D")
"""Of the models, in their order."""


def by_case(drawn: Points) -> Figure:
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


def by_family(drawn: Points) -> Figure:
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


def by_way(found: Points) -> Figure:
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
