"""Labels: every character is visible, and Graphviz shows every label as it is meant."""

from __future__ import annotations

import shutil
import subprocess
from xml.etree import ElementTree

import pytest
from budget import examples
from hypothesis import example, given
from hypothesis import strategies as st
from strategies import TEXTS, a_star_b_star, drawings

from bpe_automata.errors import ArgumentError
from bpe_automata.viz import Drawing, Edge, GraphvizError, Node, Picture, edge_label, visible
from bpe_automata.viz import picture as module
from bpe_automata.viz.drawing import columns, printable, wrapped
from bpe_automata.viz.picture import quoted, to_svg


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
    '"',
    "\\",
    'a\\"',
    "\\N\\G\\l",
    "&lt;&amp;&#65;",
    "<b>x</b>",
    "<<",
    "a\nb",
    "é日\x00",
    "-->",
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


@pytest.mark.parametrize("program", ["#!/bin/sh\necho no fonts >&2; exit 3\n", "not a program"])
def test_a_graphviz_that_fails_is_named(program, tmp_path, monkeypatch) -> None:
    fake = tmp_path / "dot"
    fake.write_text(program)
    fake.chmod(0o755)
    monkeypatch.setattr(module.shutil, "which", lambda name: str(fake))
    with pytest.raises(GraphvizError, match=r"did not draw: (no fonts|.*(format|error))"):
        to_svg("digraph {}")


def test_a_graphviz_that_hangs_is_stopped(tmp_path, monkeypatch) -> None:
    fake = tmp_path / "dot"
    fake.write_text("#!/bin/sh\nexec /bin/sleep 60\n")
    fake.chmod(0o755)
    monkeypatch.setattr(module.shutil, "which", lambda name: str(fake))
    monkeypatch.setattr(module, "_SECONDS", 0.2)
    with pytest.raises(GraphvizError, match="timed out"):
        to_svg("digraph {}")
