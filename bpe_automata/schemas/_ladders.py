"""Strings with a large `maxLength`, some thousand or million, as a chain of parts.

    "  rung  rung  ...  rung  tail  "

A rung reads `_CHARACTERS` characters, each as the automaton of the set reads it, or fewer and the
quote that ends the string; it leads to the next one by an exit for each state that the automaton
may be in. Rungs that are entered in one state are one part, in contexts that count them. The tail
reads the characters that are left, enough for any string to be ended: only there does it matter how
many they still are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from bpe_automata._automata.algebra import union
from bpe_automata._automata.compile import compile_regex
from bpe_automata._automata.dfa import ByteDFA
from bpe_automata._automata.parts import BYTE, FAR, Part, Place, Table, lengths
from bpe_automata._automata.sources import from_strings
from bpe_automata._budget import check
from bpe_automata._sharing import cached
from bpe_automata.schemas._escapes import json_string

_CHARACTERS = 64  # of a rung
_MOST_NODES = 4_000  # states of a spelled character, from all states of a set
_DONE = 0
_QUOTE = 0x22


@lru_cache(maxsize=1)
def _spelling() -> np.ndarray:
    """int64 [states, 256]: how a character is spelled in JSON, the state after each byte, -1 for
    none; 0 is between characters. Which of these spellings a set has is said by its automaton; here
    they are counted."""
    one = union(json_string(compile_regex("(?s:.)"), "any"), from_strings(()))  # minimal
    table, before = one.trans[:, one.byte_class], one.step(one.start, _QUOTE)
    is_after = one.accepting[table[:, _QUOTE]]
    is_inside = ~(is_after | one.accepting)
    is_inside[[0, one.start, before]] = False
    number = np.where(is_after, 0, -1)
    number[is_inside] = 1 + np.arange(is_inside.sum())
    return number[table[[before, *np.flatnonzero(is_inside)]]]


@dataclass(frozen=True, eq=False)
class _Layer:
    """One character. states: of the spelled set, at each node, the first `between` of them between
    characters. table int64 [nodes, columns]: 1 + the node after a byte, in the same layer; -1 - the
    node, if that is in the next one; 0 for none. ends: bool [nodes], may the string end here?"""

    states: list[int]
    between: int
    table: np.ndarray
    ends: np.ndarray
    byte_class: np.ndarray


def _layer(spelled: ByteDFA) -> _Layer | None:
    """None where it would be very large."""
    ways = _spelling()
    columns = np.unique(ways, axis=1, return_inverse=True)[1].reshape(-1)
    both = spelled.byte_class.astype(np.int64) * 256 + columns
    first, byte_class = np.unique(both, return_index=True, return_inverse=True)[1:]
    start = (spelled.step(spelled.start, _QUOTE), 0)
    nodes, order = {start: 0}, [start]
    steps: list[list[tuple[int, tuple[int, int]]]] = []
    for state, way in order:
        check()
        found = []
        for column, byte in enumerate(first.tolist()):
            after = int(spelled.trans[state, spelled.byte_class[byte]])
            then = int(ways[way, byte])
            if after and then >= 0:
                found.append((column, (after, then)))
                if (after, then) not in nodes:
                    nodes[after, then] = len(order)
                    order.append((after, then))
        steps.append(found)
        if len(order) > _MOST_NODES:
            return None
    ranked = sorted(order, key=lambda node: (node[1] != 0, nodes[node]))
    rank = {node: k for k, node in enumerate(ranked)}
    table = np.zeros((len(order), len(first)), np.int64)
    for node, found in zip(order, steps, strict=True):
        for column, to in found:
            table[rank[node], column] = -1 - rank[to] if to[1] == 0 else 1 + rank[to]
    closed = spelled.accepting[[spelled.step(state, _QUOTE) for state, _ in ranked]]
    ends = closed & np.array([way == 0 for _, way in ranked])
    between = sum(way == 0 for _, way in ranked)
    states = [state for state, _ in ranked]
    return _Layer(states, between, table, ends, byte_class.astype(np.uint8))


class Ladder:
    """The strings of a set with at most `most` characters, in quotes. Labels of its parts: 0 for
    the end, 1 + i for node i between characters."""

    def __init__(self, spelled: ByteDFA, layer: _Layer, most: int) -> None:
        """spelled: the literals of the set, without a limit to their length."""
        self._layer = layer
        self._far = lengths(spelled)[layer.states]
        nearest = int(self._far[self._far < FAR].max(initial=0)) // BYTE
        # Each rung leaves room for the shortest end of the string, in bytes and so in characters.
        self._rungs = max(0, (most - nearest) // _CHARACTERS)
        self._tail = most - self._rungs * _CHARACTERS
        self._parts: dict[tuple[bool, int], Part] = {}
        self._tables: dict[bool, Table] = {}  # of rungs, of the tail

    @property
    def shortest(self) -> int:
        """Length of the shortest literal."""
        return BYTE + int(self._far[0])

    def entered(self, rung: Rung) -> Iterable[Place]:
        """What follows the first quote, in the context of the first rung."""
        return (self._place(rung, 0),)

    def _place(self, rung: Rung, node: int) -> Place:
        """A rung, from a node between characters."""
        kind = rung.number < self._rungs, node
        part = self._parts.get(kind)
        if part is None:
            part = self._parts[kind] = self._made(*kind)
        return part, rung

    def _made(self, is_rung: bool, node: int) -> Part:
        table = self._tables.get(is_rung)
        if table is None:
            table = self._table(_CHARACTERS if is_rung else self._tail, is_rung)
            self._tables[is_rung] = table
        costs = {_DONE: 0}
        if is_rung:
            costs |= {1 + i: int(self._far[i]) for i in range(self._layer.between)}
        return Part(table.begun_at(1 + node), table.far(costs), self._follow, _rest)

    def _follow(self, rung: Rung, label: int) -> Iterable[Place]:
        if label == _DONE:
            found: Iterable[Place] = rung.follow(rung.frame)
            return found
        return (self._place(rung.next, label - 1),)

    def _table(self, characters: int, is_rung: bool) -> Table:
        """The rows of so many layers, behind the dead state; then the nodes between characters, as
        exits; then the end of the string."""
        layer = self._layer
        n, columns = layer.table.shape
        last = 1 + characters * n
        trans = np.zeros((last + layer.between + 1, columns), np.int32)
        done, quote = len(trans) - 1, layer.byte_class[_QUOTE]
        for k in range(characters):
            here = 1 + k * n
            after = np.where(layer.table > 0, layer.table - 1 + here, 0)
            trans[here : here + n] = np.where(layer.table < 0, -layer.table - 1 + here + n, after)
            trans[here : here + layer.between, quote] = np.where(
                layer.ends[: layer.between], done, 0
            )
        between = range(layer.between)
        trans[last : last + layer.between, quote] = np.where(
            layer.ends[: layer.between] & (not is_rung), done, 0
        )
        exits: dict[int, tuple[int, ...]] = {done: (_DONE,)}
        if is_rung:
            exits |= {last + i: (1 + i,) for i in between}
        return _trimmed(Table(trans, layer.byte_class, 1, exits))


def _trimmed(table: Table) -> Table:
    """Without steps to states from which no exit can be reached."""
    far = table.far({label: 0 for labels in table.exits.values() for label in labels})
    dead = far >= FAR
    if not dead[1:].any():
        return table
    trans = np.where(dead[table.trans], 0, table.trans).astype(np.int32)
    trans[dead] = 0
    return Table(trans, table.byte_class, table.start, table.exits)


@dataclass(frozen=True, eq=False)
class Rung:
    """The context of a rung: which one, in which frame, and what comes after the string there. Each
    keeps the next one, so that a ladder, which all schemas share, keeps none alive."""

    number: int
    frame: Any
    follow: Any

    @cached
    def next(self) -> Rung:
        """The one after it, always the same object."""
        return Rung(self.number + 1, self.frame, self.follow)


def _rest(rung: Rung) -> int:
    rest: int = rung.frame.rest
    return rest


def ladder(spelled: ByteDFA, most: int) -> Ladder | None:
    """None where the set tells so much apart that its strings are better written out."""
    layer = _layer(spelled)
    return None if layer is None else Ladder(spelled, layer, most)
