"""Pictures: a drawing is the automaton, every form says the same, with and without Graphviz, and
every character of a label is visible and as it is meant; and the figures of matplotlib: the layout
of drawings, and exact densities of covered pairs.
"""

from __future__ import annotations

import shutil
from itertools import combinations
from xml.etree import ElementTree

import networkx
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support import examples

from bpe_automata.automata.compile import compile_regex
from bpe_automata.automata.sources import from_strings
from bpe_automata.viz import (
    BrokenDrawingError,
    Drawing,
    Edge,
    GraphvizError,
    Node,
    Picture,
    UnknownFormatError,
    density,
    figure,
    side_by_side,
    visible,
)
from bpe_automata.viz import _picture as module
from bpe_automata.viz._automata import byte_ranges
from bpe_automata.viz._drawing import printable
from bpe_automata.viz._figures import cell_edges
from bpe_automata.viz._layout import lay_out, route
from bpe_automata.viz._picture import to_svg

WORDS = ["␣the", "a", ":␣", "true", '"', "\\n", "日本", "é", ",", "<b>", "&amp;", "$x$"]
TEXTS = st.text(st.characters(codec=None), max_size=12)
A_STAR_B_STAR = Drawing(
    (Node("0", accepting=True, start=True, lit=True), Node("1", accepting=True)),
    (Edge(0, 0, "a", lit=True), Edge(0, 1, "b"), Edge(1, 1, "b")),
    "a*b*",
)
PICTURE = Picture(A_STAR_B_STAR)


@st.composite
def drawings(draw: st.DrawFn) -> Drawing:
    """Any labelled graph of up to 12 nodes."""
    n, texts, flags = draw(st.integers(1, 12)), st.sampled_from(WORDS), st.booleans()
    node = st.builds(Node, texts, flags, flags, flags, st.sampled_from(["", "a note"]))
    place = st.integers(0, n - 1)
    nodes = draw(st.lists(node, min_size=n, max_size=n))
    edges = draw(st.lists(st.builds(Edge, place, place, texts, flags), max_size=24))
    return Drawing(tuple(nodes), tuple(edges), draw(texts))


# ---------------------------------------------------------------- forms


def test_text_and_html() -> None:
    assert PICTURE.text().splitlines()[1:] == [
        "*→◎ 0",
        "*     a → 0",
        "      b → 1",
        "  ◎ 1",
        "      b → 1",
    ]
    assert PICTURE.html().count("font-weight:bold") == 3  # state 0, a, → 0
    row = side_by_side([PICTURE, PICTURE], ["before <a>", "after"])._repr_mimebundle_()
    assert row["text/plain"].count(PICTURE.text()) == 2
    assert row["text/html"].index("before &lt;a&gt;") < row["text/html"].index("after")


FORMATS = {
    ".dot": b"digraph",
    ".txt": b"a*b*  (2 states",
    ".html": b"<!DOCTYPE html>",
    ".svg": b"<?xml",
    ".png": b"\x89PNG",
    ".pdf": b"%PDF",
}


@pytest.mark.parametrize("suffix", FORMATS)
def test_equal_drawings_make_equal_files_without_graphviz(suffix, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(module.shutil, "which", lambda name: None)
    if suffix in (".svg", ".png", ".pdf"):
        pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    paths = [tmp_path / f"{name}{suffix}" for name in "ab"]
    one, other = (Picture(A_STAR_B_STAR).save(path).read_bytes() for path in paths)
    assert one.startswith(FORMATS[suffix])
    assert one == other


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: PICTURE.save("x.gif"), UnknownFormatError, r"x\.gif.*\.svg"),
        (lambda: side_by_side([PICTURE], []), BrokenDrawingError, "1 pictures, but 0 titles"),
        (lambda: Drawing((Node("0"),), (Edge(0, 2, "a"),)), BrokenDrawingError, "edge 0 .*0 to 0"),
        (lambda: density([3], [2], [0], [1], (4, 5), (2, 2)), BrokenDrawingError, "rows 3 to 2"),
        (lambda: density([0], [1], [0, 1], [1, 2], (4, 5), (2, 2)), BrokenDrawingError, "shapes"),
        (lambda: to_svg("digraph {}"), GraphvizError, "did not draw"),
    ],
)
def test_what_cannot_be_drawn_is_refused(call, error, message, monkeypatch) -> None:
    """Here with a Graphviz that fails."""
    program = shutil.which("false")
    monkeypatch.setattr(module.shutil, "which", lambda name: program)
    with pytest.raises(error, match=message):
        call()


# ---------------------------------------------------------------- labels


@pytest.mark.parametrize(
    ("shown", "given", "expected"),
    [
        (visible, " a\n\t\r\\", "␣a\\n\\t\\r\\\\"),
        (visible, b"\xc3\xa9\x00", "é\\x00"),
        (visible, "\u200b日\ud800", "\\u200b日\\ud800"),
        (visible, "x" * 200, "x" * 40 + "…" + "x" * 19),
        (byte_ranges, b"0123456789_xyz", "0-9, _, x-z"),
        (byte_ranges, range(0, 256, 2), "\\x00, \\x02, \\x04, \\x06, \\x08, \\n … +122 more"),
    ],
)
def test_what_is_shown(shown, given, expected) -> None:
    assert shown(given) == expected


@given(st.binary(max_size=9), st.binary(max_size=9))
@examples(300)
def test_different_bytes_look_different(one: bytes, other: bytes) -> None:
    """As far as the text itself holds no ␣."""
    assert (visible(one) == visible(other)) == (one == other) or "␣".encode() in one + other


@given(st.text(st.characters(codec=None)))
@examples(200)
def test_printable_text_can_be_written_and_keeps_what_was_readable(text: str) -> None:
    shown = printable(text)
    assert shown.isprintable()
    assert shown.encode().decode() == shown
    assert printable(shown) == shown
    assert not text.isprintable() or shown == text


TRAPS = [
    *('"', "\\", 'a\\"', "\\N\\G\\l", "&lt;&amp;&#65;"),
    *("<b>x</b>", "<<", "a\nb", "é日\x00", "-->"),
]


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
@given(TEXTS)
@example("".join(TRAPS))
@examples(12)
def test_labels_come_out_as_they_went_in(text: str) -> None:
    texts = [*TRAPS, f"{text}!"]
    nodes = tuple(
        Node(f"n{t}", accepting=i % 2 == 0, start=i % 3 == 0, lit=i % 5 == 0, note=f"m{t}")
        for i, t in enumerate(texts)
    )
    edges = tuple(Edge(i, 0, t.replace(" ", "␣"), i % 2 == 0) for i, t in enumerate(texts))
    svg = Picture(Drawing(nodes, edges, f"c{text}!")).svg()
    assert svg is not None
    labels = [
        f"c{text}!",
        *(e.label for e in edges),
        *(t for n in nodes for t in (n.label, n.note)),
    ]
    found = ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")
    words = [(element.text or "").replace("\xa0", " ").strip() for element in found]
    assert sorted(words) == sorted(printable(label).strip() for label in labels)


# ---------------------------------------------------------------- automata


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


# ---------------------------------------------------------------- figures


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
@example(A_STAR_B_STAR)
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


@given(st.data(), *2 * [st.tuples(st.integers(1, 30), st.integers(1, 35))])
@examples(60)
def test_density_is_the_count_of_covered_pairs(data, shape, grid) -> None:
    side = [st.lists(st.integers(0, n), min_size=2, max_size=2).map(sorted) for n in shape]
    drawn = data.draw(st.lists(st.tuples(*side), max_size=12))
    sides = np.array(drawn, np.int64).reshape(-1, 4).T
    covered = np.zeros(shape, int)
    for top, bottom, left, right in sides.T.tolist():
        covered[top:bottom, left:right] = 1
    rows, columns = (cell_edges(n, g) for n, g in zip(shape, grid, strict=True))
    counts = np.add.reduceat(np.add.reduceat(covered, rows[:-1]), columns[:-1], axis=1)
    found = density(*sides, shape, grid)
    assert found.shape == (min(grid[0], shape[0]), min(grid[1], shape[1]))
    assert np.array_equal(found, counts / np.outer(np.diff(rows), np.diff(columns)))
