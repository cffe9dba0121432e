"""The distortion rows as tables, a figure, and what the README says of them."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.run.executors import FAILURE, Row
from experiments.run.readme import wrapped
from experiments.run.report import Report
from experiments.run.tables import Table
from experiments.study import distortion_figure
from experiments.study.prompts import CASES

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
_METHODS = ("free", "lift", "canonical")


def render(rows: Sequence[Row], manifest: Row) -> Report:
    """Nothing but a title where no prompt was finished: then there is nothing for the README to
    say, which is no complete report."""
    done = [row for row in rows if not row.get(FAILURE)]
    # In the order in which they were asked for, not in that in which they were done.
    order = {name: place for place, name in enumerate(names_in_order(manifest))}
    cases = sorted(_of(done, "case"), key=lambda row: order.get(row["name"], len(order)))
    model = next(iter(_of(done, "model")), {"model": manifest["config"]["model"], "note": ""})
    title = f"Distortion: {model['model']}"
    if not cases:
        return Report(title, complete=False)
    boolean = next(iter(_of(done, "boolean")), None)
    tables = [
        distributions(cases, model, manifest),
        distances(cases),
        sizes(cases),
        article(cases, boolean, model),
    ]
    figures = [distortion_figure.figure(cases, model)]
    return Report(title, tables, figures, facts(cases, model))


def names_in_order(manifest: Row) -> Sequence[str]:
    """Of the prompts of a run."""
    return manifest["config"]["prompts"] or [case.name for case in CASES]


def facts(cases: Sequence[Row], model: Row) -> Row:
    """What the README needs."""
    flags = _flags(cases)
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
        "drawn": {name: _frequencies(row["samples"][name]) for name in ("free", *methods)},
        "tv": {name: methods[name]["total_variation"] for name in methods},
        "tv_given_canonical": row["total_variation_given_canonical"],
        "not_canonical": row["other_share"],
        "mass": row["free_mass"],
        "tokens": _tokens(row),
    }


def _frequencies(drawn: Row) -> list[float] | None:
    return [count / drawn["n"] for count in drawn["counts"]] if drawn["n"] else None


def _of(rows: Sequence[Row], kind: str) -> list[Row]:
    return [row for row in rows if row["kind"] == kind]


def readme(facts: Row) -> dict[str, str]:
    """The founding example, and what `make demo` prints."""
    example = {"distortion example": _example(facts)} if SHOWN[0] in facts["cases"] else {}
    return example | {"distortion": _demo(facts)}


def _example(facts: Row) -> str:
    distributions = facts["cases"][SHOWN[0]]["laws"]
    free, lift, canonical = (distributions[method][0] for method in _METHODS)
    return wrapped(
        "Asked for the first name of the US president who was a member of the Sigma Alpha Epsilon "
        f"fraternity, the model itself gives ` William` a probability of {free:.3f} against "
        f"` Theodore`. Masked over any tokenization it gives {lift:.3f}, masked over its own "
        f"{canonical:.3f}."
    )


def _demo(facts: Row) -> str:
    """The example of what `make demo` prints, and how samples and exact numbers agree."""
    cases = facts["cases"]
    found = {name: cases[name] for name in SHOWN if name in cases}
    lines = ["```", _LAW_HEAD]
    for name in [name for name in SHOWN[:1] if name in found]:
        lines += _distribution_lines(name, found[name])
    lines += [
        " ...",
        _TV_HEAD,
        *(_tv_line(name, case) for name, case in found.items()),
        " ...",
        "```",
    ]
    return "\n".join(
        [
            *lines,
            "",
            "*free* is the model's own distribution, each answer summed over all its "
            "tokenizations; *lift* "
            "is masked over any tokenization (what Outlines does), *canonical* over the "
            f"tokenizer's own; *drawn* are frequencies of {facts['samples']:,} samples: "
            f"{facts['inside']} of {facts['cells']} exact numbers lie in their intervals "
            f"(Clopper-Pearson, joint level {1 - ALPHA:.0%}). *TV* is total variation distance to "
            "the free distribution; *TV given canonical* is that of the free distribution "
            "restricted to canonical "
            "ids, so what *TV canonical* has above it is the price of masking step by step.",
        ]
    )


_LAW_HEAD = (
    f" {'prompt':<17} {'answer':<12} {'free':>7} {'drawn':>7} {'lift':>7} {'drawn':>7} "
    f"{'canonical':>10} {'drawn':>7}"
)
_TV_HEAD = (
    f" {'prompt':<17} {'ids':<4} {'mass':>8} {'not canonical':>14} {'TV lift':>8} "
    f"{'TV canonical':>13} {'TV given canonical':>19}"
)


def _distribution_lines(name: str, case: Row) -> list[str]:
    lines = []
    for k, answer in enumerate(case["answers"]):
        cells = []
        for method, width in zip(_METHODS, (7, 7, 10), strict=True):
            drawn = case["drawn"][method]
            cells.append(f"{case['laws'][method][k]:>{width}.4f}")
            cells.append(f"{drawn[k]:>7.4f}" if drawn else f"{'none':>7}")
        lines.append(f" {name if k == 0 else '':<17} {answer!r:<12} " + " ".join(cells))
    return lines


def _tv_line(name: str, case: Row) -> str:
    tv = case["tv"]
    return (
        f" {name:<17} {case['tokens']:<4} {case['mass']:>8.1e} "
        f"{_number(case['not_canonical']):>14} {_number(tv['lift']):>8} "
        f"{_number(tv['canonical']):>13} {_number(case['tv_given_canonical']):>19}"
    )


def distributions(cases: Sequence[Row], model: Row, manifest: Row) -> Table:
    """One line per answer: exact and sampled probabilities of the three methods."""
    lines = []
    for row in cases:
        for i, answer in enumerate(row["answers"]):
            name = row["name"] if i == 0 else ""
            lines.append([name, f"{answer!r}", *_distribution_cells(row, i)])
    columns = ["prompt", "answer", "free", "drawn", "lift", "drawn", "canonical", "drawn"]
    return Table(
        "Probability of each answer", columns, lines, _distribution_notes(cases, model, manifest)
    )


def _distribution_cells(row: Row, answer: int) -> list[str]:
    cells = []
    exact = {"free": row["free"]} | {name: row["methods"][name]["law"] for name in row["methods"]}
    for method, distribution in exact.items():
        cells += [f"{distribution[answer]:.4f}", _frequency(row["samples"][method], answer)]
    return cells


def _frequency(drawn: Row, answer: int) -> str:
    if drawn["n"] == 0:
        return "none"
    flag = "" if drawn["inside"][answer] else " !"
    return f"{drawn['counts'][answer] / drawn['n']:.4f}{flag}"


def _distribution_notes(cases: Sequence[Row], model: Row, manifest: Row) -> list[str]:
    flags = _flags(cases)
    return [
        "free: the model's own distribution over the answers, each summed over all its "
        "tokenizations; "
        "lift, canonical: masked and renormalised step by step",
        f"drawn: frequency among {manifest['config']['samples']} samples (free: at least as many); "
        f"{sum(flags)} of {len(flags)} exact values lie in the Clopper-Pearson interval of their "
        f"sample (joint level {1 - ALPHA:.0%}, Bonferroni); others are marked !",
        *([model["note"]] if model["note"] else []),
    ]


def _flags(cases: Sequence[Row]) -> list[bool]:
    """For each distribution and answer that was drawn from: is its exact value in the interval?"""
    return [
        inside
        for row in cases
        for method in ("free", "lift", "canonical")
        for inside in row["samples"][method]["inside"]
        if row["samples"][method]["n"]
    ]


def distances(cases: Sequence[Row]) -> Table:
    """One line per prompt: how far each method is from the free distribution."""
    lines = [
        [
            row["name"],
            _tokens(row),
            f"{row['free_mass']:.1e}",
            _number(row["other_share"]),
            *(_number(row["methods"][m]["total_variation"]) for m in row["methods"]),
            _number(row["total_variation_given_canonical"]),
            *(_number(row["methods"][m]["kl_nats"]) for m in row["methods"]),
        ]
        for row in cases
    ]
    columns = ["prompt", "ids", "mass", "not\ncanonical", "TV\nlift", "TV\ncanonical"]
    columns += ["TV given\ncanonical", "KL\nlift", "KL\ncanonical"]
    notes = [
        "ids: length of the answers' canonical tokenizations; mass: of all answers together under "
        "the free model; not canonical: the share of it that is spelled by other tokenizations",
        "TV: total variation distance to the free distribution; KL(free || method) in nats",
        "TV given canonical: the free distribution conditioned on canonical ids. What TV "
        "canonical has "
        "above it comes from renormalising step by step, which no mask avoids",
    ]
    return Table("Distance to the free distribution", columns, lines, notes)


def sizes(cases: Sequence[Row]) -> Table:
    """One line per prompt: the automata in numbers."""
    lines = []
    for row in cases:
        both = [row["methods"]["lift"], row["methods"]["canonical"]]
        cells = [[str(m["states"]), str(m["transitions"]), *_forced(m)] for m in both]
        pairs = zip(*cells, strict=True)
        lines.append([row["name"], *(cell for pair in pairs for cell in pair)])
    columns = ["prompt"]
    for heading in ("states", "edges", "one option", "expected"):
        columns += [f"{heading}\nlift", f"{heading}\ncanon."]
    notes = [
        "one option: states with a single way on, of those that go on; "
        "expected: share of the steps of a drawn answer that have a single option"
    ]
    return Table("Automata after the prompt", columns, lines, notes)


def _forced(method: Row) -> list[str]:
    share = method["expected_forced"] / method["expected_steps"]
    return [f"{method['forced']}/{method['steps']}", f"{share:.1%}"]


def article(cases: Sequence[Row], boolean: Row | None, model: Row) -> Table:
    """The article's own two examples, published beside measured."""
    lines = []
    president = next((row for row in cases if row["name"] == "president"), None)
    if president:
        for method, value in PUBLISHED.items():
            distribution = (
                president["methods"][method]["law"] if method != "free" else president["free"]
            )
            lines.append([f"P(' William'), {method}", f"{value:.5f}", f"{distribution[0]:.5f}"])
    if boolean:
        for method, (states, transitions) in PUBLISHED_BOOLEAN.items():
            ours = boolean["sizes"][method]
            measured = f"{ours['states']} / {ours['transitions']}"
            name = f"states / transitions, {method}"
            lines.append([name, f"{states} / {transitions}", measured])
    columns = ["president; boolean: ((true)|(false))", "Mistral-7B (published)", model["model"]]
    return Table("The article's examples", columns, lines, [SOURCE])


def _tokens(row: Row) -> str:
    low, high = min(row["canonical_tokens"]), max(row["canonical_tokens"])
    return str(low) if low == high else f"{low}-{high}"


def _number(value: float) -> str:
    """Four decimals, or an exponent where they would say nothing."""
    if value == 0:
        return "0"
    return f"{value:.4f}" if value >= 5e-4 else f"{value:.0e}"
