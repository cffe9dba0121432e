"""The alphabet: characters that the pipeline cannot tell apart are one atom, spelled in UTF-8."""

from __future__ import annotations

import pytest
from budget import examples
from hypothesis import given
from hypothesis import strategies as st

from bpe_automata.tokenizer import alphabet
from bpe_automata.tokenizer.alphabet import engine_class, from_pairs
from bpe_automata.tokenizer.engines import Oniguruma

CLASSES = (r"\s", r"\p{L}", r"[a-c\x{3042}-\x{4E00}]")
READABLE = from_pairs([(0, 0x3100), (0x10000, 0x10400)])


def members_of(pattern, kind="regex"):
    return engine_class(Oniguruma(), kind, pattern)


def in_ranges(ranges, character):
    return any(low <= ord(character) < high for low, high in ranges.tolist())


@examples(100)
@given(st.characters(exclude_categories=("Cs",)))
def test_an_atom_is_the_classes_that_a_character_is_in(character):
    classes = [members_of(source) for source in CLASSES]
    letters = alphabet.build_alphabet(classes, marked="<|", readable=READABLE, missing_bytes=[0xC3])
    atom = letters.atom(character)
    if not in_ranges(READABLE, character) or 0xC3 in character.encode():
        assert atom == alphabet.DEAD
        return
    inside = [in_ranges(ranges, character) for ranges in classes]
    assert letters.inside[:, atom].tolist() == inside
    others = {letters.atom(c) for c in "<|"} - {letters.atom(character)}
    assert len(others) == (1 if character in "<|" else 2)


@pytest.mark.parametrize(
    "bad", [b"\xc0\x80", b"\xe0\x80\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xff", b"\x80"]
)
def test_bytes_that_are_no_utf8_are_dead(bad):
    letters = alphabet.build_alphabet([], marked="")
    row = 0
    for byte in bad:
        row = int(letters.utf8[row, byte])
        if row < 0:
            break
    assert row == alphabet.DEAD


def test_classes_are_the_engines_own():
    assert in_ranges(members_of(r"\s"), "\u2028")
    assert in_ranges(members_of("(?i:\\x{73})"), "ſ")
    assert not in_ranges(members_of(r"[^\s\p{L}]"), "日")
    assert in_ranges(members_of("", "digits"), "½")
    assert in_ranges(members_of("", "digits"), "Ⅷ")


def test_unreadable_characters_are_dead():
    letters = alphabet.build_alphabet([members_of(r"\p{L}")], marked="a", unreadable="é▁")
    assert letters.atom("é") == letters.atom("▁") == alphabet.DEAD
    assert letters.atom("ê") >= 0


def read(letters, row, data):
    """Where bytes lead from a row: the next row, or -2 - atom, or -1."""
    for byte in data:
        row = int(letters.utf8[row, byte])
        if row < 0:
            return row
    return row


def test_with_byte_fallback_a_second_copy_reads_the_characters_without_a_token():
    symbols = from_pairs([(ord("a"), ord("z") + 1), (ord("é"), ord("é") + 1)])
    letters = alphabet.build_alphabet([members_of(r"\p{L}")], marked="", symbols=symbols)
    for character in "aéêA日\x00":
        atom = letters.atom(character)
        assert atom >= 0, "every character can be spelled"
        fallback = read(letters, letters.fallback_root, character.encode())
        assert fallback == (alphabet.DEAD if character in "aé" else -2 - atom)
