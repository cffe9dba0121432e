"""The arrays of a token automaton, checked once. Every module of this folder works on them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self, TypeVar

import numpy as np

from bpe_automata._arguments import integer, sequence_of_ids, short
from bpe_automata._sharing import Immutable
from bpe_automata.errors import ArgumentError, MalformedAutomatonError

_ARRAYS = {
    "accepting": np.bool_,
    "offsets": np.int64,
    "symbols": np.int32,
    "targets": np.int32,
    "alphabet": np.int32,
}


@dataclass(frozen=True, eq=False)
class Table(Immutable):
    """{ w in symbols* : start --w--> accepting }: deterministic, in CSR form; not every state reads
    every symbol.

    start: a state. accepting: bool [n], n > 0. offsets: int64 [n + 1]. symbols, targets: int32 [m];
    the transitions of state s have the indices offsets[s] to offsets[s + 1] - 1, ascending by
    symbol. alphabet: int32, ascending, all symbols that are read and perhaps others (None: no
    others); `complement` is relative to it. spellings: what each symbol spells, for printing; no
    part of the language. The arrays are copied, and the copies cannot be written to. Raises
    MalformedAutomatonError if the arrays contradict each other.
    """

    start: int
    accepting: np.ndarray
    offsets: np.ndarray
    symbols: np.ndarray
    targets: np.ndarray
    alphabet: np.ndarray = None  # type: ignore[assignment]  # never None once made
    spellings: tuple[bytes, ...] | None = None

    def __post_init__(self) -> None:
        number = isinstance(self.start, int | np.integer) and not isinstance(self.start, bool)
        _need(number, f"the start is {self.start!r}")
        object.__setattr__(self, "start", int(self.start))
        if self.alphabet is None:
            object.__setattr__(self, "alphabet", np.unique(np.asarray(self.symbols)))
        for name, dtype in _ARRAYS.items():
            object.__setattr__(self, name, _sealed(getattr(self, name), name, dtype))
        if self.spellings is not None:
            object.__setattr__(self, "spellings", _checked_spellings(self.spellings))
        _check_rows(self)
        _check_symbols(self)

    def __reduce__(self) -> tuple[type[Table], tuple[object, ...]]:
        """Unpickling calls the constructor, so those arrays cannot be written to either."""
        return type(self), tuple(getattr(self, part.name) for part in fields(self))

    @classmethod
    def from_edges(
        cls,
        start: int,
        accepting: np.ndarray,
        sources: np.ndarray,
        symbols: np.ndarray,
        targets: np.ndarray,
        alphabet: np.ndarray | None = None,
        spellings: Sequence[bytes] | None = None,
    ) -> Self:
        """The table of transitions in any order: integers [m] each; accepting: bool [n].
        Raises MalformedAutomatonError."""
        order = np.lexsort((symbols, sources))
        offsets = offsets_of(sources, len(accepting))
        parts = start, accepting, offsets, np.asarray(symbols)[order], np.asarray(targets)[order]
        return cls(*parts, alphabet, spellings)  # type: ignore[arg-type]

    @property
    def n_states(self) -> int:
        """The number of states."""
        return len(self.accepting)

    @property
    def n_transitions(self) -> int:
        """The number of transitions."""
        return len(self.symbols)

    def states(self) -> range:
        """The states, which are numbers."""
        return range(self.n_states)

    def row(self, state: int) -> tuple[np.ndarray, np.ndarray]:
        """(symbols, targets) of one state: int32, ascending by symbol. Raises ArgumentError."""
        state = self._state(state)
        which = slice(int(self.offsets[state]), int(self.offsets[state + 1]))
        return self.symbols[which], self.targets[which]

    def sources(self) -> np.ndarray:
        """int32 [m]: where each transition begins."""
        return np.repeat(np.arange(self.n_states, dtype=np.int32), np.diff(self.offsets))

    def transitions(self) -> Iterator[tuple[int, int, int]]:
        """(source, symbol, target), by source, then by symbol."""
        columns = self.sources().tolist(), self.symbols.tolist(), self.targets.tolist()
        return zip(*columns, strict=True)

    def step(self, state: int, symbol: int) -> int | None:
        """The state after one symbol; None if it cannot be read. Raises ArgumentError."""
        return self._step(self._state(state), integer(symbol, "the symbol"))

    def _step(self, state: int, symbol: int) -> int | None:
        low, high = int(self.offsets[state]), int(self.offsets[state + 1])
        at = bisect_left(self.symbols, symbol, low, high)
        return int(self.targets[at]) if at < high and self.symbols[at] == symbol else None

    def walk(self, symbols: Iterable[int], state: int | None = None) -> int | None:
        """The state after some symbols, from `state` (the start by default); None if they cannot be
        read. Raises ArgumentError."""
        here: int | None = self.start if state is None else self._state(state)
        for symbol in sequence_of_ids(symbols):
            if here is None:
                return None
            here = self._step(here, symbol)
        return here

    def accepts(self, symbols: Iterable[int]) -> bool:
        """Is the sequence in the language? Raises ArgumentError if it is no sequence of ids."""
        state = self.walk(symbols)
        return state is not None and bool(self.accepting[state])

    def _state(self, state: int) -> int:
        found = integer(state, "the state")
        if not 0 <= found < self.n_states:
            raise ArgumentError(f"there is no state {found}: they are 0 to {self.n_states - 1}")
        return found

    def identical(self, other: Table) -> bool:
        """Are all parts equal, including the numbers of the states, the alphabet and spellings?"""
        return (
            self.start == other.start
            and self.spellings == other.spellings
            and all(np.array_equal(getattr(self, name), getattr(other, name)) for name in _ARRAYS)
        )


AnyTable = TypeVar("AnyTable", bound=Table)


# The checks of the constructor.


def _sealed(given: Any, name: str, dtype: Any) -> np.ndarray:
    """A flat, read-only copy of this dtype."""
    array = np.asarray(given)
    _need(array.ndim == 1, f"{name} has shape {array.shape}, not [n]")
    if dtype is np.bool_:
        _need(array.dtype == np.bool_, f"{name} is not an array of bool")
    elif array.size:
        _need(array.dtype.kind in "iu", f"{name} is {array.dtype}, not an array of integers")
        low, high, most = int(array.min()), int(array.max()), np.iinfo(dtype).max
        _need(low >= 0 and high <= most, f"{name} holds {low}..{high}, not 0..{most}")
    kept = np.array(array, dtype)
    kept.flags.writeable = False
    return kept


def _checked_spellings(given: Any) -> tuple[bytes, ...]:
    listed = not isinstance(given, str | bytes | dict) and isinstance(given, Iterable)
    _need(listed, f"the spellings are {short(given)}: give a list with the bytes of each symbol")
    found = tuple(given)
    for symbol, spelled in enumerate(found):
        _need(
            isinstance(spelled, bytes),
            f"the spelling of symbol {symbol} is {short(spelled)}: give bytes, b'' for none",
        )
    return found


def _check_rows(table: Table) -> None:
    n, m, offsets = len(table.accepting), len(table.symbols), table.offsets
    _need(n > 0, "it has no state, not even a start")
    _need(0 <= table.start < n, f"the start is {table.start}, of {n} states")
    _need(len(offsets) == n + 1, f"{len(offsets)} offsets for {n} states, not one more")
    _need(len(table.targets) == m, f"{m} symbols, but {len(table.targets)} targets")
    good = offsets[0] == 0 and offsets[-1] == m and bool((np.diff(offsets) >= 0).all())
    _need(good, f"the offsets do not ascend from 0 to {m}")
    largest = int(table.targets.max(initial=0))
    _need(largest < n, f"target {largest} of {n} states")


def _check_symbols(table: Table) -> None:
    symbols, alphabet = table.symbols, table.alphabet
    _need(bool((np.diff(alphabet) > 0).all()), "the alphabet does not ascend")
    sources = table.sources()
    wrong = np.flatnonzero((np.diff(sources) == 0) & (np.diff(symbols) <= 0))
    if len(wrong):
        before, after = symbols[wrong[0] : wrong[0] + 2]
        state = sources[wrong[0]]
        _need(False, f"the symbols of state {state} do not ascend: {before} comes before {after}")
    unknown = np.setdiff1d(symbols, alphabet)
    _need(not len(unknown), f"symbol {unknown[:1].tolist()} is not in the alphabet")


def _need(condition: bool, found: str) -> None:
    if not condition:
        raise MalformedAutomatonError(f"not a token automaton: {found}")


def offsets_of(sources: np.ndarray, n_states: int) -> np.ndarray:
    """int64 [n_states + 1]: where the row of each state begins, in edges sorted by source."""
    return np.append(0, np.cumsum(np.bincount(sources, minlength=n_states)))
