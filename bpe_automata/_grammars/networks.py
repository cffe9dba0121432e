"""Rules as networks of symbols, none of which calls itself before it has read anything.

    node     a place in a rule: what may still come. Alternatives that begin or end alike share them
    group    rules that begin with one another (left recursion, direct or not). Each of them begins
             with what any of them begins with outside the group; where one has been read, those
             that begin with it go on. So left recursion is a loop, and costs no stack
    called   rules that texts go into and come back from: one at least of each circle of rules, and
             large ones that are used again. All others are written out where they are used

Whatever may be empty may be passed by, and what is called or written out is not empty. So left
recursion behind symbols that may be empty is seen as what it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from heapq import heapify, heappop, heappush

from bpe_automata._automata.dfa import ByteDFA
from bpe_automata._automata.parts import BYTE, FAR, length_of
from bpe_automata._budget import check
from bpe_automata._grammars.reading import ROOT, Grammar
from bpe_automata.errors import BudgetExceededError, EmptyLanguageError

_LONGEST = 1 << 20  # bytes of a shortest text
_LARGE, _LARGEST = 500, 5_000  # states of a rule that is called if it is used again; in any case
Rules = Mapping[str, list[tuple[str, ...]]]
Edge = tuple[str, int]
"""A symbol, and the node behind it."""


class Networks:
    """least: length of the shortest text of each symbol, but for the empty text, which those in
    `may_be_empty` have. called: see above. rank: of each rule, less than that of those in other
    groups that it begins with."""

    def __init__(self, grammar: Grammar) -> None:
        """Raises EmptyLanguageError, BudgetExceededError."""
        self.terminals = grammar.terminals
        lengths = _lengths(grammar.terminals)
        rules, self.may_be_empty = _with_texts(grammar.rules, lengths)
        self.least = _least(_without_empty(rules, self.may_be_empty), lengths)
        if max(self.least.values(), default=0) > _LONGEST * BYTE:
            raise BudgetExceededError("bytes", _LONGEST, "the shortest text of a rule is longer")
        self._edges: list[list[Edge]] = []
        self._ends: list[str | None] = []  # the rule that may end at a node
        nodes = {name: self._nodes(name, rule) for name, rule in rules.items()}
        first = {name: list(dict.fromkeys(self._first(at[-1]))) for name, at in nodes.items()}
        group, _, _ = _search({name: [s for s, _ in found] for name, found in first.items()})
        self.rank = {name: -number for name, number in group.items()}
        members: dict[int, list[str]] = {}
        self._begins: dict[str, dict[Edge, None]] = {}
        self._goes_on: dict[str, list[int]] = {name: [] for name in rules}
        leads: dict[str, list[str]] = {}
        for name in rules:
            members.setdefault(group[name], []).append(name)
        for names in members.values():
            begins: dict[Edge, None] = {}
            for name in names:
                for symbol, node in first[name]:
                    if symbol in rules and group[symbol] == group[name]:
                        self._goes_on[symbol].append(node)
                    else:
                        begins[symbol, node] = None
            inner = (self._edges[node] for name in names for node in nodes[name][:-1])
            lead = [s for edges in (begins, *inner) for s, _ in edges if s in self.least]
            self._begins |= dict.fromkeys(names, begins)
            leads |= dict.fromkeys(names, lead)
        self.called = self._to_call({name: leads[name] for name in rules}, members)

    def _nodes(self, name: str, rule: list[tuple[str, ...]]) -> list[int]:
        """The nodes of a rule, its beginning last."""
        trie: list[dict[str, int]] = [{}]
        whole = set[int]()
        for alternative in rule:
            check()
            at = 0
            for symbol in alternative:
                if symbol not in trie[at]:
                    trie[at][symbol] = len(trie)
                    trie.append({})
                at = trie[at][symbol]
            whole.add(at)
        found: dict[tuple[bool, frozenset[Edge]], int] = {}
        number = [0] * len(trie)
        for at in reversed(range(len(trie))):
            edges = [(symbol, number[to]) for symbol, to in trie[at].items()]
            key = at in whole, frozenset(edges)
            if key not in found:  # never for the beginning: what may still come is longer there
                found[key] = len(self._edges)
                self._edges.append(edges)
                self._ends.append(name if at in whole else None)
            number[at] = found[key]
        return list(found.values())

    def _first(self, root: int) -> Iterator[Edge]:
        """What may be read first from a node."""
        seen, waiting = {root}, [root]
        for node in waiting:
            for symbol, to in self._edges[node]:
                if symbol in self.least:
                    yield symbol, to
                if symbol in self.may_be_empty and to not in seen:
                    seen.add(to)
                    waiting.append(to)

    def _to_call(self, leads: dict[str, list[str]], members: dict[int, list[str]]) -> set[str]:
        """The rules to call."""
        _, finished, called = _search(leads)
        uses = Counter(symbol for names in members.values() for symbol in leads[names[0]])
        size = {
            name: len(texts) if isinstance(texts, bytes) else texts.n_states
            for name, texts in self.terminals.items()
        }
        for name in finished:  # after all that are written out in it
            size[name] = sum(1 if s in called else min(size[s], _LARGEST) for s in leads[name])
            if size[name] > _LARGEST or (size[name] > _LARGE and uses[name] > 1):
                called.add(name)
        return called | {ROOT}

    def out_of(self, node: int | None, rule: str) -> Iterator[Edge]:
        """What may be read from a node, or from the beginning of a rule."""
        for symbol, to in self._begins[rule] if node is None else self._edges[node]:
            if symbol in self.least:
                yield symbol, to

    def passing(self, node: int, rule: str) -> tuple[list[int], bool]:
        """The nodes that a node leads to without reading, in a network that reads `rule`; and may
        that end here?"""
        found = [to for symbol, to in self._edges[node] if symbol in self.may_be_empty]
        end = self._ends[node]
        return found if end is None else found + self._goes_on[end], end == rule


def _lengths(terminals: Mapping[str, bytes | ByteDFA]) -> dict[str, int]:
    """Of the shortest text of each terminal that has one."""
    found = {name: length_of(texts) for name, texts in terminals.items()}
    return {name: length for name, length in found.items() if length < FAR}


def _with_texts(rules: Rules, lengths: dict[str, int]) -> tuple[Rules, set[str]]:
    """The rules without symbols that have no text, and those symbols that have the empty one."""
    least = _least(rules, lengths)
    if ROOT not in least:
        raise EmptyLanguageError("no text is complete under the grammar")
    kept = {
        name: [one for one in found if all(symbol in least for symbol in one)]
        for name, found in rules.items()
        if name in least
    }
    return kept, {name for name, length in least.items() if length == 0}


def _without_empty(rules: Rules, may_be_empty: set[str]) -> Rules:
    """Rules whose shortest texts are the shortest of these that are not empty."""
    found: dict[str, list[tuple[str, ...]]] = {}
    for name, alternatives in rules.items():
        found[name] = []
        for one in alternatives:
            never_empty = tuple(symbol for symbol in one if symbol not in may_be_empty)
            found[name] += [never_empty] if never_empty else [(symbol,) for symbol in one]
    return found


def _least(rules: Rules, lengths: dict[str, int]) -> dict[str, int]:
    """Length of the shortest text of each symbol that has one, by those of terminals: the nearest
    first (Knuth 1977)."""
    heads, missing, total = list[str](), list[int](), list[int]()
    uses: dict[str, list[int]] = {}
    waiting = [(length, name) for name, length in lengths.items()]
    for name, alternatives in rules.items():
        for one in alternatives:
            check()
            for symbol in one:
                uses.setdefault(symbol, []).append(len(heads))
            if not one:
                waiting.append((0, name))
            heads.append(name)
            missing.append(len(one))
            total.append(0)
    heapify(waiting)
    found: dict[str, int] = {}
    while waiting:
        check()
        length, name = heappop(waiting)
        if name in found:
            continue
        found[name] = length
        for number in uses.get(name, ()):
            missing[number] -= 1
            total[number] += length
            if missing[number] == 0:
                heappush(waiting, (total[number], heads[number]))
    return found


def _search(graph: Mapping[str, list[str]]) -> tuple[dict[str, int], list[str], set[str]]:
    """(number of the strongly connected component of each node, later ones lead to earlier ones;
    the nodes, as a depth-first search is done with them; those to which it came back while it was
    in them). What leads out of the graph is left out. (Tarjan 1972, without recursion.)"""
    order, low, component = dict[str, int](), dict[str, int](), dict[str, int]()
    finished, again = list[str](), set[str]()
    opened, inside, count = list[str](), set[str](), 0
    for root in graph:
        path = [] if root in order else [(root, iter((root,)))]
        while path:
            check()
            name, others = path[-1]
            for other in others:
                if other not in graph:
                    continue
                if other not in order:
                    order[other] = low[other] = len(order)
                    opened.append(other)
                    inside.add(other)
                    path.append((other, iter(graph[other])))
                    break
                if other in inside:
                    again.add(other)
                if other not in component:
                    low[name] = min(low[name], order[other])
            else:
                path.pop()
                if not path:
                    break
                finished.append(name)
                inside.discard(name)
                above = path[-1][0]
                low[above] = min(low[above], low[name])
                if low[name] == order[name]:
                    while name not in component:
                        component[opened.pop()] = count
                    count += 1
    return component, finished, again
