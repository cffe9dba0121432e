"""The linked automaton of a grammar: its rules as nets that lead to one another (see
`automata.rounds`).

All calls of a rule after the same text are one call, which may return to many nodes. So there are
at most as many stacks as positions in the text times rules, however ambiguous the grammar is.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Literal

from bpe_automata._arguments import short
from bpe_automata._budget import Budget, check, spending
from bpe_automata.automata.linked import LinkedDFA
from bpe_automata.automata.part_tables import columns
from bpe_automata.automata.parts import FAR
from bpe_automata.automata.rounds import Edge, Node, Repeat, beginning
from bpe_automata.errors import ArgumentError
from bpe_automata.grammars.gbnf import read_gbnf
from bpe_automata.grammars.networks import Networks
from bpe_automata.grammars.reading import ROOT, read


def compile_grammar(
    grammar: str,
    *,
    format: Literal["lark", "gbnf"] = "lark",
    start: str | None = None,
    reserved_words: bool = False,
    budget: Budget = Budget(),  # noqa: B008 - frozen
) -> LinkedDFA:
    """The language of a context-free grammar, over UTF-8 bytes.

    grammar: in the format of lark, with its `%import`, `%ignore`, templates and operators; or in
    that of llama.cpp, format="gbnf", without tokens (`<[1]>`). start: the rule of whole texts,
    "start" by default, in GBNF "root". A text belongs to the language if it can be cut into
    terminals in some way that the rules allow, with ignored terminals anywhere between them, each
    as long as it can be. These are the texts that lark parses with `parser="earley",
    lexer="dynamic_complete"`. Priorities choose among trees, so they change nothing but
    `reserved_words`. Brackets may be nested without limit; any recursion and ambiguity is allowed.

    reserved_words: if true, a regex terminal does not match a text that is a string terminal of the
    same priority. So a name is never a keyword, as in lark's basic lexer (the contextual one allows
    it where the keyword could not come). These lexers cut a text in one way only, `notx` into a
    name and not into `not` and `x`, so they still reject some texts of the language.

    budget: for reading the grammar; texts may then make six times its states. If something is found
    to be too large only when a text leads there, that call raises BudgetExceededError. Whatever the
    budget, a grammar has at most 200,000 characters, and lark reads it in about a second at most.

    Regexes are those of Python's `re`, without backreferences, and without assertions but a
    lookbehind for one character. Raises ArgumentError, GrammarError for what lark cannot read,
    UnsupportedGrammarError, EmptyLanguageError, BudgetExceededError, and MissingDependencyError
    without lark.
    """
    if not isinstance(grammar, str) or not isinstance(start, str | None):
        raise ArgumentError("the grammar and its start are texts: give strings")
    if format not in ("lark", "gbnf"):
        raise ArgumentError(f"format is {short(format)}: give 'lark' or 'gbnf'")
    if format == "gbnf" and reserved_words:
        raise ArgumentError("reserved_words is of lark's terminals: leave it out for GBNF")
    if not isinstance(budget, Budget):
        raise ArgumentError(f"the budget is a {type(budget).__name__}: give a Budget")
    with spending(budget):
        if format == "gbnf":
            found = read_gbnf(grammar, start or "root", budget)
        else:
            found = read(grammar, start or "start", reserved_words, budget)
        networks = Networks(*found)
        byte_class = columns(networks.terminals.values())
        given: dict[str, Any] = {"format": format, "start": start, "reserved_words": reserved_words}
        again = partial(compile_grammar, **given, budget=budget)
        rule = _Rules(networks).rule(ROOT) if ROOT in networks.least else _NOTHING
        begin = beginning(rule, ROOT in networks.may_be_empty)
        return LinkedDFA(begin, byte_class, budget, origin=(again, (grammar,)), rule=rule)


_NOTHING = Repeat(Node(tuple, False, FAR, 0), 1, 1)


class _Rules:
    """The rules as repeats of one round, and the nodes of their nets, which are made as texts lead
    to them. Nodes of a rule are merged if the same may come behind them."""

    def __init__(self, networks: Networks) -> None:
        self._networks = networks
        self._rules: dict[str, Repeat] = {}
        self._nodes: dict[tuple[int | None, str], Node] = {}
        self._alike: dict[tuple[str, int, bool, frozenset[tuple[str, int]]], Node] = {}

    def rule(self, name: str) -> Repeat:
        """The repeat that reads the texts of a rule, but for the empty one."""
        if name not in self._rules:
            self._rules[name] = Repeat(self._node(None, name), 1, 1)
        return self._rules[name]

    def _node(self, at: int | None, rule: str) -> Node:
        """The node of the net of `rule` for a node of the networks; None is the beginning."""
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
