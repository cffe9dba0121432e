"""Figure 5: what a repeated `.` costs, of the rows of `growth`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bpe_automata.errors import MissingFileError
from experiments.article.canvas import HEAD_WIDTH, NOTE_WIDTH, OURS, subplots, wrapped
from experiments.article.fork import DONE
from experiments.article.growth_families import ANYTHING
from experiments.article.growth_figure import QUANTITIES, give_up, legend, limits, lines
from experiments.article.growth_methods import DIRECT
from experiments.article.growth_report import cells_of
from experiments.article.mistral import name_of
from experiments.run.cells import Row
from experiments.run.measuring import read_run
from experiments.run.report import Figure

_WIDTH = 10.4


def copied(folder: Path) -> Row:
    """The cells of `.{n}` of a run of `growth`, its config and whether it was complete; no cells
    where there is no such run."""
    try:
        rows, manifest = read_run(folder)
    except MissingFileError:
        return {"kind": "growth", "cells": []}
    cells = [row for row in cells_of(rows) if row["family"] == ANYTHING.name]
    config, complete = manifest["config"], manifest["complete"]
    return {"kind": "growth", "cells": cells, "config": config, "complete": complete}


def draw(growth: Row) -> Figure:
    """Of what `copied` gives, with at least one cell."""
    cells, config = growth["cells"], growth["config"]
    figure, grid = subplots(1, 2, figsize=(_WIDTH, 4.6), sharex=True)
    panels = grid[0]
    for axes, (quantity, label) in zip(panels, reversed(QUANTITIES.items()), strict=True):
        lines(axes, cells, quantity)
        axes.set_xlabel("i: how often . is repeated")
        axes.set_ylabel(f"{label} (log scale)")
    give_up(panels[1], cells, config)
    panels[1].legend(*legend(panels), loc="center right", frameon=False)
    head = wrapped(headline(cells), _WIDTH, HEAD_WIDTH)
    return Figure("figure5", figure, head, wrapped(note(growth), _WIDTH, NOTE_WIDTH))


def headline(cells: Sequence[Row]) -> str:
    """How far DirectMerge came."""
    done = [row["n"] for row in cells if row["method"] == DIRECT and row["status"] == DONE]
    return (
        "Figure 5. A repeated . under DirectMerge and CartesianMerge: DirectMerge ends at "
        f"i = {max(done, default=0)}"
    )


def note(growth: Row) -> str:
    """What was measured."""
    config = growth["config"]
    incomplete = "" if growth["complete"] else "\nINCOMPLETE: the run of `growth` had not ended."
    return (
        f"{name_of(config['merges'])}; x: given up, over {' or '.join(limits(config))}. "
        "The article plots i = 1 .. 6. Integers: 1 a state, 2 a "
        "transition; CartesianMerge (reference) keeps the lift and its relevant pairs. Each "
        f"construction was timed once.\n{OURS}{incomplete}"
    )
