"""The article's figures, redrawn from what the library computes.

In the article (Tran-Thien 2024): 1 a regex over characters, over tokens, and as masks; 2 the
example `boolean: ((true)|(false))` under the lift and 3 under DirectMerge; 4 a step of DirectMerge;
5 the target language as an intersection; 6 Vegas configurations. They show automata, of which ours
are the library's own, not copies.

Measured besides is what the companion notebook plots: how preprocessing and mask times are
distributed over function-calling schemas. (Its growth of a repeated `.` is part of `growth`.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bpe_automata.errors import ArgumentError
from experiments.article import cdf
from experiments.article.boolean import figure_2, figure_3
from experiments.article.costs import measured, regexes_of_file, regexes_of_schemas, some
from experiments.article.idea import figure_1
from experiments.article.mistral import MISTRAL, mistral
from experiments.article.panels import Page, drawn, page_of, row_of
from experiments.article.product import figure_5
from experiments.article.steps import figure_4
from experiments.article.vegas import figure_6
from experiments.engines.named import versions
from experiments.run import config
from experiments.run.config import option
from experiments.run.executors import Cell, Row
from experiments.run.measuring import Run
from experiments.run.report import Report

VERSION = 2
PAGES: dict[str, Callable[[], Page]] = {
    "figure1": figure_1,
    "figure2": figure_2,
    "figure3": figure_3,
    "figure4": figure_4,
    "figure5": figure_5,
    "figure6": figure_6,
}


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
    if unknown := set(pages) - set(PAGES):
        raise ArgumentError(f"--pages: {min(unknown)!r} is none of {', '.join(PAGES)}")
    named = regexes_of_schemas() if given is None else regexes_of_file(given)
    seed = run.config.seed
    chosen = some(named, run.config.n, seed)
    mistral()  # that it is not installed is one error, not one for each row
    run.note(tokenizer=MISTRAL, peers=versions(["outlines_core"]))
    run.cells([Cell(name, page_row, (name,)) for name in pages], alone=True, what="figures")
    cells = [
        Cell(f"regex {place}: {name}", measured, (name, regex, seed))
        for place, (name, regex) in enumerate(chosen)
    ]
    run.cells(cells, alone=True, what="times")


def page_row(name: str) -> Row:
    """What a figure shows."""
    return {"kind": "page"} | row_of(PAGES[name]())


def render(rows: Sequence[Row], manifest: Row) -> Report:
    """All that there are rows of."""
    by_key = {row["key"]: row for row in rows}
    regexes = [row for row in rows if row.get("kind") == "regex"]
    given = manifest["config"]["regexes"]
    what = "Function-calling schemas" if given is None else f"Regexes of {given}"
    pages = [name for name in PAGES if by_key.get(name, {}).get("kind") == "page"]
    figures = [drawn(page_of(by_key[name]), name) for name in pages]
    return Report(
        "The article's figures, redrawn",
        [cdf.table(regexes)],
        [*figures, *([cdf.draw(regexes, what)] if regexes else [])],
        {"times": cdf.summaries(regexes), "regexes": len(regexes)},
    )
