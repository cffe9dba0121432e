"""Pictures: every form says the same, with and without Graphviz, and every character of a label is
visible and as it is meant.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest
from graphs import TEXTS, a_star_b_star, drawings
from hypothesis import example, given
from hypothesis import strategies as st
from support import examples

from bpe_automata import viz
from bpe_automata.viz import Drawing, Edge, GraphvizError, Node, Picture, visible
from bpe_automata.viz import _picture as dot_module
from bpe_automata.viz import _picture as module
from bpe_automata.viz._drawing import printable
from bpe_automata.viz._picture import to_svg

PICTURE = viz.Picture(a_star_b_star())


@pytest.fixture
def no_graphviz(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dot_module.shutil, "which", lambda name: None)


def test_text() -> None:
    assert PICTURE.text().splitlines() == [
        "a*b*  (2 states, 3 arrows, → start, ◎ accepting, * on the path)",
        "*→◎ 0",
        "*     a → 0",
        "      b → 1",
        "  ◎ 1",
        "      b → 1",
    ]
    assert str(PICTURE) == repr(PICTURE) == PICTURE.text()


def test_html(no_graphviz: None) -> None:
    shown = " ".join(re.sub("<[^>]+>", " ", PICTURE.html()).split())
    assert shown.endswith("state reads goes to 0 start accepting a → 0 b → 1 1 accepting b → 1")
    assert PICTURE.html().count("font-weight:bold") == 3  # state 0, a, → 0
    bundle = viz.Picture(a_star_b_star())._repr_mimebundle_()
    assert bundle == {"text/plain": PICTURE.text(), "text/html": PICTURE.html()}


@pytest.mark.parametrize(
    ("suffix", "begins"),
    [
        (".dot", b"digraph"),
        (".txt", b"a*b*  (2 states"),
        (".html", b"<!DOCTYPE html>"),
        (".svg", b"<?xml"),
        (".png", b"\x89PNG"),
        (".pdf", b"%PDF"),
    ],
)
def test_files_without_graphviz(suffix: str, begins: bytes, tmp_path: Path, no_graphviz) -> None:
    if suffix in (".svg", ".png", ".pdf"):
        pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    paths = [tmp_path / f"{name}{suffix}" for name in "ab"]
    contents = [viz.Picture(a_star_b_star()).save(path).read_bytes() for path in paths]
    assert contents[0].startswith(begins)
    assert contents[0] == contents[1], "equal drawings make equal files"
    with pytest.raises(viz.UnknownFormatError, match=r"x\.gif.*\.svg"):
        PICTURE.save(tmp_path / "x.gif")


def test_side_by_side(no_graphviz: None) -> None:
    row = viz.side_by_side([PICTURE, viz.Picture(a_star_b_star())], ["before <a>", "after"])
    bundle = row._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html"}
    assert bundle["text/plain"].startswith(f"before <a>\n----------\n{PICTURE.text()}\n\nafter\n")
    assert bundle["text/html"].index("before &lt;a&gt;") < bundle["text/html"].index("after")
    assert viz.side_by_side([row], ["nested"]).html().count("a*b*") == 2
    with pytest.raises(viz.BrokenDrawingError, match="1 pictures, but 0 titles"):
        viz.side_by_side([PICTURE], [])
    with pytest.raises(viz.BrokenDrawingError, match=r"edge 0 .*the nodes are 0 to 1"):
        Drawing((Node("0"), Node("1")), (Edge(0, 2, "a"),))


# ---------------------------------------------------------------- labels


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b" the", "␣the"),
        (" a\n\t\r\\", "␣a\\n\\t\\r\\\\"),
        (b"\xc3", "\\xc3"),
        (b"\xc3\xa9\x00", "é\\x00"),
        ("\u200b日\ud800", "\\u200b日\\ud800"),
        (b"", ""),
        ("x" * 200, "x" * 40 + "…" + "x" * 19),
    ],
)
def test_visible(data: bytes | str, expected: str) -> None:
    assert visible(data) == expected


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


def words(svg: str) -> list[str]:
    """The texts of an SVG, spaces as Graphviz writes them made plain."""
    found = ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")
    return [(element.text or "").replace("\xa0", " ").strip() for element in found]


@NEEDS_DOT
@given(TEXTS)
@example("".join(TRAPS))
@examples(12)
def test_labels_come_out_as_they_went_in(text: str) -> None:
    texts = [*TRAPS, f"{text}!"]
    nodes = tuple(Node(f"n{t}", note=f"m{t}") for t in texts)
    edges = tuple(Edge(i, 0, t.replace(" ", "␣")) for i, t in enumerate(texts))
    svg = Picture(Drawing(nodes, edges, f"c{text}!")).svg()
    assert svg is not None
    expected = [printable(e.label).strip() for e in edges]
    expected += [printable(t).strip() for n in nodes for t in (n.label, n.note)]
    expected.append(printable(f"c{text}!"))
    assert sorted(words(svg)) == sorted(expected)


@NEEDS_DOT
@given(drawings())
@examples(12)
def test_graphviz_takes_every_drawing(drawing: Drawing) -> None:
    done = subprocess.run(
        ["dot", "-Tdot"], input=Picture(drawing).dot().encode(), capture_output=True
    )
    assert done.returncode == 0
    assert done.stderr == b""


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("#!/bin/sh\necho no fonts >&2; exit 3\n", "did not draw: no fonts"),
        ("#!/bin/sh\nexec /bin/sleep 60\n", "timed out"),
    ],
)
def test_a_graphviz_that_fails_or_hangs_is_named(program, message, tmp_path, monkeypatch) -> None:
    fake = tmp_path / "dot"
    fake.write_text(program)
    fake.chmod(0o755)
    monkeypatch.setattr(module.shutil, "which", lambda name: str(fake))
    if message == "timed out":
        monkeypatch.setattr(module, "_SECONDS", 0.2)
    with pytest.raises(GraphvizError, match=message):
        to_svg("digraph {}")
