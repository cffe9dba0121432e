"""Nets of counted repeats as the parts of a linked automaton (see `linked`).

    net      nodes joined by pieces, which are DFAs, and repeats; without cycles, and each edge
             reads at least one byte
    part     the pieces that may be read from a node of a net, up to the beginning of a repeat
    round    one reading of a repeat's body, which is a net
    context  of a round: for each node that may come behind the repeat, with its own context, the
             ranges of how many rounds may still be read, this one included
    rung     many rounds in one part, where no text of the body is a prefix of another one: then it
             is never in doubt how many were read

All rounds of a repeat that begin after the same text have one context, with the ranges of all of
them. So a text that may be cut into rounds in many ways leads to few instances. The ranges also say
which contexts include others, which are then left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from bpe_automata._automata.dfa import ByteDFA
from bpe_automata._automata.part_tables import table_of
from bpe_automata._automata.parts import ROWS, Part, Place, Table, length_of
from bpe_automata._budget import check
from bpe_automata._sharing import cached

NO_END = 1 << 40
"""More rounds than any text has."""
_MOST_ROUNDS = ROWS - 2  # of a rung: the states between them are written down together
_MOST_STATES = 4_000  # of a rung
Ranges = tuple[tuple[int, int], ...]
"""Numbers of rounds, the present one included: from the first to the second of each, in order."""


@dataclass(frozen=True, eq=False)
class Node:
    """ends: may the net end here? edges: what else may come, not empty, with the node behind it.
    far: length of the shortest text to the end of the net; depth: how many repeats are around
    it."""

    ends: bool
    edges: tuple[Edge, ...]
    far: int
    depth: int

    def places(self, context: Context | None) -> list[Place]:
        """What may come here, in a context; None behind the regex."""
        if context is None:
            return [(None, None)]
        found: list[Place] = [(self.part, context)] if self.edges else []
        return (found + context.after(1)) if self.ends else found

    @cached
    def part(self) -> Part:
        """What is read here; label i is behind the piece of edge i, or before its repeat."""

        def follow(context: Context, label: int) -> list[Place]:
            what, to = self.edges[label]
            if isinstance(what, ByteDFA):
                return to.places(context)
            return [(what.part, what.context([(to, context, ((what.least, what.most),))]))]

        texts = [(what,) if isinstance(what, ByteDFA) else () for what, _ in self.edges]
        table = table_of([(one, label) for label, one in enumerate(texts)])
        costs = {
            label: to.far + (0 if texts[label] else length(what))
            for label, (what, to) in enumerate(self.edges)
        }
        given = table, table.far(costs), follow, attrgetter("rest"), _joined, self.depth
        return Part(*given, family=self, covers=_covers)


@dataclass(frozen=True, eq=False)
class Repeat:
    """From `least` to `most` rounds of a body, at least one."""

    body: Node
    least: int
    most: int

    def context(self, frames: Iterable[Frame]) -> Context:
        """That of these: the same object for the same."""
        check()
        merged: dict[tuple[int, int], Frame] = {}
        for node, outer, ranges in frames:
            key = id(node), id(outer)
            before = merged[key][2] if key in merged else ()
            merged[key] = node, outer, _union(*before, *ranges)
        found = list(merged.values())
        for frame in merged.values():
            if any(_includes(other, frame) for other in found if other is not frame):
                found.remove(frame)
        same = frozenset((id(node), id(outer), ranges) for node, outer, ranges in found)
        return self._known.setdefault(same, Context(self, tuple(found)))

    @cached
    def _known(self) -> dict[object, Context]:
        return {}

    @cached
    def part(self) -> Part:
        """The beginning of a round: of the body, or of a rung, which depends on the context."""
        if self.most_at_once == 0:
            return self.body.part

        def follow(context: Context, _: int) -> list[Place]:
            return [(context.rung, context)]

        table = table_of([((), 0)])
        return Part(table, table.far({0: 0}), follow, attrgetter("rest"), _joined, self.body.depth)

    @cached
    def _counted(self) -> ByteDFA | None:
        """The body, if it is one piece, and no text of it begins another."""
        (what, to), *others = self.body.edges
        if others or to.edges or not isinstance(what, ByteDFA):
            return None
        return None if what.trans[what.accepting].any() else what

    @cached
    def most_at_once(self) -> int:
        """The rounds of a rung; 0 if there is none."""
        dfa = self._counted
        return max(1, min(_MOST_ROUNDS, _MOST_STATES // dfa.n_states)) if dfa else 0

    def table(self, rounds: int, may_end: bool) -> Table:
        """Of a rung, with an exit behind its rounds, and one behind each of them if the repeat may
        end before; labels say how many were read. States: 0; those between rounds, by their number;
        those within rounds."""
        key = rounds, may_end
        if key not in self._tables and (dfa := self._counted):
            inner, number = np.flatnonzero(~dfa.accepting)[1:], np.zeros(dfa.n_states, np.int32)
            trans = np.zeros((rounds + 2 + rounds * len(inner), dfa.n_classes), np.int32)
            for k in range(rounds):
                here = rounds + 2 + k * len(inner) + np.arange(len(inner))
                number[inner], number[dfa.accepting] = here, k + 2
                trans[k + 1], trans[here] = number[dfa.trans[dfa.start]], number[dfa.trans[inner]]
            labels = range(1 if may_end else rounds, rounds + 1)
            self._tables[key] = Table(trans, dfa.byte_class, 1, {k + 1: (k,) for k in labels})
        return self._tables[key]

    @cached
    def _tables(self) -> dict[tuple[int, bool], Table]:
        return {}


@dataclass(frozen=True, eq=False)
class Context:
    """How many rounds of a repeat may still be read, and what may come behind them."""

    repeat: Repeat
    frames: tuple[Frame, ...]

    def after(self, rounds: int, again: bool = True) -> list[Place]:
        """What may come behind some rounds, with another round or without."""
        found: list[Place] = [
            place
            for node, outer, ranges in self.frames
            if any(least <= rounds <= most for least, most in ranges)
            for place in node.places(outer)
        ]
        then = self.then(rounds) if again else None
        return [*found, (self.repeat.part, then)] if then else found

    def then(self, rounds: int) -> Context | None:
        """The context of a round after some others, if there may be one."""
        if rounds == 0:
            return self
        if rounds not in self._then:
            fewer = [(node, outer, _fewer(ranges, rounds)) for node, outer, ranges in self.frames]
            left = [frame for frame in fewer if frame[2]]
            self._then[rounds] = self.repeat.context(left) if left else None
        return self._then[rounds]

    @cached
    def _then(self) -> dict[int, Context | None]:
        return {}

    @cached
    def rest(self) -> int:
        """Length of the shortest text from the end of this round to that of all."""
        return self._rest(1)

    def _rest(self, rounds: int) -> int:
        """The same behind some rounds, which some range allows."""
        return min(
            max(0, least - rounds) * self.repeat.body.far + node.far + (outer.rest if outer else 0)
            for node, outer, ranges in self.frames
            for least, most in ranges
            if rounds <= most
        )

    @cached
    def rung(self) -> Part:
        """The rung that begins here."""
        ranges = [one for *_, ranges in self.frames for one in ranges]
        endless = all(one == (1, NO_END) for one in ranges)  # then one round is like another
        last = 1 if endless else min(self.repeat.most_at_once, max(most for _, most in ranges))
        table = self.repeat.table(last, min(ranges)[0] < last)

        def follow(context: Context, label: int) -> list[Place]:
            return context.after(label, label == last)

        def compared(at: int, context: Context) -> tuple[int, Context | None]:
            if at <= last + 1:
                return -1, context.then(at - 1)
            rounds, inner = divmod(at - last - 2, (len(table.trans) - last - 2) // last)
            return inner, context.then(rounds)

        far = table.far({k: self._rest(k) for k in range(1, last + 1)})
        given = table, far, follow, lambda _: 0
        return Part(*given, family=self.repeat, covers=_covers, compared=compared)


Edge = tuple[ByteDFA | Repeat, Node]
Frame = tuple[Node, Context | None, Ranges]


def length(what: ByteDFA | Repeat) -> int:
    """Of the shortest text of a piece, or of a repeat."""
    return length_of(what) if isinstance(what, ByteDFA) else what.least * what.body.far


def _joined(contexts: list[Context]) -> Context:
    """That of the rounds of one repeat that begin after the same text."""
    if all(one is contexts[0] for one in contexts):
        return contexts[0]
    return contexts[0].repeat.context(frame for one in contexts for frame in one.frames)


def _covers(one: Context | None, other: Context | None) -> bool:
    """Does one context surely allow all that the other one, of the same repeat, allows?"""
    if one is None or other is None or one is other:
        return one is other
    return all(any(_includes(wider, frame) for wider in one.frames) for frame in other.frames)


def _includes(one: Frame, other: Frame) -> bool:
    """The same of frames: ranges within ranges, one node, and a context around that covers."""
    within = all(any(a <= c and d <= b for a, b in one[2]) for c, d in other[2])
    return within and one[0] is other[0] and _covers(one[1], other[1])


def _union(*ranges: tuple[int, int]) -> Ranges:
    """In order, and as few as possible."""
    found: list[tuple[int, int]] = []
    for least, most in sorted(ranges):
        if found and least <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(found[-1][1], most)
        else:
            found.append((least, most))
    return tuple(found)


def _fewer(ranges: Ranges, rounds: int) -> Ranges:
    """What is left of ranges after some rounds."""
    left = [(a, b if b == NO_END else b - rounds) for a, b in ranges if b > rounds]
    return tuple((max(1, a - rounds), b) for a, b in left)
