"""Pictures: every form says the same, with and without Graphviz, and every character of a label is
visible and as it is meant.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support import examples
from support.drawn import TEXTS, a_star_b_star, drawings

from bpe_automata import viz
from bpe_automata._automata.compile import compile_regex
from bpe_automata.errors import ArgumentError, MissingDependencyError, MissingFileError
from bpe_automata.viz import Drawing, Edge, GraphvizError, Node, Picture, edge_label, visible
from bpe_automata.viz import _picture as dot_module
from bpe_automata.viz import _picture as module
from bpe_automata.viz._drawing import columns, printable, wrapped
from bpe_automata.viz._picture import quoted, to_svg

PICTURE = viz.Picture(a_star_b_star())


class Rows(HTMLParser):
    """The texts of a table's cells, by row; balanced tags are checked on the way."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.open: list[str] = []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "td" in self.open or "th" in self.open:
            self.rows[-1][-1] += data


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


def test_html() -> None:
    rows = Rows(PICTURE.html()).rows
    assert rows == [
        ["state", "reads", "goes to"],
        ["0startaccepting", "a", "→ 0"],
        ["b", "→ 1"],
        ["1accepting", "b", "→ 1"],
    ]
    assert PICTURE.html().count("font-weight:bold") == 3  # state 0, a, → 0


def test_a_node_that_shares_its_label_is_named_with_its_place() -> None:
    drawing = viz.Drawing((viz.Node("q"), viz.Node("q"), viz.Node("")), (viz.Edge(0, 1, "a"),))
    assert [drawing.name(i) for i in range(3)] == ["q#0", "q#1", "#2"]
    assert "a → q#1" in viz.Picture(drawing).text()


@given(drawings(TEXTS))
@examples(100)
def test_both_tables_hold_every_edge_under_its_state(drawing: viz.Drawing) -> None:
    picture = viz.Picture(drawing)
    lines = picture.text().split("\n")
    assert len(lines) == 1 + len(drawing.nodes) + len(drawing.edges)
    rows = Rows(picture.html()).rows[1:]
    expected = []
    for i in range(len(drawing.nodes)):
        leaving = drawing.leaving(i)
        expected += [
            [printable(edge.label), f"→ {printable(drawing.name(edge.target))}"] for edge in leaving
        ] or [["nothing"]]
    assert [
        row[-2:] if len(row) > 2 else row[-1:] if row[-1] == "nothing" else row for row in rows
    ] == expected


def test_the_mime_bundle_without_graphviz(no_graphviz: None) -> None:
    picture = viz.Picture(a_star_b_star())
    bundle = picture._repr_mimebundle_()
    assert bundle == {"text/plain": picture.text(), "text/html": picture.html()}


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_the_mime_bundle_with_graphviz() -> None:
    bundle = viz.Picture(a_star_b_star())._repr_mimebundle_(include=None, exclude=None)
    assert set(bundle) == {"text/plain", "image/svg+xml"}


def test_a_broken_graphviz_gives_the_table_and_says_why(monkeypatch) -> None:
    def fail(dot: str) -> str:
        raise viz.GraphvizError("dot did not draw: <no fonts>")

    monkeypatch.setattr("bpe_automata.viz._picture.to_svg", fail)
    picture = viz.Picture(a_star_b_star())
    html = picture._repr_mimebundle_()["text/html"]
    assert html.endswith(picture.html())
    assert "&lt;no fonts&gt;" in html
    with pytest.raises(viz.GraphvizError):
        picture.svg()


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


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_files_with_graphviz(tmp_path: Path) -> None:
    svg = PICTURE.save(tmp_path / "a.svg").read_text(encoding="utf-8")
    assert svg == PICTURE.svg()
    assert svg in PICTURE.save(str(tmp_path / "a.html")).read_text(encoding="utf-8")


def test_an_unknown_suffix_is_refused(tmp_path: Path) -> None:
    with pytest.raises(viz.UnknownFormatError, match=r"x\.gif.*\.svg"):
        PICTURE.save(tmp_path / "x.gif")


@pytest.mark.parametrize("suffix", [".txt", ".svg", ".png"])
def test_a_missing_folder_is_named(suffix: str, tmp_path: Path) -> None:
    folder = tmp_path / "none"
    with pytest.raises(MissingFileError, match=f"there is no folder {re.escape(str(folder))};"):
        PICTURE.save(folder / f"x{suffix}")
    (tmp_path / f"x{suffix}").mkdir()
    with pytest.raises(MissingFileError, match="is a folder"):
        PICTURE.save(tmp_path / f"x{suffix}")


def test_without_matplotlib_the_error_says_what_to_install(tmp_path, monkeypatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingDependencyError, match="pip install"):
        PICTURE.save(tmp_path / "x.png")


@pytest.mark.parametrize("edge", [viz.Edge(0, 2, "a"), viz.Edge(-1, 0, "a")])
def test_an_edge_to_nowhere_is_refused(edge: viz.Edge) -> None:
    with pytest.raises(viz.BrokenDrawingError, match=r"edge 0 .*the nodes are 0 to 1"):
        viz.Drawing((viz.Node("0"), viz.Node("1")), (edge,))


def test_side_by_side(no_graphviz: None) -> None:
    row = viz.side_by_side([PICTURE, viz.Picture(a_star_b_star())], ["before <a>", "after"])
    bundle = row._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html"}
    assert bundle["text/plain"].startswith(f"before <a>\n----------\n{PICTURE.text()}\n\nafter\n")
    assert bundle["text/html"].index("before &lt;a&gt;") < bundle["text/html"].index("after")
    assert viz.side_by_side([row], ["nested"]).html().count("a*b*") == 2
    with pytest.raises(viz.BrokenDrawingError, match="1 pictures, but 0 titles"):
        viz.side_by_side([PICTURE], [])


def test_side_by_side_takes_what_has_a_picture_and_nothing_else(no_graphviz: None) -> None:
    dfa = compile_regex("a*b*")
    row = viz.side_by_side([dfa, dfa.picture()], ["one", "other"])
    assert row.pictures[0].text() == row.pictures[1].text() == dfa.picture().text()
    with pytest.raises(viz.BrokenDrawingError, match="picture 1 is 'int': give a Picture"):
        viz.side_by_side([PICTURE, 7], ["a", "b"])


def test_pieces() -> None:
    pieces = viz.Pieces((("␣the", "word"), ("<b>", ""), ("日", "other"), ("x", "word")), "Text")
    assert pieces.text().splitlines() == [
        "Text",
        "␣the│<b>│日│x",
        "a        b  a",
        "a = word",
        "b = other",
    ]
    html = pieces.html()
    assert "&lt;b&gt;" in html
    boxes = re.findall(r'background:(#\w+)" title="([^"]*)">([^<]*)<', html)
    assert [(title, text) for _, title, text in boxes[:4]] == [
        ("word", "␣the"),
        ("", "&lt;b&gt;"),
        ("other", "日"),
        ("word", "x"),
    ]
    colours = [colour for colour, _, _ in boxes[:4]]
    assert colours[0] == colours[3]
    assert len(set(colours)) == 3


def test_long_rows_of_pieces_are_broken_and_notes_are_shown() -> None:
    pieces = viz.Pieces((("word", ""),) * 50, notes=tuple(f"id {i}" for i in range(50)))
    lines = pieces.text().splitlines()
    assert len(lines) > 1
    assert "│".join(lines) == "│".join(["word"] * 50)
    assert all(len(line) <= 100 for line in lines)
    assert 'title="id 49"' in pieces.html()
    with pytest.raises(viz.BrokenDrawingError, match="50 pieces, but 1 notes"):
        viz.Pieces((("word", ""),) * 50, notes=("one",))


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


@given(st.text(st.characters(codec=None)), st.integers(3, 40))
@examples(200)
def test_visible_shortens_to_the_limit_and_shows_both_ends(text: str, longest: int) -> None:
    letters = "".join(chr(ord("a") + ord(c) % 26) for c in text)
    shown = visible(letters, longest)
    assert len(shown) == min(len(letters), longest)
    if len(letters) > longest:
        head, tail = shown.split("…")
        assert letters.startswith(head)
        assert letters.endswith(tail)
        assert head
        assert tail


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


@pytest.mark.parametrize(
    ("labels", "most", "expected"),
    [
        (["a"], 6, "a"),
        (["a", "b", "c"], 6, "a, b, c"),
        (list("abcdefg"), 6, "a, b, c, d, e, f, g"),
        (list("abcdefgh"), 6, "a, b, c, d, e, f … +2 more"),
        (["x"] * 1238, 1, "x … +1,237 more"),
        ([","], 6, ","),
        (["a", ",", '",'], 6, 'a, ‘,’, ‘",’'),
        ([""], 6, "ε"),
        (["", "a"], 6, "ε, a"),
        ([], 6, ""),
    ],
)
def test_edge_label(labels: list[str], most: int, expected: str) -> None:
    assert edge_label(labels, most) == expected


def test_a_negative_number_of_labels_is_refused() -> None:
    for labels in ([], ["a"], ["a", "b", "c"]):
        with pytest.raises(ArgumentError, match="most is -1: give"):
            edge_label(labels, -1)
    assert edge_label(["a", "b", "c"], 0) == "… +3 more"


@given(st.text("ab 日", max_size=60), st.integers(1, 20))
@examples(200)
def test_wrapped_lines_hold_the_words_and_are_narrow_if_words_are(text: str, widest: int) -> None:
    lines = wrapped(text, widest)
    assert " ".join(lines) == text
    assert all(columns(line) <= widest or " " not in line.strip() for line in lines)


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


@NEEDS_DOT
def test_the_svg_shows_start_acceptance_and_path() -> None:
    svg = Picture(a_star_b_star()).svg()
    assert svg is not None
    assert svg.startswith("<svg")
    assert svg.count("<ellipse") == 4  # two lines around each accepting state
    assert svg.count('stroke-width="2.4"') == 6  # a state's lines, two arrows with heads
    assert "<title>" not in svg
    assert ' id="' not in svg


def test_quotes_and_backslashes_are_escaped() -> None:
    assert quoted('a"\\&\n') == '"a\\"\\\\&amp;\\\\n"'


def test_the_source_is_complete() -> None:
    dot = Picture(a_star_b_star()).dot()
    assert "rankdir=LR" in dot
    assert dot.count("peripheries=2") == 2
    assert dot.count("in0 -> n0") == 1
    assert dot.count("n1 -> n1") == dot.count("n0 -> n1") == 1
    assert "shape=circle" in dot
    assert "shape=box" in Picture(Drawing((Node("a longer name"),), ())).dot()


def test_without_graphviz_there_is_no_svg(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.shutil, "which", lambda name: None)
    assert to_svg("digraph {}") is None


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("#!/bin/sh\necho no fonts >&2; exit 3\n", "did not draw: no fonts"),
        ("not a program", "did not draw: .*(format|error)"),
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
