"""The alphabet: characters that the pipeline cannot tell apart are one atom, spelled in UTF-8."""

from __future__ import annotations

import pytest
from budget import examples
from hypothesis import given
from hypothesis import strategies as st

from bpe_automata.tokenizer import alphabet
from bpe_automata.tokenizer.charclass import engine_class, engine_digits, from_pairs

CLASSES = (r"\s", r"\p{L}", r"[a-c\x{3042}-\x{4E00}]")
READABLE = from_pairs([(0, 0x3100), (0x10000, 0x10400)])


def in_ranges(ranges, character):
    return any(low <= ord(character) < high for low, high in ranges.tolist())


@examples(100)
@given(st.characters(exclude_categories=("Cs",)))
def test_an_atom_is_the_classes_that_a_character_is_in(character):
    classes = [engine_class(source) for source in CLASSES]
    letters = alphabet.build(classes, marked="<|", readable=READABLE, missing_bytes=[0xC3])
    atom = letters.atom(character)
    if not in_ranges(READABLE, character) or 0xC3 in character.encode():
        assert atom == alphabet.DEAD
        return
    inside = [in_ranges(ranges, character) for ranges in classes]
    assert [atom in found for found in letters.members] == inside
    others = {letters.atom(c) for c in "<|"} - {letters.atom(character)}
    assert len(others) == (1 if character in "<|" else 2)


@pytest.mark.parametrize(
    "bad", [b"\xc0\x80", b"\xe0\x80\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xff", b"\x80"]
)
def test_bytes_that_are_no_utf8_are_dead(bad):
    letters = alphabet.build([], marked="", readable=None, missing_bytes=[])
    row = 0
    for byte in bad:
        row = int(letters.utf8[row, byte])
        if row < 0:
            break
    assert row == alphabet.DEAD


def test_classes_are_the_engines_own():
    assert in_ranges(engine_class(r"\s"), "\u2028")
    assert in_ranges(engine_class("(?i:\\x{73})"), "ſ")
    assert not in_ranges(engine_class(r"[^\s\p{L}]"), "日")
    assert in_ranges(engine_digits(), "½")
    assert in_ranges(engine_digits(), "Ⅷ")
