"""The arrays of a token automaton, checked once; what every module of this folder works on."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace

import numpy as np

from bpe_automata.arguments import integer, sequence_of_ids
from bpe_automata.errors import ArgumentError, MalformedAutomatonError
from bpe_automata.kernels.token_table import Rows
from bpe_automata.sharing import Immutable
from bpe_automata.token_automata import checks

_LARGEST: dict[type[np.generic], int] = {np.int32: 2**31 - 1, np.int64: 2**63 - 1}


@dataclass(frozen=True, eq=False)
class Table(Immutable):
    """{ w in symbols* : start --w--> accepting }: deterministic and partial, in CSR form.

    start: a state. accepting: bool [n], n > 0. offsets: int64 [n + 1]. symbols, targets: int32 [m];
    the transitions of state s are number offsets[s] to offsets[s + 1], ascending by symbol.
    alphabet: int32, ascending, holds every symbol that is read; what `complement` is relative to
    (None: the symbols that are read). spellings: what each symbol spells, for people to read; no
    part of the language.

    The arrays are copied unless neither they nor what they are views of can be written to, and
    cannot be written to here. Raises MalformedAutomatonError if they contradict each other.
    """

    start: int
    accepting: np.ndarray
    offsets: np.ndarray
    symbols: np.ndarray
    targets: np.ndarray
    alphabet: np.ndarray = None  # type: ignore[assignment]  # never None once made
    spellings: tuple[bytes, ...] | None = None

    def __post_init__(self) -> None:
        if self.alphabet is None:
            object.__setattr__(self, "alphabet", np.unique(np.asarray(self.symbols)))
        number = isinstance(self.start, int | np.integer) and not isinstance(self.start, bool)
        _need(number, f"the start is {self.start!r}")
        object.__setattr__(self, "start", int(self.start))
        _need(np.asarray(self.accepting).dtype == np.bool_, "accepting is not an array of bool")
        self._keep("accepting", np.bool_)
        self._keep("offsets", np.int64)
        for name in ("symbols", "targets", "alphabet"):
            self._keep(name, np.int32)
        if self.spellings is not None:
            object.__setattr__(self, "spellings", checks.spellings(self.spellings))
        _check_rows(self)
        _check_symbols(self)

    def __reduce__(self) -> tuple[type[Table], tuple[object, ...]]:
        """Pickles are made anew, so their arrays cannot be written to either."""
        return type(self), tuple(getattr(self, part.name) for part in fields(self))

    def _keep(self, name: str, dtype: type[np.generic]) -> None:
        """Put in place a flat, read-only array of this dtype."""
        given = np.asarray(getattr(self, name))
        _need(given.ndim == 1, f"{name} has shape {given.shape}, not [n]")
        if dtype is not np.bool_ and given.size:
            _need(given.dtype.kind in "iu", f"{name} is {given.dtype}, not an array of integers")
            low, high = int(given.min()), int(given.max())
            most = _LARGEST[dtype]
            _need(low >= 0 and high <= most, f"{name} holds {low}..{high}, not 0..{most}")
        kept = np.ascontiguousarray(given, dtype)
        if not _sealed(kept):
            kept = kept.copy() if kept is given or kept.base is not None else kept
            kept.flags.writeable = False
        object.__setattr__(self, name, kept)

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
        """Is the sequence in the language? Raises ArgumentError for what is no sequence of ids."""
        state = self.walk(symbols)
        return state is not None and bool(self.accepting[state])

    def _state(self, state: int) -> int:
        found = integer(state, "the state")
        if not 0 <= found < self.n_states:
            raise ArgumentError(f"there is no state {found}: they are 0 to {self.n_states - 1}")
        return found

    def rows(self) -> Rows:
        """What the kernels take."""
        return Rows(self.accepting, self.offsets, self.symbols, self.targets, self.start)

    def identical(self, other: Table) -> bool:
        """Are all the parts equal, the numbers of the states and the spellings among them?"""
        arrays = ("accepting", "offsets", "symbols", "targets", "alphabet")
        return (
            self.start == other.start
            and self.spellings == other.spellings
            and all(np.array_equal(getattr(self, a), getattr(other, a)) for a in arrays)
        )


def from_edges(
    start: int,
    accepting: np.ndarray,
    sources: np.ndarray,
    symbols: np.ndarray,
    targets: np.ndarray,
    alphabet: np.ndarray | None = None,
    spellings: tuple[bytes, ...] | None = None,
) -> Table:
    """The table of transitions in any order: integers [m] each."""
    order = np.lexsort((symbols, sources))
    offsets = np.zeros(len(accepting) + 1, dtype=np.int64)
    np.cumsum(np.bincount(sources, minlength=len(accepting)), out=offsets[1:])
    parts = start, accepting, offsets, symbols[order], targets[order]
    return Table(*parts, alphabet, spellings)  # type: ignore[arg-type]


def renumbered(table: Table, order: np.ndarray, number: np.ndarray) -> Table:
    """State i of the result does what state order[i] does, among the states number[old].

    number: int [n_states], -1 for states that go, with all that leads to them; it must give the
    start and every state of `order` a number below len(order).
    """
    sizes = np.diff(table.offsets)[order]
    begins = np.cumsum(sizes) - sizes
    edges = np.arange(sizes.sum()) + np.repeat(table.offsets[order] - begins, sizes)
    targets = number[table.targets[edges]]
    stays = targets >= 0
    sources = np.repeat(np.arange(len(order)), sizes)[stays]
    offsets = np.zeros(len(order) + 1, dtype=np.int64)
    np.cumsum(np.bincount(sources, minlength=len(order)), out=offsets[1:])
    return replace(
        table,
        start=int(number[table.start]),
        accepting=table.accepting[order],
        offsets=offsets,
        symbols=table.symbols[edges[stays]],
        targets=targets[stays],
    )


def with_only(table: Table, order: np.ndarray) -> Table:
    """The states of `order` alone, the start among them, in that order."""
    number = np.full(table.n_states, -1, dtype=np.int32)
    number[order] = np.arange(len(order), dtype=np.int32)
    return renumbered(table, order, number)


def nothing(table: Table) -> Table:
    """One state that accepts nothing, over the alphabet of `table`."""
    empty = np.empty(0, dtype=np.int32)
    parts = 0, np.zeros(1, dtype=np.bool_), np.zeros(2, dtype=np.int64), empty, empty
    return Table(*parts, table.alphabet, table.spellings)


def _check_rows(table: Table) -> None:
    n, m, offsets = len(table.accepting), len(table.symbols), table.offsets
    _need(n > 0, "it has no state, not even a start")
    _need(0 <= table.start < n, f"the start is {table.start}, of {n} states")
    _need(len(offsets) == n + 1, f"{len(offsets)} offsets for {n} states, not one more")
    _need(len(table.targets) == m, f"{m} symbols, but {len(table.targets)} targets")
    good = offsets[0] == 0 and offsets[-1] == m and bool((np.diff(offsets) >= 0).all())
    _need(good, f"the offsets do not ascend from 0 to {m}")
    if m:
        _need(int(table.targets.max()) < n, f"target {table.targets.max()} of {n} states")


def _check_symbols(table: Table) -> None:
    symbols, alphabet = table.symbols, table.alphabet
    _need(bool((np.diff(alphabet) > 0).all()), "the alphabet does not ascend")
    same_row = np.ones(max(0, len(symbols) - 1), dtype=np.bool_)
    inner = table.offsets[1:-1]
    same_row[inner[(inner > 0) & (inner < len(symbols))] - 1] = False
    wrong = np.flatnonzero(same_row & (np.diff(symbols) <= 0))
    if len(wrong):
        source = int(np.searchsorted(table.offsets, wrong[0], side="right")) - 1
        raise MalformedAutomatonError(
            f"not a token automaton: the symbols of state {source} do not ascend: "
            f"{symbols[wrong[0]]} comes before {symbols[wrong[0] + 1]}"
        )
    used = np.unique(symbols)
    unknown = used[~np.isin(used, alphabet, assume_unique=True)]
    _need(not len(unknown), f"symbol {unknown[:1].tolist()} is not in the alphabet")


def _sealed(array: np.ndarray) -> bool:
    """Can neither it nor anything that it is a view of be written to?"""
    part: object = array
    while isinstance(part, np.ndarray):
        if part.flags.writeable:
            return False
        part = part.base
    return part is None or isinstance(part, bytes)


def _need(condition: bool, found: str) -> None:
    if not condition:
        raise MalformedAutomatonError(f"not a token automaton: {found}")
