"""Figures by matplotlib: the layout of drawings, and exact densities of covered pairs; and pictures
of byte automata and of large automata.
"""

from __future__ import annotations

from itertools import combinations

import networkx
import numpy as np
import pytest
from graphs import a_star_b_star, drawings
from hypothesis import example, given
from hypothesis import strategies as st
from support import examples

from bpe_automata._automata.compile import compile_regex
from bpe_automata._automata.sources import from_strings
from bpe_automata.viz import Drawing, Edge, Node, density, figure
from bpe_automata.viz._figures import cell_edges
from bpe_automata.viz._layout import lay_out, route


@given(drawings())
@examples(30)
def test_no_two_nodes_overlap_ranks_ascend_and_curves_join_their_nodes(drawing: Drawing) -> None:
    """Without circles all arrows lead to higher ranks."""
    layout = lay_out(drawing)
    rank, x = layout.rank, layout.centre[:, 0]
    for i, j in combinations(range(len(drawing.nodes)), 2):
        apart = np.abs(layout.centre[i] - layout.centre[j])
        assert (apart > (layout.size[i] + layout.size[j]) / 2 - 0.01).any(), (i, j)
    assert (np.less.outer(rank, rank) == np.less.outer(x, x)).all()
    arrows = networkx.DiGraph([(e.source, e.target) for e in drawing.edges if e.source != e.target])
    if networkx.is_directed_acyclic_graph(arrows):
        assert all(rank[source] < rank[target] for source, target in arrows.edges)
    for edge, line in zip(drawing.edges, route(drawing, layout).lines, strict=True):
        ends = layout.centre[[edge.source, edge.target]]
        if edge.source != edge.target:
            assert np.allclose(line[[0, -1]], ends)
        else:
            assert (line[:, 1] > ends[0, 1]).all(), "a self-loop is above its node"


@given(drawings())
@example(a_star_b_star())
@example(Drawing((), ()))
@example(Drawing((Node("$x"),), (Edge(0, 0, "$日$"),), "a_$b$"))
@examples(5)
def test_matplotlib_draws_it_and_nothing_is_cut_off(drawing: Drawing) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    made = figure(drawing)
    made.canvas.draw()
    (axes,) = made.axes
    outlines = [p for p in axes.patches if p.get_zorder() == 3]
    assert len(outlines) == sum(1 + node.accepting for node in drawing.nodes)
    for artist in (*axes.patches, *axes.texts):
        box = artist.get_window_extent().get_points()
        assert (box >= 0).all()
        assert (box <= made.bbox.get_points()[1]).all()


@st.composite
def rectangles(draw: st.DrawFn) -> tuple[tuple[int, int], tuple[int, int], np.ndarray]:
    shape = draw(st.tuples(st.integers(1, 30), st.integers(1, 30)))
    grid = draw(st.tuples(st.integers(1, 35), st.integers(1, 35)))
    side = [st.lists(st.integers(0, n), min_size=2, max_size=2).map(sorted) for n in shape]
    sides = draw(st.lists(st.tuples(*side), max_size=12))
    return shape, grid, np.array(sides, np.int64).reshape(-1, 4).T


@given(case=rectangles())
@examples(60)
def test_density_is_the_count_of_covered_pairs(case) -> None:
    shape, grid, sides = case
    covered = np.zeros(shape, int)
    for top, bottom, left, right in sides.T.tolist():
        covered[top:bottom, left:right] = 1
    rows, columns = (cell_edges(n, g) for n, g in zip(shape, grid, strict=True))
    counts = np.add.reduceat(np.add.reduceat(covered, rows[:-1]), columns[:-1], axis=1)
    found = density(*sides, shape, grid)
    assert found.shape == (min(grid[0], shape[0]), min(grid[1], shape[1]))
    assert np.array_equal(found, counts / np.outer(np.diff(rows), np.diff(columns)))


# ---------------------------------------------------------------- byte automata and large automata


@given(st.sets(st.text("abcdxyz", max_size=4), min_size=1, max_size=8))
@examples(30)
def test_the_drawing_is_the_automaton(strings: set[str]) -> None:
    """Read back from labels of single bytes, it accepts the same strings."""
    drawing = from_strings(strings).picture().drawing
    leads: dict[tuple[int, str], int] = {}
    for edge in drawing.edges:
        for part in edge.label.split(", "):
            for code in range(ord(part[0]), ord(part[-1]) + 1):
                leads[edge.source, chr(code)] = edge.target
    (start,) = (i for i, node in enumerate(drawing.nodes) if node.start)
    found, level = set(), [("", start)]
    while level:
        found |= {word for word, node in level if drawing.nodes[node].accepting}
        level = [(w + c, to) for w, node in level for (p, c), to in leads.items() if p == node]
    assert found == strings


@pytest.mark.parametrize("regex", ["[ab]{100}", "[abc]*a[abc]{5}"])
def test_of_a_large_automaton_the_states_near_a_path_are_shown(regex: str) -> None:
    drawing = compile_regex(regex).picture("ab" * 10).drawing
    assert drawing.caption.startswith("the states near abababab")
    assert len(drawing.nodes) <= 40
    lit = {(edge.source, edge.target) for edge in drawing.edges if edge.lit}
    (at,) = (i for i, node in enumerate(drawing.nodes) if node.start)
    for letter in "ab" * 10:
        ways = [e for e in drawing.edges if e.source == at and letter in e.label]
        (at,) = (e.target for e in ways if (e.source, e.target) in lit)
    assert drawing.nodes[at].accepting == compile_regex(regex).accepts(b"ab" * 10)
