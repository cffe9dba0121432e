"""The image of forbidden pairs is exact, pixel by pixel."""

from __future__ import annotations

import numpy as np
import pytest
from budget import examples
from hypothesis import given
from hypothesis import strategies as st

from bpe_automata.viz import BrokenDrawingError, density, rectangles
from bpe_automata.viz.plot import cell_edges


@st.composite
def cases(draw: st.DrawFn) -> tuple[tuple[int, int], tuple[int, int], np.ndarray]:
    shape = draw(st.tuples(st.integers(1, 30), st.integers(1, 30)))
    grid = draw(st.tuples(st.integers(1, 35), st.integers(1, 35)))
    side = [st.lists(st.integers(0, n), min_size=2, max_size=2).map(sorted) for n in shape]
    sides = draw(st.lists(st.tuples(*side), max_size=12))
    return shape, grid, np.array(sides, np.int64).reshape(-1, 4).T


@pytest.mark.parametrize("chunk", [1_000_000, 7])
@given(case=cases())
@examples(150)
def test_density_is_the_count_of_covered_pairs(chunk: int, case) -> None:
    shape, grid, sides = case
    covered = np.zeros(shape, bool)
    for top, bottom, left, right in sides.T.tolist():
        covered[top:bottom, left:right] = True
    rows, columns = (cell_edges(n, g) for n, g in zip(shape, grid, strict=True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bpe_automata.viz.plot._CHUNK", chunk)
        found = density(*sides, shape, grid)
    assert found.shape == (min(grid[0], shape[0]), min(grid[1], shape[1]))
    for i in range(found.shape[0]):
        for j in range(found.shape[1]):
            block = covered[rows[i] : rows[i + 1], columns[j] : columns[j + 1]]
            assert block.size
            assert found[i, j] == block.sum() / block.size


def test_cells_are_nearly_equal() -> None:
    sizes = np.diff(cell_edges(49_152, 800))
    assert sizes.sum() == 49_152
    assert set(sizes.tolist()) <= {61, 62}


@pytest.mark.parametrize(
    ("sides", "message"),
    [
        (([0, 3], [1, 2], [0, 0], [1, 1]), "rectangle 1 has the rows 3 to 2, of 0 to 4"),
        (([0], [1], [0], [6]), "rectangle 0 has the columns 0 to 6, of 0 to 5"),
        (([-1], [1], [0], [1]), "rectangle 0 has the rows -1 to 1"),
        (([0], [1], [0, 1], [1, 2]), "shapes"),
    ],
)
def test_bad_rectangles_are_refused(sides, message: str) -> None:
    with pytest.raises(BrokenDrawingError, match=message):
        density(*sides, (4, 5), (2, 2))


def test_the_image() -> None:
    figure = pytest.importorskip("matplotlib.figure", reason="matplotlib is not installed").Figure()
    axes = figure.add_subplot()
    image = rectangles(axes, [0], [2], [0], [3], (4, 6), pixels=2)
    shown = image.get_array()
    assert shown[0, 0] == 1
    assert shown.mask.tolist() == [[False, True], [True, True]]
    assert image.get_extent() == [0, 6, 4, 0] or tuple(image.get_extent()) == (0, 6, 4, 0)
    figure.canvas.draw()
