"""Labels: every character can be seen, and several labels become one."""

from __future__ import annotations

import pytest
from budget import examples
from hypothesis import given
from hypothesis import strategies as st

from bpe_automata.errors import ArgumentError
from bpe_automata.viz import edge_label, visible
from bpe_automata.viz.drawing import columns, printable, wrapped


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
