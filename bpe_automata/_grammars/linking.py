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
from functools import partial
from operator import attrgetter, itemgetter

from bpe_automata._automata.linked import LinkedDFA
from bpe_automata._automata.part_tables import Alternative, columns, table_of
from bpe_automata._automata.parts import FAR, Part, Place
from bpe_automata._budget import Budget, check, spending
from bpe_automata._grammars.networks import Networks
from bpe_automata._grammars.reading import ROOT, read
from bpe_automata._sharing import cached
from bpe_automata.errors import ArgumentError

_END = 0
"""The label of a rule's end."""
Edge = tuple[str, "_State"]
"""A terminal or a rule that is called, and the state behind it."""


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
    may show only when a text leads there, as BudgetExceededError of that call. Whatever the budget,
    a grammar has at most 200,000 characters, and reading it takes lark about a second at most.

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
        networks = Networks(*read(grammar, start, reserved_words, budget))
        told_apart = columns(networks.terminals.values())
        again = partial(compile_grammar, start=start, reserved_words=reserved_words, budget=budget)
        return LinkedDFA(_Linker(networks).texts(), told_apart, budget, origin=(again, (grammar,)))


@dataclass(frozen=True, eq=False)
class _Stack:
    """ends: may the text end behind the rule? frames: where it may go on. rest: length of the
    shortest text from there to the end."""

    ends: bool
    frames: tuple[tuple[_State, _Stack], ...]
    rest: int


class _Linker:
    """The states and stacks, which are made as texts lead to them: the same object for the same.
    places: the first of the states behind which the same may come."""

    def __init__(self, networks: Networks) -> None:
        self.networks = networks
        self.places: dict[tuple[bool, frozenset[Edge]], _State] = {}
        self._states: dict[tuple[int | None, str, _State | None], _State] = {}
        self._stacks: dict[tuple[bool, frozenset[tuple[int, int]]], _Stack] = {}

    def texts(self) -> list[Place]:
        """Where texts begin."""
        bottom = self.stack(True, ())
        found: list[Place] = [(None, bottom)] if ROOT in self.networks.may_be_empty else []
        return [*found, (self.begin(ROOT).part, bottom)] if ROOT in self.networks.least else found

    def begin(self, called: str) -> _State:
        """Of a rule that is called."""
        return self.state(None, called, None).place

    def state(self, node: int | None, rule: str, leave: _State | None) -> _State:
        """That of a node, in a rule that is written out before another state."""
        key = node, rule, leave
        if key not in self._states:
            called, behind = (leave.called, leave.far) if leave else (rule, 0)
            far = min(self.networks.far(node, rule) + behind, FAR)
            self._states[key] = _State(self, *key, called, far)
        return self._states[key]

    def stack(self, ends: bool, frames: Iterable[tuple[_State, _Stack]]) -> _Stack:
        """Equal for the same places in any order."""
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


@dataclass(frozen=True, eq=False)
class _State:
    """A node, None the beginning, of a rule that is written out in a called one, once for each
    state that its end leads to: `leave`, None in the called rule itself. called: that one; far:
    length of the shortest text to its end."""

    linker: _Linker
    node: int | None
    rule: str
    leave: _State | None
    called: str
    far: int

    @cached
    def _steps(self) -> tuple[list[Edge], list[_State], bool]:
        """(what may be read next; the states, and whether to the end of the called rule, that this
        one leads to without reading)."""
        check()
        networks, state = self.linker.networks, self.linker.state
        edges, silent, ends = list[Edge](), list[_State](), False
        for symbol, node in networks.ways(self.node, self.rule):
            then = self.leave if node is None else state(node, self.rule, self.leave)
            if then is None:
                ends = True
            elif symbol is None:
                silent.append(then)
            elif symbol in networks.terminals or symbol in networks.called:
                edges.append((symbol, then))
            else:
                silent.append(state(None, symbol, then))
        return edges, silent, ends

    @cached
    def _follow(self) -> tuple[bool, dict[Edge, None]]:
        """(may the end of the called rule come next? what may be read next)."""
        reached, waiting = {self}, [self]
        for at in waiting:
            for to in at._steps[1]:
                if to not in reached:
                    reached.add(to)
                    waiting.append(to)
        edges = dict.fromkeys(edge for at in waiting for edge in at._steps[0])
        return any(at._steps[2] for at in waiting), edges

    @cached
    def place(self) -> _State:
        """The same for all states behind which the same may come."""
        ends, edges = self._follow
        return self.linker.places.setdefault((ends, frozenset(edges)), self)

    @cached
    def part(self) -> Part:
        """Of a place: one terminal, or nothing up to a call or the end of the called rule, in a
        stack. What comes then is what the label of an exit says: a rule that is called, and a
        place, if it is not the end."""
        linker, networks = self.linker, self.linker.networks
        ends, edges = self._follow
        alternatives: list[Alternative] = [((), _END)] if ends else []
        costs = {_END: 0}
        number: dict[tuple[str | None, _State | None], int] = {(None, None): _END}
        for symbol, to in sorted(edges, key=itemgetter(0)):
            texts = networks.terminals.get(symbol)
            called = symbol if texts is None else None
            label = number.setdefault((called, to.place if to._follow[1] else None), len(number))
            alternatives.append((() if texts is None else (texts,), label))
            costs[label] = min(to.far + (networks.least[symbol] if called else 0), FAR)
        behind = list(number)

        def follow(stack: _Stack, label: int) -> Iterable[Place]:
            called, place = behind[label]
            if called is not None:
                inner = linker.stack(False, ((place, stack),)) if place else stack
                return ((linker.begin(called).part, inner),)
            if place is not None:
                return ((place.part, stack),)
            found: list[Place] = [(place.part, outer) for place, outer in stack.frames]
            return [*found, (None, stack)] if stack.ends else found

        table = table_of(alternatives)
        joined = linker.joined if self is linker.begin(self.called) else None
        rank = networks.rank[self.called]
        return Part(table, table.far(costs), follow, attrgetter("rest"), joined, rank)
