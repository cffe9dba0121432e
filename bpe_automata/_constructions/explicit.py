"""The whole automaton of an engine, when it is small enough to write down; and an engine that runs
such an automaton."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from bpe_automata._arguments import integer, short
from bpe_automata._budget import check
from bpe_automata._constructions.engine import TextEngine
from bpe_automata._kernels.bits import members, set_bits
from bpe_automata._sharing import BoundedMemo, Immutable
from bpe_automata._token_automata.automaton import TokenAutomaton
from bpe_automata.errors import (
    ArgumentError,
    BudgetExceededError,
    EmptyLanguageError,
    MalformedAutomatonError,
    TokenOutOfRangeError,
)

State = TypeVar("State", bound=Hashable)
_ADVICE = "the automaton is too large to list; raise max_edges, or ask the engine step by step"


@dataclass(frozen=True)
class Explored(Generic[State]):
    """states: the engine's, in the order of discovery; state i of `automaton` is states[i]."""

    automaton: TokenAutomaton
    states: tuple[State, ...]


def explore(engine: TextEngine[Any], state: Hashable, max_edges: int = 1_000_000) -> TokenAutomaton:
    """{ ids : the engine accepts after them, from `state` }, end-of-sequence left out.

    States are numbered in the order of their discovery, breadth-first by id; each of them is
    relevant. The alphabet is all ids of the tokenizer that are not end-of-sequence. Raises
    BudgetExceededError over `max_edges`.
    """
    return explored(engine, state, max_edges).automaton


def explored(
    engine: TextEngine[State], state: State, max_edges: int = 1_000_000
) -> Explored[State]:
    """`explore`, with the engine's own states. Raises BudgetExceededError over `max_edges`."""
    numbers = _Numbers[State]()
    eos = np.array(engine.eos_ids, dtype=np.int64)
    rows: list[tuple[np.ndarray, np.ndarray]] = []
    n_edges = 0
    numbers[state]  # number 0
    for here in numbers.states:  # grows while we go
        check()
        tokens = members(engine.mask(here))
        tokens = tokens[~np.isin(tokens, eos)] if len(eos) and engine.accepting(here) else tokens
        n_edges += len(tokens)
        if n_edges > max_edges:
            raise BudgetExceededError("edges", max_edges, _ADVICE)
        targets = np.array([numbers[after] for after in engine.steps(here, tokens)], dtype=np.int32)
        rows.append((tokens.astype(np.int32), targets))
    accepting = np.array([engine.accepting(here) for here in numbers.states])
    return Explored(_automaton(engine, rows, accepting, eos), tuple(numbers.states))


class _Numbers(dict[State, int]):
    """Numbers states as they are first asked for."""

    def __init__(self) -> None:
        self.states: list[State] = []

    def __missing__(self, state: State) -> int:
        self.states.append(state)
        return self.setdefault(state, len(self.states) - 1)


def _automaton(
    engine: TextEngine[Any],
    rows: list[tuple[np.ndarray, np.ndarray]],
    accepting: np.ndarray,
    eos: np.ndarray,
) -> TokenAutomaton:
    offsets = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum([len(symbols) for symbols, _ in rows], out=offsets[1:])
    symbols, targets = (np.concatenate(column) for column in zip(*rows, strict=True))
    alphabet = np.setdiff1d(np.arange(engine.n_ids), eos)
    spellings = engine.tokenizer.spellings
    return TokenAutomaton(0, accepting, offsets, symbols, targets, alphabet, spellings)


# And back: an automaton that is written down, as an engine.
#
#     { ids : start --ids--> accepting },  end-of-sequence allowed exactly in accepting states
#
# Whatever gave the automaton: a list of transitions, a file, `Constraint.automaton`, the union,
# intersection or difference of others. A state is one of the automaton's own numbers. States that
# are not relevant are never entered: no id leads to one.

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
