"""Figures by matplotlib: the layout of drawings, and exact densities of covered pairs; and pictures
of byte automata and of large automata.
"""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import examples
from support.drawn import a_star_b_star, drawings, many_arrows, random_drawing

from bpe_automata._automata.compile import compile_regex
from bpe_automata._automata.dfa import ByteDFA
from bpe_automata._automata.pictures import byte_ranges
from bpe_automata._automata.sources import from_strings
from bpe_automata._token_automata.automaton import TokenAutomaton
from bpe_automata.errors import ArgumentError
from bpe_automata.viz import (
    BrokenDrawingError,
    Drawing,
    Edge,
    Node,
    Picture,
    density,
    figure,
    plot,
    rectangles,
)
from bpe_automata.viz import _layout as layout
from bpe_automata.viz._figures import cell_edges
from bpe_automata.viz._layout import lay_out, points, route, spread


def distances(drawing: Drawing) -> dict[int, int]:
    found = {i: 0 for i, node in enumerate(drawing.nodes) if node.start}
    queue = deque(found)
    while queue:
        source = queue.popleft()
        for edge in drawing.edges:
            if edge.source == source and edge.target not in found:
                found[edge.target] = found[source] + 1
                queue.append(edge.target)
    return found


def has_cycle(drawing: Drawing) -> bool:
    """Is there a way from a node to itself, by other nodes?"""
    edges = {(e.source, e.target) for e in drawing.edges if e.source != e.target}
    reached = set(edges)
    for _ in drawing.nodes:
        reached |= {(p, r) for p, q in reached for s, r in edges if q == s}
    return any(p == q for p, q in reached)


def boxes_meet(one, size, other, extent) -> bool:
    return bool((np.abs(one - other) < (size + extent) / 2 - 0.01).all())


@given(drawings())
@examples(60)
def test_no_two_nodes_overlap_and_ranks_ascend(drawing: Drawing) -> None:
    layout = lay_out(drawing)
    n = len(drawing.nodes)
    for i in range(n):
        for j in range(i):
            boxes = layout.centre[i], layout.size[i], layout.centre[j], layout.size[j]
            assert not boxes_meet(*boxes), (i, j)
    forward = [e for e in drawing.edges if e.source != e.target]
    if all(layout.rank[e.source] < layout.rank[e.target] for e in forward):
        into = [0] * n
        for edge in forward:
            into[edge.target] = max(into[edge.target], int(layout.rank[edge.source]) + 1)
        assert layout.rank.tolist() == into, "the longest way"
    else:
        assert has_cycle(drawing)
        for node, distance in distances(drawing).items():
            assert layout.rank[node] == distance
    for i in range(n):
        for j in range(n):
            assert (layout.rank[i] < layout.rank[j]) == (layout.centre[i, 0] < layout.centre[j, 0])


@given(drawings())
@examples(20)
def test_curves_join_their_nodes_and_all_is_deterministic(drawing: Drawing) -> None:
    layout = lay_out(drawing)
    routes = route(drawing, layout)
    again = route(drawing, lay_out(drawing))
    assert np.array_equal(routes.curves, again.curves)
    assert np.array_equal(routes.labels, again.labels)
    for edge, curve in zip(drawing.edges, routes.curves, strict=True):
        ends = layout.centre[[edge.source, edge.target]]
        if edge.source != edge.target:
            assert np.allclose(curve[[0, 3]], ends)
        else:
            assert (curve[:, 1] > ends[0, 1]).all(), "a self-loop is above its node"


@pytest.mark.parametrize("n", [2, 6, 12, 44])
@pytest.mark.parametrize("seed", range(3))
def test_labels_do_not_stand_on_nodes(n: int, seed: int) -> None:
    drawing = random_drawing(n, seed)
    layout = lay_out(drawing)
    routes = route(drawing, layout)
    for label, size in zip(routes.labels, layout.label_size, strict=True):
        for centre, extent in zip(layout.centre, layout.size, strict=True):
            assert not boxes_meet(label, size, centre, extent)


def test_parallel_and_opposite_edges_are_apart() -> None:
    drawing = Drawing(
        (Node("0", start=True), Node("1")), (Edge(0, 1, "a"), Edge(0, 1, "b"), Edge(1, 0, "c"))
    )
    middles = [points(curve)[16] for curve in route(drawing, lay_out(drawing)).curves]
    for i in range(3):
        for j in range(i):
            assert np.hypot(*(middles[i] - middles[j])) > 10


def test_edges_go_around_nodes() -> None:
    """0 -> 1 -> 2 -> 3 in a line, and an edge back over them."""
    nodes = tuple(Node(str(i), start=i == 0) for i in range(4))
    edges = (*(Edge(i, i + 1, "a") for i in range(3)), Edge(3, 0, "b"))
    drawing = Drawing(nodes, edges)
    layout = lay_out(drawing)
    back = points(route(drawing, layout).curves[3])
    for node in (1, 2):
        assert np.abs(back - layout.centre[node]).max(axis=1).min() > layout.size[node, 0] / 2


@given(st.lists(st.floats(-50, 50), min_size=1, max_size=8), st.data())
@examples(200)
def test_spread_keeps_the_distances_and_is_nearest(
    wanted: list[float], data: st.DataObject
) -> None:
    gaps = st.lists(st.floats(0, 20), min_size=len(wanted) - 1, max_size=len(wanted) - 1)
    apart = np.array(data.draw(gaps))
    y = spread(np.array(wanted), apart)
    assert (-np.diff(y) >= apart - 1e-9).all()
    cost = ((y - wanted) ** 2).sum()
    for i in range(len(y)):
        for step in (-0.01, 0.01):
            moved = y.copy()
            moved[i:] += step
            if (-np.diff(moved) >= apart).all():
                assert ((moved - wanted) ** 2).sum() >= cost - 1e-9


@pytest.mark.parametrize(
    "drawing",
    [
        a_star_b_star(),
        random_drawing(12, 1),
        Drawing((), ()),
        Drawing((Node("$x"),), (Edge(0, 0, "$日$"),), "a_$b$"),
    ],
)
def test_matplotlib_draws_it(drawing: Drawing) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    made = figure(drawing)
    made.canvas.draw()
    (axes,) = made.axes
    outlines = [p for p in axes.patches if p.get_zorder() == 3]
    assert len(outlines) == sum(1 + node.accepting for node in drawing.nodes)
    for patch in axes.patches:  # nothing is cut off
        low, high = patch.get_path().get_extents(patch.get_patch_transform()).get_points()
        assert (low >= [axes.get_xlim()[0], axes.get_ylim()[0]]).all()
        assert (high <= [axes.get_xlim()[1], axes.get_ylim()[1]]).all()


def test_plot_fills_given_axes_without_changing_proportions() -> None:
    matplotlib = pytest.importorskip("matplotlib.figure", reason="matplotlib is not installed")
    made = matplotlib.Figure(figsize=(8, 3))
    axes = made.add_subplot()
    plot(random_drawing(12, 1), axes)
    assert axes.get_aspect() == 1
    assert not axes.axison


def test_crossings_that_can_be_undone_are_undone() -> None:
    """0 -> {1, 2}, 1 -> 4, 2 -> 3: the last rank is turned round."""
    nodes = tuple(Node(str(i), start=i == 0) for i in range(5))
    edges = tuple(Edge(p, q, "a") for p, q in [(0, 1), (0, 2), (2, 3), (1, 4)])
    y = lay_out(Drawing(nodes, edges)).centre[:, 1]
    assert (y[1] > y[2]) == (y[4] > y[3])


def test_nodes_of_one_rank_with_an_edge_between_them_are_neighbours() -> None:
    """0 -> {1, 2, 3, 4}, 1 <-> 4, which no sweep sees."""
    nodes = tuple(Node(str(i), start=i == 0) for i in range(5))
    edges = (*(Edge(0, i, "a") for i in range(1, 5)), Edge(1, 4, "b"), Edge(4, 1, "b"))
    order = np.argsort(lay_out(Drawing(nodes, edges)).centre[1:, 1]).tolist()
    assert abs(order.index(0) - order.index(3)) == 1


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
        patch.setattr("bpe_automata.viz._figures._CHUNK", chunk)
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


# ---------------------------------------------------------------- byte automata and large automata


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (b"abc", "a-c"),
        (b"ab", "a, b"),
        (b"0123456789_xyz", "0-9, _, x-z"),
        (b" !", "␣, !"),
        (b",", ","),
        (range(0x80, 0xC0), "\\x80-\\xbf"),
        (range(0, 256, 2), "\\x00, \\x02, \\x04, \\x06, \\x08, \\n … +122 more"),
    ],
)
def test_byte_ranges(values, expected: str) -> None:
    assert byte_ranges(values) == expected


def test_a_star_b_star() -> None:
    dfa = compile_regex("a*b*")
    drawing = dfa.picture("ab").drawing
    assert [(n.label, n.accepting, n.start, n.lit) for n in drawing.nodes] == [
        ("1", True, True, True),
        ("2", True, False, True),
    ]
    edges = [(e.source, e.target, e.label, e.lit) for e in drawing.edges]
    assert edges == [(0, 0, "a", True), (0, 1, "b", True), (1, 1, "b", False)]
    assert drawing.caption == "ab: match"
    assert not any(
        part.lit for part in (*dfa.picture().drawing.nodes, *dfa.picture().drawing.edges)
    )
    assert "text/plain" in dfa._repr_mimebundle_()


@pytest.mark.parametrize(
    ("path", "caption"),
    [
        (b"tru", "tru: ends too early"),
        ("true", "true: match"),
        ("trip", "trip: no match goes on with i at 2"),
        (b"\xff", "\\xff: no match goes on with \\xff at 0"),
        ("", ": ends too early"),
    ],
)
def test_the_caption_says_what_becomes_of_a_text(path: bytes | str, caption: str) -> None:
    assert compile_regex("true|false").picture(path).drawing.caption == caption


@given(st.sets(st.text("abcdxyz", max_size=4), min_size=1, max_size=8))
@examples(60)
def test_the_drawing_is_the_automaton(strings: set[str]) -> None:
    """Read back from labels of single bytes, it accepts the same strings."""
    drawing = from_strings(strings).picture().drawing
    leads: dict[tuple[int, str], int] = {}
    for edge in drawing.edges:
        for part in edge.label.split(", "):
            low, high = part[0], part[-1]
            for code in range(ord(low), ord(high) + 1):
                leads[edge.source, chr(code)] = edge.target
    (start,) = (i for i, node in enumerate(drawing.nodes) if node.start)
    found, level = set(), [("", start)]
    while level:
        found |= {word for word, node in level if drawing.nodes[node].accepting}
        level = [(w + c, to) for w, node in level for (p, c), to in leads.items() if p == node]
    assert found == strings


def test_a_large_automaton_is_summarised_and_shows_the_path() -> None:
    dfa = compile_regex("[ab]{100}")
    drawing = dfa.picture("ab" * 10).drawing
    assert drawing.caption.startswith("the states near abab")
    assert len(drawing.nodes) == 22
    assert sum(edge.lit for edge in drawing.edges) == 20


def test_nothing() -> None:
    drawing = from_strings([]).picture("a").drawing
    assert [(node.start, node.accepting) for node in drawing.nodes] == [(True, False)]
    assert drawing.caption.startswith("accepts nothing")


DENSE = TokenAutomaton.from_transitions(
    [(p, q, q) for p in range(60) for q in range(60)], 0, [1], states=range(60)
)
ROW = TokenAutomaton.from_transitions([(k, 0, k + 1) for k in range(60)], 0, [60])


def arrows(picture: Picture) -> set[tuple[str, str, bool]]:
    """(source, target, on the path?) of all, each of which occurs once."""
    drawing = picture.drawing
    names = [node.label for node in drawing.nodes]
    found = [(names[e.source], names[e.target], e.lit) for e in drawing.edges]
    assert len(set(found)) == len(found)
    return set(found)


def test_a_summary_has_the_arrows_of_the_path_and_of_the_start_only() -> None:
    picture = DENSE.picture([*range(1, 41)])
    path = {(str(p), str(p + 1), True) for p in range(39)}
    others = {("0", str(q), False) for q in range(12) if q != 1}
    assert arrows(picture) == path | others
    assert len(picture.drawing.nodes) == 40
    assert picture.drawing.caption == (
        "60 states, 3,600 transitions; too large to draw: only arrows of the start and of the path "
        "are shown; the first 40 of 41 states of the path; the path ends too early"
    )
    without = DENSE.picture()
    assert arrows(without) == {("0", str(q), False) for q in range(12)}
    assert without.drawing.caption.endswith("only arrows of the start are shown")


def test_the_caption_says_that_a_long_path_is_cut() -> None:
    caption = ROW.picture([0] * 60).drawing.caption
    assert "the first 40 of 61 states of the path; the path is accepted" in caption
    assert "the first" not in ROW.picture([0] * 39).drawing.caption


def test_a_path_that_goes_to_and_fro_is_cut_too() -> None:
    """Few states, many arrows: each pair out of 20 states."""
    path = [q for p in range(20) for k in range(p + 1, 20) for q in (p, k)]
    picture = DENSE.picture(path)
    assert sum(edge.lit for edge in picture.drawing.edges) == 40
    assert len(picture.drawing.edges) <= 52
    assert "the first 40 of" in picture.drawing.caption
    assert "arrows of the path" in picture.drawing.caption


def test_all_states_of_a_summary_that_all_fit_are_told_from_a_whole_drawing() -> None:
    full = [(p, q, q) for p in range(15) for q in range(15)]
    automaton = TokenAutomaton.from_transitions(full, 0, [1])
    # Without a path: those that the start leads to, itself among them.
    for drawing, n in (
        (automaton.picture([*range(15)]).drawing, 15),
        (automaton.picture().drawing, 12),
    ):
        assert len(drawing.nodes) == n
        assert "too large to draw" in drawing.caption


@pytest.fixture(scope="module")
def dense_bytes() -> ByteDFA:
    """Any texts of a, b, c, in which the sixth letter before the end is an a."""
    return compile_regex("[abc]*a[abc]{5}")


def test_a_large_byte_automaton(dense_bytes: ByteDFA) -> None:
    long = dense_bytes.picture("ab" * 4)
    lit = [edge for edge in long.drawing.edges if edge.lit]
    on_way = {i for i, node in enumerate(long.drawing.nodes) if node.lit}
    assert {e.source for e in long.drawing.edges} <= on_way
    assert 2 <= len(lit) <= 8
    row = compile_regex("[ab]{200}")
    assert "the first 100 bytes of 120" in row.picture("ab" * 60).drawing.caption
    assert len(row.picture("ab" * 30).drawing.nodes) == 61
    assert row.picture().drawing.caption == "the states near the start"


def test_labels_are_not_negative() -> None:
    for drawn in (ROW, DENSE, TokenAutomaton.from_transitions([], 0, [0])):
        with pytest.raises(ArgumentError, match="labels is -3"):
            drawn.picture(labels=-3)
    three = TokenAutomaton.from_transitions([(0, a, 1) for a in range(3)], 0, [1])
    assert three.picture(labels=0).drawing.edges[0].label == "… +3 more"


# ---------------------------------------------------------------- work


@pytest.mark.parametrize("cycles", [False, True])
def test_the_largest_whole_drawing_tries_few_curves(
    cycles: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """40 states, and more arrows than an automaton draws; with all curves it takes a minute."""
    drawing, tried = many_arrows(40, 200, cycles), []
    plain = layout.bowed
    monkeypatch.setattr(layout, "bowed", lambda *ends: tried.append(0) or plain(*ends))
    layout.route(drawing, lay_out(drawing))
    assert 200 <= len(tried) <= 200 * 17


def test_pictures_with_few_arrows_have_all_curves(monkeypatch: pytest.MonkeyPatch) -> None:
    drawing, tried = many_arrows(20, 70, cycles=False), set()
    plain = layout.bowed

    def spied(start, end, bows):
        tried.add(bows)
        return plain(start, end, bows)

    monkeypatch.setattr(layout, "bowed", spied)
    layout.route(drawing, lay_out(drawing))
    assert any(first != second for first, second in tried)
