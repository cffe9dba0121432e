"""The article's figures, redrawn from what the library computes.

Figure 1 is as published: a regex over characters, over tokens, and as masks. Of the others neither
number nor caption was at hand, so their numbers are ours; they show what the article's sections and
its companion notebook are known to show: 2 the example `boolean: ((true)|(false))` under the lift
and under DirectMerge, 3 one step of DirectMerge, 4 the automaton of all texts and its product with
a lift, 5 the growth of a repeated `.`, 6 how preprocessing and mask times are distributed over
function-calling schemas.

Only Figure 6 is measured here; the rows of Figure 5 are copied from those of `growth`, if it was
run before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bpe_automata.errors import ArgumentError
from experiments.article import cdf, growth_redrawn
from experiments.article.boolean import figure_2
from experiments.article.costs import measured, regexes_of_file, regexes_of_schemas, some
from experiments.article.idea import figure_1
from experiments.article.mistral import MISTRAL, mistral
from experiments.article.panels import Page, drawn, page_of, row_of
from experiments.article.product import figure_4
from experiments.article.steps import figure_3
from experiments.run import config
from experiments.run.catalogue import ARTEFACTS
from experiments.run.cells import Cell, Row
from experiments.run.config import option
from experiments.run.measuring import Run
from experiments.run.report import Figure, Report
from experiments.shared.engines import peer_versions

VERSION = 1
PAGES: dict[str, Callable[[], Page]] = {
    "figure1": figure_1,
    "figure2": figure_2,
    "figure3": figure_3,
    "figure4": figure_4,
}
GROWTH = "growth"
NO_FIGURE_5 = (
    "Figure 5 is not drawn: it shows rows of `growth`, and there were none (first "
    "`python -m experiments run growth`, then this again)"
)


@dataclass(frozen=True)
class Config(config.Config):
    """Which pages, and of what Figure 6 is."""

    pages: tuple[str, ...] = option(tuple(PAGES), "which of figures 1 to 4, separated by commas")
    regexes: Path | None = option(
        None, 'JSON lines with a "regex" each (none: the schemas of functions of this repository)'
    )
    n: int | None = option(None, "how many of them, drawn at random (none: all)")


SMOKE = Config(pages=("figure1", "figure2"), n=2)


def measure(run: Run[Config]) -> None:
    """A row per page of panels, one for what `growth` found, and one per regex."""
    pages, given = run.config.pages, run.config.regexes
    if unknown := set(pages) - set(PAGES):
        raise ArgumentError(f"--pages: {min(unknown)!r} is none of {', '.join(PAGES)}")
    named = regexes_of_schemas() if given is None else regexes_of_file(given)
    seed = run.config.seed
    chosen = some(named, run.config.n, seed)
    mistral()  # that it is not installed is one error, not one for each row
    run.note(tokenizer=MISTRAL, peers=peer_versions())
    run.cells([Cell(name, page_row, (name,)) for name in pages], alone=True, what="Figures 1-4")
    copy_growth(run)
    cells = [
        Cell(f"regex {place}: {name}", measured, (name, regex, seed))
        for place, (name, regex) in enumerate(chosen)
    ]
    run.cells(cells, alone=True, what="Figure 6")


def page_row(name: str) -> Row:
    """What is on one of the pages."""
    return {"kind": "page"} | row_of(PAGES[name]())


def copy_growth(run: Run[Config]) -> None:
    """The row of what `growth` found; anew, for it may have gone on since."""
    run.expect([GROWTH])
    growth = ARTEFACTS[GROWTH]
    folder = growth.folder(growth.default(), run.settings.results)
    found = growth_redrawn.copied(folder)
    if {"key": GROWTH} | found not in run.rows:
        run.add(GROWTH, found)


def render(rows: Sequence[Row], manifest: Row) -> Report:
    """All that there are rows of."""
    by_key = {row["key"]: row for row in rows}
    growth = by_key.get(GROWTH, {"cells": []})
    regexes = [row for row in rows if row.get("kind") == "regex"]
    missing = [] if growth["cells"] else [NO_FIGURE_5]
    given = manifest["config"]["regexes"]
    what = "Function-calling schemas" if given is None else f"Regexes of {given}"
    return Report(
        "The article's figures, redrawn",
        [cdf.table(regexes, missing)],
        [*_figures(by_key, growth, regexes, what)],
        {"figure6": cdf.summaries(regexes), "regexes": len(regexes)},
    )


def _figures(
    by_key: dict[str, Row], growth: Row, regexes: Sequence[Row], what: str
) -> Iterator[Figure]:
    for name in PAGES:
        if by_key.get(name, {}).get("kind") == "page":
            yield drawn(page_of(by_key[name]), name)
    if growth["cells"]:
        yield growth_redrawn.draw(growth)
    if regexes:
        yield cdf.draw(regexes, what)
