"""Strings with a large `maxLength`, some thousand or million, as a chain of nodes.

    "  rung  rung  ...  rung  tail  "

A rung reads `_CHARACTERS` characters, each as the automaton of the set reads it, or fewer and the
quote that ends the string; it leads to the next one by an exit for each state that the automaton
may be in. The tail reads the remaining characters, enough to end any string: only there does it
matter how many remain.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from bpe_automata._sharing import cached
from bpe_automata.automata.algebra import intersection
from bpe_automata.automata.assembly import Assembly
from bpe_automata.automata.compile import compile_regex
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.automata.parts import BYTE, Continuation, Table, lengths
from bpe_automata.automata.rounds import Node, Stack, continuations
from bpe_automata.schemas._nets import END, ITEM, Choice

_CHARACTERS = 64  # of a rung
_MOST_STATES = 4_000  # of the automaton of the literals of a set
_DONE, _QUOTE = 0, 0x22
_MARK = 0xF8  # a byte that is in no text: it ends each character while characters are counted
_SPELLED = (
    r'[^"\\\x00-\x1f]|\\(["\\/bfnrt]|u([0-9A-CE-Fa-ce-f][0-9A-Fa-f]{3}|[Dd][0-7][0-9A-Fa-f]{2})'
    r"|u[Dd][89ABab][0-9A-Fa-f]{2}\\u[Dd][C-Fc-f][0-9A-Fa-f]{2})"
)
"""All spellings of a character in JSON; the automaton of a set says which of them it has."""


@lru_cache(maxsize=1)
def _marked() -> ByteDFA:
    """All strings in quotes, with a mark behind each character."""
    parts = Assembly()
    start, between, behind, end = (parts.state() for _ in range(4))
    parts.accept(end)
    parts.put(start, b'"', between)
    parts.put(between, compile_regex(_SPELLED), behind)
    parts.put(behind, bytes((_MARK,)), between)
    parts.put(between, b'"', end)
    return parts.dfa(start)


class Ladder:
    """The strings of a set with at most `most` characters, in quotes. A node is a state of their
    automaton; the first `_between` nodes are between characters. Labels of parts: 0 for the end,
    1 + i for node i between characters."""

    def __init__(self, spelled: ByteDFA, most: int) -> None:
        """spelled: the literals of the set, without a limit to their length."""
        n, column = spelled.trans.shape
        byte_class = spelled.byte_class.copy()
        byte_class[_MARK] = column
        trans = np.column_stack((spelled.trans, np.arange(n, dtype=np.int32)))
        both = intersection(ByteDFA(trans, byte_class, spelled.accepting, spelled.start), _marked())
        behind = both.trans[:, both.byte_class[_MARK]]  # the mark that comes next
        first = both.step(both.start, _QUOTE)
        between = np.unique(np.append(behind[behind > 0], first))
        between = np.append(first, between[between != first])
        inside = np.flatnonzero(~both.accepting & (behind == 0))[1:]
        nodes = np.append(between, np.setdiff1d(inside, np.append(between, both.start)))
        number = np.zeros(both.n_states, np.int64)
        number[nodes] = 1 + np.arange(len(nodes))
        after = both.trans[nodes]
        # 1 + the node after a byte, in the same layer; -1 - the node, if that is in the next one.
        self._steps = np.where(behind[after] > 0, -number[behind[after]], number[after])
        self._ends = both.accepting[after[:, both.byte_class[_QUOTE]]]
        self._byte_class, self._between = both.byte_class.copy(), len(between)
        self._byte_class[_MARK] = self._byte_class[_MARK + 1]  # like other bytes of no text
        row = np.zeros((1, after.shape[1]), np.int32)
        again = np.concatenate((row, np.abs(self._steps), row)).astype(np.int32)
        again[1 + np.flatnonzero(self._ends), self._byte_class[_QUOTE]] = 1 + len(nodes)
        is_end = np.arange(len(again)) == 1 + len(nodes)
        far = lengths(ByteDFA(again, self._byte_class, is_end, 1))[1 : 1 + len(between)]
        self._far: list[int] = far.tolist()
        # Each rung leaves room for the shortest end of the string, in bytes and so in characters.
        self._rungs = max(0, (most - max(self._far) // BYTE) // _CHARACTERS)
        self._tail = most - self._rungs * _CHARACTERS

    def begin(self) -> Node:
        """The node behind the first quote. (The ladder itself, which all schemas share, keeps no
        nodes alive.)"""
        made = dict[tuple[int, int], Node]()

        def node(at: int, rungs: int) -> Node:
            """The node that reads on from node `at` between characters, with `rungs` to go."""
            if (at, rungs) not in made:
                table = (self._rung if rungs else self._last).begun_at(1 + at)
                costs = dict(enumerate([0, *self._far])) if rungs else {_DONE: 0}
                made[at, rungs] = Choice(table, self._far[at], ITEM, lambda: (costs, follow))

            def follow(stack: Stack, label: int) -> list[Continuation]:
                return continuations([(node(label - 1, rungs - 1) if label else END, stack)])

            return made[at, rungs]

        return node(0, self._rungs)

    @cached
    def _rung(self) -> Table:
        return self._table(_CHARACTERS, True)

    @cached
    def _last(self) -> Table:
        return self._table(self._tail, False)

    def _table(self, characters: int, is_rung: bool) -> Table:
        """The rows of so many layers, behind the dead state; then the nodes between characters, as
        exits; then the end of the string."""
        n, columns = self._steps.shape
        last, between, quote = 1 + characters * n, self._between, self._byte_class[_QUOTE]
        trans = np.zeros((last + between + 1, columns), np.int32)
        here = 1 + n * np.arange(characters)[:, None, None]
        after = np.where(self._steps > 0, self._steps - 1 + here, -self._steps - 1 + here + n)
        trans[1:last] = np.where(self._steps == 0, 0, after).reshape(-1, columns)
        exits: dict[int, tuple[int, ...]] = {len(trans) - 1: (_DONE,)}
        ends = [np.flatnonzero(self._ends) + k for k in here[:, 0, 0]]
        if is_rung:
            exits |= {last + i: (1 + i,) for i in range(between)}
        else:
            ends.append(last + np.flatnonzero(self._ends))
        trans[np.concatenate(ends), quote] = len(trans) - 1
        return Table(trans, self._byte_class, 1, exits)


@lru_cache(maxsize=64)
def ladder(spelled: ByteDFA, most: int) -> Ladder | None:
    """The strings of a set as a ladder; None if its automaton is too large for one, so that its
    strings are better written out."""
    return None if spelled.n_states > _MOST_STATES else Ladder(spelled, most)
