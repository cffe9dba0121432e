"""The tables of parts (see `parts`), out of texts and languages: the same for all who ask for the
same."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from functools import lru_cache
from typing import Any, Generic, TypeVar

import numpy as np

from bpe_automata._automata.assembly import Assembly, alphabet
from bpe_automata._automata.dfa import ByteDFA
from bpe_automata._automata.parts import Covers, Join, Part, Place, Table

Alternative = tuple[tuple[bytes | ByteDFA, ...], int]
"""Texts and languages, one after another, and the label of the exit behind them, 0 or more."""
_KEPT, _LARGEST = 1_024, 500  # tables, and the letters and states that one of them is made of
K = TypeVar("K", bound=Hashable)


def columns(pieces: Iterable[bytes | ByteDFA]) -> np.ndarray:
    """uint8 [256], as of a linked automaton: a column for all bytes that no piece tells apart; the
    space, which some tokenizers put before a text, has one of its own."""
    given = list(pieces)
    letters = b" " + b"".join(piece for piece in given if isinstance(piece, bytes))
    languages = [piece.byte_class for piece in given if isinstance(piece, ByteDFA)]
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
    given = tuple(alternatives)
    sizes = [
        len(piece) if isinstance(piece, bytes) else piece.n_states
        for pieces, _ in given
        for piece in pieces
    ]
    return (_made if sum(sizes) > _LARGEST else _kept)(given)


def _made(alternatives: tuple[Alternative, ...]) -> Table:
    return _of_language(alternatives) or _of_texts(alternatives) or _assembled(alternatives)


_kept = lru_cache(_KEPT)(_made)


def _of_language(alternatives: tuple[Alternative, ...]) -> Table | None:
    """The table of one language alone, which shares its arrays."""
    if len(alternatives) != 1 or len(alternatives[0][0]) != 1:
        return None
    (language,), label = alternatives[0]
    if isinstance(language, bytes) or not language.start:
        return None
    ends = np.flatnonzero(language.accepting).tolist()
    return Table(language.trans, language.byte_class, language.start, dict.fromkeys(ends, (label,)))


def _of_texts(alternatives: tuple[Alternative, ...]) -> Table | None:
    """The table, where all are texts."""
    trie = Trie[int]()
    for pieces, label in alternatives:
        if not all(isinstance(piece, bytes) for piece in pieces):
            return None
        trie.put(b"".join(pieces), label)  # type: ignore[arg-type]
    return _written_out(trie)


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


def _written_out(trie: Trie[int]) -> Table:
    """States: 0, and the nodes in the order of `nearest_first`."""
    order = trie.nearest_first()
    number = {at: k for k, at in enumerate(order, 1)}
    edges = [
        (number[at], byte, number[to]) for at in order for byte, to in trie.children[at].items()
    ]
    at_, byte_, to_ = np.array(edges, np.int64).reshape(-1, 3).T
    column, some_byte = alphabet([], bytes(byte_.tolist()))
    trans = np.zeros((1 + len(order), len(some_byte)), np.int32)
    trans[at_, column[byte_]] = to_
    exits = {number[at]: labels for at, labels in trie.labels.items() if labels}
    return Table(trans, column.astype(np.uint8), 1 if edges or exits else 0, exits)


def _assembled(alternatives: tuple[Alternative, ...]) -> Table:
    parts = Assembly()
    start = parts.state()
    for pieces, label in alternatives:
        at = start
        for piece in pieces:
            after = parts.state()
            parts.put(at, piece, after)
            at = after
        parts.mark(at, label)
    return Table(*parts.marked(start))
