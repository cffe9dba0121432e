"""An NFA whose transitions read strings or whole DFAs, and its minimal DFA.

    L(assembly, start) = { w : some path from start to an accepting state reads w }

States are joined by strings, by DFAs and by silent transitions, in any way; the subset construction
(`_kernels.assemble`) makes the result deterministic. It costs about one look-up for each state and
column of the result, as long as few paths overlap.
"""

from __future__ import annotations

from copy import copy

import numpy as np

from bpe_automata._automata.dfa import ByteDFA
from bpe_automata._automata.minimise import minimise
from bpe_automata._budget import Budget, out_of_memory, spending
from bpe_automata._kernels.assemble import (
    DONE,
    STATES,
    Scratch,
    Subsets,
    begin,
    expand,
)
from bpe_automata._kernels.assemble import Network as Nodes
from bpe_automata._kernels.byte_product import joint_columns
from bpe_automata._kernels.distance import NEVER, distances_by_head
from bpe_automata._kernels.hashing import rehashed, table_size
from bpe_automata._kernels.utf8 import numbered
from bpe_automata._kernels.watch import watched
from bpe_automata._limits import NUMBERS
from bpe_automata.errors import BudgetExceededError

_DEFAULT = Budget()
_SMALLER = "allow fewer repeats or shorter texts, or pass a larger Budget"
_INT = np.int32


class Assembly:
    """Places joined by texts, DFAs and silent steps. Mutable; one result may be taken from it for
    each start."""

    def __init__(self) -> None:
        self._states = 0
        self._accepting: list[int] = []
        self._silent: list[tuple[int, int]] = []
        self._texts: list[tuple[int, bytes, int]] = []
        self._copies: list[tuple[int, int, int]] = []  # state of entry, block, exit
        self._blocks: list[ByteDFA] = []
        self._block_of: dict[int, int] = {}
        self._inside = 0  # letters of texts, and states of all copies of DFAs
        self._entry: dict[tuple[int, int], int] = {}

    def state(self) -> int:
        """A new state."""
        self._states += 1
        return self._states - 1

    def accept(self, state: int) -> None:
        """A way may end there."""
        self._accepting.append(state)

    def leading_to(self, state: int) -> Assembly:
        """The same, where ways end in one state alone; while nothing more is put into either."""
        found = copy(self)
        found._accepting = [state]
        return found

    def skip(self, one: int, other: int) -> None:
        """From one state to another, reading nothing."""
        self._silent.append((one, other))

    def read(self, one: int, data: bytes, other: int) -> None:
        """From one state to another, reading a text."""
        if data:
            self._texts.append((one, data, other))
            self._inside += len(data)
        else:
            self.skip(one, other)

    def embed(self, dfa: ByteDFA, leave: int) -> int:
        """A state from which `leave` is reached by reading any text of `dfa`. Asked again, the same
        state; its own, so nothing else should lead out of it."""
        block = self._block(dfa)
        entry = self._entry.get((block, leave))
        if entry is None:
            entry = self._entry[block, leave] = self.state()
            if dfa.start:
                self._copies.append((entry, block, leave))
                self._inside += dfa.n_states
        return entry

    def put(self, one: int, piece: bytes | ByteDFA, other: int) -> None:
        """From one state to another, reading one text, or any of a DFA's."""
        if isinstance(piece, bytes):
            self.read(one, piece, other)
        else:
            self.skip(one, self.embed(piece, other))

    def _block(self, dfa: ByteDFA) -> int:
        block = self._block_of.get(id(dfa))
        if block is None:
            block = self._block_of[id(dfa)] = len(self._blocks)
            self._blocks.append(dfa)
        return block

    @property
    def nodes(self) -> int:
        """How large it is: states, letters of texts, and states of all copies of DFAs."""
        return self._states + self._inside

    def dfa(self, start: int, budget: Budget = _DEFAULT) -> ByteDFA:
        """What is read from `start` to an accepting state: minimal, trimmed and numbered as those
        of `compile_regex` are. The states of the network, and those over bytes, are each limited to
        max_instructions of the budget. Raises BudgetExceededError."""
        if self.nodes > budget.max_instructions:
            raise BudgetExceededError("states", budget.max_instructions, _SMALLER)
        with spending(budget):
            net, byte_class = _network(self._lively())
            subsets, first = _subsets(net, start, len(byte_class[1]), budget)
            count = int(subsets.counts[STATES])
            table = subsets.trans[:count], byte_class[0]
            return reduced(table, subsets.accepting[:count], first, budget)

    def _lively(self) -> Assembly:
        """The same without what leads to states from which no way ends."""
        live = self._ends().tolist()
        if all(live):
            return self
        left = copy(self)
        left._silent = [join for join in self._silent if live[join[1]]]
        left._texts = [join for join in self._texts if live[join[2]]]
        left._copies = [join for join in self._copies if live[join[2]]]
        return left

    def _ends(self) -> np.ndarray:
        """bool of each state: whether a way from there ends."""
        joins = [(one, other) for one, _, other in (*self._texts, *self._copies)]
        pairs = np.array(self._silent + joins, _INT).reshape(-1, 2)
        accepts = np.zeros(self._states, np.bool_)
        accepts[self._accepting] = True
        ends: np.ndarray = distances_by_head(*_by_head(pairs, self._states), accepts) != NEVER
        return ends


def _by_head(pairs: np.ndarray, states: int) -> tuple[np.ndarray, np.ndarray]:
    """(ptr int64 [states + 1], tail int32) of edges int32 [n, 2], sorted by where they lead."""
    ptr = np.zeros(states + 1, np.int64)
    np.cumsum(np.bincount(pairs[:, 1], minlength=states), out=ptr[1:])
    return ptr, np.ascontiguousarray(pairs[np.argsort(pairs[:, 1], kind="stable"), 0])


def _network(parts: Assembly) -> tuple[Nodes, tuple[np.ndarray, np.ndarray]]:
    """The arrays, and (column of each byte, first byte of each column)."""
    data = np.frombuffer(b"".join(text for _, text, _ in parts._texts), np.uint8)
    column, some_byte = alphabet(parts._blocks, data)
    hubs, letters = parts._states, len(data)
    ends = np.cumsum([len(text) for _, text, _ in parts._texts], dtype=np.int64)
    follow = np.arange(hubs + 1, hubs + letters + 1, dtype=_INT)
    follow[ends - 1] = [to for _, _, to in parts._texts]
    begins = [
        hubs + int(end) - len(text) for (_, text, _), end in zip(parts._texts, ends, strict=True)
    ]
    block = np.array([block for _, block, _ in parts._copies], _INT)
    sizes = np.array([dfa.n_states for dfa in parts._blocks], np.int64)
    base = hubs + letters + np.cumsum(sizes[block]) - sizes[block]
    edges = parts._silent + [
        (one, at) for (one, _, _), at in zip(parts._texts, begins, strict=True)
    ]
    edges += [
        (entry, int(at) + parts._blocks[number].start)
        for (entry, number, _), at in zip(parts._copies, base, strict=True)
    ]
    edge_ptr, edge_to = _by_origin(edges, hubs)
    accepts = np.zeros(hubs, np.bool_)
    accepts[parts._accepting] = True
    net = Nodes(
        edge_ptr,
        edge_to,
        accepts,
        column[data],
        follow,
        np.repeat(np.arange(len(block), dtype=_INT), sizes[block]),
        base.astype(_INT),
        block,
        np.array([leave for _, _, leave in parts._copies], _INT),
        *_tables(parts._blocks),
        _columns(parts._blocks, some_byte),
    )
    return net, (column, some_byte)


def alphabet(blocks: list[ByteDFA], data: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(column of each byte, first byte of each column); bytes that nothing tells apart are one."""
    told_apart = np.zeros(256, np.bool_)
    told_apart[data] = True
    rows = {dfa.byte_class.tobytes(): dfa.byte_class for dfa in blocks}
    classes = np.array(list(rows.values()), np.uint8).reshape(len(rows), 256)
    return joint_columns(classes, told_apart)


def _columns(blocks: list[ByteDFA], some_byte: np.ndarray) -> np.ndarray:
    """int32 [blocks, columns]: the column of each block that a column here stands for."""
    columns = [dfa.byte_class[some_byte] for dfa in blocks]
    return np.array(columns, _INT).reshape(len(blocks), len(some_byte))


def _tables(
    blocks: list[ByteDFA],
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """table, table_at, width, final, final_at of the nodes."""
    width = np.array([dfa.n_classes for dfa in blocks], np.int64)
    sizes = np.array([dfa.n_states for dfa in blocks], np.int64)
    table = [dfa.trans.ravel() for dfa in blocks] or [np.zeros(0, _INT)]
    final = [_final(dfa) for dfa in blocks] or [np.zeros(0, np.uint8)]
    table_at, final_at = np.cumsum(sizes * width) - sizes * width, np.cumsum(sizes) - sizes
    return np.concatenate(table), table_at, width, np.concatenate(final), final_at


def _final(dfa: ByteDFA) -> np.ndarray:
    """uint8 of each state: 0, 1 if it accepts, 2 if it moreover reads nothing."""
    final = dfa.accepting.astype(np.uint8)
    ends = np.flatnonzero(dfa.accepting)
    final[ends[~dfa.trans[ends].any(axis=1)]] = 2
    return final


def _by_origin(edges: list[tuple[int, int]], states: int) -> tuple[np.ndarray, np.ndarray]:
    """(ptr int32 [states + 1], to int32 [edges]), sorted by where they begin."""
    pairs = np.array(edges, _INT).reshape(len(edges), 2)
    ptr = np.zeros(states + 1, _INT)
    np.cumsum(np.bincount(pairs[:, 0], minlength=states), out=ptr[1:])
    return ptr, np.ascontiguousarray(pairs[np.argsort(pairs[:, 0], kind="stable"), 1])


def _subsets(net: Nodes, start: int, columns: int, budget: Budget) -> tuple[Subsets, int]:
    """All sets of nodes that `start` leads to, and the number of the first one."""
    nodes = len(net.accepts) + len(net.letter) + len(net.copy_of)
    # As a rule there are fewer states than nodes. Rows that are never written take no memory, so
    # what may become large has all the room that it may use: there is never a second copy of it.
    expected = budget.max_instructions if nodes > budget.max_instructions // 4 else nodes
    room = min(expected, max(budget.max_bytes, 0) // (4 * columns), NUMBERS // 16) + columns + 64
    subsets = Subsets(
        np.zeros((room, columns), _INT),
        np.zeros(room, np.bool_),
        np.zeros(room, np.uint64),
        np.zeros(room + 1, _INT),
        np.zeros(table_size(room), _INT),
        np.zeros(4 * room + nodes, _INT),
        np.zeros(nodes, _INT),
        np.zeros(nodes, _INT),
        np.zeros(3, np.int64),
    )
    scratch = Scratch(
        np.empty(nodes, _INT),
        np.empty(nodes, _INT),
        np.empty(columns, _INT),
        np.empty(columns, np.uint64),
        np.empty(columns, _INT),
        np.empty(256, _INT),
    )
    first = begin(net, subsets, scratch, start)
    while True:
        status = watched(expand, net, subsets, scratch, budget.max_instructions)
        if subsets.counts[STATES] > budget.max_instructions:
            raise BudgetExceededError("states", budget.max_instructions, _SMALLER)
        if status == DONE:
            return subsets, int(first)
        subsets = _roomier(subsets, budget)


def _roomier(subsets: Subsets, budget: Budget) -> Subsets:
    """The same with twice the room."""
    room, columns = subsets.trans.shape
    if 4 * (2 * room * (columns + 6) + 2 * len(subsets.pool)) > budget.max_bytes:
        raise out_of_memory(budget)
    return subsets._replace(
        trans=_longer(subsets.trans, 2 * room),
        accepting=_longer(subsets.accepting, 2 * room),
        keys=_longer(subsets.keys, 2 * room),
        ptr=_longer(subsets.ptr, 2 * room + 1),
        slots=rehashed(subsets.slots, subsets.keys, 2 * room),
        pool=_longer(subsets.pool, 2 * len(subsets.pool)),
    )


def _longer(array: np.ndarray, size: int) -> np.ndarray:
    """A copy with zeros at its end."""
    copy = np.zeros((size, *array.shape[1:]), array.dtype)
    copy[: len(array)] = array
    return copy


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
        trans, accepting, start = watched(numbered, trans, accepting, start)
    return ByteDFA(trans, column[byte_class].astype(np.uint8), accepting, int(start))


def by_first_byte(byte_class: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(the old number of each column, the new column of each byte), in order of first byte."""
    used, first, inverse = np.unique(byte_class, return_index=True, return_inverse=True)
    order = np.argsort(first)
    number = np.empty(len(used), np.int64)
    number[order] = np.arange(len(used))
    return used[order].astype(np.int64), number[inverse.ravel()]
