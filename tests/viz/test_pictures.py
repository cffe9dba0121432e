"""Pictures: every form says the same, with and without Graphviz, and every character of a label is
visible and as it is meant.
"""

from __future__ import annotations

import shutil
from xml.etree import ElementTree

import pytest
from graphs import TEXTS, a_star_b_star
from hypothesis import example, given
from hypothesis import strategies as st
from support import examples

from bpe_automata.viz import (
    BrokenDrawingError,
    Drawing,
    Edge,
    GraphvizError,
    Node,
    Picture,
    UnknownFormatError,
    density,
    side_by_side,
    visible,
)
from bpe_automata.viz import _picture as module
from bpe_automata.viz._automata import byte_ranges
from bpe_automata.viz._drawing import printable
from bpe_automata.viz._picture import to_svg

PICTURE = Picture(a_star_b_star())


@pytest.fixture
def no_graphviz(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.shutil, "which", lambda name: None)


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
def test_equal_drawings_make_equal_files_without_graphviz(suffix, tmp_path, no_graphviz) -> None:
    if suffix in (".svg", ".png", ".pdf"):
        pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    paths = [tmp_path / f"{name}{suffix}" for name in "ab"]
    contents = [Picture(a_star_b_star()).save(path).read_bytes() for path in paths]
    assert contents[0].startswith(FORMATS[suffix])
    assert contents[0] == contents[1]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: PICTURE.save("x.gif"), UnknownFormatError, r"x\.gif.*\.svg"),
        (lambda: side_by_side([PICTURE], []), BrokenDrawingError, "1 pictures, but 0 titles"),
        (lambda: Drawing((Node("0"),), (Edge(0, 2, "a"),)), BrokenDrawingError, "edge 0 .*0 to 0"),
        (lambda: density([3], [2], [0], [1], (4, 5), (2, 2)), BrokenDrawingError, "rows 3 to 2"),
        (lambda: density([0], [1], [0, 1], [1, 2], (4, 5), (2, 2)), BrokenDrawingError, "shapes"),
    ],
)
def test_what_cannot_be_drawn_is_refused(call, error, message) -> None:
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


NEEDS_DOT = pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
TRAPS = [
    *('"', "\\", 'a\\"', "\\N\\G\\l", "&lt;&amp;&#65;"),
    *("<b>x</b>", "<<", "a\nb", "é日\x00", "-->"),
]


@NEEDS_DOT
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
    expected = [printable(e.label).strip() for e in edges]
    expected += [printable(t).strip() for n in nodes for t in (n.label, n.note)]
    expected.append(printable(f"c{text}!"))
    found = ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")
    words = [(element.text or "").replace("\xa0", " ").strip() for element in found]
    assert sorted(words) == sorted(expected)


def test_a_graphviz_that_fails_is_named(monkeypatch) -> None:
    program = shutil.which("false")
    monkeypatch.setattr(module.shutil, "which", lambda name: program)
    with pytest.raises(GraphvizError, match="did not draw"):
        to_svg("digraph {}")
