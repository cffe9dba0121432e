"""The arrays of a token automaton, checked once; what every module of this folder works on."""

from __future__ import annotations

import operator
from bisect import bisect_left
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np

from bpe_automata._arguments import integer, sequence_of_ids, short
from bpe_automata._kernels import token_table as kernels
from bpe_automata._kernels.distance import NEVER, distances_by_head
from bpe_automata._kernels.token_table import Rows, by_target
from bpe_automata._kernels.watch import watched
from bpe_automata._sharing import Immutable
from bpe_automata.errors import ArgumentError, MalformedAutomatonError

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
            object.__setattr__(self, "spellings", checked_spellings(self.spellings))
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


# What can be reached: relevant states, distances to acceptance, cycles.


def distances(table: Table) -> np.ndarray:
    """int32 [n_states]: symbols to the nearest accepting state, -1 where there is none."""
    ptr, tail, _ = watched(kernels.by_head, table.offsets, table.targets)
    return distances_by_head(ptr, tail, table.accepting)


def relevant(table: Table) -> np.ndarray:
    """bool [n_states]: reachable from the start, and an accepting state is reachable from it."""
    found = np.zeros(table.n_states, dtype=np.bool_)
    found[_order(table)] = True
    return found & (distances(table) != NEVER)


def trimmed(table: Table) -> Table:
    """{ w : w in L } with relevant states only, in the order that they had; of the empty language
    one state is left."""
    keep = relevant(table)
    if keep.all():
        return table
    return with_only(table, np.flatnonzero(keep)) if keep[table.start] else nothing(table)


def breadth_first(table: Table) -> Table:
    """The states within reach of the start, numbered breadth-first by symbol."""
    return with_only(table, _order(table))


def _order(table: Table) -> np.ndarray:
    return watched(kernels.breadth_first, table.offsets, table.targets, table.start)


def topological(table: Table) -> np.ndarray | None:
    """int32: the states, each before those that it leads to; None if there is a cycle."""
    order = watched(kernels.topological, table.offsets, table.targets)
    return order if len(order) == table.n_states else None


def endless(table: Table) -> np.ndarray:
    """bool [n_states]: some walk from here has no end."""
    ptr, tail, _ = watched(kernels.by_head, table.offsets, table.targets)
    found = np.ones(table.n_states, dtype=np.bool_)
    found[watched(kernels.topological, ptr, tail)] = False  # backwards: these lead to no cycle
    return found


# Transitions with the same source and target, as one.


class Groups(NamedTuple):
    """offsets: int64 [n_states + 1], the groups of a state, by target; target: int32 and
    size: int64, of each group; first: int64, where its symbols begin in `symbols` (int32 [m],
    ascending within a group)."""

    offsets: np.ndarray
    target: np.ndarray
    size: np.ndarray
    first: np.ndarray
    symbols: np.ndarray

    def of_state(self, state: int) -> slice:
        """The groups that leave a state."""
        return slice(int(self.offsets[state]), int(self.offsets[state + 1]))

    def symbols_of(self, group: int) -> np.ndarray:
        """int32, ascending."""
        return self.symbols[self.first[group] : self.first[group] + self.size[group]]


def grouped(table: Table) -> Groups:
    """The groups of all transitions."""
    order = watched(by_target, table.offsets, table.targets)
    source, target = table.sources(), table.targets[order]
    begins = np.ones(len(order), dtype=np.bool_)
    begins[1:] = (np.diff(source) != 0) | (np.diff(target) != 0)
    first = np.flatnonzero(begins)
    offsets = np.zeros(table.n_states + 1, dtype=np.int64)
    np.cumsum(np.bincount(source[first], minlength=table.n_states), out=offsets[1:])
    size = np.diff(np.append(first, len(order)))
    return Groups(offsets, target[first], size, first, table.symbols[order])


# What an automaton is made of is checked once, on the way in.

LARGEST = 2**31 - 1  # a symbol or a state is an int32


def checked_symbols(values: Any, name: str) -> list[int]:
    """`values`, each from 0 to 2**31 - 1. Raises MalformedAutomatonError, naming the first that
    is not."""
    if isinstance(values, str | bytes | bytearray):
        raise MalformedAutomatonError(f"{name} is {short(values)}, a text: give integers")
    return [
        checked_symbol(value, f"{name} at {at}") for at, value in enumerate(_listed(values, name))
    ]


def checked_symbol(value: Any, name: str) -> int:
    """One symbol. Raises MalformedAutomatonError."""
    try:
        found = operator.index(value)
    except TypeError:
        found = -1
    if not 0 <= found <= LARGEST:
        raise MalformedAutomatonError(
            f"{name} is {short(value)}: a symbol is an integer from 0 to {LARGEST}"
        )
    return found


def checked_states(values: Any, name: str) -> list[Hashable]:
    """`values`, each hashable. Raises MalformedAutomatonError, naming the first that is not."""
    listed = _listed(values, name)
    for at, value in enumerate(listed):
        checked_state(value, f"{name} at {at}")
    return listed


def checked_state(value: Any, name: str) -> None:
    """Raises MalformedAutomatonError if `value` is not hashable."""
    try:
        hash(value)
    except TypeError:
        raise MalformedAutomatonError(
            f"{name} is {short(value)}, which is not hashable: give a number, text or tuple"
        ) from None


def checked_spellings(values: Any) -> tuple[bytes, ...]:
    """`values` as a tuple, each bytes. Raises MalformedAutomatonError, naming the first that is
    not."""
    if isinstance(values, str | bytes | bytearray | dict):
        raise MalformedAutomatonError(
            f"the spellings are {short(values)}: give a list with the bytes of each symbol"
        )
    found = tuple(_listed(values, "spellings"))
    wrong = next((i for i, spelled in enumerate(found) if not isinstance(spelled, bytes)), None)
    if wrong is not None:
        raise MalformedAutomatonError(
            f"the spelling of symbol {wrong} is {short(found[wrong])}: give bytes, b'' for none"
        )
    return found


def _listed(values: Iterable[Any], name: str) -> list[Any]:
    try:
        return list(values)
    except TypeError:
        raise MalformedAutomatonError(f"{name} is {short(values)}: give a list") from None
