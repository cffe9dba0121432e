"""An NFA whose transitions read strings or whole DFAs, and its minimal DFA.

    L(assembly, start) = { w : some path from start to an accepting state reads w }

States are joined by strings, by DFAs and by silent transitions, in any way; the subset construction
(`_kernels.determinize`) makes the result deterministic.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from bpe_automata._budget import Budget, check_bytes, out_of_memory, out_of_states, spending
from bpe_automata._kernels.determinize import Network, determinize
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.automata.minimise import equal_columns, minimise, numbered

_DEFAULT = Budget()
_INT = np.int32
_STEP_BYTES = 48  # while steps are sorted


class Assembly:
    """States joined by texts, DFAs and silent steps. Mutable; one result may be taken from it for
    each start."""

    def __init__(self) -> None:
        self._states = 0  # with those inside of texts, and of all copies of DFAs
        self._accepting: list[int] = []
        self._marks: list[tuple[int, int]] = []
        self._silent: list[tuple[int, int]] = []
        self._letters: list[tuple[int, int, int]] = []  # tail, byte and head of those of texts
        self._copies: dict[int, tuple[ByteDFA, dict[int, int]]] = {}  # first states, by the exit

    def state(self) -> int:
        """A new state."""
        return self._new(1)

    def _new(self, count: int) -> int:
        self._states += count
        return self._states - count

    def accept(self, state: int) -> None:
        """A way may end there."""
        self._accepting.append(state)

    def mark(self, state: int, label: int) -> None:
        """Give a state a label, 0 or more, for `marked`."""
        self._marks.append((state, label))

    def skip(self, one: int, other: int) -> None:
        """From one state to another, reading nothing."""
        self._silent.append((one, other))

    def put(self, one: int, piece: bytes | ByteDFA, other: int) -> None:
        """From one state to another, reading one text, or any of a DFA's."""
        if piece == b"":
            self.skip(one, other)
        elif isinstance(piece, bytes):
            inside = self._new(len(piece) - 1)
            way = one, *range(inside, inside + len(piece) - 1), other
            self._letters += zip(way, piece, way[1:], strict=False)
        else:
            self.skip(one, self.embed(piece, other))

    def read(self, state: int, pieces: Iterable[bytes | ByteDFA]) -> int:
        """A new state, behind some texts and languages that are read one after another."""
        for piece in pieces:
            after = self.state()
            self.put(state, piece, after)
            state = after
        return state

    def embed(self, dfa: ByteDFA, leave: int) -> int:
        """A state from which `leave` is reached by reading any text of `dfa`. Asked again, the same
        state; its own, so nothing else should lead out of it."""
        bases = self._copies.setdefault(id(dfa), (dfa, {}))[1]
        if leave not in bases:
            bases[leave] = self._new(dfa.n_states)
        return bases[leave] + dfa.start

    def dfa(self, start: int, budget: Budget = _DEFAULT, end: int | None = None) -> ByteDFA:
        """What is read from `start` to an accepting state, or to `end` alone: minimal, trimmed and
        numbered as those of `compile_regex` are. The states here, and those of the result, are each
        limited to max_instructions of the budget. Raises BudgetExceededError."""
        accepts = np.zeros(self._states, np.bool_)
        accepts[self._accepting if end is None else end] = True
        with spending(budget):
            trans, accepting, column = self._subsets(start, accepts, [], budget)
            return reduced((trans, column), accepting, 1, budget)

    def marked(
        self, start: int, budget: Budget = _DEFAULT
    ) -> tuple[np.ndarray, np.ndarray, int, dict[int, tuple[int, ...]]]:
        """(trans, byte_class, start, labels of each state that has some) of the minimal DFA that
        reads what leads from `start` to states with labels. Limits as those of `dfa`."""
        end, most = self.state(), 1 + max((label for _, label in self._marks), default=0)
        marks = [(state, label, end) for state, label in self._marks]
        with spending(budget):
            accepts = np.arange(self._states) == end
            trans, accepting, column = self._subsets(start, accepts, marks, budget)
            columns = trans.shape[1] - most
            trans, accepting, begin, number = minimise(trans, accepting, min(1, len(trans) - 1))
        old, byte_class = by_first_byte(number[column])
        kept = np.flatnonzero(~accepting)  # all but the end, behind the marks
        new = np.zeros(len(trans), np.int32)
        new[kept] = np.arange(len(kept))
        labels: dict[int, tuple[int, ...]] = {}
        for row, label in np.argwhere(trans[kept][:, number[columns:]]).tolist():
            labels[row] = *labels.get(row, ()), label
        trans = np.ascontiguousarray(new[trans[kept][:, old]])
        return trans, byte_class.astype(np.uint8), int(new[begin]), labels

    def _subsets(
        self, start: int, accepts: np.ndarray, marks: list[tuple[int, int, int]], budget: Budget
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(trans, accepting, column of each byte). marks: tail, label and head of steps that read a
        label: each label has a column, behind those of bytes."""
        if self._states > budget.max_instructions:
            raise out_of_states(budget.max_instructions)
        letters = np.array(self._letters, _INT).reshape(-1, 3).T
        used, classes = bytes(np.unique(letters[1]).tolist()), self._copies.values()
        column, some_byte = alphabet([dfa.byte_class for dfa, _ in classes], used)
        letters[1] = column[letters[1]]
        steps = np.array(marks, _INT).reshape(-1, 3).T
        columns = len(some_byte) + (1 + int(steps[1].max()) if marks else 0)
        steps[1] += len(some_byte)
        edges = np.hstack([letters, steps])
        net = self._network(accepts, edges, some_byte, columns)
        limits = budget.max_instructions, budget
        return *determinize(net, start, columns, *limits), column

    def _network(
        self, accepts: np.ndarray, steps: np.ndarray, some_byte: np.ndarray, n_columns: int
    ) -> Network:
        """steps: tail, column, head of those outside of DFAs. The first classes are the columns."""
        silent, edges = [np.array(self._silent, _INT).reshape(-1, 2).T], [steps]
        columns = [np.arange(n_columns, dtype=_INT)]
        sizes, classes, n_edges = [np.ones(n_columns, _INT)], n_columns, 0
        for dfa, bases in self._copies.values():
            tail, head, size, read = _edges_of(dfa.trans[:, dfa.byte_class[some_byte]])
            base = np.array(list(bases.values()), _INT)[:, None]
            n_edges += len(base) * len(tail)
            check_bytes(_STEP_BYTES * n_edges, "the steps of all DFAs that are put together")
            reads = np.tile(np.arange(classes, classes + len(size), dtype=_INT), len(base))
            edges.append(np.stack([(base + tail).ravel(), reads, (base + head).ravel()]))
            columns.append(read)
            sizes.append(size)
            classes += len(size)
            ends = base + np.flatnonzero(dfa.accepting)
            leave = np.repeat(np.array(list(bases), _INT), ends.shape[1])
            silent.append(np.stack([ends.ravel(), leave]))
        of_classes = np.concatenate(sizes), np.concatenate(columns)
        return network(accepts, np.hstack(edges), np.hstack(silent), of_classes)


def _edges_of(table: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(tail, head, how many columns it reads; the columns of all) of a table's edges, int32."""
    state, column = np.nonzero(table)
    key = state * len(table) + table[state, column]
    pairs, sizes = np.unique(key, return_counts=True)
    found = *np.divmod(pairs, len(table)), sizes, column[np.argsort(key, kind="stable")]
    tail, head, size, columns = (part.astype(_INT) for part in found)
    return tail, head, size, columns


def network(
    accepts: np.ndarray,
    edges: np.ndarray,
    silent: np.ndarray,
    classes: tuple[np.ndarray, np.ndarray],
    distances: np.ndarray | None = None,
) -> Network:
    """As `_kernels.determinize` takes it. accepts: bool [n]; edges: rows tail, class, head; silent:
    rows tail, head; classes: of each how many columns it has, and the columns of all; distances:
    int32 [2, n], rows near and far, or None where nothing is a copy."""
    n = len(accepts)
    distances = np.full((2, n), -1, _INT) if distances is None else distances
    (first, reads, to), (silent_first, heads) = _by_tail(edges, n), _by_tail(silent, n)
    sizes, columns = classes
    class_first = np.append(0, np.cumsum(sizes)).astype(_INT)
    steps = first, reads, to, silent_first, heads
    return Network(*steps, accepts, distances, class_first, columns)


def _by_tail(edges: np.ndarray, n: int) -> tuple[np.ndarray, ...]:
    """(where those of each tail begin, int32 [n + 1]; the other rows, sorted by it)."""
    first = np.append(0, np.cumsum(np.bincount(edges[0], minlength=n))).astype(_INT)
    order = np.argsort(edges[0], kind="stable")
    return first, *(np.ascontiguousarray(row[order], _INT) for row in edges[1:])


def alphabet(classes: Sequence[np.ndarray], letters: bytes) -> tuple[np.ndarray, np.ndarray]:
    """(int32 [256], column of each byte; int64, first byte of each column). Bytes that no classes
    (uint8 [256]) distinguish share a column, but each of the letters has its own."""
    alone, used = np.zeros(256, np.int32), sorted(set(letters))
    alone[used] = 1 + np.arange(len(used))
    rows = {one.tobytes(): one for one in classes}
    return equal_columns(np.array([alone, *rows.values()]))


# The minimal form of a DFA, in which equal languages have equal arrays.

EDGE_BYTES = 48  # what minimisation keeps for one edge


def reduced(
    table: tuple[np.ndarray, np.ndarray], accepting: np.ndarray, start: int, budget: Budget
) -> ByteDFA:
    """The minimal trimmed DFA of a complete one, numbered breadth-first by byte.

    table: (trans int32 [n, k], row 0 all 0; byte_class [256]); accepting: bool [n]. Raises
    BudgetExceededError.
    """
    trans, byte_class = table
    if np.count_nonzero(trans) * EDGE_BYTES > budget.max_bytes:
        raise out_of_memory(budget)
    if start >= len(trans):  # a product whose start is dead
        start = 0
    columns, byte_class = by_first_byte(byte_class)
    trans = np.ascontiguousarray(trans[:, columns])
    with spending(budget):
        trans, accepting, start, column = minimise(trans, accepting, start)
        trans, accepting, start = numbered(trans, accepting, start)
    return ByteDFA(trans, column[byte_class].astype(np.uint8), accepting, start)


def by_first_byte(byte_class: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(the old number of each column, the new column of each byte), in order of first byte."""
    used, first, inverse = np.unique(byte_class, return_index=True, return_inverse=True)
    order = np.argsort(first)
    number = np.empty(len(used), np.int64)
    number[order] = np.arange(len(used))
    return used[order].astype(np.int64), number[inverse.ravel()]
