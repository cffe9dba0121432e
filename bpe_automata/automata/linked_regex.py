"""The linked automaton of a regex with large counted repeats (see `linked`): its tree as nets of
pieces and repeats (see `rounds`).

A piece is a part of the regex without large repeats. Repeats that are large, or around a large one,
are counted; an empty text is never counted as a round.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from math import inf
from re import _parser  # type: ignore[attr-defined]
from typing import Any

from bpe_automata._budget import Budget, spending
from bpe_automata.automata.algebra import difference
from bpe_automata.automata.compile import compile_regex, compile_tree, nested_too_deeply
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.automata.linked import ByteAutomaton, LinkedDFA
from bpe_automata.automata.part_tables import columns
from bpe_automata.automata.parts import FAR, check_length
from bpe_automata.automata.program import REPEATS, kept_flags
from bpe_automata.automata.rounds import NO_END, Edge, Node, Repeat, beginning, length
from bpe_automata.automata.syntax import Parsed, parse
from bpe_automata.errors import BudgetExceededError, EmptyLanguageError

_LARGE = 256  # characters: a repeat that is longer than this when written out is large
_DEEPEST = 64  # large repeats one in another; each takes some frames of the stack
_OF_SIZE = frozenset(("states", "instructions", "bytes"))
"""Resources of which an explicit automaton may take too much."""


def link_regex(pattern: str, budget: Budget = Budget()) -> LinkedDFA:  # noqa: B008 - frozen
    """The language of `compile_regex(pattern)`, whose states are made only when a text leads there.

    Large counts such as `.{0,100000}`, also one within another, take milliseconds. The parts
    without large repeats are compiled by `compile_regex`. `to_dfa` makes the explicit automaton,
    where it is small enough.

    budget: of reading the regex, and of each call. Texts may make six times its states, one to some
    tens for each character; a call that needs more raises BudgetExceededError.

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
        rule = Repeat(Node(lambda: net.root.edges, False, net.root.far, 0), 1, 1)
        given = beginning(rule, net.root.ends), columns(texts for texts, _ in net.pieces.values())
        return LinkedDFA(*given, budget, origin=(link_regex, (pattern, budget)), rule=rule)


def compile_or_link(pattern: str, budget: Budget) -> ByteAutomaton:
    """`compile_regex(pattern)`, or `link_regex(pattern)` where large counts make that too large.

    Raises what `compile_regex` raises, also where both go over the budget; and EmptyLanguageError
    where it is linked."""
    with spending(budget):
        try:
            return compile_regex(pattern, budget)
        except BudgetExceededError as error:
            if error.resource not in _OF_SIZE or not any(map(_is_large, parse(pattern).tree)):
                raise
            try:
                return link_regex(pattern, budget)
            except BudgetExceededError:
                raise error from None


class _Nets:
    """The nets of a regex, made from its end to its beginning. root: of the outermost; pieces: the
    texts of each, without the empty one, and whether that is among them."""

    def __init__(self, parsed: Parsed, budget: Budget) -> None:
        self._source, self._budget, self._depth = parsed.source, budget, 0
        self.pieces: dict[tuple[str, int], tuple[ByteDFA, bool]] = {}
        self.root = self._sequence(parsed.tree, parsed.flags, self._node(True))

    def _sequence(self, items: Any, flags: int, then: Node) -> Node:
        """The node from which some items are read, up to another node."""
        for large, run in reversed([(k, list(run)) for k, run in groupby(items, _is_large)]):
            if not large:
                then = self._piece(run, flags, then)
                continue
            for op, av in reversed(run):
                if op is _parser.SUBPATTERN:
                    then = self._sequence(av[3], kept_flags(av, flags), then)
                elif op is _parser.BRANCH:
                    then = self._branch(av[1], flags, then)
                else:
                    then = self._repeat(av, flags, then)
        return then

    def _piece(self, items: list[Any], flags: int, then: Node) -> Node:
        key = repr(items), flags
        if key not in self.pieces:
            texts = compile_tree(Parsed(self._source, items, flags), self._budget)
            may_be_empty = bool(texts.accepting[texts.start])
            if may_be_empty:
                texts = difference(texts, compile_regex(""), self._budget)
            self.pieces[key] = texts, may_be_empty
        texts, may_be_empty = self.pieces[key]
        read = self._node(False, [] if texts.is_empty else [(texts, then)])
        return self._any_of([read, then]) if may_be_empty else read

    def _branch(self, alternatives: list[Any], flags: int, then: Node) -> Node:
        by_size: dict[bool, list[Any]] = {False: [], True: []}
        for one in alternatives:
            by_size[any(map(_is_large, one))].append(one)
        found = [self._sequence(one, flags, then) for one in by_size[True]]
        if by_size[False]:
            found.append(self._piece([(_parser.BRANCH, (None, by_size[False]))], flags, then))
        return self._any_of(found)

    def _repeat(self, bounds: Any, flags: int, then: Node) -> Node:
        least, most, body = bounds
        if most <= 1:
            once = self._sequence(body, flags, then)  # also where it is not read: for its errors
            return self._any_of(([] if least else [then]) + ([once] if most else []))
        if self._depth == _DEEPEST:
            raise BudgetExceededError("repeats in one another", _DEEPEST, "nest fewer of them")
        self._depth += 1
        inside = self._sequence(body, flags, self._node(True))
        begin = self._node(False, inside.edges)
        self._depth -= 1
        least = 0 if inside.ends else least
        most = NO_END if most == _parser.MAXREPEAT else most
        repeat = Repeat(begin, max(1, least), most)
        repeated = self._node(False, [(repeat, then)] if begin.edges else [])
        return repeated if least else self._any_of([repeated, then])

    def _any_of(self, nodes: list[Node]) -> Node:
        edges = {(id(what), id(to)): (what, to) for node in nodes for what, to in node.edges}
        return self._node(any(node.ends for node in nodes), edges.values())

    def _node(self, ends: bool, edges: Iterable[Edge] = ()) -> Node:
        """Edges behind which no text can end are left out."""
        live = tuple((what, to) for what, to in edges if to.far < FAR)
        lengths = [length(what) + to.far for what, to in live]
        check_length(max(lengths, default=0), "some part of the regex")
        far = 0 if ends else min(lengths, default=FAR)
        return Node(lambda: live, ends, far, self._depth)


def _is_large(item: Any) -> bool:
    """Is an item of a tree a large repeat, or does it hold one that can be taken apart?"""
    return _size(item) == inf


def _size(item: Any) -> float:
    """How many characters an item has once its repeats are written out; inf if it is large."""
    op, av = item
    if op is _parser.SUBPATTERN:
        return sum(map(_size, av[3]))
    if op is _parser.BRANCH:
        return sum(_size(one) for body in av[1] for one in body)
    if op not in REPEATS:
        return 1
    least, most, body = av
    copies = max(1, least if most == _parser.MAXREPEAT else most)
    size = copies * sum(map(_size, body))
    return inf if copies > 1 and size > _LARGE else size
