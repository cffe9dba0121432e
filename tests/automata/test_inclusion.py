"""Laws of the states that include others."""

import numpy as np
import pytest
from hypothesis import given

from bpe_automata.automata import ByteDFA, compile_regex
from bpe_automata.kernels.inclusion import widest
from bpe_automata.kernels.watch import watched
from bpe_automata.testing import byte_dfas


def widest_of(dfa: ByteDFA) -> np.ndarray:
    n_bytes = np.bincount(dfa.byte_class, minlength=dfa.trans.shape[1]).astype(np.int32)
    found: np.ndarray = watched(widest, dfa.trans, n_bytes, dfa.distance())
    return found


def included(dfa: ByteDFA, q: int, p: int) -> bool:
    """Does p read all that q reads? By all pairs that the two lead to."""
    seen, waiting = {(q, p)}, [(q, p)]
    while waiting:
        q, p = waiting.pop()
        if dfa.accepting[q] and not dfa.accepting[p]:
            return False
        for pair in zip(dfa.trans[q].tolist(), dfa.trans[p].tolist(), strict=True):
            if pair[0] != 0 and pair not in seen:
                seen.add(pair)
                waiting.append(pair)
    return True


@given(byte_dfas())
def test_what_is_found_is_included(dfa: ByteDFA) -> None:
    tops = widest_of(dfa)
    for state, top in enumerate(tops.tolist()):
        assert included(dfa, state, top)
        assert tops[top] == top


@pytest.mark.parametrize(
    ("pattern", "tops"),
    [
        ("[a-z]{10,300}x", 13),
        ("(?:é|ab|[c-z]){0,30}", 4),
        ("[가-힣]{3,9}a", 24),
        (r"(?:\S){0,60}é[가-힣]", 52),
        ("[a-z]{20}", 22),  # no two of its states have a text in common
    ],
)
def test_after_more_repeats_fewer_are_left(pattern: str, tops: int) -> None:
    """Of a counted repeat few states are left that no other includes."""
    dfa = compile_regex(pattern)
    found = widest_of(dfa)
    assert all(included(dfa, state, top) for state, top in enumerate(found.tolist()))
    assert len(set(found.tolist())) <= tops


def test_states_of_one_language_include_one_another() -> None:
    """Automata that are not minimal lead round in a circle."""
    trans = np.array([[0, 0], [2, 0], [3, 0], [1, 0]], dtype=np.int32)
    byte_class = np.ones(256, dtype=np.uint8)
    byte_class[:200] = 0
    dfa = ByteDFA(trans, byte_class, np.array([False, True, True, True]), 1)
    tops = widest_of(dfa)
    assert len(set(tops[1:].tolist())) == 1
