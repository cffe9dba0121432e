"""How the automata grow with the regex: DirectMerge against CartesianMerge.

States, transitions, seconds and memory of the published algorithms in plain Python (the reference)
and of the package, on one language: BPE alone with the Mistral-7B merge table. Each cell runs in a
process of its own with a limit of time and of memory; over a limit is a row, and larger sizes of
that family are skipped for that method. Methods that finished are compared with one another, as
languages and by their first masks; a disagreement is in its row, and is wrong.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.article import growth_report
from experiments.article.growth_methods import (
    CARTESIAN,
    LETTERS,
    METHODS,
    NAMES,
    NESTED,
    Family,
    named,
)
from experiments.article.growth_series import Asked, Series
from experiments.article.mistral import MERGES_HELP, bpe_alone_of_mistral
from experiments.article.server import Server
from experiments.run import config
from experiments.run.config import option
from experiments.run.executors import Row
from experiments.run.files import write_atomically
from experiments.run.measuring import Run, progress
from experiments.run.report import Report

VERSION = 1
SERVER = "experiments.article.growth_series"


@dataclass(frozen=True)
class Config(config.Config):
    """What grows how far, over which table, and what a cell may take."""

    families: tuple[str, ...] = option(NAMES, "of regexes, separated by commas")
    largest: int | None = option(None, "largest size of each family (none: its own sizes)")
    merges: int | None = option(None, MERGES_HELP)
    limit_seconds: float = option(45, "of one construction")
    limit_mb: float = option(4000, "memory of one construction, 10^6 bytes")
    most_kept: int = option(12_000_000, "automata with more transitions are not compared")


SMOKE = Config(families=(LETTERS.name, NESTED.name), largest=2, merges=300, limit_seconds=5)


def measure(run: Run[Config]) -> None:
    """One row per preparation of a method and per cell."""
    table = bpe_alone_of_mistral(run.config.merges)
    measure_on(run, json.dumps(table), named(run.config.families))


def render(rows: Sequence[Row], manifest: Row) -> Report:
    """Three tables and a figure."""
    return growth_report.report(rows, manifest)


def readme(facts: Row) -> str:
    """What is compared, and how large the largest automata are."""
    return growth_report.readme(facts)


def measure_on(run: Run[Config], table: str, families: Sequence[Family]) -> None:
    """table: a tokenizer.json, BPE alone."""
    cells = {asked.key: asked for asked in _cells(families, run.config.largest)}
    preparations = {f"prepare {method}": method for method in METHODS}
    todo = set(run.expect([*preparations, *cells]))
    kept = run.folder / "automata"
    if todo:
        with tempfile.TemporaryDirectory() as scratch:
            file = Path(scratch) / "tokenizer.json"
            write_atomically(file, table)
            with Server(SERVER, file) as server:
                _prepare(run, server, cells, todo)
                known = [row for row in run.rows if row["key"] in cells.keys() - todo]
                series = Series(server, kept, run.config, known)
                _measure_cells(run, series, [a for a in cells.values() if a.key in todo])
    shutil.rmtree(kept, ignore_errors=True)


def _cells(families: Sequence[Family], largest: int | None) -> Iterator[Asked]:
    for family in families:
        for n in family.chosen(largest):
            for method in METHODS:
                yield Asked(family, n, method)


def _prepare(run: Run[Config], server: Server, cells: dict[str, Asked], todo: set[str]) -> None:
    """Methods with cells to measure; how long it took is kept of the first time."""
    wanted = {cells[key].method for key in todo & cells.keys()}
    # The reference last: its tables stay in the memory of all processes after it.
    for method in sorted(METHODS, key=lambda name: name == CARTESIAN):
        key = f"prepare {method}"
        if key in todo or method in wanted:
            row = server.ask({"prepare": method})
            if key in todo:
                run.add(key, {"kind": "preparation", "method": method} | row)


def _measure_cells(run: Run[Config], series: Series, cells: Sequence[Asked]) -> None:
    with progress() as bar:
        task = bar.add_task("growth", total=len(cells))
        for asked in cells:
            bar.update(task, description=asked.key)
            run.add(asked.key, series.row(asked))
            bar.advance(task)
