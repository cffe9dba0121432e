"""Automata given by hand: the table, the matcher and a plain dict say the same."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import examples
from support.drawn import listings

from bpe_automata import TokenAutomaton
from bpe_automata.decoding.matcher import matcher_of
from bpe_automata.decoding.token_table import Listed, TokenTable
from bpe_automata.errors import (
    ArgumentError,
    EmptyLanguageError,
    MalformedAutomatonError,
    NondeterministicError,
    TokenOutOfRangeError,
)

PATH = [("a", 3, "b"), ("b", 4, "a"), ("b", 5, "c")]


@given(listings(), st.lists(st.integers(0, 80), max_size=8))
@examples(100)
def test_table_matcher_and_dict_agree(listing, choices):
    """Along a path of allowed ids every id is tried, allowed or not."""
    parts = listing.automaton, listing.eos_ids, listing.n_ids
    table, matcher = TokenTable.of(*parts), matcher_of(*parts)
    state, ids = table.begin(1), []
    for choice in [*choices, None]:
        wanted = sorted(listing.allowed(ids))
        assert matcher.allowed_ids().tolist() == wanted
        assert matcher.is_accepting == listing.complete(ids)
        assert matcher.is_finished == (not wanted)
        every = np.arange(-2, listing.n_ids + 2)
        assert np.flatnonzero(table.allowed(state)[0]).tolist() == wanted
        after = table.step(np.repeat(state, len(every)), every)
        assert (after.dtype, every[after > 0].tolist()) == (np.int32, wanted)
        assert table.accepting[state[0]] == listing.complete(ids)
        assert table.finished[state[0]] == (not wanted)
        if not wanted or choice is None:
            break
        token = wanted[choice % len(wanted)]
        ids.append(token)
        matcher.advance(token)
        state = table.step(state, [token])


def test_a_table_says_what_its_states_are_called():
    listed = [*PATH, ("x", 1, "c"), ("a", 9, "trap"), ("trap", 9, "trap")]
    table = TokenTable.from_transitions(listed, "a", ["c"], n_ids=10, eos_ids=[7])
    assert table.names == (None, "a", "b", "c", None)
    assert (table.start, table.end, table.n_states) == (1, 4, 4)
    assert table.allowed(np.empty(0, np.int32)).shape == (0, 10)


def test_where_no_accepting_state_is_named_states_that_nothing_leaves_accept():
    """So the end of sequence may be a transition like any other, and a walk may have no end."""
    listed = [(0, 11, 1), (1, 2, "end"), (0, 2, "end")]
    table = TokenTable.from_transitions(listed, 0, n_ids=12)
    assert table.rows.identical(TokenTable.from_transitions(listed, 0, ["end"], n_ids=12).rows)
    assert table.end is None
    assert not table.allowed([3]).any()
    ring = [(0, 1, 1), (1, 2, 2), (2, 3, 0)]
    table = TokenTable.from_transitions([*ring, (8, 1, 9)], 0, n_ids=5, eos_ids=[4])
    states = table.begin(1)
    for token in (1, 2, 3, 1):
        assert np.flatnonzero(table.allowed(states)[0]).tolist() == [token]
        states = table.step(states, [token])
    assert table.names == (None, 0, 1, 2, None)


@pytest.mark.parametrize(
    ("error", "match", "change"),
    [
        (MalformedAutomatonError, r"is -1", {"listed": [(0, -1, 1)]}),
        (NondeterministicError, r"determinise=True", {"listed": [(0, 1, 1), (0, 1, 2)]}),
        (MalformedAutomatonError, r"start 'x' is in no", {"start": "x"}),
        (EmptyLanguageError, r"start 0", {"listed": [(0, 1, 0), (2, 1, 3)], "accepting": [3]}),
        (TokenOutOfRangeError, r"end-of-sequence id 10", {"eos_ids": [10]}),
        (ArgumentError, r"position 0 is '7'", {"eos_ids": ["7"]}),
        (ArgumentError, r"eos_ids is 7", {"eos_ids": 7}),
        (ArgumentError, r"n_ids 0 is less than 1", {"n_ids": 0}),
    ],
)
def test_what_is_no_automaton_is_refused(error, match, change):
    given = {"listed": [(0, 1, 1)], "start": 0, "n_ids": 10, "eos_ids": [7], **change}
    with pytest.raises(error, match=match):
        TokenTable.from_transitions(given.pop("listed"), given.pop("start"), **given)


@pytest.mark.parametrize(
    ("states", "ids", "match"),
    [
        ([1, 4], [1, 1], r"states\[1\] is 4"),
        ([1, 1], [1], "2 states, but 1 ids"),
        (1, [1], "states is"),
        ([1], [3.0], "ids is"),
    ],
)
def test_a_step_of_what_is_no_batch_is_refused(states, ids, match):
    with pytest.raises(ArgumentError, match=match):
        TokenTable.from_transitions(PATH, "a", n_ids=10).step(states, ids)


@pytest.mark.parametrize(
    ("listed", "eos_ids", "n_ids", "error", "match"),
    [
        ([(1, 9, 2)], [], 9, TokenOutOfRangeError, r"state 1 reads id 9.* 0 .. 8"),
        ([(1, 9, 2)], [9], 10, MalformedAutomatonError, "state 1 reads the end-of-sequence id 9"),
        ([], [0], 10, EmptyLanguageError, "no accepting state is reachable"),
    ],
)
def test_an_automaton_must_fit_its_vocabulary(listed, eos_ids, n_ids, error, match):
    automaton = TokenAutomaton.from_transitions([(0, 1, 1), *listed], 0, [q for *_, q in listed])
    for made in (TokenTable.of, Listed):
        with pytest.raises(error, match=match):
            made(automaton, eos_ids, n_ids)
