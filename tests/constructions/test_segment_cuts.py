"""Cuts are where `encode` has a joint; what merges with what is as the article saw it."""

from __future__ import annotations

import random
import string

import numpy as np
import pytest
from budget import examples
from hypothesis import given
from hypothesis import strategies as st
from shared_segments import PLAIN, PLAIN_JSON, cuts_of, engine_of, named

from bpe_automata.constructions import canonical_automaton
from bpe_automata.constructions.segments_joints import meetings, neighbours
from bpe_automata.testing import bpe_tokenizers, small_tokenizer

TEXTS = (
    PLAIN_JSON,
    r'\{"a": (true|false|null), "title": ' + PLAIN + r', "tags": \[' + PLAIN + r"\]\}",
    r'(key: (a|b)+\n)(other: "[a-z]*"\n)?',
)


@pytest.mark.parametrize(
    "name", ["smollm2", "mistral-v1", pytest.param("llama-3", marks=pytest.mark.long)]
)
@pytest.mark.parametrize("regex", TEXTS)
def test_encode_has_a_joint_at_each_cut(name, regex):
    tokenizer, rng = named(name), random.Random(2)
    engine = engine_of(tokenizer, regex)
    cuts, met = cuts_of(engine), 0
    for _ in range(60):
        text = engine.dfa.sample(rng, 60)
        # A prefix that `encode` puts is in the spelled text, and in the engine's DFA too.
        ids = tokenizer.encode(text.decode().removeprefix(" " if name == "mistral-v1" else ""))
        ends = np.cumsum([len(tokenizer.spellings[i]) for i in ids]).tolist()
        spelled = b"".join(tokenizer.spellings[i] for i in ids)
        state = engine.dfa_state(engine.initial())
        for at, byte in enumerate(spelled[:-1], start=1):
            state = engine.dfa.step(state, byte)
            if state in cuts:
                met += 1
                assert at in ends, (text, at)
    assert met > 60


def test_a_merge_or_an_added_token_across_is_no_cut():
    def cuts(merges, added):
        tokenizer = small_tokenizer(
            ["a", "b", "c", "d", *map("".join, merges)], merges, None, added
        )
        engine = engine_of(tokenizer, "ab(c|d)")
        spelled = {engine.dfa.walk(b"a"): "a", engine.dfa.walk(b"ab"): "ab"}
        return {spelled[q] for q in cuts_of(engine) if q in spelled}

    assert cuts([], []) == {"a", "ab"}
    assert cuts([("a", "b")], []) == {"ab"}
    assert cuts([("b", "c")], []) == {"a"}
    assert cuts([("a", "b"), ("ab", "c")], []) == set()
    assert cuts([], ["bc"]) == {"a"}


def test_a_token_that_no_merge_makes_is_no_cut():
    """With `ignore_merges` a pretoken that is in the vocabulary is that token."""
    tokenizer = small_tokenizer(["a", "b", "c", "ab"], [], None, ignore_merges=True)
    engine = engine_of(tokenizer, "abc?")
    cuts = cuts_of(engine)
    assert engine.dfa.walk(b"a") not in cuts
    assert engine.dfa.walk(b"ab") in cuts


# ---------------------------------------------------------------- the article's observations


def test_what_merges_with_what_in_mistral_7b():
    """Tran-Thien 2024: a newline and digits with nothing, `:` not to the right with a space."""
    canonical = canonical_automaton(named("mistral-v1"))
    for character in "\n" + string.digits:
        assert neighbours(canonical, character).alone
    assert " " not in neighbours(canonical, ":").right
    assert not neighbours(canonical, '"').alone
    assert '"' in neighbours(canonical, ":").right


@examples(30)
@given(st.data())
def test_tokens_are_made_where_their_bytes_meet(data):
    """Every token with two bytes or more holds at least one meeting of the table."""
    tokenizer = data.draw(bpe_tokenizers())
    canonical = canonical_automaton(tokenizer)
    met = meetings(canonical)
    for left, right, _ in canonical.derivation.proper.tolist():
        one, other = tokenizer.spellings[left], tokenizer.spellings[right]
        assert met[one[-1], other[0]]
