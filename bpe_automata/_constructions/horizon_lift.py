"""The horizon of the lift: how few tokens lead to acceptance, of any tokenization."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bpe_automata._automata.linked import explicit
from bpe_automata._budget import spent
from bpe_automata._constructions.horizon import Horizon
from bpe_automata._constructions.lift import Lift
from bpe_automata._kernels.bits import set_bits
from bpe_automata._kernels.distance import distances
from bpe_automata._kernels.fewest_tokens import (
    NEVER,
    Towards,
    cost_to_accept,
    fewest,
    gain_below,
    gain_of_bytes,
    open_after,
    settle,
)
from bpe_automata._kernels.inclusion import widest
from bpe_automata._kernels.references import packed
from bpe_automata._kernels.trie import Spelled, Trie
from bpe_automata._kernels.watch import watched
from bpe_automata._sharing import BoundedMemo, Lock, locked
from bpe_automata._tokenizer.tokenizer import Tokenizer

_MOST_UNIT = 2**14  # what a token costs
_SHORT, _STATES_A_READING = 64, 256
"""A search reads _SHORT states, and one more for every _STATES_A_READING states of the DFA, before
inclusions are looked for, which takes about as long."""
_INCLUDED = 8  # a state is searched before others only if it includes so many, itself among them


class LiftHorizon(Horizon[int]):
    """A state is the byte DFA's. What has been found out of it is kept, 24 bytes a state."""

    def __init__(self, lift: Lift) -> None:
        self.lock, self.budget, self._lift = Lock(), lift.budget, lift
        added = lift.added, lift.prefixed.added_from, lift.prefixed.after_added
        self._spelled = Spelled(lift.trie, lift.token_classes, *added)
        self._towards = _towards(lift, self._spelled)
        by_bytes = lift.by_bytes  # a bound that costs no search
        self._by_bytes = np.where(by_bytes < 0, NEVER, by_bytes).astype(np.int32)
        self._widest_found = False
        self._plain_from: dict[int, int] = {}
        self._rows: BoundedMemo[tuple[int, int], np.ndarray] = BoundedMemo(lift.n_ids // 8)

    def towards_of(self, trie: Trie, token_classes: np.ndarray) -> Towards:
        """What is known, also later, for another trie of tokens of this vocabulary. token_classes:
        int32 [nodes], 0: left out."""
        dfa, towards = self._lift.dfa, self._towards
        gain = gain_of_bytes(dfa.steps.trans, dfa.byte_class, towards.far)
        return towards._replace(gain=gain_below(trie, token_classes, gain)[0])

    @property
    def hint(self) -> np.ndarray:
        """int32 [n_states]: what is nearer to acceptance has less, mostly."""
        return self._towards.far

    @property
    def at_least(self) -> np.ndarray:
        """int32 [n_states]: what is known so far of the least number of tokens."""
        return self._towards.lower

    @property
    def at_most(self) -> np.ndarray:
        """int32 [n_states]: the same from above."""
        return self._towards.upper

    @spent
    @locked
    def least(self, state: int) -> int:
        lower, upper = self._towards.lower, self._towards.upper
        if lower[state] < upper[state]:
            self._asked(fewest, state)
        if lower[state] < upper[state]:
            self._include()
            self._asked(fewest, state)
        return int(upper[state])

    @spent
    @locked
    def reaches(self, state: int, k: int) -> bool:
        if self._by_bytes[state] <= k:
            return True
        self._settle(np.array([state], dtype=np.int32), k)
        return bool(self._towards.upper[state] <= k)

    @spent
    @locked
    def lower(self, states: np.ndarray, k: int) -> np.ndarray:
        """int32: ids that it takes at least from each state, and more than k wherever it takes
        more. states: int."""
        self._settle(states.astype(np.int32), k)
        return self._towards.lower[states]

    @spent
    @locked
    def mask(self, state: int, k: int) -> np.ndarray:
        bits = self._rows.get((state, k))
        if bits is not None:
            return bits
        plain = self._lift.mask(state)
        if self._plain_from.get(state, NEVER) <= k:
            return plain
        bits = self._near(state, k)
        if not np.array_equal(bits, plain):
            dfa, near = self._lift.dfa, (self._spelled, self._towards)
            self._settle(open_after(packed(dfa.steps), state, k - 1, *near), k - 1)
            bits = self._near(state, k)
        if np.array_equal(bits, plain):
            self._plain_from[state] = k
            return plain
        bits.flags.writeable = False
        self._rows.put((state, k), bits)
        return bits

    def _near(self, state: int, k: int) -> np.ndarray:
        """The mask as far as is known."""
        lift, near = self._lift, (self._towards.upper < k) | (self._by_bytes < k)
        bits = lift.readable(state, near)
        set_bits(bits, lift.added[near[lift.after_added(state, lift.added)]])
        lift.mark_ends(state, bits)
        return bits

    def _settle(self, states: np.ndarray, k: int) -> None:
        open_ = self._open(states, k)
        if len(open_) and self._asked(settle, open_, k) and len(self._open(open_, k)):
            self._include()
            self._asked(settle, self._open(open_, k), k)

    def _open(self, states: np.ndarray, k: int) -> np.ndarray:
        """Those of which it is not known whether k ids are enough."""
        lower = self._towards.lower[states]
        upper = np.minimum(self._towards.upper[states], self._by_bytes[states])
        return states[(lower <= k) & (k < upper)]

    def _asked(self, kernel: Callable[..., None], *arguments: Any) -> bool:
        """Run a search kernel. Until inclusions have been looked for, its length is limited; was
        it?"""
        dfa = self._lift.dfa
        patience = NEVER if self._widest_found else _SHORT + dfa.n_states // _STATES_A_READING
        given = *arguments, patience, self._spelled, self._towards
        watched(kernel, packed(dfa.steps), *given)
        return not self._widest_found

    def _include(self) -> None:
        """Find for each state a wider one, whose language includes its own: acceptance is no
        farther from there. To search the wider one first pays where it includes many states."""
        if self._widest_found:
            return
        lift, steps = self._lift, _steps(self._lift)
        n_bytes = np.bincount(lift.dfa.byte_class, minlength=steps.shape[1]).astype(np.int32)
        near = _nearest(lift, steps)
        self._widest_found = True  # once: a budget that was spent on it is not spent again
        found = watched(widest, steps, n_bytes, near)
        many = np.bincount(found, minlength=len(found))[found] >= _INCLUDED
        self._towards.widest[many] = found[many]


def _towards(lift: Lift, spelled: Spelled) -> Towards:
    """What is known before any search."""
    accepting = lift.dfa.accepting
    steps = _steps(lift)
    far = _nearest(lift, steps)
    _, longest = _gains(lift, spelled, far)  # by how many bytes a token takes a text nearer
    far = _weighed(lift, steps, far, longest)
    below, most = _gains(lift, spelled, far)
    upper = np.where(accepting, 0, NEVER).astype(np.int32)
    lower = np.where(lift.alive, -(-far // most), NEVER).astype(np.int32)
    return Towards(far, below, most, lower, upper, np.arange(lift.dfa.n_states, dtype=np.int32))


def _gains(lift: Lift, spelled: Spelled, far: np.ndarray) -> tuple[np.ndarray, int]:
    """(`Towards.gain`, `Towards.most`)."""
    gain = gain_of_bytes(lift.dfa.steps.trans, lift.dfa.byte_class, far)
    below, most = gain_below(spelled.trie, spelled.token_classes, gain)
    silent = sum(_silent_gain(far, after) for after in (spelled.added_from, spelled.after_added))
    for token in spelled.added.tolist():
        spelling = np.frombuffer(lift.tokenizer.spellings[token], dtype=np.uint8)
        most = max(most, silent + int(gain[spelling].astype(np.int64).sum()))
    return below, max(most, 1)


def _steps(lift: Lift) -> np.ndarray:
    """int32 [n_states, k]: the transitions, and steps without any byte around added tokens."""
    dfa, silent = lift.dfa, (lift.prefixed.added_from, lift.prefixed.after_added)
    if all((after == np.arange(dfa.n_states)).all() for after in silent):
        return dfa.steps.trans
    return np.concatenate([dfa.steps.trans, *(after[:, None] for after in silent)], axis=1)


def _nearest(lift: Lift, steps: np.ndarray) -> np.ndarray:
    """int32 [n_states]: the fewest steps to acceptance, -1 where it is out of reach."""
    if steps is lift.dfa.steps.trans:
        return explicit(lift.dfa, "a shortest way").distance()
    return distances(steps, lift.dfa.accepting)


def _weighed(lift: Lift, steps: np.ndarray, near: np.ndarray, longest: int) -> np.ndarray:
    """int32 [n_states]: `Towards.far`, -1 where acceptance is out of reach. near: the same with all
    steps at one; longest: what a token takes of that at most."""
    dfa = lift.dfa
    unit = min(_MOST_UNIT, NEVER // dfa.n_states)
    of_byte = lift.tokenizer.derived("longest token of each byte", _longest)
    cost = np.full(steps.shape[1], unit, dtype=np.int32)
    np.minimum.at(cost, dfa.byte_class, np.maximum(unit // np.minimum(of_byte, longest), 1))
    cost[dfa.steps.trans.shape[1] :] = 0
    far = np.where(dfa.accepting, 0, NEVER).astype(np.int32)
    order = np.argsort(near, kind="stable")[np.count_nonzero(near <= 0) :].astype(np.int32)
    watched(cost_to_accept, steps, cost, order, far)
    return np.where(near < 0, -1, far).astype(np.int32)


def _longest(tokenizer: Tokenizer) -> np.ndarray:
    """int32 [256]: bytes of the longest token in which each byte stands, at least 1."""
    lengths = np.array([len(spelled) for spelled in tokenizer.spellings], dtype=np.int32)
    data = np.frombuffer(b"".join(tokenizer.spellings), dtype=np.uint8)
    longest = np.ones(256, dtype=np.int32)
    np.maximum.at(longest, data, np.repeat(lengths, lengths))
    return longest


def _silent_gain(far: np.ndarray, after: np.ndarray) -> int:
    both = (far >= 0) & (far[after] >= 0)
    return int((far - far[after])[both].max(initial=0))
