"""The parts of linked automata (see `linked`): small DFAs with labelled exits. Parts of the same
texts and languages share one table (see `part_tables`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from bpe_automata._kernels import blocks
from bpe_automata._kernels.blocks import edges_of, leave_block, shorten
from bpe_automata._sharing import cached
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.errors import BpeAutomataError, BudgetExceededError

BYTE = blocks.BYTE
"""A length is the number of bytes times BYTE, plus `ODD` for each byte that is not plain, or plus 1
if that byte is of a *tag*. A tag is a text, such as `</think>`, of which each engine finds out
whether its tokenizer reads it as it reads plain texts. (2,048 such bytes count as one that is of no
tag.)"""
ODD = blocks.ODD
FAR = blocks.FAR
"""The length of a text that there is not."""
PLAIN = b"\t\n\r" + bytes(byte for byte in range(0x20, 0x7F) if byte != ord("<"))
"""Bytes that nearly all tokenizers have ids for, that begin none of their added tokens, and that no
normalizer changes: where the shortest text is plain no search is needed to know that it can be
spelled."""
_PLAIN = np.frombuffer(PLAIN, np.uint8)
ROWS = 64
"""Of a part, that are written down together."""


class Marks(NamedTuple):
    """The added tokens in the texts of a language. special: those that it names; perhaps: those
    that are special if a tokenizer has them; tags: see `BYTE`."""

    special: frozenset[str] = frozenset()
    perhaps: frozenset[str] = frozenset()
    tags: frozenset[bytes] = frozenset()

    def union(self, others: Iterable[Marks]) -> Marks:
        """Those of all of the languages."""
        special, perhaps, tags = zip(self, *others, strict=True)
        return Marks(
            frozenset().union(*special), frozenset().union(*perhaps), frozenset().union(*tags)
        )


_LONGEST = 1 << 20  # bytes of a shortest text
_MOST_COSTS, _MOST_BLOCKS = 64, 64  # that are kept of one table, with what is found for them


class Table:
    """A DFA with labelled exits, which many parts share.

    trans int32 [n, k], row 0 all 0; byte_class uint8 [256]; start; exits: of each accepting state
    its labels; is_tag: is all that it reads (the rest of) some tags?
    """

    def __init__(
        self,
        trans: np.ndarray,
        byte_class: np.ndarray,
        start: int,
        exits: dict[int, tuple[int, ...]],
        is_tag: bool = False,
    ) -> None:
        self.trans, self.byte_class, self.start, self.exits = trans, byte_class, start, exits
        self._more = 1 if is_tag else ODD
        self._blocks: dict[tuple[bytes, int], Block] = {}
        self._far: dict[bytes, np.ndarray] = {}
        self._is_left_by: dict[bytes, bool] = {}

    def far(self, costs: dict[int, int] | np.ndarray) -> np.ndarray:
        """int64 [n]: the least length from each state to an exit, and what that costs further.
        costs: of labels, FAR of those that are missing; or int64, from label 0 on."""
        if isinstance(costs, dict):
            most = max([0, *costs, *self._at_exits[1].tolist()])
            given = np.full(1 + most, FAR, np.int64)
            given[list(costs)] = list(costs.values())
            costs = given
        key = costs.tobytes()
        found = self._far.get(key)
        if found is None:
            begin, (exits, labels) = np.full(len(self.trans), FAR, np.int64), self._at_exits
            np.minimum.at(begin, exits, costs[labels])
            found = _nearest(begin, self._edges, self._more)
            if len(self._far) >= _MOST_COSTS:
                self._far.clear()
            self._far[key] = found
        return found

    @cached
    def _at_exits(self) -> np.ndarray:
        """int64 [2, m]: each exit with each of its labels."""
        found = [(at, label) for at, labels in self.exits.items() for label in labels]
        return np.array(found, np.int64).reshape(-1, 2).T.copy()

    def is_left_by(self, readable: np.ndarray) -> bool:
        """Does every state still lead to each exit that it leads to, by some bytes (bool [256])
        alone? That to one is not enough: all others might be needed for the text to have an end."""
        key = readable.tobytes()
        if key not in self._is_left_by:
            columns = np.unique(self.byte_class[readable]).astype(np.int64)
            some = _edges(self.trans, self.byte_class, columns)
            labels = {label for labels in self.exits.values() for label in labels}
            self._is_left_by[key] = all(
                np.array_equal(self._leads_to(label, some), self._leads_to(label, self._edges))
                for label in labels
            )
        return self._is_left_by[key]

    def _leads_to(self, label: int, edges: _Edges) -> np.ndarray:
        """bool [n]: can an exit with this label be reached along some edges?"""
        begin = np.full(len(self.trans), FAR, np.int64)
        begin[[at for at, labels in self.exits.items() if label in labels]] = 0
        return _nearest(begin, edges) < FAR

    @cached
    def _edges(self) -> _Edges:
        return _edges(self.trans, self.byte_class)

    def block(self, number: int, byte_class: np.ndarray) -> Block:
        """ROWS of its rows over the columns of `byte_class`. Raises BpeAutomataError where one
        column stands for bytes that the table distinguishes."""
        key = byte_class.tobytes()
        found = self._blocks.get((key, number))
        if found is None:
            first = np.unique(byte_class, return_index=True)[1]
            columns = self.byte_class[first].astype(np.uint8)
            if (self.byte_class != columns[byte_class]).any():
                raise BpeAutomataError("a part distinguishes bytes that its automaton does not")
            if len(self._blocks) >= _MOST_BLOCKS:
                self._blocks.clear()
            rows = self.trans[number * ROWS : (number + 1) * ROWS]
            cells, away = leave_block(rows, columns, self._is_exit, number * ROWS)
            found = Block(cells, away, self._is_exit[away], number * ROWS)
            self._blocks[key, number] = found
        return found

    @cached
    def _is_exit(self) -> np.ndarray:
        """bool [n]."""
        found = np.zeros(len(self.trans), np.bool_)
        found[list(self.exits)] = True
        return found

    def begun_after(self, data: bytes) -> Table:
        """The same table, from the state that a text leads to."""
        state = self.start
        for byte in data:
            state = int(self.trans[state, self.byte_class[byte]])
        return self.begun_at(state)

    def begun_at(self, state: int) -> Table:
        """The same table, from another state. Both share `trans`, and what was computed of it."""
        _, other = self._edges, copy(self)  # edges first: both have them then
        other.start = state
        return other


Join = Callable[[list[Any]], Any]
Covers = Callable[[Any, Any], bool]


@dataclass(frozen=True, eq=False)
class Part:
    """A table, and what follows its exits.

    far: int64 [n], the length of the shortest text from each state to the end of what the part
    stands for; FAR of a state that is not in the part, as the part lacks the exits that it leads
    to. follow: maps (context, label) to what follows an exit; rest: maps a context to the length of
    the shortest text behind the part. joined: merges the contexts in which one text leads to the
    beginning of the part, so that a text which may be read in many ways leads to few instances;
    None where the contexts are not merged. rank: parts with `joined` are entered in order of rank:
    one may lead to the beginnings of those of higher ranks. family: states of parts with one table
    and one family are compared, if their contexts differ. covers: maps (context, other) to whether
    all that may follow in the other context may surely follow in the first; a set then leaves out
    the state in the other context.
    """

    table: Table
    far: np.ndarray
    follow: Callable[[Any, int], Iterable[Continuation]]
    rest: Callable[[Any], int]
    joined: Join | None = None
    rank: int = 0
    family: object = None
    covers: Covers | None = None

    def reads(self, state: int) -> bool:
        """Does some byte lead on from a state, within the part?"""
        return bool((self.far[self.table.trans[state]] < FAR).any())

    @cached
    def dead(self) -> np.ndarray | None:
        """bool [n], the states that are not in the part; None where all but 0 are."""
        dead: np.ndarray = self.far >= FAR
        return dead if np.count_nonzero(dead) > 1 else None


@dataclass(frozen=True, eq=False)
class Block:
    """ROWS rows of a part from `first` on, or all remaining ones, which are written down together.

    cells int32 [n, columns]: 0, or 1 + the row of the block that a byte leads to; or -1 - i where
    that is `away[i]`, int64, a state that is an exit or in another block. is_exit: bool, of those.
    """

    cells: np.ndarray
    away: np.ndarray
    is_exit: np.ndarray
    first: int

    def without(self, dead: np.ndarray) -> Block:
        """The same without the steps to dead states, bool [n]."""
        here = dead[self.first : self.first + len(self.cells)]
        gone = np.concatenate([[False], here, dead[self.away][::-1]])[self.cells]
        return replace(self, cells=np.where(gone, 0, self.cells)) if gone.any() else self

    def into(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """int64: which states of `away` are in another block and no exits; and their rows there."""
        found = self._into.get(number)
        if found is None:
            which = np.flatnonzero((self.away // ROWS == number) & ~self.is_exit)
            found = self._into[number] = which, self.away[which] % ROWS
        return found

    @cached
    def _into(self) -> dict[int, tuple[np.ndarray, np.ndarray]]:
        return {}


Continuation = tuple[Part | None, Any]
"""The beginning of a part in a context; without a part, the end of the text. Equal contexts are one
object."""


class _Edges(NamedTuple):
    """int32. tail [k]: the states with steps; start [k]: the first edge of each; head [m]: where
    edges lead; odd bool [m]: is no byte that leads there plain?"""

    tail: np.ndarray
    start: np.ndarray
    head: np.ndarray
    odd: np.ndarray


def _edges(trans: np.ndarray, byte_class: np.ndarray, columns: np.ndarray | None = None) -> _Edges:
    """columns: int64, those that count, all by default."""
    odd = np.ones(trans.shape[1], np.bool_)
    odd[byte_class[_PLAIN]] = False
    every = np.arange(trans.shape[1]) if columns is None else columns
    return _Edges(*edges_of(trans, every, odd))


def _nearest(far: np.ndarray, edges: _Edges, more: int = ODD) -> np.ndarray:
    """int64 [n]: the least of steps to a state and what `far` says of it, which is written over.
    FAR of the dead state."""
    far[0] = FAR
    shorten(far, *edges, more)
    return far


def lengths(dfa: ByteDFA) -> np.ndarray:
    """int64 [n_states]: length of the shortest text from each state to an accepting one."""
    begin = np.where(dfa.accepting, 0, FAR)
    return _nearest(begin, _edges(dfa.trans, dfa.byte_class))


def length_of(texts: bytes | ByteDFA, more: int = ODD) -> int:
    """Of a text; of the first of the shortest ones of a language, FAR if it has none. more: what a
    byte that is not plain counts."""
    text = texts if isinstance(texts, bytes) else texts.shortest()
    return FAR if text is None else len(text) * BYTE + more * len(text.translate(None, PLAIN))


def check_length(length: int, of: str) -> None:
    """of: whose shortest text it is. Raises BudgetExceededError where that is too long."""
    if length > _LONGEST * BYTE:
        raise BudgetExceededError("bytes", _LONGEST, f"the shortest text of {of} is longer")
