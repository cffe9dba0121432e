"""An automaton that is written down, as an engine.

    { ids : start --ids--> accepting },  end-of-sequence allowed exactly in accepting states

Whatever gave the automaton: a list of transitions, a file, `Constraint.automaton`, the union,
intersection or difference of others. A state is one of the automaton's own numbers. States that are
not relevant are never entered: no id leads to one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from bpe_automata.arguments import integer, short
from bpe_automata.errors import (
    ArgumentError,
    EmptyLanguageError,
    MalformedAutomatonError,
    TokenOutOfRangeError,
)
from bpe_automata.kernels.bits import set_bits
from bpe_automata.sharing import BoundedMemo, Immutable
from bpe_automata.token_automata import TokenAutomaton

END_IS_LISTED = (
    "it is allowed where the automaton accepts, so leave out this transition and make its state "
    "accepting, or give no eos_ids"
)


class Listed(Immutable):
    """An `Engine` over an explicit token automaton. It knows no text, so no prompt either: `prefix`
    is looked at by nobody, and what may follow a prompt is what the automaton says."""

    def __init__(self, automaton: TokenAutomaton, eos_ids: Iterable[int], n_ids: int) -> None:
        """eos_ids: ids that end the sequence where it is complete; no transition may read one (an
        automaton that has its own transitions for the end takes none here). n_ids: one more than
        the largest id.

        Raises EmptyLanguageError; TokenOutOfRangeError for an id that is not in 0 .. n_ids - 1;
        MalformedAutomatonError where a transition reads end-of-sequence; ArgumentError.
        """
        self.eos_ids, self._n_ids = checked_vocabulary(eos_ids, n_ids)
        check_ids(automaton, self.eos_ids, self._n_ids)
        relevant = automaton.relevant()
        if not relevant[automaton.start]:
            raise EmptyLanguageError("the automaton accepts no sequence of ids")
        self._automaton = automaton
        self._stays = relevant[automaton.targets]
        self._eos = np.array(self.eos_ids, dtype=np.int64)
        self._masks: BoundedMemo[int, np.ndarray] = BoundedMemo(self._n_ids // 8)

    def __reduce__(self) -> tuple[object, ...]:
        return Listed, (self._automaton, self.eos_ids, self._n_ids)

    @property
    def n_ids(self) -> int:
        return self._n_ids

    def initial(self, prefix: Sequence[int] = ()) -> int:
        return self._automaton.start

    def accepting(self, state: int) -> bool:
        return bool(self._automaton.accepting[state])

    def mask(self, state: int) -> np.ndarray:
        bits = self._masks.get(state)
        if bits is None:
            bits = self._row(state)
            bits.flags.writeable = False
            self._masks.put(state, bits)
        return bits

    def step(self, state: int, token: int) -> int:
        return self.steps(state, np.array([token]))[0]

    def steps(self, state: int, tokens: np.ndarray) -> list[int]:
        symbols, targets = self._automaton.row(state)
        return targets[np.searchsorted(symbols, tokens)].tolist()

    def _row(self, state: int) -> np.ndarray:
        symbols, _ = self._automaton.row(state)
        low, high = self._automaton.offsets[state : state + 2]
        bits = np.zeros((self._n_ids + 31) // 32, dtype=np.int32)
        set_bits(bits, symbols[self._stays[low:high]].astype(np.int64))
        if self.accepting(state):
            set_bits(bits, self._eos)
        return bits


def checked_vocabulary(eos_ids: Iterable[int], n_ids: int) -> tuple[tuple[int, ...], int]:
    """(`eos_ids` without repetitions, `n_ids`). Raises TokenOutOfRangeError, ArgumentError."""
    count = integer(n_ids, "n_ids")
    if count < 1:
        raise ArgumentError(f"n_ids is {count}: give one more than the largest id")
    ends = tuple(
        dict.fromkeys(integer(token, "an end-of-sequence id") for token in _listed(eos_ids))
    )
    for token in ends:
        if not 0 <= token < count:
            raise TokenOutOfRangeError(f"end-of-sequence id {token} is not in 0 .. {count - 1}")
    return ends, count


def check_ids(automaton: TokenAutomaton, ends: tuple[int, ...], count: int) -> None:
    """Every transition must read an id below `count` that is none of `ends`. Raises
    TokenOutOfRangeError, MalformedAutomatonError."""
    symbols = automaton.symbols
    if len(beyond := np.flatnonzero(symbols >= count)):
        found = f"id {symbols[beyond[0]]}, which is not in 0 .. {count - 1}"
        raise TokenOutOfRangeError(f"{_reader(automaton, beyond[0])} reads {found}")
    if len(end := np.flatnonzero(np.isin(symbols, ends))):
        raise MalformedAutomatonError(
            f"{_reader(automaton, end[0])} reads the end-of-sequence id {symbols[end[0]]}: "
            f"{END_IS_LISTED}"
        )


def _reader(automaton: TokenAutomaton, edge: np.intp) -> str:
    """For a message: the state that the transition leaves."""
    return f"state {int(np.searchsorted(automaton.offsets, edge, side='right')) - 1}"


def _listed(eos_ids: Any) -> list[Any]:
    if isinstance(eos_ids, Iterable) and not isinstance(eos_ids, str | bytes):
        return list(eos_ids)
    raise ArgumentError(f"eos_ids is {short(eos_ids)}: give a list of ids")
