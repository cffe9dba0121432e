"""Forced ids are the longest common beginning of all continuations; forced bytes that of all texts.

The continuations come from the explicit automaton, from `encode` of every text, and from the byte
DFA's strings, never from the code under test."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support import examples
from support.drawn import PREFIXED

from bpe_automata import compile_regex, constrain
from bpe_automata.decoding.forced import forced_bytes
from bpe_automata.decoding.matcher import Matcher
from bpe_automata.decoding.token_table import Listed
from bpe_automata.errors import (
    ArgumentError,
    BudgetExceededError,
    EmptyLanguageError,
    UnsupportedFeatureError,
)
from bpe_automata.testing import bpe_tokenizers, finite_regexes, small_tokenizer
from bpe_automata.testing._inputs import own_pieces

METHODS = ("canonical", "lift")


def finite(data, method, **options):
    """(constraint, its texts, all its sequences, one of them, a place in it), of a random tokenizer
    and a finite regex."""
    tokenizer = data.draw(bpe_tokenizers(max_merges=8) | st.sampled_from(PREFIXED))
    dfa = compile_regex(data.draw(finite_regexes(own_pieces(tokenizer))))
    try:
        constraint = constrain(tokenizer, dfa, method, **options)
        texts = list(dfa.strings(3000))
        sequences = list(constraint.automaton().enumerate(limit=3000))
    except (BudgetExceededError, EmptyLanguageError):
        assume(False)
    ids = data.draw(st.sampled_from(sequences))
    return constraint, texts, sequences, ids, data.draw(st.integers(0, len(ids)))


def shared(sequences):
    """The longest common beginning; of all lengths, the first that is not shared ends it."""
    first = min(sequences, key=len)
    agree = (k for k in range(len(first), -1, -1) if all(s[:k] == first[:k] for s in sequences))
    return first[: next(agree)]


def after(constraint, ids):
    """A matcher that has read these."""
    matcher = constraint.matcher()
    for token in ids:
        matcher.advance(token)
    return matcher


@examples(10)
@given(st.data(), st.sampled_from(METHODS))
def test_forced_ids_are_what_all_sequences_of_the_automaton_share(data, method):
    constraint, _, sequences, ids, k = finite(data, method, added_tokens=True)
    matcher = after(constraint, ids[:k])
    wanted = shared([s[k:] for s in sequences if s[:k] == ids[:k]])
    assert matcher.forced_tokens() == wanted
    limit = data.draw(st.integers(0, 4))
    assert matcher.forced_tokens(limit) == wanted[:limit]
    assert matcher.ids == ids[:k]


@examples(10)
@given(st.data(), st.sampled_from(METHODS))
def test_forced_bytes_are_what_all_texts_share(data, method):
    """Of the language itself, without the space that a tokenizer puts before a text."""
    constraint, texts, _, ids, k = finite(data, method)
    begun = constraint.tokenizer.text_bytes(ids[:k])
    rests = [text[len(begun) :] for text in texts if text.startswith(begun)]
    assert after(constraint, ids[:k]).forced_bytes() == shared(rests)


def test_a_budget_of_ids_forces_more():
    constraint = constrain(small_tokenizer(["a", "b", "c", "ab"], [("a", "b")]), "(ab|ccb){2}")
    assert constraint.matcher().forced_tokens() == ()
    limited = constraint.within(2).matcher()
    assert limited.forced_tokens() == (3, 3)
    assert limited.forced_bytes() == b""


def test_wrong_limits_and_automata_without_text():
    constraint = constrain(small_tokenizer(["a", "b"]), "ab")
    matcher = constraint.matcher()
    for limit in (-1, True, "1", 1.5):
        with pytest.raises(ArgumentError):
            matcher.forced_tokens(limit)
    assert forced_bytes(constraint.engine, constraint.engine.initial()) == b"ab"
    with pytest.raises(UnsupportedFeatureError, match="forced_tokens"):
        Matcher(Listed(constraint.automaton(), (), 2)).forced_bytes()
