"""Byte automata draw themselves."""

from __future__ import annotations

import pytest
from budget import examples
from hypothesis import given
from hypothesis import strategies as st

from bpe_automata.automata import compile_regex, from_strings
from bpe_automata.automata.dfa import byte_ranges


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
    assert drawing.caption.startswith("101 states, too large to draw")
    assert len(drawing.nodes) == 21
    assert sum(edge.lit for edge in drawing.edges) == 20


def test_nothing() -> None:
    drawing = from_strings([]).picture("a").drawing
    assert [(node.start, node.accepting) for node in drawing.nodes] == [(True, False)]
    assert drawing.caption.startswith("accepts nothing")
