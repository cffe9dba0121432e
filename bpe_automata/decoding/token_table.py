"""Explicit token automata as tables, run for a whole batch at once or by a matcher.

    step(states, ids)[b] = the state after ids[b] in states[b], 0 if it is not allowed there

States are numbered from 1; 0 is dead. The table never changes; the caller holds the states of the
batch. `Listed` is the engine over such a table that a `Matcher` follows.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bpe_automata._arguments import at_least, end_ids, short
from bpe_automata._kernels.bits import packed
from bpe_automata._sharing import BoundedMemo, Immutable, cached
from bpe_automata.errors import (
    ArgumentError,
    EmptyLanguageError,
    MalformedAutomatonError,
    TokenOutOfRangeError,
)
from bpe_automata.token_automata.automaton import TokenAutomaton
from bpe_automata.token_automata.graph import edges_of, reached, with_only
from bpe_automata.token_automata.sources import Transition

_END_IS_LISTED = (
    "it is allowed where the automaton accepts, so leave out this transition and make its state "
    "accepting, or give no eos_ids"
)


@dataclass(frozen=True, eq=False)
class TokenTable(Immutable):
    """{ ids : start --ids--> accepting }. Make one with `from_transitions` or `of`. It is
    immutable, so any number of threads may use it.

    n_ids: one more than the largest id. rows: the transitions; its states are 0 (dead) to
    n_states. States that no accepted sequence passes are dropped. eos_ids: they lead from every
    accepting state to `end`, the last state, which no transition leaves. names: what the list of
    transitions calls each state; None for 0 and `end`.
    """

    n_ids: int
    rows: TokenAutomaton
    eos_ids: tuple[int, ...]
    names: tuple[Hashable, ...]

    @classmethod
    def from_transitions(
        cls,
        transitions: Iterable[Transition],
        start: Hashable,
        accepting: Iterable[Hashable] | None = None,
        *,
        n_ids: int,
        eos_ids: Iterable[int] = (),
    ) -> TokenTable:
        """The table of (state, id, next state), in any order; states are any hashable values.

        accepting: where a sequence may end. If given, states that no accepted sequence passes are
        dropped. By default these are the states that no transition leaves, and a sequence may also
        go on for ever, until the caller stops it. eos_ids: allowed exactly in accepting states.
        Without them end-of-sequence is an id like any other: list its transition, to a state that
        no transition leaves. n_ids: one more than the largest id of the model's vocabulary.

        Raises MalformedAutomatonError (an entry that is no transition, a negative id, a start or
        an accepting state in no transition, a transition on one of `eos_ids`),
        NondeterministicError (two next states), TokenOutOfRangeError, EmptyLanguageError,
        ArgumentError.
        """
        if not isinstance(transitions, Iterable):
            raise MalformedAutomatonError(f"transitions is {short(transitions)}: give a list")
        listed, count = list(transitions), at_least(1, n_ids, "n_ids")
        ends, accepted = end_ids(eos_ids, count), () if accepting is None else accepting
        automaton = TokenAutomaton.from_transitions(listed, start, accepted)
        states = dict.fromkeys(state for source, _, target in listed for state in (source, target))
        if start not in states and (states or not automaton.accepting.any()):
            raise MalformedAutomatonError(f"the start {start!r} is in no transition: correct it")
        names, kept = tuple(dict.fromkeys((start, *states))), None
        if accepting is None:
            automaton = replace(automaton, accepting=np.diff(automaton.offsets) == 0)
            kept = np.sort(reached(automaton))
        return _made(automaton, ends, count, names, kept)

    @classmethod
    def of(cls, automaton: TokenAutomaton, eos_ids: Iterable[int], n_ids: int) -> TokenTable:
        """The table of an automaton, whose state numbers are the names. See `from_transitions`."""
        count = at_least(1, n_ids, "n_ids")
        return _made(automaton, end_ids(eos_ids, count), count, tuple(automaton.states()))

    @property
    def start(self) -> int:
        """The state before any id."""
        return self.rows.start

    @property
    def n_states(self) -> int:
        """The number of the last state; 0, which is dead, is not counted."""
        return self.rows.n_states - 1

    @property
    def end(self) -> int | None:
        """The state after end-of-sequence; None if there are no `eos_ids`."""
        return self.n_states if self.eos_ids else None

    @property
    def accepting(self) -> np.ndarray:
        """bool [n_states + 1]: is the sequence complete? `end` is, 0 is not."""
        return self.rows.accepting

    @property
    def finished(self) -> np.ndarray:
        """bool [n_states + 1]: can nothing be read? This is true of 0 and `end`."""
        return np.diff(self.rows.offsets) == 0

    def begin(self, batch: int) -> np.ndarray:
        """int32 [batch]: the start, for each row."""
        return np.full(batch, self.start, dtype=np.int32)

    def allowed(self, states: Any) -> np.ndarray:
        """bool [B, n_ids], of states [B]: what each row may read next. Raises ArgumentError."""
        at = self._checked_states(states)
        sizes, edges = np.diff(self.rows.offsets)[at], edges_of(self.rows.offsets, at)
        out = np.zeros((len(at), self.n_ids), dtype=np.bool_)
        out[np.repeat(np.arange(len(at)), sizes), self.rows.symbols[edges]] = True
        return out

    def step(self, states: Any, ids: Any) -> np.ndarray:
        """int32 [B]: the state of each row after its id; 0 where the id is not allowed, or is not
        in the vocabulary. states, ids: integers [B]. Raises ArgumentError."""
        at, tokens = self._checked_states(states), _integers(ids, "ids")
        if len(at) != len(tokens):
            raise ArgumentError(f"{len(at)} states, but {len(tokens)} ids: give one of each a row")
        column = np.where((tokens >= 0) & (tokens < self.n_ids), tokens, self.n_ids)
        keys, targets = self.keys
        wanted = at * (self.n_ids + 1) + column
        found = np.searchsorted(keys, wanted)
        return np.where(keys[found] == wanted, targets[found], np.int32(0))

    @cached
    def keys(self) -> tuple[np.ndarray, np.ndarray]:
        """(int64 [m + 1], state * (n_ids + 1) + id of each transition, ascending, then a last one
        that is no transition's; int32 [m + 1], where they lead, 0 for the last)."""
        keys = self.rows.sources().astype(np.int64) * (self.n_ids + 1) + self.rows.symbols
        return np.append(keys, np.iinfo(np.int64).max), np.append(self.rows.targets, np.int32(0))

    def _checked_states(self, states: Any) -> np.ndarray:
        """int64 [B]."""
        found = _integers(states, "states")
        wrong = np.flatnonzero((found < 0) | (found > self.n_states))
        if len(wrong):
            raise ArgumentError(
                f"states[{wrong[0]}] is {found[wrong[0]]}: a state is 0 to {self.n_states}"
            )
        return found

    def __repr__(self) -> str:
        edges = f"{self.rows.n_transitions:,} transitions"
        return f"TokenTable({self.n_states:,} states, {edges}, {self.n_ids:,} ids)"


class Listed(Immutable):
    """An `Engine` over an explicit token automaton: one made of a list of transitions, loaded from
    a file, made by `Constraint.automaton`, or by set algebra. Its states are those of the `table`.
    Its ids spell nothing, so it cannot read a prompt: `prefix` is ignored, and the automaton alone
    says which ids may follow."""

    def __init__(self, automaton: TokenAutomaton, eos_ids: Iterable[int], n_ids: int) -> None:
        """eos_ids: ids that end the sequence where it is complete; no transition may read one (an
        automaton that has its own transitions for the end takes none here). n_ids: one more than
        the largest id. Raises what `TokenTable.of` raises."""
        self._follow(TokenTable.of(automaton, eos_ids, n_ids))

    @classmethod
    def over(cls, table: TokenTable) -> Listed:
        """The engine over a table."""
        made = cls.__new__(cls)
        made._follow(table)
        return made

    def _follow(self, table: TokenTable) -> None:
        self.table, self.n_ids, self.eos_ids = table, table.n_ids, table.eos_ids
        self._masks: BoundedMemo[int, np.ndarray] = BoundedMemo(self.n_ids // 8)

    def __reduce__(self) -> tuple[object, ...]:
        return Listed.over, (self.table,)

    def initial(self, prefix: Sequence[int] = ()) -> int:
        return self.table.start

    def accepting(self, state: int) -> bool:
        return bool(self.table.accepting[state])

    def mask(self, state: int) -> np.ndarray:
        bits = self._masks.get(state)
        if bits is None:
            bits = packed(self.table.rows.row(state)[0], self.n_ids)
            bits.flags.writeable = False
            self._masks.put(state, bits)
        return bits

    def step(self, state: int, token: int) -> int:
        return self.steps(state, np.array([token]))[0]

    def steps(self, state: int, tokens: np.ndarray) -> list[int]:
        return self.table.step(np.full(len(tokens), state), tokens).tolist()


# ---------------------------------------------------------------- on the way in


def _made(
    automaton: TokenAutomaton,
    ends: tuple[int, ...],
    n_ids: int,
    names: tuple[Hashable, ...],
    kept: np.ndarray | None = None,
) -> TokenTable:
    """kept: the states of the table, ascending; by default the relevant ones. Raises
    TokenOutOfRangeError, MalformedAutomatonError, EmptyLanguageError."""
    symbols = automaton.symbols
    for edge in np.flatnonzero((symbols >= n_ids) | np.isin(symbols, ends)):
        reads = f"state {names[automaton.sources()[edge]]!r} reads"
        if symbols[edge] >= n_ids:
            raise TokenOutOfRangeError(f"{reads} id {symbols[edge]}, not in 0 .. {n_ids - 1}")
        raise MalformedAutomatonError(
            f"{reads} the end-of-sequence id {symbols[edge]}: {_END_IS_LISTED}"
        )
    kept = np.flatnonzero(automaton.relevant()) if kept is None else kept
    if automaton.start not in kept:
        raise EmptyLanguageError(
            f"no accepting state is reachable from the start {names[automaton.start]!r}"
        )
    rows = _rows(with_only(automaton, kept), ends)
    end = (None,) if ends else ()
    return TokenTable(n_ids, rows, ends, (None, *(names[state] for state in kept), *end))


def _rows(automaton: TokenAutomaton, ends: tuple[int, ...]) -> TokenAutomaton:
    """The automaton with a dead state before its own and, if there are `ends`, one after them."""
    final = automaton.n_states + 1
    complete = np.flatnonzero(automaton.accepting) + 1
    accepting = np.concatenate(([False], automaton.accepting, [True] * bool(ends)))
    return TokenAutomaton.from_edges(
        automaton.start + 1,
        accepting.astype(np.bool_),
        np.concatenate((automaton.sources() + 1, np.repeat(complete, len(ends)))),
        np.concatenate((automaton.symbols, np.tile(np.array(ends, np.int32), len(complete)))),
        np.concatenate((automaton.targets + 1, np.full(len(complete) * len(ends), final))),
    )


def _integers(values: Any, name: str) -> np.ndarray:
    """int64 [B]. Raises ArgumentError."""
    found = np.asarray(values)
    if found.ndim != 1 or (found.size and found.dtype.kind not in "iu"):
        kind = f"{found.dtype} of shape {found.shape}"
        raise ArgumentError(f"{name} is {kind}: give one integer a row")
    return found.astype(np.int64)
