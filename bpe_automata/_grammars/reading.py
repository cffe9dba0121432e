"""What lark makes of a grammar: rules without repeats and options, and terminals.

lark reads the grammar, imports from its library, fills in templates, and writes `*`, `+`, `?` and
`~` as rules that contain themselves on the left. Its loader takes exponential time for some
grammars, so it is watched.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Any, TypeVar

from bpe_automata._automata.algebra import any_of, difference
from bpe_automata._automata.dfa import ByteDFA
from bpe_automata._budget import Budget, check, with_room
from bpe_automata._grammars.gaps import Gaps, Texts, as_dfa
from bpe_automata._grammars.terminals import texts_of
from bpe_automata._optional import require
from bpe_automata.errors import (
    BudgetExceededError,
    GrammarError,
    RegexError,
    UnsupportedGrammarError,
)

T = TypeVar("T")
ROOT, IGNORED = "<text>", "<ignored>"
"""Names that no symbol of a grammar has: of all texts, and of what may stand between terminals."""


@dataclass(frozen=True)
class Grammar:
    """rules: of each nonterminal its alternatives, which are sequences of symbols. terminals: the
    texts of each, none of which is empty, with what is ignored before them; IGNORED is that at the
    end of a text. ROOT stands for whole texts."""

    rules: dict[str, list[tuple[str, ...]]]
    terminals: dict[str, Texts]


def read(text: str, start: str, reserved_words: bool, budget: Budget) -> Grammar:
    """The grammar that lark reads. Raises GrammarError, UnsupportedGrammarError,
    BudgetExceededError, and MissingDependencyError without lark."""
    found = _loaded(text, start)
    rules: dict[str, list[tuple[str, ...]]] = {ROOT: [(start,)]}
    in_rules: dict[str, None] = {}
    for rule in found.rules:
        symbols = tuple(str(symbol.name) for symbol in rule.expansion)
        rules.setdefault(str(rule.origin.name), []).append(symbols)
        in_rules |= {str(symbol.name): None for symbol in rule.expansion if symbol.is_term}
    if start not in rules:
        raise GrammarError(f"the grammar has no rule {start!r}: give another `start`")
    used = [one for one in found.terminals if one.name in {*in_rules, *found.ignore_tokens}]
    terminals = {one.name: _texts(one, budget) for one in used}
    for name in in_rules:
        if name not in terminals:
            raise UnsupportedGrammarError(name, "it is declared, but has no pattern")
    if reserved_words:
        terminals |= _without_words(used, terminals, budget)
    if found.ignore_tokens:
        gaps = Gaps([as_dfa(terminals[name]) for name in found.ignore_tokens], budget)
        terminals = {name: gaps.before(name, terminals[name]) for name in in_rules}
        terminals[IGNORED] = gaps.alone()
        rules[ROOT].append((start, IGNORED))
    return Grammar(rules, terminals)


def _loaded(text: str, start: str) -> Any:
    """The grammar as a `lark.Lark`, without a parser: the analysis for one takes longer."""
    lark = require("lark", "pip install 'bpe-automata[grammars]'")

    def load() -> Any:
        return lark.Lark(text, start=start, parser=None, lexer="basic")

    try:
        return with_room(lambda: _watched(load))
    except Exception as error:  # of any kind: lark lets those of `re` and of files through
        while isinstance(error, lark.exceptions.VisitError):
            error = error.orig_exc
        if isinstance(error, BudgetExceededError):
            raise error from None
        if isinstance(error, RecursionError):
            advice = "the grammar is nested more deeply than lark can read"
            raise BudgetExceededError("calls", sys.getrecursionlimit(), advice) from None
        raise GrammarError(f"lark cannot read the grammar: {error}") from error


def _watched(load: Callable[[], T]) -> T:
    """load(), which stops when the time is up; unless somebody else watches its calls."""
    if sys.getprofile() is not None:
        return load()
    calls = 0

    def watch(frame: FrameType, event: str, arg: object) -> None:
        nonlocal calls
        calls += 1
        if calls % 1024 == 0:
            check()

    sys.setprofile(watch)
    try:
        return load()
    finally:
        sys.setprofile(None)


def _texts(terminal: Any, budget: Budget) -> Texts:
    """Those of a `lark.lexer.TerminalDef`."""
    pattern = terminal.pattern
    try:
        if pattern.type == "str" and not pattern.flags:
            return pattern.value.encode()
        return texts_of(pattern.to_regexp(), budget)
    except UnicodeEncodeError:
        raise UnsupportedGrammarError(terminal.name, "a surrogate has no UTF-8") from None
    except RegexError as error:
        raise UnsupportedGrammarError(terminal.name, str(error)) from error


def _without_words(
    terminals: list[Any], texts: dict[str, Texts], budget: Budget
) -> dict[str, ByteDFA]:
    """The texts of the regexes that are no words: lark's other lexers take a text for a string of
    the grammar if a regex of the same priority matches that string."""
    words = [one for one in terminals if one.pattern.type == "str"]
    found = {}
    for one in terminals:
        whole = texts[one.name]
        if one.pattern.type == "str" or isinstance(whole, bytes):
            continue
        taken = [
            as_dfa(texts[word.name])
            for word in words
            if word.priority == one.priority and whole.accepts(word.pattern.value.encode())
        ]
        if taken:
            found[one.name] = difference(whole, any_of(taken, budget), budget)
    return found
