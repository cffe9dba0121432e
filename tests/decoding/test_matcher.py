"""The matcher against a plain model: a list of ids beside the engine's own masks."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, multiple, rule

from bpe_automata import constrain
from bpe_automata.errors import (
    BufferShapeError,
    DecodingError,
    TokenNotAllowedError,
    TokenOutOfRangeError,
)
from bpe_automata.reference import canonical_trie
from bpe_automata.testing import byte_spelling, small_tokenizer

EOS = (11, 12)
STRINGS = ["", "ab", "abc", "abcabc", "c<|x|>", "é", "bca<|"]


def tokenizer_with_two_ends():
    vocabulary = ["a", "b", "c", "ab", "abc", "<", "|", "x", ">", *byte_spelling("é".encode())]
    merges = [("a", "b"), ("ab", "c")]
    added = ["<end>", "<stop>", "<|x|>"]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}
    return small_tokenizer(vocabulary, merges, {**byte_level, "trim_offsets": True}, added)


TOKENIZER = tokenizer_with_two_ends()
LANGUAGE = r"(abc){0,2}|ab|c<\|x\|>|é|bca<\|"
CONSTRAINT = constrain(TOKENIZER, LANGUAGE, eos_ids=EOS)
TRIE = canonical_trie(TOKENIZER, STRINGS)
N = TOKENIZER.n_ids


def allowed_by_model(ids):
    """The trie's answer; nothing after end-of-sequence."""
    if ids and ids[-1] in EOS:
        return set()
    found = TRIE[tuple(ids)]
    return (found - {None}) | (set(EOS) if None in found else set())


class MatcherMachine(RuleBasedStateMachine):
    """Pairs of (matcher, the ids that it should have read)."""

    pairs = Bundle("pairs")

    def __init__(self):
        super().__init__()
        self.all = []

    @rule(target=pairs)
    def start(self):
        self.all.append((CONSTRAINT.matcher(), []))
        return self.all[-1]

    @rule(target=pairs, pair=pairs, really=st.booleans())
    def copy(self, pair, really):
        twin = pair[0].copy() if really else copy.copy(pair[0]).copy()
        self.all.append((twin, list(pair[1])))
        return multiple(self.all[-1])

    @rule(pair=pairs, token=st.integers(-2, N + 2))
    def advance(self, pair, token):
        matcher, ids = pair
        if not 0 <= token < N:
            with pytest.raises(TokenOutOfRangeError):
                matcher.advance(token)
        elif token not in allowed_by_model(ids):
            with pytest.raises(TokenNotAllowedError) as caught:
                matcher.advance(token)
            assert (caught.value.token_id, caught.value.position) == (token, len(ids))
        else:
            matcher.advance(token)
            ids.append(token)

    @rule(pair=pairs, choice=st.integers(0, 30))
    def advance_as_allowed(self, pair, choice):
        options = sorted(allowed_by_model(pair[1]))
        if options:
            self.advance(pair, options[choice % len(options)])

    @rule(pair=pairs, n=st.integers(-1, 5))
    def rollback(self, pair, n):
        matcher, ids = pair
        if 0 <= n <= len(ids):
            matcher.rollback(n)
            del ids[len(ids) - n :]
        else:
            with pytest.raises(DecodingError):
                matcher.rollback(n)

    @rule(pair=pairs, extra=st.integers(0, 70), row=st.integers(0, 2))
    def write(self, pair, extra, row):
        """Rows wider than the tokenizer, as padded logits are; other rows are left alone."""
        matcher, ids = pair
        wanted = sorted(allowed_by_model(ids))
        packed = np.full((3, (N + extra + 31) // 32), 7, dtype=np.int32)
        flags = np.ones((3, N + extra), dtype=bool)
        added = np.ones((3, N + extra), dtype=np.float32)
        for out in (packed, flags, added):
            assert matcher.mask(out, row) is out
        unpacked = np.unpackbits(packed[row].view(np.uint8), bitorder="little")
        assert np.flatnonzero(unpacked).tolist() == wanted
        assert np.flatnonzero(flags[row]).tolist() == wanted
        assert np.flatnonzero(added[row] == 0).tolist() == wanted
        assert np.isneginf(added[row]).sum() == N + extra - len(wanted)
        others = [r for r in range(3) if r != row]
        assert (packed[others] == 7).all()
        assert flags[others].all()
        assert (added[others] == 1).all()

    @rule(pair=pairs, case=st.integers(0, 5))
    def write_to_a_wrong_buffer(self, pair, case):
        out, row = [
            (np.ones((2, 0), np.int32), 0),
            (np.ones((1, N - 1), bool), 0),
            (np.ones((2, N), np.float64), 2),
            (np.ones((2, N), np.float64), -1),
            (np.ones((1, N), np.int64), 0),
            (np.ones(8, np.int32), 0),
        ][case]
        before = out.copy()
        with pytest.raises(BufferShapeError):
            pair[0].mask(out, row)
        assert (out == before).all()

    @invariant()
    def everything_is_as_the_model_says(self):
        for matcher, ids in self.all:
            wanted = allowed_by_model(ids)
            assert matcher.ids == tuple(ids)
            assert matcher.allowed_ids().tolist() == sorted(wanted)
            assert np.flatnonzero(matcher.mask()).tolist() == sorted(wanted)
            text = tuple(i for i in ids if i not in EOS)
            assert matcher.is_accepting == (None in TRIE[text])
            assert matcher.is_finished == (not wanted)


MatcherMachine.TestCase.settings = settings(
    max_examples=40 * settings.default.max_examples // 100, stateful_step_count=30
)
TestMatcher = MatcherMachine.TestCase


def test_end_of_sequence_comes_exactly_where_the_text_is_complete_and_canonical():
    """ab,c spells abc, but abc is one token: after ab the text may end, and no c follows."""
    matcher = CONSTRAINT.matcher()
    ab, c, abc = 3, 2, 4
    assert matcher.mask()[list(EOS)].all()
    matcher.advance(ab)
    assert matcher.allowed_ids().tolist() == list(EOS)
    with pytest.raises(TokenNotAllowedError):
        matcher.advance(c)
    matcher.rollback()
    matcher.advance(abc)
    matcher.advance(EOS[1])
    assert matcher.is_finished
    with pytest.raises(TokenNotAllowedError, match="ended"):
        matcher.advance(EOS[0])
    matcher.rollback()
    assert matcher.ids == (abc,)
    assert not matcher.is_finished


def test_one_dimensional_buffers():
    matcher = CONSTRAINT.matcher()
    wanted = matcher.allowed_ids().tolist()
    assert np.flatnonzero(matcher.mask(np.zeros(N + 3, bool))).tolist() == wanted
    assert np.flatnonzero(matcher.mask(np.ones(N, np.float16)) == 0).tolist() == wanted


def test_without_end_of_sequence_a_complete_text_that_cannot_go_on_is_finished():
    matcher = constrain(TOKENIZER, "ab", eos_ids=()).matcher()
    assert not matcher.is_finished
    matcher.advance(3)
    assert matcher.is_accepting
    assert matcher.is_finished
