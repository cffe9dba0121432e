"""Which pairs a union of rectangles covers, as an image: each pixel is the share of its pairs."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from bpe_automata.optional import require
from bpe_automata.viz.drawing import BrokenDrawingError

_CHUNK = 1_000_000  # rows of rectangles at once: the memory stays below about 200 MB


def rectangles(
    axes: Any,
    rows_low: np.ndarray,
    rows_high: np.ndarray,
    columns_low: np.ndarray,
    columns_high: np.ndarray,
    shape: tuple[int, int],
    *,
    pixels: int = 800,
) -> Any:
    """Show `shape[0]` rows (downwards) and `shape[1]` columns in matplotlib axes.

    Rectangle i covers rows_low[i] <= row < rows_high[i] and columns_low[i] <= column <
    columns_high[i]; what several cover counts once. Returns matplotlib's image, of which a colour
    bar can be made: up to 1, all covered (white: nothing); the scale is that of the square root, so
    that thin rectangles stay visible. Raises BrokenDrawingError, MissingDependencyError.
    """
    colors = require("matplotlib.colors")
    covered = density(rows_low, rows_high, columns_low, columns_high, shape, (pixels, pixels))
    return axes.imshow(
        np.ma.masked_equal(covered, 0),  # nothing stays white, very little does not
        cmap="magma_r",
        norm=colors.PowerNorm(0.5, vmin=0, vmax=1),
        extent=(0, shape[1], shape[0], 0),
        aspect="auto",
        interpolation="nearest",
    )


def density(
    rows_low: np.ndarray,
    rows_high: np.ndarray,
    columns_low: np.ndarray,
    columns_high: np.ndarray,
    shape: tuple[int, int],
    grid: tuple[int, int],
) -> np.ndarray:
    """float64 [g, h]: the share of the pairs of each cell that lie in a rectangle; exact.

    g and h are those of `grid`, or the rows and columns themselves if there are fewer. The cells
    are as equal as whole rows and columns allow.
    """
    sides = [np.asarray(a, np.int64) for a in (rows_low, rows_high, columns_low, columns_high)]
    _check(sides, shape)
    top, bottom, left, right = sides
    solid = (top < bottom) & (left < right)
    top, bottom, left, right = (side[solid] for side in sides)
    rows, columns = (cell_edges(n, g) for n, g in zip(shape, grid, strict=True))
    counts = np.zeros((len(rows) - 1, len(columns) - 1))
    for low, high in _chunks(top, bottom, shape[0]):
        met = (top < high) & (bottom > low)
        clipped = np.maximum(top[met], low), np.minimum(bottom[met], high)
        row, start, end = union_by_row(*clipped, left[met], right[met], shape[1])
        cell = np.searchsorted(rows, row, "right") - 1
        counts += _to_the_right(cell, start, columns, counts.shape)
        counts -= _to_the_right(cell, end, columns, counts.shape)
    return counts / np.outer(np.diff(rows), np.diff(columns))


def cell_edges(length: int, cells: int) -> np.ndarray:
    """int64 [k + 1]: 0 to `length` in k cells, at most `cells`, none empty."""
    cells = max(1, min(cells, length))
    return np.arange(cells + 1) * length // cells


def union_by_row(
    top: np.ndarray, bottom: np.ndarray, left: np.ndarray, right: np.ndarray, width: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """int64 [k] each: rows, starts, ends of disjoint intervals that cover the same pairs."""
    high = bottom - top
    row = np.repeat(top - np.cumsum(high) + high, high) + np.arange(high.sum())
    base = row * (width + 1)  # intervals of all rows on one line, those of a row together
    start = base + np.repeat(left, high)
    order = np.argsort(start, kind="stable")
    row, base, start = row[order], base[order], start[order]
    reached = np.maximum.accumulate(base + np.repeat(right, high)[order])
    before = np.concatenate([[0], reached[:-1]])
    start = np.maximum(start, before)
    new = start < reached
    return row[new], (start - base)[new], (reached - base)[new]


def _to_the_right(
    cell: np.ndarray, column: np.ndarray, edges: np.ndarray, shape: tuple[int, int]
) -> np.ndarray:
    """float64 [g, h]: in each row of cells, how many pairs lie at or right of these columns."""
    place = np.searchsorted(edges, column, "right") - 1  # h for the end of the last cell
    wide = (shape[0], shape[1] + 1)
    flat, size = cell * wide[1] + place, wide[0] * wide[1]
    part = np.append(edges, edges[-1])[place + 1] - column
    own = np.bincount(flat, part, size).reshape(wide)[:, :-1]
    begun = np.bincount(flat, minlength=size).reshape(wide)[:, :-1]
    return own + (np.cumsum(begun, axis=1) - begun) * np.diff(edges)


def _chunks(top: np.ndarray, bottom: np.ndarray, n_rows: int) -> list[tuple[int, int]]:
    """Bands of rows, each with about _CHUNK rows of rectangles or a single row."""
    change = np.bincount(top, minlength=n_rows + 1) - np.bincount(bottom, minlength=n_rows + 1)
    band = np.cumsum(np.cumsum(change)[:n_rows]) // _CHUNK
    edges = [0, *(np.flatnonzero(np.diff(band)) + 1).tolist(), n_rows]
    return list(pairwise(edges))


def _check(sides: list[np.ndarray], shape: tuple[int, int]) -> None:
    if len({side.shape for side in sides}) != 1 or sides[0].ndim != 1:
        raise BrokenDrawingError(f"sides of rectangles of shapes {[s.shape for s in sides]}")
    top, bottom, left, right = sides
    for low, high, limit, what in (
        (top, bottom, shape[0], "rows"),
        (left, right, shape[1], "columns"),
    ):
        bad = np.flatnonzero((low < 0) | (low > high) | (high > limit))
        if len(bad):
            i = int(bad[0])
            raise BrokenDrawingError(
                f"rectangle {i} has the {what} {low[i]} to {high[i]}, of 0 to {limit}"
            )
