"""The linked automaton of a regex with large counted repeats (see `linked`).

    piece    a part of the regex without large repeats, as its DFA
    repeat   a large one, or one around a large one; none of its rounds is empty
    net      nodes joined by pieces and repeats, without circles: the regex, the body of a repeat
    part     the pieces that may be read from a node of a net, up to the beginning of a repeat
    rounds   the context of a body: how many rounds may be read from this one on, in ranges, for
             each node that may come behind the repeat, with the context of that
    rung     many rounds as one part, where no text of the body begins another one: the number of
             rounds that were read is never in doubt then

All rounds of a repeat that begin after the same text are one round, whose ranges are those of all.
So a text that may be cut into rounds in many ways leads to few instances; and as the ranges say how
many rounds there may still be, many of them include others, which are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import groupby
from re import _parser  # type: ignore[attr-defined]
from typing import Any

import numpy as np

from bpe_automata._automata.algebra import less_strings
from bpe_automata._automata.assembly import alphabet
from bpe_automata._automata.compile import compile_tree, nested_too_deeply
from bpe_automata._automata.dfa import ByteDFA
from bpe_automata._automata.linked import LinkedDFA
from bpe_automata._automata.part_tables import table_of
from bpe_automata._automata.parts import BYTE, FAR, ROWS, Part, Place, Table, length_of
from bpe_automata._automata.program import REPEATS, kept_flags
from bpe_automata._automata.syntax import Parsed, parse
from bpe_automata._budget import Budget, check, spending
from bpe_automata._sharing import cached
from bpe_automata.errors import BudgetExceededError, EmptyLanguageError

_LARGE = 256  # characters of a repeat that is written out, beyond which it is large
_ROUNDS = ROWS - 2  # of a rung: the states between them are written down together
_MOST_STATES = 4_000  # of a rung
_LONGEST = 1 << 20  # bytes of a shortest text
_NO_END = 1 << 40  # more rounds than any text has
Ranges = tuple[tuple[int, int], ...]
"""Numbers of rounds, the present one included: from the first to the second of each, in order."""


def link_regex(pattern: str, budget: Budget = Budget()) -> LinkedDFA:  # noqa: B008 - frozen
    """The language of `compile_regex(pattern)`, written down where texts lead.

    It takes milliseconds where counts are large, such as those of `.{0,100000}`, alone or one in
    another. What lies between such repeats is compiled as `compile_regex` does it; `to_dfa` makes
    the explicit automaton, where that is small enough.

    budget: of reading the regex; six times its states may be written down, one to ten for each
    character of a text. What is too large may show only when a text leads there, as
    BudgetExceededError of that call.

    Raises RegexSyntaxError, UnsupportedRegexError (both with a position), EmptyLanguageError,
    BudgetExceededError.
    """
    with spending(budget):
        try:
            net = _Nets(parse(pattern), budget)
        except RecursionError:
            raise nested_too_deeply() from None
        if net.root.far >= FAR:
            raise EmptyLanguageError(f"no text matches {pattern!r}")
        columns = alphabet(net.pieces, np.frombuffer(b" ", np.uint8))[0].astype(np.uint8)
        again = link_regex, (pattern, budget)
        return LinkedDFA(net.root.places(_ROOT), columns, budget, origin=again)


class _Nets:
    """Makes the nets of a regex, from its end to its beginning; pieces: all that are in them."""

    def __init__(self, parsed: Parsed, budget: Budget) -> None:
        self._parsed, self._budget, self._depth = parsed, budget, 0
        self.pieces: list[ByteDFA] = []
        self.root = self._sequence(parsed.tree, parsed.flags, self._node(True))

    def _sequence(self, items: Any, flags: int, then: _Node) -> _Node:
        """The node from which some items are read, up to another node."""
        for large, run in reversed([(k, list(run)) for k, run in groupby(items, _is_large)]):
            check()
            if not large:
                then = self._piece(run, flags, then)
                continue
            for op, av in reversed(run):
                if op is _parser.SUBPATTERN:
                    then = self._sequence(av[3], kept_flags(av, flags), then)
                elif op is _parser.BRANCH:
                    then = self._branch(av[1], flags, then)
                else:
                    then = self._repeat(*av, flags, then)
        return then

    def _piece(self, items: list[Any], flags: int, then: _Node) -> _Node:
        dfa = compile_tree(Parsed(self._parsed.source, items, flags), self._budget)
        may_be_empty = bool(dfa.accepting[dfa.start])
        texts = less_strings(dfa, [b""]) if may_be_empty else dfa
        self.pieces.append(texts)
        read = self._node(False, [(texts, then)])
        return self._any_of([read, then]) if may_be_empty else read

    def _branch(self, alternatives: list[Any], flags: int, then: _Node) -> _Node:
        small = [one for one in alternatives if not any(map(_is_large, one))]
        found = [self._sequence(one, flags, then) for one in alternatives if one not in small]
        if small:
            found.append(self._piece([(_parser.BRANCH, (None, small))], flags, then))
        return self._any_of(found)

    def _repeat(self, least: int, most: Any, body: Any, flags: int, then: _Node) -> _Node:
        most = _NO_END if most is _parser.MAXREPEAT else most
        if most <= 1:
            once = [self._sequence(body, flags, then)] if most else []
            return self._any_of(once if least else [then, *once])
        self._depth += 1
        inside = self._sequence(body, flags, self._node(True))
        begin = self._node(False, inside.edges)
        self._depth -= 1
        least = 0 if inside.ends else least
        repeated = self._node(False, [(_Repeat(begin, max(1, least), most), then)])
        return repeated if least else self._any_of([repeated, then])

    def _any_of(self, nodes: list[_Node]) -> _Node:
        edges = {(id(what), id(to)): (what, to) for node in nodes for what, to in node.edges}
        return self._node(any(node.ends for node in nodes), edges.values())

    def _node(self, ends: bool, edges: Iterable[Edge] = ()) -> _Node:
        """Without edges from which no text comes to the end."""
        lengths = [(min(_length(what) + to.far, FAR), (what, to)) for what, to in edges]
        far = 0 if ends else min((length for length, _ in lengths), default=FAR)
        if _LONGEST * BYTE < far < FAR:
            raise BudgetExceededError("bytes", _LONGEST, "the shortest text is longer")
        live = tuple(edge for length, edge in lengths if length < FAR)
        return _Node(ends, live, far, self._depth)


def _is_large(item: Any) -> bool:
    """Is an item of a tree a large repeat, or does it hold one that can be taken apart?"""
    op, av = item
    if op is _parser.SUBPATTERN:
        return any(map(_is_large, av[3]))
    if op is _parser.BRANCH:
        return any(_is_large(one) for body in av[1] for one in body)
    return op in REPEATS and (_size(item) > _LARGE or any(map(_is_large, av[2])))


def _size(item: Any) -> int:
    """How many characters there are in an item, once its repeats are written out."""
    op, av = item
    if op is _parser.SUBPATTERN:
        return sum(map(_size, av[3]))
    if op is _parser.BRANCH:
        return sum(_size(one) for body in av[1] for one in body)
    if op in REPEATS:
        least, most, body = av
        return max(1, least if most is _parser.MAXREPEAT else most) * sum(map(_size, body))
    return 1


def _length(what: ByteDFA | _Repeat) -> int:
    return length_of(what) if isinstance(what, ByteDFA) else min(what.least * what.body.far, FAR)


@dataclass(frozen=True, eq=False)
class _Node:
    """ends: may the net end here? edges: what else may come, not empty, with the node behind it.
    far: length of the shortest text to the end of the net; depth: of repeats around it."""

    ends: bool
    edges: tuple[Edge, ...]
    far: int
    depth: int

    def places(self, rounds: _Rounds) -> list[Place]:
        """What may come here, in a context."""
        found: list[Place] = [(self.part, rounds)] if self.edges else []
        return found + rounds.after(1) if self.ends else found

    @cached
    def part(self) -> Part:
        """What is read here; label i is behind the piece of edge i, or before its repeat."""

        def follow(rounds: _Rounds, label: int) -> Iterable[Place]:
            what, to = self.edges[label]
            if isinstance(what, ByteDFA):
                return to.places(rounds)
            return [(what.part, what.rounds([(to, rounds, ((what.least, what.most),))]))]

        pieces = [((what,) if isinstance(what, ByteDFA) else ()) for what, _ in self.edges]
        table = table_of([(piece, label) for label, piece in enumerate(pieces)])
        costs = {
            label: to.far + (0 if isinstance(what, ByteDFA) else _length(what))
            for label, (what, to) in enumerate(self.edges)
        }
        given = table, table.far(costs), follow, _rest, _joined, self.depth
        return Part(*given, family=self, covers=_covers)


@dataclass(frozen=True, eq=False)
class _Repeat:
    """From `least` to `most` rounds of a body, at least one."""

    body: _Node
    least: int
    most: int

    def rounds(self, frames: list[Frame]) -> _Rounds:
        """A round in the context of these: the same object for the same."""
        merged: dict[tuple[int, int], Frame] = {}
        for node, outer, ranges in frames:
            key = id(node), id(outer)
            before = merged[key][2] if key in merged else ()
            merged[key] = node, outer, _union(*before, *ranges)
        found = list(merged.values())
        for frame in list(found):
            if any(_includes(other, frame) for other in found if other is not frame):
                found.remove(frame)
        same = frozenset((id(node), id(outer), ranges) for node, outer, ranges in found)
        return self._known.setdefault(same, _Rounds(self, tuple(found)))

    @cached
    def _known(self) -> dict[object, _Rounds]:
        return {}

    @cached
    def part(self) -> Part:
        """The beginning of a round: of the body, or of a rung, which depends on the context."""
        if self._most_rounds == 1:
            return self.body.part

        def follow(rounds: _Rounds, _: int) -> Iterable[Place]:
            return [(rounds.rung[0], rounds)]

        table = table_of([((), 0)])
        far = table.far({0: self.body.far})
        return Part(table, far, follow, _rest, _joined, self.body.depth)

    @cached
    def _most_rounds(self) -> int:
        """Of a rung; 1 if there are none."""
        (what, to), *others = self.body.edges
        if others or to.edges or not isinstance(what, ByteDFA):
            return 1
        if what.trans[what.accepting].any():
            return 1
        return max(1, min(_ROUNDS, _MOST_STATES // what.n_states))

    @cached
    def _rungs(self) -> dict[tuple[tuple[int, int], ...], Part]:
        return {}

    def rung(self, costs: dict[int, int]) -> Part:
        """A rung with an exit behind some numbers of rounds, the largest one last, and the length
        of the shortest text behind each of them, less that of the context."""
        key = tuple(costs.items())
        if key not in self._rungs:
            table = _layers(self.body.edges[0][0], list(costs))  # type: ignore[arg-type]
            far, rank, last = table.far(costs), self.body.depth, max(costs)

            def follow(rounds: _Rounds, label: int) -> Iterable[Place]:
                return rounds.after(label) if label == last else rounds.left_after(label)

            def compared(at: int, rounds: _Rounds) -> tuple[int, _Rounds | None]:
                if at <= last + 1:
                    return -1, rounds.then(at - 1)
                read, inner = divmod(at - last - 2, (len(table.trans) - last - 2) // last)
                return inner, rounds.then(read)

            self._rungs[key] = Part(
                table,
                far,
                follow,
                _rest_of_rung,
                rank=rank,
                family=self,
                covers=_covers,
                compared=compared,
            )
        return self._rungs[key]


def _layers(dfa: ByteDFA, exits: list[int]) -> Table:
    """As many rounds as the last of `exits`, each of which has its number as its label. States: 0;
    those between rounds, by their number; those within rounds."""
    layers, inner = exits[-1], np.flatnonzero(~dfa.accepting)[1:]
    trans = np.zeros((layers + 2 + layers * len(inner), dfa.n_classes), np.int32)
    number = np.zeros(dfa.n_states, np.int32)
    for k in range(layers):
        first = layers + 2 + k * len(inner)
        number[inner] = np.arange(first, first + len(inner))
        number[dfa.accepting] = k + 2
        trans[k + 1] = number[dfa.trans[dfa.start]]
        trans[first : first + len(inner)] = number[dfa.trans[inner]]
    return Table(trans, dfa.byte_class, 1, {label + 1: (label,) for label in exits})


@dataclass(frozen=True, eq=False)
class _Rounds:
    """Which rounds of a repeat may still be read, and what may come behind them. The context of
    the whole regex has no repeat, and one way on: to the end."""

    repeat: _Repeat | None
    frames: tuple[Frame, ...]

    def behind(self, rounds: int) -> int:
        """Length of the shortest text from the end of some rounds to that of all; FAR if they are
        too many."""
        if self.repeat is None:
            return 0
        return min(
            max(0, least - rounds) * self.repeat.body.far + node.far + outer.rest
            if rounds <= most
            else FAR
            for node, outer, ranges in self.frames
            for least, most in ranges
        )

    @cached
    def rest(self) -> int:
        """Length of the shortest text from the end of this round to that of all."""
        return self.behind(1)

    @cached
    def rung(self) -> tuple[Part, int]:
        """The rung that begins here, and the length of the shortest text behind it."""
        repeat, ranges = self.repeat, [one for *_, ranges in self.frames for one in ranges]
        assert repeat is not None
        endless = all(one == (1, _NO_END) for one in ranges)  # then one round is like another
        last = 1 if endless else min(repeat._most_rounds, max(most for _, most in ranges))
        exits = [
            k for k in range(1, last + 1) if k == last or any(a <= k <= b for a, b in ranges)
        ]
        costs = {k: self.behind(k) for k in exits}
        rest = min(costs.values())
        return repeat.rung({k: cost - rest for k, cost in costs.items()}), rest

    def left_after(self, rounds: int) -> list[Place]:
        """What may come behind the repeat, after some rounds."""
        if self.repeat is None:
            return [(None, self)]
        return [
            place
            for node, outer, ranges in self.frames
            if any(least <= rounds <= most for least, most in ranges)
            for place in node.places(outer)
        ]

    def after(self, rounds: int) -> list[Place]:
        """The same, and another round."""
        found, then = self.left_after(rounds), self.then(rounds)
        return [*found, (then.repeat.part, then)] if then and then.repeat else found

    def then(self, rounds: int) -> _Rounds | None:
        """The round after some others, if there may be one."""
        if self.repeat is None or rounds == 0:
            return self if rounds == 0 else None
        if rounds not in self._then:
            left = [
                (node, outer, fewer)
                for node, outer, ranges in self.frames
                if (fewer := _fewer(ranges, rounds))
            ]
            self._then[rounds] = self.repeat.rounds(left) if left else None
        return self._then[rounds]

    @cached
    def _then(self) -> dict[int, _Rounds | None]:
        return {}


def _fewer(ranges: Ranges, rounds: int) -> Ranges:
    """What is left of ranges after some rounds."""
    return tuple(
        (max(1, least - rounds), most if most == _NO_END else most - rounds)
        for least, most in ranges
        if most > rounds
    )


Edge = tuple[ByteDFA | _Repeat, _Node]
Frame = tuple[_Node, _Rounds, Ranges]
_ROOT = _Rounds(None, ())


def _rest(rounds: _Rounds) -> int:
    return rounds.rest


def _rest_of_rung(rounds: _Rounds) -> int:
    return rounds.rung[1]


def _joined(contexts: list[_Rounds]) -> _Rounds:
    """Rounds of one repeat that begin after the same text."""
    first = contexts[0]
    if first.repeat is None or all(one is first for one in contexts):
        return first
    return first.repeat.rounds([frame for one in contexts for frame in one.frames])


def _covers(one: _Rounds, other: _Rounds) -> bool:
    """Is what may follow in the other context, of the same repeat, known to be among what may
    follow in this one?"""
    return one is other or all(
        any(_includes(wider, frame) for wider in one.frames) for frame in other.frames
    )


def _includes(one: Frame, other: Frame) -> bool:
    """The same of what is behind the repeat, and of how many rounds there are."""
    return (
        one[0] is other[0]
        and all(any(a <= c and d <= b for a, b in one[2]) for c, d in other[2])
        and _covers(one[1], other[1])
    )


def _union(*ranges: tuple[int, int]) -> Ranges:
    """In order, and as few as possible."""
    found: list[tuple[int, int]] = []
    for least, most in sorted(ranges):
        if found and least <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(found[-1][1], most)
        else:
            found.append((least, most))
    return tuple(found)
