"""What lark makes of a grammar: rules without repeats and options, and terminals.

lark reads the grammar and imports from its library; templates, options and repeats are written out
here (`rules`). Its loader takes exponential time for some grammars, so what it is given is bounded
(`bounds`).

An ignored terminal may come before any terminal, and at the end of a text. As in lark, it is as
long as it can be: a comment goes on to the end of its line, and no terminal begins inside it. So
nothing may follow that makes it longer, and ignored terminals that could still be longer are
tracked until they cannot.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np

from bpe_automata._budget import Budget, check, with_room
from bpe_automata._optional import require
from bpe_automata.automata.algebra import (
    all_texts,
    any_of,
    concatenation,
    difference,
    intersection,
)
from bpe_automata.automata.assembly import Assembly
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.errors import (
    BudgetExceededError,
    GrammarError,
    RegexError,
    UnsupportedGrammarError,
)
from bpe_automata.grammars.bounds import Bounds
from bpe_automata.grammars.rules import Rules, Writer
from bpe_automata.grammars.terminals import texts_of

Texts = bytes | ByteDFA
Open = frozenset[tuple[int, int]]
"""Ignored terminals that could still be longer, by number, each with its state."""
Gap = tuple[int | None, int, Open]
"""(an ignored terminal that is being read, its state, the open ones); between ignored terminals
(None, 0, the open ones), and before the first (None, 1, none)."""
_GBNF = re.compile(r"^\s*[\w-]+\s*::=", re.MULTILINE)
ROOT, IGNORED = "<text>", "<ignored>"
"""Names that no symbol of a grammar has: of whole texts, and of what is ignored at their end."""


def read(
    text: str, start: str, reserved_words: bool, budget: Budget
) -> tuple[Rules, dict[str, Texts]]:
    """(the alternatives of each rule, where ROOT stands for whole texts; the texts of each
    terminal, none of which is empty, with what is ignored before them, where IGNORED stands for
    what is ignored at the end of a text). Raises GrammarError, UnsupportedGrammarError,
    BudgetExceededError, and MissingDependencyError without lark."""
    every_terminal, every_rule, ignored_names = _loaded(text)
    every: Rules = {ROOT: [(start,)], **every_rule}
    if start not in every:
        raise GrammarError(f"the grammar has no rule {start!r}: give another `start`")
    visited, order = {ROOT}, [ROOT]
    for name in order:
        check()
        new = dict.fromkeys(s for s in chain.from_iterable(every.get(name, ())) if s not in visited)
        visited |= new.keys()
        order += new
    rules = {name: every[name] for name in order if name in every}
    in_rules = [name for name in order if name not in every]
    used = [one for one in every_terminal if one.name in {*in_rules, *ignored_names}]
    terminals = {one.name: _texts(one, budget) for one in used}
    for name in in_rules:
        if name not in terminals:
            raise UnsupportedGrammarError(name, "it is declared, but has no pattern")
    if reserved_words:
        terminals |= _without_words(used, terminals, budget)
    if ignored_names:
        ignored = [_as_dfa(terminals[name]) for name in ignored_names]
        gaps = _gaps(ignored, budget)
        terminals = {
            name: _behind_gaps(name, terminals[name], ignored, gaps, budget) for name in in_rules
        }
        terminals[IGNORED] = any_of(gaps.values(), budget)
        rules[ROOT].append((start, IGNORED))
    return rules, terminals


def _loaded(text: str) -> tuple[list[Any], Rules, list[str]]:
    """The terminals and all rules of the grammar, and the names of what is ignored. Each step of
    lark is bounded, and the clock of the budget is checked between them."""
    require("lark", "pip install 'bpe-automata[grammars]'")
    from lark import load_grammar as lark
    from lark.exceptions import VisitError
    from lark.lexer import TerminalDef

    def load() -> tuple[list[Any], Rules, list[str]]:
        bounds = Bounds()
        bounds.text(text)
        builder = lark.GrammarBuilder(import_paths=[bounds.source])
        builder.load_grammar(text, "<string>")
        check()
        grammar = builder.build()
        check()
        pattern = lark.PrepareLiterals() * lark.TerminalTreeToPattern()
        terminals = [
            TerminalDef(name, pattern.transform(tree), priority)
            for name, (tree, priority) in grammar.term_defs
            if tree
        ]
        check()
        anonymous = lark.PrepareAnonTerminals(terminals)  # adds to them
        anonymous.rule_options = None
        symbols = lark.PrepareLiterals() * lark.ValidateSymbols() * anonymous
        definitions = {
            name: (tuple(given), symbols.transform(tree) if tree else None)
            for name, given, tree, _ in grammar.rule_defs
        }
        check()
        for one in terminals:
            if one.pattern.min_width == 0:
                raise GrammarError(f"the terminal {one.name} may be empty, which lark never allows")
        return terminals, Writer(definitions).rules, grammar.ignore

    try:
        return with_room(load)
    except Exception as error:  # of any kind: lark lets those of `re` and of files through
        while isinstance(error, VisitError):
            error = error.orig_exc
        if isinstance(error, BudgetExceededError):
            raise error from None
        if isinstance(error, RecursionError):
            advice = "the grammar is nested more deeply than lark can read"
            raise BudgetExceededError("calls", sys.getrecursionlimit(), advice) from None
        if _GBNF.search(text):
            raise GrammarError(
                'this looks like GBNF, which writes `root ::= "yes" | "no"`: give format="gbnf"'
            ) from error
        raise GrammarError(f"lark cannot read the grammar: {error}") from error


def _texts(terminal: Any, budget: Budget) -> Texts:
    """The texts of a `lark.lexer.TerminalDef`."""
    pattern = terminal.pattern
    try:
        if pattern.type == "str" and not pattern.flags:
            return pattern.value.encode()
        return texts_of(pattern.to_regexp(), budget)
    except UnicodeEncodeError:
        raise UnsupportedGrammarError(terminal.name, "a surrogate has no UTF-8") from None
    except RegexError as error:
        raise UnsupportedGrammarError(terminal.name, str(error)) from error


def _as_dfa(texts: Texts) -> ByteDFA:
    """The texts as an automaton, even if it is only one."""
    return concatenation(texts) if isinstance(texts, bytes) else texts


def _without_words(
    terminals: list[Any], texts: dict[str, Texts], budget: Budget
) -> dict[str, ByteDFA]:
    """The texts of regexes that also match words, that is strings of the grammar with the same
    priority, without these words: lark's other lexers take such a text for the string."""
    words = [one for one in terminals if one.pattern.type == "str"]
    found = {}
    for one in terminals:
        whole = texts[one.name]
        if one.pattern.type == "str" or isinstance(whole, bytes):
            continue
        taken = [
            _as_dfa(texts[word.name])
            for word in words
            if word.priority == one.priority and whole.accepts(word.pattern.value.encode())
        ]
        if taken:
            found[one.name] = difference(whole, any_of(taken, budget), budget)
    return found


def _gaps(ignored: list[ByteDFA], budget: Budget) -> dict[Open, ByteDFA]:
    """The texts of one or more ignored terminals, by the ignored terminals open behind them."""

    def after(k: int | None, state: int, opened: Open) -> Iterator[tuple[bytes, Gap]]:
        if k is None:
            yield from ((b"", (j, dfa.start, opened)) for j, dfa in enumerate(ignored))
            return
        live = ignored[k].live_bytes(state).tolist()
        if ignored[k].accepting[state]:
            yield b"", (None, 0, opened | {(k, state)} if live else opened)
        for byte in live:
            longer = {(j, ignored[j].step(at, byte)) for j, at in opened}
            if not any(ignored[j].accepting[at] for j, at in longer):
                still = frozenset((j, at) for j, at in longer if at)
                yield bytes((byte,)), (k, ignored[k].step(state, byte), still)

    parts = Assembly()
    order: list[Gap] = [(None, 1, frozenset())]
    states = {order[0]: parts.state()}
    for gap in order:
        check()
        for data, then in after(*gap):
            if then not in states:
                states[then] = parts.state()
                order.append(then)
            parts.put(states[gap], data, states[then])
    return {
        opened: parts.dfa(states[order[0]], budget, state)
        for (k, begun, opened), state in states.items()
        if k is None and not begun
    }


def _behind_gaps(
    name: str, texts: Texts, ignored: list[ByteDFA], gaps: dict[Open, ByteDFA], budget: Budget
) -> ByteDFA:
    """The texts of a terminal, with what may be ignored before them, where no text makes an ignored
    terminal longer. Raises UnsupportedGrammarError, BudgetExceededError."""
    parts = Assembly()
    start, end = parts.state(), parts.state()
    parts.accept(end)
    parts.put(start, texts, end)
    for opened, gap in gaps.items():
        allowed = _as_dfa(texts)
        for k, state in sorted(opened):
            dfa, first = ignored[k], allowed.live_bytes(allowed.start).tolist()
            if not any(dfa.step(state, byte) for byte in first):
                continue
            rest = ByteDFA(dfa.trans, dfa.byte_class, dfa.accepting, state)
            longer = concatenation(difference(rest, _as_dfa(b"")), all_texts(), budget=budget)
            begun = ByteDFA(dfa.trans, dfa.byte_class, np.arange(dfa.n_states) > 0, state)
            allowed = difference(allowed, longer, budget)
            if not intersection(allowed, difference(begun, longer)).is_empty:
                why = "it can end where something that is ignored before it could still be longer"
                raise UnsupportedGrammarError(name, why)
        middle = parts.state()
        parts.put(start, gap, middle)
        parts.put(middle, allowed, end)
    return parts.dfa(start, budget)
