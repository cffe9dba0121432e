"""The tables, the figure and the facts of the distortion table, and what the README says of them.

TV: total variation distance to the free distribution, the model's own over the answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean
from typing import Any

import pandas as pd

from experiments.answers.cases import PRESIDENT, PROMPTS
from experiments.answers.methods import OUR_METHODS
from experiments.run.executors import FAILURE, Row
from experiments.run.readme import wrapped
from experiments.run.report import Figure, Report, grid, panels
from experiments.run.tables import Column, Table, fixed, percent, small, table, three, whole
from experiments.shared.shown import CANONICAL, LIFT, PALE

LIKELY = 0.01
"""Mass of answers from which on they are called likely."""
PUBLISHED = {"free": 0.85879, "lift": 0.52852, "canonical": 0.85872}
"""P(" William"), published for Mistral-7B by Tran-Thien (2024); "lift" is his "Outlines"."""
PUBLISHED_BOOLEAN = {"lift": (17, 48), "canonical": (5, 4)}
"""States and transitions for `boolean: ((true)|(false))`, from its companion notebook."""
SOURCE = (
    'Published values: Tran-Thien, "Fast, High-Fidelity LLM Decoding with Regex Constraints" '
    "(2024), Mistral-7B. Not measured here."
)
ALPHA = 0.01
"""Probability that any of all the intervals of a run misses its exact value, if all is right."""
SHOWN = ("president", "json_bool", "json_enum_quoted", "russian")
"""The prompts that the README's example shows; the first is the founding one."""
METHODS = ("free", *OUR_METHODS)
FREE = "#333333"
LINEAR = 1e-3
"""Up to it the axis of distances is linear: differences between smaller ones mean nothing."""


def render(rows: Sequence[Row], manifest: Row) -> Report:
    """Nothing but a title where no prompt was finished: then there is nothing for the README to
    say, which is no complete report."""
    good = [row for row in rows if not row.get(FAILURE)]
    model = {"model": manifest["config"]["model"], "note": ""}
    model = next((row for row in good if row["kind"] == "model"), model)
    title = f"Distortion: {model['model']}"
    # in the order in which they were asked for, not in that in which they were done
    names = [*(manifest["config"]["prompts"] or (case.name for case in PROMPTS))]
    cases = [row for row in good if row["kind"] == "case"]
    cases.sort(key=lambda row: names.index(row["name"]) if row["name"] in names else len(names))
    if not cases:
        return Report(title, complete=False)
    told, fields = facts(cases, model), pd.json_normalize(cases)
    tables = [
        distributions(cases, told, model),
        distances(fields),
        sizes(fields),
        article(cases, [row for row in good if row["kind"] == "boolean"], model),
    ]
    return Report(title, tables, [figure(cases, model)], told)


def facts(cases: Sequence[Row], model: Row) -> Row:
    """What the README needs. cells: exact values that were drawn from; inside: those that lie in
    the interval of their sample."""
    samples = [row["samples"][method] for row in cases for method in METHODS]
    flags = [inside for drawn in samples if drawn["n"] for inside in drawn["inside"]]
    return {
        "model": model["model"],
        "prompts": len(cases),
        "samples": min(row["samples"]["lift"]["n"] for row in cases),
        "cells": len(flags),
        "inside": sum(flags),
        "cases": {row["name"]: _case_facts(row) for row in cases},
    }


def _case_facts(row: Row) -> Row:
    methods = row["methods"]
    return {
        "answers": row["answers"],
        "laws": {"free": row["free"]} | {name: methods[name]["law"] for name in methods},
        "drawn": {
            name: [count / drawn["n"] for count in drawn["counts"]] if drawn["n"] else None
            for name, drawn in ((name, row["samples"][name]) for name in METHODS)
        },
        "tv": {name: methods[name]["total_variation"] for name in methods},
        "tv_given_canonical": row["total_variation_given_canonical"],
        "not_canonical": row["other_share"],
        "mass": row["free_mass"],
        "tokens": _tokens(row),
    }


def _tokens(row: Row) -> str:
    low, high = min(row["canonical_tokens"]), max(row["canonical_tokens"])
    return str(low) if low == high else f"{low}-{high}"


def distributions(cases: Sequence[Row], told: Row, model: Row) -> Table:
    """One line per answer: exact and sampled probabilities of the three methods."""
    columns = [Column("prompt", "prompt"), Column("answer", "answer")]
    for method in METHODS:
        columns.append(Column(method, method, fixed(4)))
        columns.append(Column("drawn", f"{method} drawn", missing="none"))
    notes = [
        "free: the model's own distribution over the answers, each summed over all ids that spell "
        "it exactly, whatever follows (sequence, in all tables here); lift, canonical: masked and "
        "renormalised step by step",
        f"drawn: frequency among {told['samples']} samples (free: at least as many); "
        f"{told['inside']} of {told['cells']} exact values lie in the Clopper-Pearson interval of "
        f"their sample (joint level {1 - ALPHA:.0%}, Bonferroni); others are marked !. Samples are "
        "drawn from the same cached probabilities, so they check the samplers and the sums, not "
        "the model",
        *([model["note"]] if model["note"] else []),
    ]
    lines = pd.DataFrame(_answers(cases), dtype=object)
    return table("Probability of each answer", lines, columns, notes)


def _answers(cases: Sequence[Row]) -> Iterator[Row]:
    for row in cases:
        told = _case_facts(row)
        for k, answer in enumerate(row["answers"]):
            line = {"prompt": "" if k else row["name"], "answer": repr(answer)}
            for method in METHODS:
                line[method] = told["laws"][method][k]
                if drawn := told["drawn"][method]:
                    flag = "" if row["samples"][method]["inside"][k] else " !"
                    line[f"{method} drawn"] = f"{drawn[k]:.4f}{flag}"
            yield line


def distances(fields: pd.DataFrame) -> Table:
    """One line per prompt: how far each method is from the free distribution."""
    columns = [
        Column("prompt", "name"),
        Column("ids", lambda group: _tokens(group.iloc[0])),
        Column("mass", "free_mass", "{:.1e}".format),
        Column("not\ncanonical", "other_share", small),
        *(Column(f"TV\n{m}", f"methods.{m}.total_variation", small) for m in OUR_METHODS),
        Column("TV given\ncanonical", "total_variation_given_canonical", small),
        *(Column(f"KL\n{m}", f"methods.{m}.kl_nats", small) for m in OUR_METHODS),
    ]
    notes = [
        "ids: length of the answers' canonical tokenizations; mass: of all answers together under "
        "the free model; not canonical: the share of it that is spelled by other tokenizations",
        "TV: total variation distance to the free distribution; KL(free || method) in nats",
        "TV given canonical: the free distribution conditioned on canonical ids. What TV canonical "
        "has above it comes from renormalising step by step, which no mask avoids",
    ]
    return table("Distance to the free distribution", fields, columns, notes)


def sizes(fields: pd.DataFrame) -> Table:
    """One line per prompt: the automata in numbers."""
    for m in OUR_METHODS:
        own = {name: fields[f"methods.{m}.{name}"] for name in ("forced", "steps")}
        expected = fields[f"methods.{m}.expected_forced"] / fields[f"methods.{m}.expected_steps"]
        shares = own["forced"].astype(str) + "/" + own["steps"].astype(str)
        fields = fields.assign(**{f"{m} forced": shares, f"{m} expected": expected})
    columns = [Column("prompt", "name")]
    for name in ("states", "transitions"):
        columns += [Column(f"{name}\n{m}", f"methods.{m}.{name}", whole) for m in OUR_METHODS]
    columns += [Column(f"one option\n{m}", f"{m} forced") for m in OUR_METHODS]
    columns += [Column(f"expected\n{m}", f"{m} expected", percent(1)) for m in OUR_METHODS]
    notes = [
        "one option: states with a single transition, of those that have any; expected: share of "
        "the steps of a drawn answer that have a single option"
    ]
    return table("Automata after the prompt", fields, columns, notes)


def article(cases: Sequence[Row], boolean: Sequence[Row], model: Row) -> Table:
    """The article's own two examples, published beside measured."""
    lines = [
        (f"P(' William'), {method}", f"{value:.5f}", f"{row['law'][0]:.5f}")
        for case in cases
        if case["name"] == PRESIDENT.name
        for method, value in PUBLISHED.items()
        for row in [case["methods"].get(method, {"law": case["free"]})]
    ]
    lines += [
        (f"states / transitions, {method}", f"{n} / {m}", "{states} / {transitions}".format(**size))
        for row in boolean
        for method, (n, m) in PUBLISHED_BOOLEAN.items()
        for size in [row["sizes"][method]]
    ]
    columns = ["president; boolean: ((true)|(false))", "Mistral-7B (published)", model["model"]]
    note = (
        "another model: what can be compared is that the lift is far off and canonical is not, and "
        "the sizes of the automata"
    )
    return Table("The article's examples", columns, lines, [SOURCE, note])


def readme(facts: Row) -> dict[str, str]:
    """The founding example, and what `make demo` prints."""
    example = {"distortion example": _example(facts)} if SHOWN[0] in facts["cases"] else {}
    return example | {"distortion": _demo(facts)}


def _example(facts: Row) -> str:
    case = facts["cases"][SHOWN[0]]
    distributions = case["laws"]
    free, lift, canonical = (distributions[method][0] for method in METHODS)
    return wrapped(
        "Asked for the first name of the US president who was a member of the Sigma Alpha Epsilon "
        f"fraternity, the model prefers ` William` to ` Theodore`: of the two it gives ` William` "
        f"{free:.3f}. Under a mask over any tokenization that is {lift:.3f}, under one over the "
        f"tokenizer's own {canonical:.3f}. (Without a mask both names together have "
        f"{case['mass']:.1e}: masks distort most where the answers are unlikely.)"
    )


def _demo(facts: Row) -> str:
    """The example of what `make demo` prints, and how samples and exact numbers agree."""
    cases = facts["cases"]
    found = {name: cases[name] for name in SHOWN if name in cases}
    lines = [
        *("```", _DISTRIBUTION_HEAD),
        *(line for name in SHOWN[:1] if name in found for line in _exact_lines(name, found[name])),
        *(" ...", _TV_HEAD),
        *(_tv_line(name, case) for name, case in found.items()),
        *(" ...", "```", ""),
        "*free* is the model's own distribution, each answer summed over all its tokenizations; "
        "*lift* is masked over any tokenization (what Outlines does), *canonical* over the "
        f"tokenizer's own; *drawn* are frequencies of {facts['samples']:,} samples: "
        f"{facts['inside']} of {facts['cells']} exact numbers lie in their intervals "
        f"(Clopper-Pearson, joint level {1 - ALPHA:.0%}). They are drawn from the same cached "
        "probabilities, which checks the samplers and the sums, not the model. *TV* is total "
        "variation distance to the free distribution; *TV given canonical* is that of the free "
        "distribution restricted to canonical ids, so what *TV canonical* has above it is the "
        "price of masking step by step.",
        *_by_mass(cases.values()),
    ]
    return "\n".join(lines)


def _by_mass(cases: Iterable[Row]) -> list[str]:
    """How far the lift is off where the answers are likely, and where not."""
    far, near = list[float](), list[float]()
    for case in cases:
        (far if case["mass"] < LIKELY else near).append(case["tv"]["lift"])
    if not far or not near:
        return []
    return [
        "",
        "*mass* is the probability that the model writes any of the answers unasked. In the "
        f"{len(far)} prompts where it is below {LIKELY:g}, *TV lift* is {fmean(far):.2f} on "
        f"average, in the other {len(near)} it is {fmean(near):.3f}.",
    ]


_DISTRIBUTION_HEAD = (
    f" {'prompt':<17} {'answer':<12} {'free':>7} {'drawn':>7} {'lift':>7} {'drawn':>7} "
    f"{'canonical':>10} {'drawn':>7}"
)
_TV_HEAD = (
    f" {'prompt':<17} {'ids':<4} {'mass':>8} {'not canonical':>14} {'TV lift':>8} "
    f"{'TV canonical':>13} {'TV given canonical':>19}"
)


def _exact_lines(name: str, case: Row) -> Iterator[str]:
    for k, answer in enumerate(case["answers"]):
        cells = []
        for method, width in zip(METHODS, (7, 7, 10), strict=True):
            drawn = case["drawn"][method]
            cells.append(f"{case['laws'][method][k]:>{width}.4f}")
            cells.append(f"{drawn[k]:>7.4f}" if drawn else f"{'none':>7}")
        yield f" {'' if k else name:<17} {answer!r:<12} " + " ".join(cells)


def _tv_line(name: str, case: Row) -> str:
    lift, canonical = (small(case["tv"][method]) for method in OUR_METHODS)
    return (
        f" {name:<17} {case['tokens']:<4} {case['mass']:>8.1e} {small(case['not_canonical']):>14} "
        f"{lift:>8} {canonical:>13} {small(case['tv_given_canonical']):>19}"
    )


def figure(cases: Sequence[Row], model: Row) -> Figure:
    """Of one case or more."""
    drawn, ((example, distances, masses),) = panels(1, 3, (12.5, 6.6), width_ratios=(1, 1.9, 0.6))
    draw_example(example, cases[0])
    ordered = sorted(cases, key=lambda row: (is_single(row), distance(row, "lift")))
    longer = sum(not is_single(row) for row in ordered)
    heights = [i + (i >= longer) for i in range(len(ordered))]
    draw_distances(distances, ordered, heights)
    draw_masses(masses, ordered, heights)
    note = (
        f"{model['model']}; n = {len(cases)} prompts; exact probabilities, not samples. The axis "
        f"of distances is linear up to {LINEAR:g}. Right: the probability that the model writes "
        "any of the answers without a mask; where it is small, masks have most to bend.\n"
    )
    return Figure("distortion", drawn, headline(cases), note + model["note"])


def headline(cases: Sequence[Row]) -> str:
    """The message, with the numbers of these rows."""
    farthest = {
        single: [max(distance(row, method) for row in some) for method in OUR_METHODS]
        for single in (True, False)
        if (some := [row for row in cases if is_single(row) == single])
    }
    if True not in farthest:
        return "How far masking moves a model from its own distribution"
    lift, canonical = farthest[True]
    said = (
        "One-token answers: masking over any tokenization moves the model's distribution by up to "
        f"{lift:.2f},\nover its own tokenization by at most {canonical:.4f}."
    )
    if False not in farthest:
        return said
    lift, canonical = farthest[False]
    return f"{said} Longer answers: up to {lift:.2f} and {canonical:.2f}."


def is_single(row: Row) -> bool:
    """Is each answer one token in its canonical tokenization?"""
    return max(row["canonical_tokens"]) == 1


def distance(row: Row, method: str) -> float:
    """Total variation distance to the free distribution."""
    return float(row["methods"][method]["total_variation"])


def draw_example(axes: Any, row: Row) -> None:
    """Probability of the first answer of the article's prompt, by method."""
    bars = {
        "the model\nitself": (row["free"][0], FREE),
        "any\ntokenization\n(lift)": (row["methods"]["lift"]["law"][0], LIFT),
        "its own\ntokenization\n(canonical)": (row["methods"]["canonical"]["law"][0], CANONICAL),
    }
    above = {"xytext": (0, 3), "textcoords": "offset points", "ha": "center"}
    for place, (value, color) in enumerate(bars.values()):
        axes.bar(place, value, color=color, width=0.62)
        axes.annotate(f"{value:.3f}", (place, value), **above)
    axes.set_xticks(range(len(bars)), list(bars))
    axes.set_ylim(0, 1)
    first, second = (answer.strip() for answer in row["answers"][:2])
    axes.set_ylabel(f"probability of “{first}” against “{second}”")
    which = "The article's prompt: which president?" if row["name"] == "president" else row["name"]
    axes.set_title(which, loc="left", fontsize=11)


def draw_distances(axes: Any, ordered: Sequence[Row], heights: Sequence[int]) -> None:
    """A dumbbell per prompt: answers of one token above, longer ones below, each sorted."""
    for row, height in zip(ordered, heights, strict=True):
        ends = [distance(row, method) for method in OUR_METHODS]
        axes.plot(ends, [height, height], color=PALE, linewidth=2, zorder=1)
        ring = {"facecolor": "white", "edgecolor": LIFT, "linewidth": 2}
        axes.scatter(ends[0], height, s=110, zorder=2, **ring)
        axes.scatter(ends[1], height, s=38, color=CANONICAL, zorder=3)
    axes.set_yticks(heights, [row["name"].replace("_", " ") for row in ordered])
    axes.set_ylim(-0.8, heights[-1] + 1.4)
    axes.set_title("All prompts", loc="left", fontsize=11)
    over = {False: "longer answers", True: "answers of one token"}
    place = {"transform": axes.get_yaxis_transform(), "ha": "right", "va": "center"}
    grey = {"fontsize": 9, "color": "#555555", "style": "italic"}
    for single, said in over.items():
        of = [at for row, at in zip(ordered, heights, strict=True) if is_single(row) == single]
        if of:
            axes.text(-0.01, of[-1] + 0.85, said, **place, **grey)
    # The two marks of the topmost prompt are named; that is the legend.
    bold = {"y": heights[-1] + 0.7, "fontweight": "bold", "fontsize": 9}
    axes.text(ends[0] * 1.5, s="any tokenization", color=LIFT, ha="right", **bold)
    axes.text(ends[1], s="its own tokenization", color=CANONICAL, ha="center", **bold)
    axes.set_xscale("symlog", linthresh=LINEAR)
    axes.set_xlim(-0.1 * LINEAR, 1.6)
    ticks = [0, *(10.0**k for k in range(-3, 1))]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.tick_params(axis="y", length=0)
    grid(axes, "x")
    axes.set_xlabel(f"total variation distance to the model's own\n(log scale above {LINEAR:g})")


def draw_masses(axes: Any, ordered: Sequence[Row], heights: Sequence[int]) -> None:
    """A bar per prompt beside its dumbbell: the mass of its answers."""
    masses = [100 * row["free_mass"] for row in ordered]
    axes.barh(heights, masses, color=PALE, height=0.5)
    for height, mass in zip(heights, masses, strict=True):
        axes.text(mass + 4, height, f"{three(mass)} %", va="center", fontsize=9)
    axes.set_ylim(-0.8, heights[-1] + 1.4)
    axes.set_yticks([])
    axes.set_xlim(0, 160)
    axes.set_xticks([0, 50, 100])
    axes.spines["bottom"].set_bounds(0, 100)  # the rest is for the numbers
    axes.set_xlabel("probability of any\nof the answers (%)")
    axes.set_title("Mass of the answers", loc="left", fontsize=11)
