"""The tables of parts (see `parts`), out of texts and languages: the same for all who ask for the
same."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

import numpy as np

from bpe_automata._automata.assembly import Assembly, alphabet
from bpe_automata._automata.dfa import ByteDFA
from bpe_automata._automata.parts import Covers, Join, Part, Place, Table
from bpe_automata._sharing import Lock, locked
from bpe_automata.errors import BpeAutomataError

Alternative = tuple[tuple[bytes | ByteDFA, ...], int]
"""Texts and languages, one after another, and the label of the exit behind them, 0 or more."""
_MOST_STATES, _LARGEST = 20_000, 1_000  # of all tables that are kept, and of one: 0.5 kB each
_NEVER = 0xC0  # a byte that is in no text, and no digit
_DIGITS = tuple(range(0xF8, 0x100))  # bytes that are in no text: they spell labels, see below
K = TypeVar("K", bound=Hashable)


class _Tables:
    """Those that were used last, by what they are made of. For any number of threads."""

    def __init__(self) -> None:
        self.lock = Lock()
        self._kept: OrderedDict[tuple[object, ...], tuple[Table, object]] = OrderedDict()
        self._states = 0

    @locked
    def found(self, key: tuple[object, ...]) -> Table | None:
        """None where it is not kept."""
        kept = self._kept.get(key)
        if kept is None:
            return None
        self._kept.move_to_end(key)
        return kept[0]

    @locked
    def keep(self, key: tuple[object, ...], table: Table, made_of: object) -> None:
        """With the languages that it is made of, so that no other object gets their `id()`."""
        if len(table.trans) > _LARGEST or key in self._kept:
            return
        self._kept[key] = table, made_of
        self._states += len(table.trans)
        while self._states > _MOST_STATES:
            self._states -= len(self._kept.popitem(last=False)[1][0].trans)


_tables = _Tables()


def columns(pieces: Iterable[bytes | ByteDFA]) -> np.ndarray:
    """uint8 [256], as of a linked automaton: a column for all bytes that no piece tells apart; the
    space, which some tokenizers put before a text, has one of its own."""
    given = list(pieces)
    letters = b" " + b"".join(piece for piece in given if isinstance(piece, bytes))
    languages = [piece for piece in given if isinstance(piece, ByteDFA)]
    return alphabet(languages, letters)[0].astype(np.uint8)


def labelled(
    alternatives: list[Alternative],
    costs: dict[int, int],
    follow: Callable[[Any, int], Iterable[Place]],
    rest: Callable[[Any], int],
    joined: Join | None = None,
    family: object = None,
    covers: Covers | None = None,
) -> Part:
    """The part that reads one of some alternatives, and then is at the exit with its label. costs:
    of each label, length of the shortest text from that exit to the end of what the part stands
    for. Its table serves all that is made of the same alternatives. Raises BudgetExceededError."""
    table = table_of(alternatives)
    return Part(table, table.far(costs), follow, rest, joined, family=family, covers=covers)


def table_of(alternatives: list[Alternative]) -> Table:
    """The table that reads one of some alternatives, and then is at the exit with its label. Raises
    BudgetExceededError."""
    key = tuple(
        (label, *(p if isinstance(p, bytes) else id(p) for p in pieces))
        for pieces, label in alternatives
    )
    table = _tables.found(key)
    if table is None:
        table = _of_language(alternatives) or _of_texts(alternatives) or _assembled(alternatives)
        _tables.keep(key, table, alternatives)
    return table


def _of_language(alternatives: list[Alternative]) -> Table | None:
    """The table of one language alone, which shares its arrays."""
    if len(alternatives) != 1 or len(alternatives[0][0]) != 1:
        return None
    (language,), label = alternatives[0]
    if isinstance(language, bytes) or not language.start:
        return None
    ends = np.flatnonzero(language.accepting).tolist()
    return Table(language.trans, language.byte_class, language.start, dict.fromkeys(ends, (label,)))


def _of_texts(alternatives: list[Alternative]) -> Table | None:
    """The table, where all are texts."""
    trie = Trie[int]()
    for pieces, label in alternatives:
        if not all(isinstance(piece, bytes) for piece in pieces):
            return None
        trie.put(b"".join(pieces), label)  # type: ignore[arg-type]
    return _written_out(trie)


def table_beside(
    texts: Mapping[bytes, tuple[int, ...]], before: bytes, others: ByteDFA, label: int
) -> Table:
    """The table that reads one of some texts, and then is at the exit with its labels, nowhere
    where it has none; or any other text that is `before` and one of `others`, and then is at the
    exit with `label`."""
    key = *texts.items(), before, id(others), label
    table = _tables.found(key)
    if table is None:
        trie = Trie[int]()
        for text, labels in texts.items():
            trie.put(text, *labels)
        table = _written_out(trie, before, others, label)
        _tables.keep(key, table, others)
    return table


class Trie(Generic[K]):
    """Of texts, which are bytes, or symbols of a grammar. children: of each node, by what is read;
    node 1 is the root. labels: of the nodes where texts end."""

    def __init__(self) -> None:
        self.children: list[dict[K, int]] = [{}, {}]
        self.labels: dict[int, tuple[int, ...]] = {}

    def put(self, text: Iterable[K], *labels: int) -> None:
        """Add a text that ends with some labels."""
        at = self.grown_to(text)
        self.labels[at] = *self.labels.get(at, ()), *labels

    def grown_to(self, text: Iterable[K]) -> int:
        """The node of a text; those that are missing are added."""
        at = 1
        for read in text:
            if read not in self.children[at]:
                self.children[at][read] = len(self.children)
                self.children.append({})
            at = self.children[at][read]
        return at

    def nearest_first(self) -> list[int]:
        """The nodes, as rows are written down together."""
        order = [1]
        for at in order:
            order += self.children[at].values()
        return order


def _written_out(
    trie: Trie[int], before: bytes = b"", others: ByteDFA | None = None, label: int = 0
) -> Table:
    """States: 0; the root; those of `others` but 0, which stand for all texts that have left the
    trie; all other nodes, each of which stands for a state of `others` too, or for 0."""
    begin = trie.grown_to(before) if others else 0
    order, n_others = trie.nearest_first(), others.n_states - 1 if others else 0
    number = {at: k + (n_others if k > 1 else 0) for k, at in enumerate(order, 1)}
    edges = [
        (number[at], byte, number[to]) for at in order for byte, to in trie.children[at].items()
    ]
    at_, byte_, to_ = np.array(edges, np.int64).reshape(-1, 3).T
    column, some_byte = alphabet([others] if others else [], bytes(byte_.tolist()))
    trans = np.zeros((1 + len(order) + n_others, len(some_byte)), np.int32)
    exits = dict[int, tuple[int, ...]]()
    if others:
        within = others.trans[:, others.byte_class[some_byte]]
        within = np.where(within > 0, within + 1, 0)
        trans[2 : 2 + n_others] = within[1:]
        beside = {begin: others.start}  # the states of `others` that nodes stand for
        for at in order:
            state = beside.get(at, 0)
            for byte, to in trie.children[at].items() if state else ():
                beside[to] = int(others.trans[state, others.byte_class[byte]])
        trans[[number[at] for at in beside]] = within[list(beside.values())]
        ends = {at for at, state in beside.items() if others.accepting[state]}
        exits = dict.fromkeys((np.flatnonzero(others.accepting) + 1).tolist(), (label,))
        exits |= dict.fromkeys((number[at] for at in ends - set(trie.labels)), (label,))
    trans[at_, column[byte_]] = to_
    exits |= {number[at]: labels for at, labels in trie.labels.items() if labels}
    return Table(trans, column.astype(np.uint8), 1 if edges or exits else 0, exits)


# While a table is made of languages, a text ends in the digits of its label, which are bytes that
# no text has.


def _assembled(alternatives: list[Alternative]) -> Table:
    labels = 1 + max((label for _, label in alternatives), default=0)
    digits = 1
    while len(_DIGITS) ** digits < labels:
        digits += 1
    parts = Assembly()
    start, end = parts.state(), parts.state()
    parts.accept(end)
    for pieces, label in alternatives:
        at = start
        for piece in pieces:
            after = parts.state()
            parts.put(at, piece, after)
            at = after
        parts.put(at, _spelled(label, digits), end)
    dfa = parts.dfa(start)
    marks = dfa.byte_class[list(_DIGITS)]
    of_marks = np.unique(dfa.trans[:, marks])
    own = np.ones(dfa.n_states, np.bool_)
    own[of_marks[of_marks > 0]] = False
    exits = {
        state: tuple(_labels_at(dfa, state, marks, digits))
        for state in np.flatnonzero(own & dfa.trans[:, marks].any(axis=1)).tolist()
    }
    kept = np.flatnonzero(own)
    number = np.zeros(dfa.n_states, np.int32)
    number[kept] = np.arange(len(kept), dtype=np.int32)
    trans = number[dfa.trans[kept]]
    byte_class = dfa.byte_class.copy()
    byte_class[list(_DIGITS)] = dfa.byte_class[_NEVER]
    trans[:, marks] = 0
    used = marks[dfa.trans[:, marks].any(axis=0)]
    if np.isin(dfa.byte_class[: _DIGITS[0]], used).any():
        raise BpeAutomataError("a text holds a byte that is in no UTF-8")
    exits = {int(number[state]): found for state, found in exits.items()}
    return Table(np.ascontiguousarray(trans), byte_class, int(number[dfa.start]), exits)


def _spelled(label: int, digits: int) -> bytes:
    found = bytearray()
    for _ in range(digits):
        label, digit = divmod(label, len(_DIGITS))
        found.append(_DIGITS[digit])
    return bytes(found)


def _labels_at(dfa: ByteDFA, state: int, marks: np.ndarray, digits: int) -> Iterator[int]:
    """The labels whose digits lead on from a state."""
    level = [(state, 0)]
    for place in range(digits):
        level = [
            (int(dfa.trans[at, column]), label + digit * len(_DIGITS) ** place)
            for at, label in level
            for digit, column in enumerate(marks)
            if dfa.trans[at, column]
        ]
    yield from (label for _, label in level)
