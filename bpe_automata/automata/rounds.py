"""Counted repeats and rules that call one another, as the parts of a linked automaton (see
`linked`).

    net      nodes joined by edges, each of which reads a text, or a repeat; at least one byte
    part     the edges of one node, each read up to the node behind it; of an edge that is a repeat
             nothing is read, as that has a part of its own
    round    one reading of a repeat's body, which is a net. A rule of a grammar is a repeat of one
             round, whose net may lead to itself
    stack    the context of a part in a round, a list of frames: (a node that may come after the
             repeat, the stack around that node, the ranges of how many rounds may still be read,
             this one included)

All rounds of a repeat that begin after the same text have one stack, with the ranges of all of
them. So a text that may be cut into rounds in many ways leads to few instances (the
graph-structured stack of Tomita 1986). A frame is dropped if another one with the same node has
ranges that contain its own, and a stack around it that allows at least as much. A rule that comes
last in its caller returns to where the caller would return to, so recursion on the right costs no
stack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import attrgetter

from bpe_automata._budget import check
from bpe_automata._sharing import cached
from bpe_automata.automata.codepoints import union
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.automata.part_tables import Alternative, table_of
from bpe_automata.automata.parts import FAR, ODD, Continuation, Part, Table, length_of

NO_END = 1 << 40
"""More rounds than any text has."""
Ranges = tuple[tuple[int, int], ...]
"""Numbers of rounds, the present one included: from the first to the second of each, in order."""


class Node:
    """A node of a net. edges: what may be read here, not empty, each with the node behind it."""

    def __init__(
        self,
        edges: Callable[[], Iterable[Edge]],
        ends: bool,
        far: int,
        rank: int,
        are_compared: bool = True,
        is_tag: bool = False,
    ) -> None:
        """edges: a function that makes the edges, called when they are first needed. ends: may the
        net end here? far: length of the shortest text to the end of the net. rank: that of the
        part. are_compared: are stacks that others include dropped? That is for repeats of which few
        are nested. is_tag: see `parts.Table`."""
        self._is_tag = is_tag
        self._find, self.ends, self.far = edges, ends, far
        self.rank, self.are_compared = rank, are_compared

    @cached
    def edges(self) -> tuple[Edge, ...]:
        """What may be read here, not empty, each with the node behind it."""
        return tuple(self._find())

    @property
    def reads(self) -> bool:
        """Is anything read here?"""
        return bool(self.edges)

    @cached
    def part(self) -> Part:
        """What is read here. The label of an exit tells the node that follows, and the repeat
        before that node, if there is one."""
        number: dict[tuple[int, int], int] = {}
        behind = list[tuple[Repeat | None, Node]]()
        alternatives, costs = list[Alternative](), dict[int, int]()
        for what, to in self.edges:
            repeat = what if isinstance(what, Repeat) else None
            label = number.setdefault((id(repeat), id(to)), len(number))
            if label == len(behind):
                behind.append((repeat, to))
            alternatives.append((_pieces(what), label))
            costs[label] = min(to.far + (length(what) if repeat else 0), FAR)

        def follow(stack: Stack, label: int) -> list[Continuation]:
            repeat, to = behind[label]
            return [repeat.before(to, stack)] if repeat else continuations([(to, stack)])

        return self.part_of(table_of(alternatives, self._is_tag), costs, follow)

    def part_of(self, table: Table, costs: dict[int, int], follow: Follow) -> Part:
        """The part with a table. costs: those of its labels, see `Table.far`. follow: maps a stack
        and a label to what follows an exit."""
        covers = _covers if self.are_compared else None
        given = table, table.far(costs), follow, attrgetter("rest"), _joined, self.rank
        return Part(*given, family=self, covers=covers)


@dataclass(frozen=True, eq=False)
class Repeat:
    """From `least` to `most` rounds of a body, at least one."""

    body: Node
    least: int
    most: int

    def before(self, to: Node, outer: Stack | None) -> Continuation:
        """The beginning of the repeat, which the node `to` follows. outer: the stack around it,
        None at the outermost level. A rule that another rule calls last takes over the
        frames of that rule."""
        if outer and outer.repeat.most == self.most == 1 and to.ends and not to.reads:
            return self.body.part, self.stack(outer.frames)
        return self.body.part, self.stack([(to, outer, ((self.least, self.most),))])

    def stack(self, frames: Iterable[Frame]) -> Stack:
        """The stack of some frames. Equal frames give the same object."""
        check()
        merged: dict[tuple[int, int], Frame] = {}
        for node, outer, ranges in frames:
            key = id(node), id(outer)
            before = merged[key][2] if key in merged else ()
            merged[key] = node, outer, _union(*before, *ranges)
        found = list(merged.values())
        for frame in merged.values() if self.body.are_compared else ():
            if any(_includes(other, frame) for other in found if other is not frame):
                found.remove(frame)
        same = frozenset((id(node), id(outer), ranges) for node, outer, ranges in found)
        return self._stacks.setdefault(same, Stack(self, tuple(found)))

    @cached
    def _stacks(self) -> dict[object, Stack]:
        return {}


@dataclass(frozen=True, eq=False)
class Stack:
    """How many rounds of a repeat may still be read, and what may come behind them."""

    repeat: Repeat
    frames: tuple[Frame, ...]

    @cached
    def fewer(self) -> Stack | None:
        """The stack of the next round, if there may be one."""
        frames = [(node, outer, _fewer(ranges)) for node, outer, ranges in self.frames]
        frames = [frame for frame in frames if frame[2]]
        return self.repeat.stack(frames) if frames else None

    @cached
    def rest(self) -> int:
        """Length of the shortest text from the end of this round to that of all."""
        lengths = [
            (ranges[0][0] - 1) * self.repeat.body.far + node.far + (outer.rest if outer else 0)
            for node, outer, ranges in self.frames
        ]
        return min(*lengths, FAR)


Text = bytes | ByteDFA | tuple[bytes | ByteDFA, ...]
"""Texts and languages, one after another."""
Edge = tuple[Text | Repeat, Node]
Frame = tuple[Node, Stack | None, Ranges]
Follow = Callable[[Stack, int], list[Continuation]]


def beginning(rule: Repeat, may_be_empty: bool) -> list[Continuation]:
    """Where the texts begin that a rule reads, and the empty text, if that is one of them."""
    found: list[Continuation] = [(None, None)] if may_be_empty else []
    return [*found, rule.before(_END, None)] if rule.body.reads else found


_END = Node(tuple, True, 0, 0, False)


def continuations(nodes: Iterable[tuple[Node, Stack | None]]) -> list[Continuation]:
    """What may come at some nodes, each in its stack; None behind all."""
    found: dict[tuple[int, int], Continuation] = {}
    waiting, popped = list(nodes), set[int]()
    for node, stack in waiting:
        check()
        if stack is None:
            found[0, 0] = None, None
            continue
        if node.reads:
            found[id(node), id(stack)] = node.part, stack
        if node.ends and id(stack) not in popped:
            popped.add(id(stack))
            waiting += [(to, outer) for to, outer, ranges in stack.frames if ranges[0][0] == 1]
            waiting += [(stack.repeat.body, stack.fewer)] if stack.fewer else []
    return list(found.values())


def length(what: Text | Repeat, more: int = ODD) -> int:
    """Of the shortest of some texts, or of a repeat. more: see `length_of`."""
    if isinstance(what, Repeat):
        return what.least * what.body.far
    return min(sum(length_of(piece, more) for piece in _pieces(what)), FAR)


def _pieces(what: Text | Repeat) -> tuple[bytes | ByteDFA, ...]:
    """What is read before the exit of an edge: a repeat is read behind it."""
    return what if isinstance(what, tuple) else () if isinstance(what, Repeat) else (what,)


def _joined(stacks: list[Stack]) -> Stack:
    """The stack of those rounds of one repeat that begin after the same text."""
    if all(one is stacks[0] for one in stacks):
        return stacks[0]
    return stacks[0].repeat.stack(frame for one in stacks for frame in one.frames)


def _covers(one: Stack | None, other: Stack | None) -> bool:
    """Does one stack surely allow all that another one of the same repeat allows?"""
    if one is None or other is None or one is other:
        return one is other
    return all(any(_includes(wider, frame) for wider in one.frames) for frame in other.frames)


def _includes(one: Frame, other: Frame) -> bool:
    """The same of frames: their node is one, the ranges of the other are within those of the first,
    and the stack around the first covers that around the other."""
    within = all(any(a <= c and d <= b for a, b in one[2]) for c, d in other[2])
    return within and one[0] is other[0] and _covers(one[1], other[1])


def _union(*ranges: tuple[int, int]) -> Ranges:
    """The union of ranges, in order, of as few as possible."""
    found = union((least, most + 1) for least, most in ranges)
    return tuple((least, end - 1) for least, end in zip(found[::2], found[1::2], strict=True))


def _fewer(ranges: Ranges) -> Ranges:
    """The ranges that remain after a round."""
    remaining = [(a, b if b == NO_END else b - 1) for a, b in ranges if b > 1]
    return tuple((max(1, a - 1), b) for a, b in remaining)
