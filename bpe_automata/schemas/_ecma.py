"""Compiles patterns of ECMA-262 to the automata of the strings in which they match somewhere.

    L(ecma_pattern(p)) = { w in UTF-8 : new RegExp(p, "u").test(w) }

A pattern is written anew in the syntax of Python's `re` (`_ecma_syntax`); anchors and lookahead are
taken out of its tree (`_Ways`); the rest is compiled. Lookahead is refused unless it follows a `^`
at the beginning; so is a `^` or `$` that is neither first nor last.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import lru_cache

from bpe_automata._budget import Budget, check, out_of_instructions, spending
from bpe_automata.automata.algebra import any_of, difference, intersection
from bpe_automata.automata.codepoints import EVERYTHING
from bpe_automata.automata.compile import compile_tree
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.automata.syntax import (
    Alternation,
    Anchor,
    Chars,
    Look,
    Node,
    Repetition,
    Tree,
    parse_assertions,
)
from bpe_automata.errors import BudgetExceededError, UnsupportedRegexError
from bpe_automata.schemas._ecma_syntax import Translation

_MOST_WAYS = 256
_ANYTHING = (Repetition((Chars(EVERYTHING),), 0, None, greedy=True),)


@dataclass(frozen=True)
class _Way:
    """A way to match: nodes of the tree, without anchors, and whether the match must begin the
    string, or end it. conditions: lookahead at the beginning of the string."""

    items: Tree = ()
    begins: bool = False
    ends: bool = False
    conditions: tuple[Look, ...] = ()

    @property
    def is_plain(self) -> bool:
        """Has it neither anchors nor conditions?"""
        return not (self.begins or self.ends or self.conditions)


class _Ways:
    """The ways to match what a pattern says. Raises UnsupportedRegexError."""

    def __init__(self, translated: Translation, budget: Budget) -> None:
        self._source, self._budget = translated.source, budget
        self._positions = translated.positions
        self.all = self._of(parse_assertions(self._source))

    def _of(self, tree: Tree) -> list[_Way]:
        found, run = [_Way()], list[Node]()  # of nodes without anchors and conditions
        for node in tree:
            check()
            if more := self._inside(node):
                found = self._in_order(self._in_order(found, [_Way(tuple(run))]), more)
                run = []
            else:
                run.append(node)
        return self._in_order(found, [_Way(tuple(run))])

    def _in_order(self, found: list[_Way], more: list[_Way]) -> list[_Way]:
        if len(found) * len(more) > _MOST_WAYS:
            raise out_of_instructions(self._budget)
        return [self._joined(one, other) for one in found for other in more]

    def _inside(self, node: Node) -> list[_Way]:
        """The ways of a node that is or has an anchor or lookahead; none for other nodes."""
        if isinstance(node, Anchor):
            return [_Way(begins=node.begins, ends=not node.begins)]
        if isinstance(node, Look):
            return [_Way(conditions=(node,))]
        if isinstance(node, Alternation):
            found = [way for option in node.options for way in self._of(option)]
        else:
            found = self._of(node.body) if isinstance(node, Repetition) else []
        if all(way.is_plain for way in found):
            return []
        if isinstance(node, Repetition):
            kind = "lookahead" if any(way.conditions for way in found) else "anchor"
            raise self._refused(kind, f"{kind} is not supported in a repeated group")
        return found

    def _joined(self, one: _Way, other: _Way) -> _Way:
        if (other.begins and (one.items or one.ends)) or (one.ends and other.items):
            why = "an anchor that is neither first nor last is not supported"
            raise self._refused("anchor", why)
        if one.items and other.conditions:
            raise self._refused("lookahead", "lookahead is not supported")
        return _Way(
            one.items + other.items,
            one.begins or other.begins,
            one.ends or other.ends,
            one.conditions + other.conditions,
        )

    def _refused(self, kind: str, why: str) -> UnsupportedRegexError:
        at = self._positions.get(kind, 0)
        return UnsupportedRegexError(self._source.pattern, at, why)

    def strings(self, ways: list[_Way], begins: bool = False) -> ByteDFA:
        """The strings that have a match in one of some ways. begins: at their beginning.

        A condition is a language of its own, since it looks from the beginning of the string only:
        ^(?=A)(?!B)C has a match in the strings of ^C & ^(?:A) - ^(?:B)."""
        plain = [way for way in ways if not way.conditions]
        found = [self._language(plain, begins)] if plain else []
        for way in ways:
            if not way.conditions:
                continue
            if not (begins or way.begins):
                raise self._refused("lookahead", "lookahead is not supported")
            some = self._language([way], begins)
            for look in way.conditions:
                there = self.strings(self._of(look.body), begins=True)
                some = (difference if look.denied else intersection)(some, there, self._budget)
            found.append(some)
        return found[0] if len(found) == 1 else any_of(found, self._budget)

    def _language(self, ways: list[_Way], begins: bool) -> ByteDFA:
        """The same, but conditions are ignored."""
        # `.*` is written once for all ways: with a copy for each, the determinized automaton
        # would remember which of them have matched.
        # Keys: does a way end the string, and does it begin it?
        bodies: dict[bool, dict[bool, list[Tree]]] = {}
        for way in ways:
            bodies.setdefault(way.ends, {}).setdefault(begins or way.begins, []).append(way.items)
        found = []
        for ends, some in bodies.items():
            inner = tuple(
                (*(() if at_begin else _ANYTHING), Alternation(tuple(items)))
                for at_begin, items in some.items()
            )
            found.append((Alternation(inner), *(() if ends else _ANYTHING)))
        return compile_tree((Alternation(tuple(found)),), self._budget)


@lru_cache(maxsize=1024)
def ecma_pattern(pattern: str, budget: Budget = Budget(), agreed: bool = False) -> ByteDFA:  # noqa: B008 - frozen
    """The strings in which the ECMA-262 pattern matches somewhere, by code points.

    agreed: only those in which Python's `re` and Rust's `regex` find a match, too; `\\A \\Z \\z`
    are then supported. Raises RegexSyntaxError for what is no pattern, and for what other dialects
    read differently; UnsupportedRegexError for what this module refuses (both with a position); and
    BudgetExceededError.
    """
    if len(pattern) > budget.max_instructions:
        raise out_of_instructions(budget)
    try:
        with spending(budget):
            ways = _Ways(Translation(pattern, budget, agreed), budget)
            return ways.strings(ways.all)
    except RecursionError:
        advice = "groups of the pattern are nested too deeply"
        raise BudgetExceededError("stack frames", sys.getrecursionlimit(), advice) from None
