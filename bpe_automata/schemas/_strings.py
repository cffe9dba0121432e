"""Computes the set of strings with a bounded length, or with a match of an ECMA-262 pattern.

    L(within_length(dfa, m, n)) = { w in L(dfa) : m <= characters of w <= n }
    L(ecma_pattern(p)) = { w in UTF-8 : new RegExp(p, "u").test(w) }

A character is a code point, as in JSON Schema. Lengths are bounded layer by layer, in time linear
in the result; a product with `(?s:.{0,65535})` and its minimisation would take seconds.
"""

from __future__ import annotations

import sys
from functools import lru_cache

import numpy as np

from bpe_automata._automata.algebra import any_of, difference, intersection
from bpe_automata._automata.compile import compile_regex
from bpe_automata._automata.dfa import ByteDFA
from bpe_automata._automata.minimise import equal_columns
from bpe_automata._automata.sources import from_strings
from bpe_automata._automata.utf8 import bytes_to_go
from bpe_automata._budget import Budget, check, out_of_memory, spending
from bpe_automata._kernels.byte_product import layers, made
from bpe_automata._kernels.utf8 import numbered
from bpe_automata._kernels.watch import watched
from bpe_automata.errors import BudgetExceededError
from bpe_automata.schemas._ecma import (
    BEGIN,
    END,
    MARKERS,
    Alternatives,
    Condition,
    Conditional,
    translate,
)

_DEFAULT = Budget()
_COPIES = 3  # of the table, while it grows
_ANY = "(?s:.*)"


def within_length(
    dfa: ByteDFA, fewest: int, most: int | None, budget: Budget = _DEFAULT
) -> ByteDFA:
    """{ w in L(dfa) : fewest <= characters of w <= most }, no upper bound if most is None.

    dfa: minimal, trimmed, of well-formed UTF-8, as all of `automata` makes them; so is the result.
    Raises BudgetExceededError if the table would take more than the budget's bytes.
    """
    if fewest <= 0 and most is None:
        return dfa
    if dfa.start == 0 or (most is not None and most < max(fewest, 0)):
        return from_strings(())
    left = bytes_to_go(dfa)
    count = fewest if most is None else most + 1
    limit = budget.max_bytes // (_COPIES * 4 * dfa.n_classes)
    count = min(count, limit + 1)  # no array needs to be longer to see that it is too long
    with spending(budget):
        ok, *found = watched(layers, dfa.trans, left, dfa.start, count, limit)
        if not ok:
            raise out_of_memory(budget)
        bounds = (max(fewest, 0), -1 if most is None else most)
        rows, accepting, start = watched(made, dfa.trans, dfa.accepting, left, *found, bounds)
        return _numbered(rows, dfa.byte_class, accepting, start)


def _numbered(
    rows: np.ndarray, byte_class: np.ndarray, accepting: np.ndarray, start: int
) -> ByteDFA:
    """The automaton without unreachable states and equal columns, numbered breadth-first."""
    rows, accepting, start = watched(numbered, rows, accepting, start)
    column, kept = equal_columns(rows)
    rows = rows if len(kept) == rows.shape[1] else np.ascontiguousarray(rows[:, kept])
    return ByteDFA(rows, column[byte_class].astype(np.uint8), accepting, int(start))


@lru_cache(maxsize=1024)
def ecma_pattern(pattern: str, budget: Budget = _DEFAULT, agreed: bool = False) -> ByteDFA:
    """The strings in which the ECMA-262 pattern matches somewhere, by code points.

    agreed: those in which it matches by Python's `re` and Rust's `regex` too; with `$` in a
    `(?!...)`, but for those that end in a line feed. `\\A \\Z \\z` are then known.

    Raises RegexSyntaxError for what is no pattern, and for what other dialects read otherwise,
    UnsupportedRegexError for backreferences, word boundaries, anchors within, and lookaround but
    that behind a `^` at the beginning (all with a position), BudgetExceededError.
    """
    try:
        alternatives = translate(pattern, budget, agreed)
        plain = tuple(terms for terms, conditions in alternatives if not conditions)
        found = [_language(plain, budget)] if plain else []
        for terms, conditions in alternatives:
            if conditions:
                found.append(_looked_ahead(_language((terms,), budget), conditions, budget))
        every = found[0] if len(found) == 1 else any_of(found, budget)
        return _sure(every, alternatives, budget) if agreed else every
    except RecursionError:
        advice = "groups of the pattern are nested too deeply"
        raise BudgetExceededError("stack frames", sys.getrecursionlimit(), advice) from None


def _sure(found: ByteDFA, alternatives: list[Conditional], budget: Budget) -> ByteDFA:
    """Without the strings in which dialects differ about a `$` of which no match is wanted."""
    conditions = [condition for _, every in alternatives for condition in every]
    denied = [way for is_there, inside in conditions if not is_there for way in inside]
    if not any(END in way for way in denied):
        return found
    return difference(found, compile_regex(rf"{_ANY}\n", budget), budget)


@lru_cache(maxsize=1024)
def _language(alternatives: Alternatives, budget: Budget) -> ByteDFA:
    bodies: dict[tuple[bool, bool], list[str]] = {}
    for terms in alternatives:
        body = "".join(terms)
        anchored = body.startswith(BEGIN), body.endswith(END)
        bodies.setdefault(anchored, []).append(body.strip(MARKERS))
    # `.*` is written once for all alternatives: with a copy for each, the determinized automaton
    # would remember which of them have matched.
    found = []
    for ends in (False, True):
        inner = [
            f"{'' if begins else _ANY}(?:{'|'.join(bodies[begins, ends])})"
            for begins in (False, True)
            if (begins, ends) in bodies
        ]
        if inner:
            found.append(f"(?:{'|'.join(inner)}){'' if ends else _ANY}")
    return compile_regex("|".join(found), budget)


def _looked_ahead(found: ByteDFA, conditions: list[Condition], budget: Budget) -> ByteDFA:
    """A condition on what follows is a language of its own where the beginning of the string is the
    only place to look from: ^(?=A)(?!B)C has a match in the strings of ^C & ^(?:A) - ^(?:B)."""
    for is_there, inside in conditions:
        check()
        there = _language(tuple((BEGIN, *terms) for terms in inside), budget)
        found = (intersection if is_there else difference)(found, there, budget)
    return found
