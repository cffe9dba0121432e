"""The matcher against a plain model: a list of ids, and what may follow it by trying everything.

The engines: the tokenizer's own ids, any ids, and automata that are written down.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule
from support.drawn import Listing

from bpe_automata import Matcher, constrain
from bpe_automata.decoding.matcher import matcher_of
from bpe_automata.decoding.token_table import Listed
from bpe_automata.errors import (
    ArgumentError,
    BufferShapeError,
    DecodingError,
    EndlessTextWarning,
    TokenNotAllowedError,
    TokenOutOfRangeError,
)
from bpe_automata.reference import canonical_trie, lift_mask
from bpe_automata.testing import byte_level, byte_spelling, small_tokenizer

EOS = (11, 12)
STRINGS = ["", "ab", "abc", "abcabc", "c<|x|>", "é", "bca<|"]


TOKENIZER = small_tokenizer(
    ["a", "b", "c", "ab", "abc", "<", "|", "x", ">", *byte_spelling("é".encode())],
    [("a", "b"), ("ab", "c")],
    byte_level(),
    ["<end>", "<stop>", "<|x|>"],
)
LANGUAGE = r"(abc){0,2}|ab|c<\|x\|>|é|bca<\|"
CONSTRAINT = constrain(TOKENIZER, LANGUAGE, eos_ids=EOS)
TRIE = canonical_trie(TOKENIZER, STRINGS)
N = TOKENIZER.n_ids


def any_ids(ids) -> set[int | None]:
    """What all tokenizations go on with."""
    dfa = CONSTRAINT.dfa
    state = dfa.walk(TOKENIZER.text_bytes(ids))
    ends = {None} if dfa.accepting[state] else set()
    return (lift_mask(TOKENIZER, dfa, state, EOS) - set(EOS)) | ends


@dataclass(frozen=True)
class Case:
    """An engine beside its model. matcher: makes one; goes_on(text ids) -> what may follow, None:
    it may end."""

    name: str
    matcher: Callable[[], Matcher]
    goes_on: Callable[[tuple[int, ...]], set[int | None]]
    eos_ids: tuple[int, ...]
    n_ids: int

    def text(self, ids) -> tuple[int, ...]:
        return tuple(i for i in ids if i not in self.eos_ids)

    def allowed(self, ids) -> set[int]:
        """Nothing after end-of-sequence."""
        if self.text(ids) != tuple(ids):
            return set()
        found = self.goes_on(tuple(ids))
        return (found - {None}) | (set(self.eos_ids) if None in found else set())

    def complete(self, ids) -> bool:
        return None in self.goes_on(self.text(ids))

    def forced(self, ids) -> tuple[int, ...]:
        """As long as one id may follow, and the text may not end."""
        found, here = (), self.text(ids)
        while len(follow := self.goes_on(here)) == 1 and None not in follow:
            found, here = (*found, *follow), (*here, *follow)
        return found

    def least(self, ids) -> int:
        """Ids to the nearest complete text, by trying all."""
        level, length = {self.text(ids)}, 0
        while not any(map(self.complete, level)):
            level = {(*w, token) for w in level for token in self.goes_on(w)}
            length += 1
        return length


LIFT = constrain(TOKENIZER, LANGUAGE, method="lift", eos_ids=EOS)
# (3 39)* (3 0 | 1), where 0 is an end that the list has itself; 5 leads into a trap.
HAND = Listing(
    {(0, 3): 1, (1, 39): 0, (1, 0): 2, (0, 1): 2, (0, 5): 4, (4, 5): 4}, frozenset({2}), (), 40
)
# 7, once or more: from the start on there is no choice.
FORCED = Listing({(0, 7): 1, (1, 7): 1}, frozenset({1}), (2,), 33)


def listed(name: str, listing: Listing) -> Case:
    @cache
    def goes_on(ids):
        ends = {None} if listing.complete(ids) else set()
        return (listing.allowed(ids) - set(listing.eos_ids)) | ends

    engine = Listed(listing.automaton, listing.eos_ids, listing.n_ids)
    return Case(name, lambda: Matcher(engine), goes_on, listing.eos_ids, listing.n_ids)


WRITTEN = CONSTRAINT.automaton()
CASES = [
    Case("canonical", CONSTRAINT.matcher, TRIE.__getitem__, EOS, N),
    Case("lift", LIFT.matcher, any_ids, EOS, N),
    Case("written out", lambda: matcher_of(WRITTEN, EOS, N), TRIE.__getitem__, EOS, N),
    listed("by hand", HAND),
    listed("forced", FORCED),
]


IDS = st.integers(-2, N + 2)
FAR = st.sampled_from([-(10**30), 40, 2**31, 2**63, 10**30])
INTEGERS = st.one_of(IDS, IDS, IDS.map(np.int64), IDS.map(np.int32), FAR)
NO_INTEGERS = [None, True, np.True_, "3", b"3", 3.0, np.float64(3), [3], (), np.array([3, 3])]


class MatcherMachine(RuleBasedStateMachine):
    """Triples of (matcher, the ids that it should have read, its case)."""

    pairs = Bundle("pairs")

    def __init__(self):
        super().__init__()
        self.all = []

    @rule(target=pairs, case=st.sampled_from(CASES))
    def start(self, case):
        self.all.append((case.matcher(), [], case))
        return self.all[-1]

    @rule(target=pairs, pair=pairs)
    def copy(self, pair):
        self.all.append((copy.copy(pair[0]), list(pair[1]), pair[2]))
        return self.all[-1]

    @rule(pair=pairs, token=INTEGERS)
    def advance(self, pair, token):
        matcher, ids, case = pair
        if not 0 <= token < case.n_ids:
            with pytest.raises(TokenOutOfRangeError):
                matcher.advance(token)
        elif token not in case.allowed(ids):
            with pytest.raises(TokenNotAllowedError) as caught:
                matcher.advance(token)
            assert (caught.value.token_id, caught.value.position) == (token, len(ids))
        else:
            matcher.advance(token)
            ids.append(token)

    @rule(pair=pairs, choice=st.integers(0, 30))
    def advance_as_allowed(self, pair, choice):
        options = sorted(pair[2].allowed(pair[1]))
        if options:
            self.advance(pair, options[choice % len(options)])

    @rule(pair=pairs, wrong=st.sampled_from(NO_INTEGERS))
    def give_what_is_no_integer(self, pair, wrong):
        with pytest.raises(ArgumentError):
            pair[0].advance(wrong)
        with pytest.raises(ArgumentError):
            pair[0].rollback(wrong)

    @rule(pair=pairs, n=st.integers(-1, 5))
    def rollback(self, pair, n):
        matcher, ids, _ = pair
        if 0 <= n <= len(ids):
            matcher.rollback(n)
            del ids[len(ids) - n :]
        else:
            with pytest.raises(DecodingError):
                matcher.rollback(n)

    @rule(pair=pairs)
    def look_for_the_end(self, pair):
        assert pair[0].min_tokens_to_accept() == pair[2].least(pair[1])

    @rule(pair=pairs, limit=st.none() | st.integers(0, 4))
    def look_for_what_is_forced(self, pair, limit):
        assert pair[0].forced_tokens(limit) == pair[2].forced(pair[1])[:limit]

    @rule(pair=pairs, extra=st.integers(0, 70), row=st.integers(0, 2))
    def write(self, pair, extra, row):
        """Rows wider than the tokenizer, as padded logits are; other rows are left alone."""
        matcher, ids, case = pair
        wanted, n_ids = sorted(case.allowed(ids)), case.n_ids
        packed = np.full((3, (n_ids + extra + 31) // 32), 7, dtype=np.int32)
        flags = np.ones((3, n_ids + extra), dtype=bool)
        for out in (packed, flags):
            assert matcher.mask(out, row) is out
            plain = out[row].copy()
            assert (matcher.mask(plain) == out[row]).all()
        unpacked = np.unpackbits(packed[row].view(np.uint8), bitorder="little")
        assert np.flatnonzero(unpacked).tolist() == wanted
        assert np.flatnonzero(flags[row]).tolist() == wanted
        others = [r for r in range(3) if r != row]
        assert (packed[others] == 7).all()
        assert flags[others].all()

    @rule(pair=pairs, kind=st.integers(0, 5))
    def write_to_a_wrong_buffer(self, pair, kind):
        n_ids = pair[2].n_ids
        out, row = [
            (np.ones((2, 0), np.int32), 0),
            (np.ones((1, n_ids - 1), bool), 0),
            (np.ones((2, n_ids), bool), 2),
            (np.ones((2, n_ids), bool), -1),
            (np.ones((1, n_ids), np.float64), 0),
            (np.ones(0, np.int32), 0),
        ][kind]
        before = out.copy()
        with pytest.raises(BufferShapeError):
            pair[0].mask(out, row)
        assert (out == before).all()

    @invariant()
    def everything_is_as_the_model_says(self):
        for matcher, ids, case in self.all:
            wanted = case.allowed(ids)
            assert matcher.ids == tuple(ids)
            assert matcher.allowed_ids().tolist() == sorted(wanted)
            assert np.flatnonzero(matcher.mask()).tolist() == sorted(wanted)
            assert matcher.is_accepting == case.complete(ids)
            assert matcher.is_finished == (not wanted)


MatcherMachine.TestCase.settings = settings(
    max_examples=60 * settings.default.max_examples // 100, stateful_step_count=30
)
TestMatcher = MatcherMachine.TestCase


@pytest.mark.parametrize("method", ["canonical", "lift"])
def test_a_text_that_can_never_end_is_warned_of(method):
    for regex in ("a*", "a|b+", "[ab]+|c"):
        with pytest.warns(EndlessTextWarning, match="names no end-of-sequence id"):
            constrain(TOKENIZER, regex, method)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for regex in ("a{1,3}", "a*b", "[ab]+c?"):
            constrain(TOKENIZER, regex, method)
        for ends in ([], [EOS[0]]):
            constrain(TOKENIZER, "a*", method, ends)
