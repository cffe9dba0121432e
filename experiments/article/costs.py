"""Preprocessing and masks for the schemas of functions.

For each regex, with the complete tokenizer of Mistral-7B: the lift with all its masks (what
Outlines makes beforehand), the index of outlines-core itself where it is installed, CartesianMerge
to its first mask (with what it has to know of relevance for that), and each mask along random
texts. CartesianMerge also with the merge table alone, which is what the article's times are about:
byte fallback, which spells all other characters, multiplies the states. What an engine refuses is a
failure in the row.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from statistics import fmean

import numpy as np

from bpe_automata import Constraint, Tokenizer, compile_regex, constrain
from bpe_automata.constructions import Lift
from bpe_automata.errors import BpeAutomataError, MissingFileError
from bpe_automata.kernels.bits import members
from experiments.article.growth_methods import WARM
from experiments.article.mistral import MISTRAL, mistral, mistral_table
from experiments.article.panels import in_lines, subplots
from experiments.engines.interface import INSTALL, PeerError, refusals
from experiments.engines.peers import OutlinesCore
from experiments.run.executors import FAILURE, Row
from experiments.run.files import lines_of, require
from experiments.run.report import Figure
from experiments.run.statistics import median, quantile
from experiments.run.tables import Table
from experiments.shared.resources import timed
from experiments.shared.walks import walk

SCHEMAS = Path(__file__).with_name("schemas.jsonl")
"""Functions with their parameters' schemas, one JSON object a line, written for this project."""
WALKS, STEPS = 3, 60


def regexes_of_schemas(path: Path = SCHEMAS) -> list[tuple[str, str]]:
    """(name, regex as Outlines makes it) of each function. Raises MissingDependencyError."""
    build = require("outlines_core.json_schema", INSTALL).build_regex_from_schema
    return [(f["name"], build(json.dumps(f["parameters"]))) for f in lines_of(path)]


def regexes_of_file(path: Path) -> list[tuple[str, str]]:
    """(id, regex) of each line of a file of JSON objects, gzipped or not. Raises
    MissingFileError."""
    try:
        return [(str(entry.get("id", i)), entry["regex"]) for i, entry in enumerate(lines_of(path))]
    except (MissingFileError, AttributeError, LookupError, TypeError) as error:
        message = f'{path} has no JSON lines with a "regex" each: {error}; give --regexes FILE'
        raise MissingFileError(message) from error


def some(named: list[tuple[str, str]], count: int | None, seed: int) -> list[tuple[str, str]]:
    """`count` of them (None: all), drawn at random, in their order."""
    if count is None or count >= len(named):
        return named
    return [named[i] for i in sorted(random.Random(seed).sample(range(len(named)), count))]


@dataclass(frozen=True)
class Engines:
    """complete: a tokenizer; alone: its merge table as one; outlines: None if not installed."""

    complete: Tokenizer
    alone: Tokenizer
    outlines: OutlinesCore | None


def engines_of(complete: Tokenizer, alone: Tokenizer) -> Engines:
    """With warm kernels."""
    try:
        outlines = OutlinesCore(complete, complete.eos_ids)
    except PeerError:
        outlines = None
    found = Engines(complete, alone, outlines)
    for regex in WARM:
        costs_of("", regex, found, 0)
    return found


@lru_cache(maxsize=1)
def engines_of_mistral() -> Engines:
    """What is measured by default."""
    return engines_of(mistral(), mistral_table())


def measured(name: str, regex: str, seed: int) -> Row:
    """The row of one regex."""
    return costs_of(name, regex, engines_of_mistral(), seed)


def costs_of(name: str, regex: str, engines: Engines, seed: int) -> Row:
    """Seconds of everything about one regex; `failures`: why there are none, by what was tried."""
    row: Row = {"kind": "regex", "name": name, "regex": regex, "failures": {}, "masks": []}
    try:
        spent, dfa = timed(lambda: compile_regex(regex))
        row |= {"regex_seconds": spent, "dfa_states": dfa.n_states}
        row["lift_index"], _ = timed(lambda: lift_index(engines.complete, regex))
        row["alone_first"], _ = timed(lambda: first_mask(engines.alone, regex))
        row |= canonical(engines.complete, regex, random.Random(f"{seed} {regex}"))
    except BpeAutomataError as error:
        row["failures"]["ours"] = row[FAILURE] = str(error)
    if outlines := engines.outlines:
        try:
            with refusals():
                row["outlines_core"], _ = timed(lambda: outlines.prepare(regex))
        except PeerError as error:
            row["failures"]["outlines_core"] = str(error)
    return row


def lift_index(tokenizer: Tokenizer, regex: str) -> int:
    """The lift with the mask of every state that its start leads to; how many states."""
    lift = Lift(tokenizer, compile_regex(regex), tokenizer.eos_ids)
    todo = [lift.initial()]
    seen = {*todo}
    while todo:
        state = todo.pop()
        ids = members(lift.mask(state))
        fresh = {*lift.steps(state, ids[~np.isin(ids, tokenizer.eos_ids)])} - seen
        seen |= fresh
        todo += fresh
    return len(seen)


def first_mask(tokenizer: Tokenizer, regex: str) -> Constraint:
    """A constraint that has made its first mask."""
    constraint = constrain(tokenizer, regex, eos_ids=tokenizer.eos_ids)
    constraint.engine.mask(constraint.engine.initial())
    return constraint


def canonical(tokenizer: Tokenizer, regex: str, rng: random.Random) -> Row:
    """`first`: from the regex to the first mask; `masks`: of each mask along random texts, as they
    come, in states of a constraint that has seen none of them."""
    spent, timing = timed(lambda: first_mask(tokenizer, regex))
    drawing = constrain(tokenizer, regex, eos_ids=tokenizer.eos_ids, added_tokens=False)
    masks = []
    for ids, _ in [walk(drawing, rng, STEPS) for _ in range(WALKS)]:
        state = timing.engine.initial()
        for token in ids:
            state = timing.engine.step(state, token)
            seconds, _ = timed(partial(timing.engine.mask, state))
            masks.append(seconds)
    return {"canonical_first": spent, "masks": masks}


def shown(rows: Sequence[Row], key: str) -> list[float]:
    """The seconds of all rows that have some."""
    if key == "masks":
        return [value for row in rows for value in row["masks"]]
    return [row[key] for row in rows if key in row]


# How preprocessing times and mask times are distributed over the schemas, drawn.

CURVES = {
    "outlines_core": ("outlines-core (index)", "#d1495b", "-"),
    "lift_index": ("lift, all masks", "#edae49", "-"),
    "alone_first": ("CartesianMerge to its first mask, BPE alone", "#00798c", "-"),
    "canonical_first": ("the same, complete tokenizer", "#00798c", ":"),
    "masks": ("CartesianMerge, a mask, complete tokenizer", "#7fc4cc", "-"),
}
PUBLISHED = {
    0.687: "Outlines’ preprocessing,\npublished mean 0.687 s",
    27.3: "relevant states,\npublished mean 27.3 s",
    0.00153: "a mask,\npublished mean 0.00153 s",
}
"""Seconds: means of the article's Table 2, for function-calling schemas with Mistral-7B."""
NAME = "mask_times"
_WIDTH = 9.6


def draw(rows: Sequence[Row], what: str) -> Figure:
    """The figure; what: the regexes are of."""
    figure, grid = subplots(1, 1, figsize=(_WIDTH, 5.2))
    axes = grid[0, 0]
    for key, (label, color, line) in CURVES.items():
        seconds = np.sort(shown(rows, key))
        if len(seconds):
            share = np.arange(len(seconds) + 1) / len(seconds)
            seconds = np.insert(seconds, 0, seconds[0])
            text = f"{label}: mean {_short(float(seconds[1:].mean()))} s"
            axes.step(seconds, share, line, where="post", color=color, label=text, linewidth=2)
    for mean, text in PUBLISHED.items():
        axes.axvline(mean, color="#999999", linestyle="--", linewidth=1)
        # Far enough to the left of the fastest one that its label is clear of the curves.
        left = mean * (0.5 if mean == min(PUBLISHED) else 0.9)
        axes.text(left, 0.04, text, ha="right", va="bottom", fontsize=8, color="#666666")
    axes.set_xscale("log")
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("seconds (log scale)")
    axes.set_ylabel("share that takes at most so long")
    handles, labels = axes.get_legend_handles_labels()
    place = {"loc": "upper center", "bbox_to_anchor": (0.5, 1.22), "ncols": 2}
    axes.legend(handles, labels, frameon=False, fontsize=9, **place)
    head = in_lines(headline(rows, what), _WIDTH)
    return Figure(NAME, figure, head, note(rows))


def table(rows: Sequence[Row]) -> Table:
    """The same in numbers."""
    numbers = ("mean", "median", "p99", "most")
    lines = [
        [CURVES[key][0], *(_short(found[name]) for name in numbers), f"{found['n']:,}"]
        for key, found in summaries(rows).items()
    ]
    columns = ["seconds", "mean", "median", "99 of 100", "most", "n"]
    means = ", ".join(text.replace("\n", " ") for text in PUBLISHED.values())
    published = f"published, other schemas on another machine: {means}"
    return Table("Preprocessing and mask times", columns, lines, [published])


def summaries(rows: Sequence[Row]) -> dict[str, Row]:
    """mean, median, p99, most: seconds of each curve that has any; n: how many."""
    found = {key: shown(rows, key) for key in CURVES}
    return {
        key: {
            "mean": fmean(seconds),
            "median": median(seconds),
            "p99": quantile(seconds, 0.99),
            "most": max(seconds),
            "n": len(seconds),
        }
        for key, seconds in found.items()
        if seconds
    }


def headline(rows: Sequence[Row], what: str) -> str:
    """The message, with the numbers of these rows."""
    alone, complete = (shown(rows, key) for key in ("alone_first", "canonical_first"))
    if not complete:
        return "Preprocessing and masks: nothing was measured"
    return (
        f"{what}: CartesianMerge makes its first mask on average\n"
        f"after {_short(fmean(alone))} s with BPE alone, after {_short(fmean(complete))} s with "
        "the complete tokenizer"
    )


def note(rows: Sequence[Row]) -> str:
    """What was measured, and what failed."""
    ours = sum("ours" in row["failures"] for row in rows)
    theirs = sum("outlines_core" in row["failures"] for row in rows)
    return (
        f"{len(rows)} regexes, {len(shown(rows, 'masks')):,} masks, each once; tokenizer: "
        f"{MISTRAL}. BPE alone: without byte fallback, as in the article; all but outlines-core: "
        f"the package.\nFailures: {ours} ours, {theirs} of outlines-core. Dashed: means "
        f"that the article's Table 2 gives, on another machine."
    )


def _short(seconds: float) -> str:
    return f"{seconds:.2g}"
