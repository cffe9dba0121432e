"""The article's figures, redrawn from what the library computes.

In the article (Tran-Thien 2024): 1 a regex over characters, over tokens, and as masks; 2 the
example `boolean: ((true)|(false))` under the lift and 3 under DirectMerge; 4 a step of DirectMerge;
5 the target language as an intersection; 6 Vegas configurations. They show automata, of which ours
are the library's own, not copies.

Measured besides is what the companion notebook plots: how preprocessing and mask times are
distributed over function-calling schemas. (Its growth of a repeated `.` is part of `growth`.)
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from bpe_automata import Constraint, Tokenizer, compile_regex, constrain
from bpe_automata._constructions.lift import Lift
from bpe_automata._kernels.bits import members
from bpe_automata.errors import BpeAutomataError, MissingFileError
from experiments.artefacts.growth import WARM
from experiments.article.mistral import MISTRAL, mistral, mistral_table
from experiments.article.redrawn_pages import PAGES
from experiments.article.redrawn_panels import drawn, page_of, row_of
from experiments.engines.interface import INSTALL, PeerError, refusals
from experiments.engines.named import check_known, versions
from experiments.engines.peers import OutlinesCore
from experiments.run import config
from experiments.run.config import option
from experiments.run.executors import FAILURE, Cell, Row
from experiments.run.files import lines_of, require
from experiments.run.measuring import Run
from experiments.run.report import Figure, Report, panels
from experiments.run.tables import Column, Table, duration, frame, table, whole
from experiments.shared.resources import timed
from experiments.shared.shown import in_lines
from experiments.shared.walks import walk
from experiments.statistics import median, quantile

VERSION = 2


@dataclass(frozen=True)
class Config(config.Config):
    """Which figures, and of what regexes times are measured."""

    pages: tuple[str, ...] = option(tuple(PAGES), "which figures, separated by commas")
    regexes: Path | None = option(
        None, 'JSON lines with a "regex" each (none: the schemas of functions of this repository)'
    )
    n: int | None = option(None, "how many of them, drawn at random (none: all)")


SMOKE = Config(pages=("figure1", "figure2"), n=2)


def measure(run: Run[Config]) -> None:
    """A row per figure, and one per regex."""
    pages, given = run.config.pages, run.config.regexes
    check_known("pages", pages, PAGES)
    named = regexes_of_schemas() if given is None else regexes_of_file(given)
    seed = run.config.seed
    chosen = some(named, run.config.n, seed)
    mistral()  # that it is not installed is one error, not one for each row
    run.note(tokenizer=MISTRAL, peers=versions(["outlines_core"]))
    run.cells([Cell(name, page_row, (name,)) for name in pages], alone=True, what="figures")
    cells = [
        Cell(f"regex {number}: {name}", measured, (name, regex, seed))
        for number, (name, regex) in enumerate(chosen)
    ]
    run.cells(cells, alone=True, what="times")


def page_row(name: str) -> Row:
    """What a figure shows."""
    return {"kind": "page"} | row_of(PAGES[name]())


# ---------------------------------------------------------------- what regexes cost

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


class Engines(NamedTuple):
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


# ---------------------------------------------------------------- what the rows say

CURVES = {
    "outlines_core": ("outlines-core (index)", "#d1495b", "-"),
    "lift_index": ("lift, all masks", "#edae49", "-"),
    "alone_first": ("CartesianMerge to its first mask, BPE alone", "#00798c", "-"),
    "canonical_first": ("the same, complete tokenizer", "#00798c", ":"),
    "masks": ("CartesianMerge, a mask, complete tokenizer", "#7fc4cc", "-"),
}
PUBLISHED = {
    0.687: "Outlines’ preprocessing",
    27.3: "relevant states",
    0.00153: "a mask",
}
"""Seconds: means of the article's Table 2, for function-calling schemas with Mistral-7B."""
NAME = "mask_times"
_WIDTH = 9.6


def render(rows: Sequence[Row], manifest: Row) -> Report:
    """All that there are rows of. A row with a failure may have the times of another engine."""
    pages = {row["key"]: row for row in rows if row.get("kind") == "page"}
    figures = [drawn(page_of(pages[name]), name) for name in PAGES if name in pages]
    regexes = [row for row in rows if row.get("kind") == "regex"]
    times = {key: seconds for key in CURVES if (seconds := seconds_of(regexes, key))}
    summaries = {key: summary(seconds) for key, seconds in times.items()}
    if regexes:
        given = manifest["config"]["regexes"]
        what = "Function-calling schemas" if given is None else f"Regexes of {given}"
        head = in_lines(headline(summaries, what), _WIDTH)
        figures.append(Figure(NAME, draw(times), head, note(regexes)))
    facts = {"times": summaries, "regexes": len(regexes)}
    return Report("The article's figures, redrawn", [summed_up(summaries)], figures, facts)


def seconds_of(regexes: Sequence[Row], key: str) -> list[float]:
    """The seconds of all rows that have some."""
    if key == "masks":
        return [value for row in regexes for value in row["masks"]]
    return [row[key] for row in regexes if key in row]


def summary(seconds: Sequence[float]) -> Row:
    """mean, median, p99, most: seconds; n: how many."""
    return {
        "mean": fmean(seconds),
        "median": median(seconds),
        "p99": quantile(seconds, 0.99),
        "most": max(seconds),
        "n": len(seconds),
    }


def summed_up(summaries: dict[str, Row]) -> Table:
    """Each curve in numbers."""
    lines = frame([{"of": CURVES[key][0]} | found for key, found in summaries.items()])
    names = {"mean": "mean", "median": "median", "p99": "99 of 100", "most": "most"}
    columns = [
        Column("seconds", "of"),
        *(Column(name, field, _short) for field, name in names.items()),
        Column("n", "n", whole),
    ]
    means = ", ".join(f"{name} {mean:g}" for mean, name in PUBLISHED.items())
    notes = [f"means that are published, of other schemas on another machine: {means}"]
    return table("Preprocessing and mask times", lines, columns, notes)


def draw(times: dict[str, list[float]]) -> Any:
    """Which share of the regexes, or masks, takes at most so long; by curve."""
    figure, ((axes,),) = panels(1, 1, (_WIDTH, 5.2))
    for key, found in times.items():
        label, color, line = CURVES[key]
        seconds = np.sort(found)
        share = np.arange(len(seconds) + 1) / len(seconds)
        text = f"{label}: mean {duration(float(seconds.mean()))}"
        steps = np.insert(seconds, 0, seconds[0]), share
        axes.step(*steps, line, where="post", color=color, label=text, linewidth=2)
    for mean, name in PUBLISHED.items():
        axes.axvline(mean, color="#999999", linestyle="--", linewidth=1)
        # Far enough to the left of the fastest one that its label is clear of the curves.
        left = mean * (0.5 if mean == min(PUBLISHED) else 0.9)
        text = f"{name},\npublished mean {duration(mean)}"
        axes.text(left, 0.04, text, ha="right", va="bottom", fontsize=8, color="#666666")
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda seconds, _: duration(seconds))
    axes.minorticks_off()
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("time (log scale)")
    axes.set_ylabel("share that takes at most so long")
    above = {"loc": "upper center", "bbox_to_anchor": (0.5, 1.22), "ncols": 2}
    axes.legend(*axes.get_legend_handles_labels(), frameon=False, fontsize=9, **above)
    return figure


def headline(summaries: dict[str, Row], what: str) -> str:
    """The message, with the numbers of these rows."""
    if not {"alone_first", "canonical_first"} <= summaries.keys():
        return "Preprocessing and masks: nothing was measured"
    alone, complete = (summaries[key]["mean"] for key in ("alone_first", "canonical_first"))
    return (
        f"{what}: CartesianMerge makes its first mask on average\n"
        f"after {duration(alone)} with BPE alone, after {duration(complete)} with the complete "
        "tokenizer"
    )


def note(regexes: Sequence[Row]) -> str:
    """What was measured, and what failed."""
    ours, theirs = (
        sum(engine in row["failures"] for row in regexes) for engine in ("ours", "outlines_core")
    )
    return (
        f"{len(regexes)} regexes, {len(seconds_of(regexes, 'masks')):,} masks, each once; "
        f"tokenizer: {MISTRAL}. BPE alone: without byte fallback, as in the article; all but "
        f"outlines-core: the package.\nFailures: {ours} ours, {theirs} of outlines-core. Dashed: "
        "means that the article's Table 2 gives, on another machine."
    )


def _short(seconds: float) -> str:
    return f"{seconds:.2g}"
