"""What a ban forbids: the automaton of its texts, against `re` and `str.casefold`, and the token
automaton of its spellings, against every sequence of ids tried.
"""

from __future__ import annotations

import pytest
import tiny_bans as small
from hypothesis import given
from hypothesis import strategies as st
from support import examples

from bpe_automata import compile_regex, constrain
from bpe_automata.automata.algebra import intersection
from bpe_automata.banning import Ban, Spellings
from bpe_automata.errors import ArgumentError, RegexSyntaxError, UnsupportedRegexError

TOKENIZER = small.TOKENIZER
BANS = {
    "anywhere": Ban(["ab", "é", "bab"]),
    "inside one another": Ban(["b", "abab", "ba b"]),
    "whole": Ban(["ab", "é", "ba"], whole_word=True),
    "marks": Ban([" a", "b b", "é "], whole_word=True),
}
BEFORE = ["", " ", "b", "é ", "aé"]


def completions(ban, ids, before):
    """By definition: is there something banned that begins in the first id and is complete with the
    last one (the end of the text, if that is END), and not before?"""
    if not ids:
        return False
    first = before.encode()
    spelled = [small.SPELLINGS[i] for i in ids if i != small.END]
    low, high = len(first), len(first) + len(spelled[0]) if spelled else 0

    def complete(n, ended):
        parts = small.byte_parts(ban, first + b"".join(spelled[:n]), ended)
        return any(low <= start < high for start, _ in parts)

    ended = ids[-1] == small.END
    return complete(len(spelled), ended) and not any(
        complete(n, False) for n in range(1, len(spelled) + ended)
    )


@pytest.mark.parametrize("name", BANS)
@pytest.mark.parametrize("before", BEFORE)
def test_it_is_what_its_definition_says(name, before):
    ban = BANS[name]
    automaton = Spellings(TOKENIZER, ban, eos_ids=[small.END]).automaton(before)
    accepted = set(automaton.enumerate(max_length=4))
    for ids in small.sequences(3):
        spelled = b"".join(small.SPELLINGS[i] for i in ids)
        if not small.may_be_text(before.encode() + spelled):
            continue
        for sequence in (ids, (*ids, small.END)):
            # A text cannot end inside a character.
            if sequence == ids or small.is_text(before.encode() + spelled):
                assert (sequence in accepted) == completions(ban, sequence, before), sequence


# ---------------------------------------------------------------- texts

LETTERS = "aAbß -sé"
words = st.text(LETTERS, min_size=1, max_size=3)
texts = st.text(LETTERS, max_size=9)
before = st.text(LETTERS, max_size=4)


def found_by_hand(ban: Ban, text: str, past: int = 0) -> list[tuple[int, int]]:
    """The shortest banned part from each place that ends after `past`."""
    found: dict[int, int] = {}
    for start, end in small.parts(ban, text):
        if end > past:
            found.setdefault(start, end)
    return [*found.items()]


@st.composite
def bans(draw):
    ignore_case = draw(st.booleans())
    key = str.casefold if ignore_case else str
    given_words = draw(st.lists(words, min_size=1, max_size=3, unique_by=key))
    regexes = draw(st.lists(st.sampled_from(["a+b", "[ab]s", "(?i)sA|é.", r"\s-"]), max_size=1))
    return Ban(given_words, regexes, draw(st.booleans()), ignore_case)


@examples(25)
@given(st.data())
def test_a_ban_is_what_its_definition_says(data):
    ban = data.draw(bans())
    first = data.draw(before)
    contains_after, allowed_after = ban.contains_after(first), ban.allowed_after(first)
    for text in data.draw(st.lists(texts, min_size=9, max_size=9)):
        wanted = found_by_hand(ban, text)
        assert [(f.start, f.end) for f in ban.found_in(text)] == wanted
        assert all(f.word == text[f.start : f.end] for f in ban.found_in(text))
        assert ban.contains.accepts(text.encode()) == bool(wanted)
        assert ban.allowed.accepts(text.encode()) == (not wanted)

        wanted = found_by_hand(ban, first + text, len(first))
        shifted = [(a - len(first), b - len(first)) for a, b in wanted]
        assert [(f.start, f.end) for f in ban.found_in(text, first)] == shifted
        assert contains_after.accepts(text.encode()) == bool(wanted)
        assert allowed_after.accepts(text.encode()) == (not wanted)


@pytest.mark.parametrize(
    ("word", "text", "banned"),
    [
        ("office", "oﬃce", True),
        ("sa", "ßa", False),  # no part of it reads so, though it folds to "ssa"
        ("i", "ı", True),  # by re.IGNORECASE, though not by folding
        ("K", "\u212a", True),  # the sign for Kelvin
        ("σας", "ΣΑΣ", True),
        ("é", "e\u0301", False),  # texts are not normalized
    ],
)
def test_without_regard_to_case(word, text, banned):
    assert bool(Ban([word], ignore_case=True).found_in(text)) == banned
    assert Ban([word], ignore_case=True).contains.accepts(text.encode()) == banned
    assert not Ban([word]).found_in(text)


def test_full_folding_of_every_character():
    """Each character that folds to several is banned with what it folds to, and the other way."""
    several = [c for c in map(chr, range(0x110000)) if len(c.casefold()) > 1]
    assert len(several) > 100
    ban = Ban(sorted({c.casefold() for c in several}), ignore_case=True)
    for c in several:
        assert ban.occurrence.accepts(c.encode()), c
        assert ban.occurrence.accepts(c.casefold().upper().encode()), c


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([],), "nothing is banned"),
        ((["a", "b", "a"],), "'a' is given twice"),
        (("word",), "not a list"),
        ((["\ud800"],), "surrogate"),
        ((["ß", "SS"], (), False, True), "'SS' is given twice, before as 'ß'"),
    ],
)
def test_what_is_no_ban(arguments, message):
    with pytest.raises(ArgumentError, match=message):
        Ban(*arguments)


@pytest.mark.parametrize(
    ("regex", "error", "position"),
    [
        ("a(b", RegexSyntaxError, 1),
        ("ab$", UnsupportedRegexError, 2),
        ("^a|b", UnsupportedRegexError, 0),
    ],
)
def test_regexes_that_cannot_be_banned(regex, error, position):
    with pytest.raises(error) as caught:
        Ban(regexes=[regex])
    assert (caught.value.pattern, caught.value.position) == (regex, position)


@pytest.mark.parametrize("method", ["lift", "canonical"])
def test_a_constraint_is_that_of_what_is_allowed_in_its_language(method):
    """So no tokenization gets round a ban: masks are those of the language."""
    ban, eos = BANS["whole"], [small.END]
    made = ban.constrain(TOKENIZER, "[abé ]{0,3}", method, eos, after="b")
    allowed = intersection(compile_regex("[abé ]{0,3}"), ban.allowed_after("b"))
    wanted = constrain(TOKENIZER, allowed, method, eos, added_tokens=False)
    assert made.automaton().equivalent(wanted.automaton()) is None
    assert made.automaton().total() > 20
