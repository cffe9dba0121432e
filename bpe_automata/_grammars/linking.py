"""The linked automaton of a grammar (see `_automata.linked`).

    part      one terminal from a place in a called rule; nothing, where a call or the rule's end
              comes first
    stack     the context of a part: the places where texts may go on behind the rule that is being
              read, each with the stack around it; a set, as a text may be read in many ways

All calls of a rule after the same text are one call, which may come back to many places. So there
are at most as many stacks as positions in the text times rules, however ambiguous the grammar (the
graph-structured stack of Tomita 1986). A call after which its rule has nothing more to read comes
back to where that rule would: recursion on the right costs no stack.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np

from bpe_automata._automata.linked import LinkedDFA
from bpe_automata._automata.part_tables import Alternative, table_of
from bpe_automata._automata.parts import FAR, Part, Place
from bpe_automata._budget import Budget, check, spending
from bpe_automata._grammars.networks import Edge, Networks
from bpe_automata._grammars.reading import ROOT, read
from bpe_automata._kernels.byte_product import joint_columns
from bpe_automata._sharing import cached
from bpe_automata.errors import ArgumentError

_END = 0
"""The label of a rule's end, and the state there."""


def compile_grammar(
    grammar: str,
    *,
    start: str = "start",
    reserved_words: bool = False,
    budget: Budget = Budget(),  # noqa: B008 - frozen
) -> LinkedDFA:
    """The language of a context-free grammar in lark's format, over UTF-8 bytes.

    grammar: in lark's format, with its `%import`, `%ignore`, templates and operators. start: the
    rule of whole texts. A text belongs to the language if it can be cut into terminals in some way
    that the rules allow, with ignored ones, as long as they can be, in any place between: what lark
    parses with `parser="earley", lexer="dynamic_complete"`. Priorities choose among trees, so they
    change nothing but `reserved_words`. Brackets may be nested without limit; any recursion and
    ambiguity is allowed.

    reserved_words: if true, a regex terminal does not match a text that is a string terminal of the
    same priority. So a name is never a keyword, as in lark's basic lexer (the contextual one allows
    it where the keyword could not come). These lexers cut a text in one way only, `notx` into a
    name and not into `not` and `x`, so they still reject some texts of the language.

    budget: of reading the grammar; six times its states may be written down. What is too large
    may show only when a text leads there, as BudgetExceededError of that call.

    Regexes are those of Python's `re`, without backreferences, and without assertions but a
    lookbehind for one character. Raises ArgumentError, GrammarError for what lark cannot read,
    UnsupportedGrammarError, EmptyLanguageError, BudgetExceededError, and MissingDependencyError
    without lark.
    """
    if not isinstance(grammar, str) or not isinstance(start, str):
        raise ArgumentError("the grammar and its start are texts: give strings")
    if not isinstance(budget, Budget):
        raise ArgumentError(f"the budget is a {type(budget).__name__}: give a Budget")
    with spending(budget):
        networks = Networks(read(grammar, start, reserved_words, budget))
        linker = _Linker(networks, budget)
        again = grammar, start, reserved_words, budget
        return LinkedDFA(linker.begin(), _columns(networks), budget, origin=(_again, again))


def _again(grammar: str, start: str, reserved_words: bool, budget: Budget) -> LinkedDFA:
    """In another process."""
    return compile_grammar(grammar, start=start, reserved_words=reserved_words, budget=budget)


def _columns(networks: Networks) -> np.ndarray:
    """uint8 [256]: a column for all bytes that no terminal tells apart."""
    told_apart = np.zeros(256, np.bool_)
    told_apart[ord(" ")] = True  # some tokenizers put one before a text
    classes = {}
    for texts in networks.terminals.values():
        if isinstance(texts, bytes):
            told_apart[list(texts)] = True
        else:
            classes[texts.byte_class.tobytes()] = texts.byte_class
    rows = np.array(list(classes.values()), np.uint8).reshape(len(classes), 256)
    return joint_columns(rows, told_apart)[0].astype(np.uint8)


@dataclass(frozen=True, eq=False)
class _Stack:
    """ends: may the text end behind the rule? frames: where it may go on. rest: length of the
    shortest text from there to the end."""

    ends: bool
    frames: tuple[tuple[_Place, _Stack], ...]
    rest: int


class _Linker:
    """Makes the networks of rules and their parts, each when it is first entered."""

    def __init__(self, networks: Networks, budget: Budget) -> None:
        self.networks, self.budget = networks, budget
        self._rules: dict[str, _Rule] = {}
        self._stacks: dict[tuple[bool, frozenset[tuple[int, int]]], _Stack] = {}

    def begin(self) -> list[Place]:
        """Where texts begin."""
        bottom = self.stack(True, ())
        found: list[Place] = [(self.rule(ROOT).begin.part, bottom)]
        return [*found, (None, bottom)] if ROOT in self.networks.may_be_empty else found

    def rule(self, name: str) -> _Rule:
        """A rule that is called."""
        if name not in self._rules:
            self._rules[name] = _Rule(name, self)
        return self._rules[name]

    def stack(self, ends: bool, frames: Iterable[tuple[_Place, _Stack]]) -> _Stack:
        """Always the same object for the same places, in any order."""
        by_id = {(id(place), id(outer)): (place, outer) for place, outer in frames}
        key = ends, frozenset(by_id)
        if key not in self._stacks:
            rest = min([place.far + outer.rest for place, outer in by_id.values()], default=FAR)
            rest = 0 if ends else min(rest, FAR)
            self._stacks[key] = _Stack(ends, tuple(by_id.values()), rest)
        return self._stacks[key]

    def joined(self, stacks: list[_Stack]) -> _Stack:
        """That of all calls of a rule behind one text."""
        if len(stacks) == 1:
            return stacks[0]
        return self.stack(any(s.ends for s in stacks), [f for s in stacks for f in s.frames])


class _Rule:
    """The network of a called rule: states, with what they read or call, and where they lead
    without reading. The rules that are not called are written out in it, once for each state that
    they lead to."""

    def __init__(self, name: str, linker: _Linker) -> None:
        self.name, self.linker = name, linker
        self._places: dict[object, _Place] = {}
        self._edges: list[list[Edge]] = [[]]
        self._silent: list[list[int]] = [[]]
        self._number: dict[tuple[str, int, int | None], int] = {}
        self._waiting: list[tuple[str, int, int | None]] = []
        self._start = self._state(name, _END, None)
        while self._waiting:
            check()
            self._write(*self._waiting.pop())
        self.far = self._distances()

    def _state(self, rule: str, leave: int, node: int | None) -> int:
        """The state of a node of a rule that is written out, and leads to state `leave`; without a
        node, of its beginning."""
        key = rule, leave, node
        if key not in self._number:
            self._number[key] = len(self._edges)
            self._edges.append([])
            self._silent.append([])
            self._waiting.append(key)
        return self._number[key]

    def _write(self, rule: str, leave: int, node: int | None) -> None:
        networks, at = self.linker.networks, self._number[rule, leave, node]
        for symbol, to in networks.out_of(node, rule):
            then = self._state(rule, leave, to)
            if symbol in networks.terminals or symbol in networks.called:
                self._edges[at].append((symbol, then))
            else:
                self._silent[at].append(self._state(symbol, then, None))
        if node is not None:
            others, ends = networks.passing(node, rule)
            self._silent[at] += [self._state(rule, leave, to) for to in others]
            self._silent[at] += [leave] if ends else []

    def _distances(self) -> list[int]:
        """Length of the shortest text from each state to the end of the rule."""
        least = self.linker.networks.least
        before: list[list[tuple[int, int]]] = [[] for _ in self._edges]
        for at, edges in enumerate(self._edges):
            for symbol, to in edges:
                before[to].append((least[symbol], at))
            for to in self._silent[at]:
                before[to].append((0, at))
        far, waiting = [FAR] * len(before), [(0, _END)]
        while waiting:
            check()
            length, at = heappop(waiting)
            if length < far[at]:
                far[at] = length
                for more, one in before[at]:
                    heappush(waiting, (length + more, one))
        return far

    @cached
    def begin(self) -> _Place:
        return self.place(self._start)

    def place(self, state: int) -> _Place:
        """Equal for states behind which the same may come."""
        reached, waiting = {state}, [state]
        for at in waiting:
            for to in self._silent[at]:
                if to not in reached:
                    reached.add(to)
                    waiting.append(to)
        edges = frozenset(edge for at in reached for edge in self._edges[at])
        key = _END in reached, edges
        if key not in self._places:
            self._places[key] = _Place(self, _END in reached, edges, self.far[state])
        return self._places[key]


class _Place:
    """What may come in a called rule: edges, and the end of the rule if `ends`. far: length to
    the end."""

    def __init__(self, rule: _Rule, ends: bool, edges: frozenset[Edge], far: int) -> None:
        self.far, self.edges, self._rule, self._ends = far, edges, rule, ends

    @cached
    def part(self) -> Part:
        """One terminal, or nothing up to a call or the end of the rule, in a stack. What comes then
        is what the label of an exit says: a rule that is called, and a place, if it is not the
        end."""
        rule, linker = self._rule, self._rule.linker
        networks = linker.networks
        alternatives: list[Alternative] = [((), _END)] if self._ends else []
        costs = {_END: 0}
        number: dict[tuple[str | None, _Place | None], int] = {(None, None): _END}
        for symbol, to in sorted(self.edges):
            place = rule.place(to)
            texts = networks.terminals.get(symbol)
            called = symbol if texts is None else None
            then = called, place if place.edges else None
            label = number.setdefault(then, len(number))
            alternatives.append((() if texts is None else (texts,), label))
            costs[label] = min(place.far + (networks.least[symbol] if called else 0), FAR)
        behind = list(number)

        def follow(stack: _Stack, label: int) -> Iterable[Place]:
            called, place = behind[label]
            if called is not None:
                inner = linker.stack(False, ((place, stack),)) if place else stack
                return ((linker.rule(called).begin.part, inner),)
            if place is not None:
                return ((place.part, stack),)
            found: list[Place] = [(place.part, outer) for place, outer in stack.frames]
            return [*found, (None, stack)] if stack.ends else found

        table = table_of(alternatives)
        joined = linker.joined if self is rule.begin else None
        return Part(table, table.far(costs), follow, _rest, joined, networks.rank[rule.name])


def _rest(stack: _Stack) -> int:
    return stack.rest
