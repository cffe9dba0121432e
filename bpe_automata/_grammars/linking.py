"""The linked automaton of a grammar: its rules as nets that lead to one another (see
`_automata.rounds`).

All calls of a rule after the same text are one call, which may come back to many places. So there
are at most as many stacks as positions in the text times rules, however ambiguous the grammar.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from bpe_automata._automata.linked import LinkedDFA
from bpe_automata._automata.part_tables import columns
from bpe_automata._automata.rounds import Edge, Node, Repeat, beginning
from bpe_automata._budget import Budget, check, spending
from bpe_automata._grammars.networks import Networks
from bpe_automata._grammars.reading import ROOT, read
from bpe_automata.errors import ArgumentError


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
        rule = _Rules(networks).rule(ROOT)
        given = beginning(rule, ROOT in networks.may_be_empty), told_apart, budget
        return LinkedDFA(*given, origin=(again, (grammar,)), rule=rule)


class _Rules:
    """The rules as repeats of one round, and the nodes of their nets, which are made as texts lead
    to them. All nodes of a rule behind which the same may come are one."""

    def __init__(self, networks: Networks) -> None:
        self._networks = networks
        self._rules: dict[str, Repeat] = {}
        self._nodes: dict[tuple[int | None, str], Node] = {}
        self._alike: dict[tuple[str, int, bool, frozenset[tuple[str, int]]], Node] = {}

    def rule(self, name: str) -> Repeat:
        """What reads the texts of a rule, but for the empty one."""
        if name not in self._rules:
            self._rules[name] = Repeat(self._node(None, name), 1, 1)
        return self._rules[name]

    def _node(self, at: int | None, rule: str) -> Node:
        """That of a node of the networks, None the beginning, in the net of a rule."""
        if (at, rule) not in self._nodes:
            check()
            networks = self._networks
            ends, edges = networks.follow(at, rule)
            # Nodes behind a text come before beginnings, to which they may lead.
            rank = networks.rank[rule] if at is None else -1 - len(networks.rank)
            key = rule, rank, ends, edges
            if key not in self._alike:
                find = partial(self._edges, edges, rule)
                self._alike[key] = Node(find, ends, networks.far(at, rule), rank, False)
            self._nodes[at, rule] = self._alike[key]
        return self._nodes[at, rule]

    def _edges(self, edges: frozenset[tuple[str, int]], rule: str) -> Iterator[Edge]:
        for symbol, to in sorted(edges):
            texts = self._networks.terminals.get(symbol)
            yield self.rule(symbol) if texts is None else texts, self._node(to, rule)
