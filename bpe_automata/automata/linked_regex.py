"""The linked automaton of a regex with large counted repeats (see `linked`): its tree as nets of
pieces and repeats (see `rounds`).

A piece is a part of the regex without large repeats. Repeats that are large, or around a large one,
are counted; an empty text is never counted as a round.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from math import inf

from bpe_automata._budget import Budget, spending
from bpe_automata.automata.algebra import difference
from bpe_automata.automata.compile import compile_regex, compile_tree, refusing_deep_nesting
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.automata.linked import ByteAutomaton, LinkedDFA
from bpe_automata.automata.part_tables import columns
from bpe_automata.automata.parts import FAR, check_length
from bpe_automata.automata.rounds import NO_END, Edge, Repeat, beginning, length
from bpe_automata.automata.rounds import Node as NetNode
from bpe_automata.automata.syntax import Alternation, Node, Repetition, Tree, parse
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
    with spending(budget), refusing_deep_nesting():
        return _linked(pattern, parse(pattern), budget)


def compile_or_link(pattern: str, budget: Budget) -> ByteAutomaton:
    """`compile_regex(pattern)`, or `link_regex(pattern)` where large counts make that too large.

    Raises what `compile_regex` raises, also where both go over the budget; and EmptyLanguageError
    where it is linked."""
    with spending(budget), refusing_deep_nesting():
        tree = parse(pattern)
        try:
            return compile_tree(tree, budget)
        except BudgetExceededError as error:
            if error.resource not in _OF_SIZE or not any(map(_is_large, tree)):
                raise
            try:
                return _linked(pattern, tree, budget)
            except BudgetExceededError:
                raise error from None


def _linked(pattern: str, tree: Tree, budget: Budget) -> LinkedDFA:
    net = _Nets(tree, budget)
    if net.root.far >= FAR:
        raise EmptyLanguageError(f"no text matches {pattern!r}")
    rule = Repeat(NetNode(lambda: net.root.edges, False, net.root.far, 0), 1, 1)
    given = beginning(rule, net.root.ends), columns(texts for texts, _ in net.pieces.values())
    return LinkedDFA(*given, budget, origin=(link_regex, (pattern, budget)), rule=rule)


class _Nets:
    """The nets of a regex, made from its end to its beginning. root: of the outermost; pieces: the
    texts of each, without the empty one, and whether that is among them."""

    def __init__(self, tree: Tree, budget: Budget) -> None:
        self._budget, self._depth = budget, 0
        self.pieces: dict[Tree, tuple[ByteDFA, bool]] = {}
        self.root = self._sequence(tree, self._node(True))

    def _sequence(self, tree: Tree, then: NetNode) -> NetNode:
        """The node from which a tree is read, up to another node."""
        for is_large, run in reversed([(k, tuple(run)) for k, run in groupby(tree, _is_large)]):
            if not is_large:
                then = self._piece(run, then)
                continue
            for node in reversed(run):
                if isinstance(node, Alternation):
                    then = self._alternation(node.options, then)
                elif isinstance(node, Repetition):
                    then = self._repetition(node, then)
        return then

    def _piece(self, tree: Tree, then: NetNode) -> NetNode:
        if tree not in self.pieces:
            texts = compile_tree(tree, self._budget)
            may_be_empty = bool(texts.accepting[texts.start])
            if may_be_empty:
                texts = difference(texts, compile_regex(""), self._budget)
            self.pieces[tree] = texts, may_be_empty
        texts, may_be_empty = self.pieces[tree]
        read = self._node(False, [] if texts.is_empty else [(texts, then)])
        return self._any_of([read, then]) if may_be_empty else read

    def _alternation(self, options: tuple[Tree, ...], then: NetNode) -> NetNode:
        by_size: dict[bool, list[Tree]] = {False: [], True: []}
        for one in options:
            by_size[any(map(_is_large, one))].append(one)
        found = [self._sequence(one, then) for one in by_size[True]]
        if by_size[False]:
            found.append(self._piece((Alternation(tuple(by_size[False])),), then))
        return self._any_of(found)

    def _repetition(self, node: Repetition, then: NetNode) -> NetNode:
        if node.most is not None and node.most <= 1:
            once = self._sequence(node.body, then)  # also where it is not read: for its errors
            return self._any_of(([] if node.least else [then]) + ([once] if node.most else []))
        if self._depth == _DEEPEST:
            raise BudgetExceededError("repeats in one another", _DEEPEST, "nest fewer of them")
        self._depth += 1
        inside = self._sequence(node.body, self._node(True))
        begin = self._node(False, inside.edges)
        self._depth -= 1
        least = 0 if inside.ends else node.least
        repeat = Repeat(begin, max(1, least), NO_END if node.most is None else node.most)
        repeated = self._node(False, [(repeat, then)] if begin.edges else [])
        return repeated if least else self._any_of([repeated, then])

    def _any_of(self, nodes: list[NetNode]) -> NetNode:
        edges = {(id(what), id(to)): (what, to) for node in nodes for what, to in node.edges}
        return self._node(any(node.ends for node in nodes), edges.values())

    def _node(self, ends: bool, edges: Iterable[Edge] = ()) -> NetNode:
        """A node without the edges behind which no text can end."""
        live = tuple((what, to) for what, to in edges if to.far < FAR)
        lengths = [length(what) + to.far for what, to in live]
        check_length(max(lengths, default=0), "some part of the regex")
        far = 0 if ends else min(lengths, default=FAR)
        return NetNode(lambda: live, ends, far, self._depth)


def _is_large(node: Node) -> bool:
    """Is a node a large repeat, or is there one inside that can be compiled by itself?"""
    return _size(node) == inf


def _size(node: Node) -> float:
    """How many characters a node has once its repeats are written out; inf if it is large."""
    if isinstance(node, Alternation):
        return sum(_size(one) for option in node.options for one in option)
    if not isinstance(node, Repetition):
        return 1
    copies = max(1, node.least if node.most is None else node.most)
    size = copies * sum(map(_size, node.body))
    return inf if copies > 1 and size > _LARGE else size
