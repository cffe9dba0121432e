"""Figure 5: what a repeated `.` costs, of the rows of `growth`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bpe_automata.errors import MissingFileError
from experiments import article_table, growth
from experiments.figures import finish
from experiments.growth_families import FAMILIES
from experiments.growth_figure import QUANTITIES, give_up, legend, limits, lines
from experiments.optional import require
from experiments.runner import Options, read_run

Row = dict[str, Any]

FAMILY = FAMILIES[0]
SMALL = replace(FAMILY, sizes=(1, 2))
"""What is measured where `growth` was not run."""


def rows_of(options: Options) -> tuple[list[Row], Row]:
    """The cells of `.{n}` with their manifest; a few are measured where there are none."""
    for name in ("growth", "growth-small"):
        try:
            rows, manifest = read_run(replace(options, name=name, model=None))
        except MissingFileError:
            continue
        cells = [row for row in rows if row.get("family") == FAMILY.name]
        if cells:
            return cells, manifest
    small = replace(options, name="growth-small", model=None, n=None)
    table = json.dumps(article_table.bpe_alone_of_mistral())
    growth.measure(small, table, [SMALL], growth.Limits(seconds=20))
    return rows_of(options)


def draw(cells: Sequence[Row], manifest: Row, folder: Path) -> list[Path]:
    """Write `figure5.png` and `figure5.pdf`; returns the paths."""
    require("matplotlib").use("Agg")
    pyplot = require("matplotlib.pyplot")
    pyplot.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False})
    figure, panels = pyplot.subplots(1, 2, figsize=(10.4, 4.6), sharex=True, layout="constrained")
    for axes, (quantity, label) in zip(panels, reversed(QUANTITIES.items()), strict=True):
        lines(axes, cells, quantity)
        axes.set_xlabel("i: how often . is repeated")
        axes.set_ylabel(f"{label} (log scale)")
    give_up(panels[1], cells, manifest)
    panels[1].legend(*legend(panels), loc="center right", frameon=False)
    return finish(figure, headline(cells), note(manifest), folder, "figure5")


def headline(cells: Sequence[Row]) -> str:
    """How far DirectMerge came."""
    done = [r["n"] for r in cells if r["method"] == "DirectMerge" and r["status"] == "done"]
    return (
        "Figure 5. A repeated . under DirectMerge and CartesianMerge: DirectMerge ends at "
        f"i = {max(done, default=0)}"
    )


def note(manifest: Row) -> str:
    """What was measured."""
    return (
        f"{manifest['tokenizer']}; x: given up, over {' or '.join(limits(manifest))}. "
        "The article plots i = 1 .. 6. Integers: 1 a state, 2 a "
        "transition; CartesianMerge (reference) keeps the lift and its relevant pairs.\n"
        "Of Figures 2 to 6 of the article neither number nor caption was at hand: the numbers are "
        "ours."
    )
