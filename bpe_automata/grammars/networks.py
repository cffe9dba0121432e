"""Rules as networks of symbols, none of which calls itself before it has read anything.

    node     a position in a rule: what may still come. Alternatives that begin or end alike share
             nodes
    group    rules that begin with one another (left recursion, direct or not). Each of them begins
             with what any of them begins with outside the group; where one has been read, those
             that begin with it go on. So left recursion is a loop, and needs no stack

A symbol that may be empty may be skipped; where it is called, it reads a text that is not empty. So
left recursion behind symbols that may be empty is recognised, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from heapq import heapify, heappop, heappush
from operator import or_
from typing import Any, TypeVar

from bpe_automata._budget import check
from bpe_automata.automata.parts import FAR, check_length, length_of
from bpe_automata.errors import EmptyLanguageError
from bpe_automata.grammars.reading import ROOT, Texts
from bpe_automata.grammars.rules import Rules

Edge = tuple[str, int]
"""A symbol, and the node behind it."""
K = TypeVar("K", str, int)


class Networks:
    """terminals: the texts of each. least: the length of each symbol's shortest text that is not
    empty; those in `may_be_empty` have the empty text, too. rank: the number of each rule's group,
    at most 0, and less than that of other groups that the rule begins with."""

    def __init__(self, rules: Rules, terminals: dict[str, Texts]) -> None:
        """Raises EmptyLanguageError, BudgetExceededError."""
        self.terminals = terminals
        found = {name: length_of(texts) for name, texts in terminals.items()}
        lengths = {name: length for name, length in found.items() if length < FAR}
        least = lengths | _least(rules, lengths)
        if ROOT not in least:
            raise EmptyLanguageError("no text is complete under the grammar")
        self.may_be_empty = {name for name, length in least.items() if length == 0}
        self.least = lengths | _least(_without_empty(rules, self.may_be_empty), lengths)
        check_length(max(self.least.values(), default=0), "a rule")
        kept = {  # without symbols that have no text, or none but the empty one
            name: [[s for s in one if s in self.least] for one in found if least.keys() >= {*one}]
            for name, found in rules.items()
            if name in self.least
        }
        self._edges: list[list[Edge]] = []
        self._ends: list[str | None] = []  # the rule that may end at a node
        self._far: dict[str, dict[int, int]] = {}
        nodes = {name: self._nodes(name, rule) for name, rule in kept.items()}
        first = {name: list(dict.fromkeys(self._first(at[-1]))) for name, at in nodes.items()}
        group = _within_reach({name: [s for s, _ in found] for name, found in first.items()})
        self.rank = {name: -group[name].bit_count() for name in kept}
        begins: dict[int, dict[Edge, None]] = {number: {} for number in group.values()}
        self._begins = {name: begins[group[name]] for name in kept}
        self._goes_on: dict[str, list[int]] = {name: [] for name in kept}
        for name, edges in first.items():
            for symbol, node in edges:
                if group.get(symbol) == group[name]:
                    self._goes_on[symbol].append(node)
                else:
                    self._begins[name][symbol, node] = None

    def _nodes(self, name: str, rule: list[list[str]]) -> list[int]:
        """The nodes of a rule, its beginning last."""
        behind: list[dict[str, int]] = [{}]  # of each node of the trie of all alternatives
        ends = set[int]()
        for alternative in rule:
            check()
            at = 0
            for symbol in alternative:
                if symbol not in behind[at]:
                    behind[at][symbol] = len(behind)
                    behind.append({})
                at = behind[at][symbol]
            ends.add(at)
        found: dict[tuple[bool, frozenset[Edge]], int] = {}
        number = [0] * len(behind)
        for at in reversed(range(len(behind))):
            edges = [(symbol, number[to]) for symbol, to in behind[at].items()]
            key = at in ends, frozenset(edges)
            if key not in found:  # never for the beginning: what may still come is longer there
                found[key] = len(self._edges)
                self._edges.append(edges)
                self._ends.append(name if at in ends else None)
            number[at] = found[key]
        return list(found.values())

    def _first(self, root: int) -> Iterator[Edge]:
        """The edges that may be read first from a node."""
        seen, waiting = {root}, [root]
        for node in waiting:
            for symbol, to in self._edges[node]:
                yield symbol, to
                if symbol in self.may_be_empty and to not in seen:
                    seen.add(to)
                    waiting.append(to)

    def follow(self, node: int | None, rule: str) -> tuple[bool, frozenset[Edge]]:
        """(may `rule` end at the node? the edges that may be read next), in the network that reads
        `rule`. node: None for its beginning."""
        reached, waiting, ends, edges = {node}, [node], False, set[Edge]()
        for at in waiting:
            check()
            for symbol, to in self.ways(at, rule):
                if symbol is not None and to is not None:
                    edges.add((symbol, to))
                elif to is None:
                    ends = True
                elif to not in reached:
                    reached.add(to)
                    waiting.append(to)
        return ends, frozenset(edges)

    def ways(self, node: int | None, rule: str) -> Iterator[tuple[str | None, int | None]]:
        """(symbol, node behind it) of each step from a node in the network that reads `rule`. node:
        None for its beginning. The symbol is None if nothing is read, the node behind it None if
        that is the end of `rule`."""
        if node is None:
            yield from self._begins[rule]
            return
        for symbol, to in self._edges[node]:
            yield symbol, to
            if symbol in self.may_be_empty:
                yield None, to
        end = self._ends[node]
        if end is not None:
            for to in self._goes_on[end]:
                yield None, to
        if end == rule:
            yield None, None

    def far(self, node: int | None, rule: str) -> int:
        """The length of the shortest text from a node (None: the beginning) to the rule's end."""
        if node is None:
            return self.least[rule]
        if rule not in self._far:
            found: dict[int, list[tuple[Any, ...]]] = {}
            waiting = [to for _, to in self.ways(None, rule)]
            for at in waiting:
                if at is not None and at not in found:
                    found[at] = list(self.ways(at, rule))
                    waiting += [to for _, to in found[at]]
            self._far[rule] = _least(found, {**self.least, None: 0})
        return self._far[rule][node]


def _without_empty(rules: Rules, may_be_empty: set[str]) -> Rules:
    """Rules whose shortest texts are the shortest texts of the given ones that are not empty."""
    found: dict[str, list[tuple[str, ...]]] = {}
    for name, alternatives in rules.items():
        found[name] = []
        for one in alternatives:
            never_empty = tuple(symbol for symbol in one if symbol not in may_be_empty)
            found[name] += [never_empty] if never_empty else [(symbol,) for symbol in one]
    return found


def _least(
    rules: Mapping[K, Sequence[tuple[Any, ...]]], lengths: Mapping[Any, int]
) -> dict[K, int]:
    """The length of the shortest text of each rule that has a text, from the lengths of the symbols
    that are no rules; shorter ones are settled first (Knuth 1977)."""
    alternatives: list[list[Any]] = []  # length so far, rule, how many symbols are missing
    uses: dict[K, list[list[Any]]] = {}
    for name, found in rules.items():
        for one in found:
            check()
            inside = [symbol for symbol in one if symbol not in lengths]
            length = sum(lengths[symbol] for symbol in one if symbol in lengths)
            alternatives.append([length, name, len(inside)])
            for symbol in inside:
                uses.setdefault(symbol, []).append(alternatives[-1])
    waiting = [(length, name) for length, name, missing in alternatives if not missing]
    heapify(waiting)
    least: dict[K, int] = {}
    while waiting:
        check()
        length, name = heappop(waiting)
        if name not in least:
            least[name] = length
            for use in uses.get(name, ()):
                use[0] += length
                use[2] -= 1
                if use[2] == 0:
                    heappush(waiting, (use[0], use[1]))
    return least


def _within_reach(graph: Mapping[str, list[str]]) -> dict[str, int]:
    """For each node, a bit for itself and for each node that it reaches. Nodes that reach one
    another have the same bits; a node has more bits than the other nodes that it reaches. Edges out
    of the graph are ignored."""
    found = {name: 1 << k for k, name in enumerate(graph)}
    is_new = True
    while is_new:
        is_new = False
        for name in reversed(list(graph)):
            check()
            reach = reduce(or_, (found.get(other, 0) for other in graph[name]), found[name])
            is_new |= reach != found[name]
            found[name] = reach
    return found
