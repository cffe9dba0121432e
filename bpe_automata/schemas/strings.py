"""Sets of texts by length and by pattern.

    L(length_between(m, n)) = { w in UTF-8 : m <= characters of w <= n }
    L(within_length(dfa, m, n)) = L(dfa) & L(length_between(m, n))
    L(ecma_pattern(p)) = { w in UTF-8 : new RegExp(p, "u").test(w) }

Lengths are counted in characters (code points), as JSON Schema has it. They are cut off layer by
layer, in time linear in the result: a product with `length_between(0, 65535)`, minimised as any
other, would take seconds.
"""

from __future__ import annotations

import sys
from functools import lru_cache

import numpy as np

from bpe_automata.automata.algebra import all_texts
from bpe_automata.automata.compile import compile_regex
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.automata.sources import from_strings
from bpe_automata.budget import Budget, out_of_memory, spending
from bpe_automata.errors import BudgetExceededError
from bpe_automata.kernels.lengths import Layers, layers, made, to_go
from bpe_automata.kernels.minimise import equal_columns
from bpe_automata.kernels.utf8 import numbered
from bpe_automata.kernels.watch import watched
from bpe_automata.schemas.assertions import compile_marked
from bpe_automata.schemas.ecma_syntax import BEGIN, END, MARKERS, Translated, translate

_DEFAULT = Budget()
_COPIES = 3  # of the rows, while they grow
_ANY = "(?s:.*)"


@lru_cache(maxsize=64)
def length_between(fewest: int, most: int | None, budget: Budget = _DEFAULT) -> ByteDFA:
    """{ w : fewest <= characters of w <= most }, no upper bound if most is None.

    Raises BudgetExceededError if the table would take more than the budget's bytes.
    """
    return within_length(all_texts(), fewest, most, budget)


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
    _, some_byte = np.unique(dfa.byte_class, return_index=True)
    left = to_go(dfa.trans, some_byte.astype(np.int32), dfa.start)
    count = fewest if most is None else most + 1
    limit = budget.max_bytes // (_COPIES * 4 * dfa.n_classes)
    count = min(count, limit + 1)  # no array needs to be longer to see that it is too long
    with spending(budget):
        ok, *found = watched(layers, dfa.trans, left, dfa.start, count, limit)
        if not ok:
            raise out_of_memory(budget)
        bounds = (max(fewest, 0), -1 if most is None else most)
        rows, accepting, start = watched(
            made, dfa.trans, dfa.accepting, left, Layers(*found), bounds
        )
        return _numbered(rows, dfa.byte_class, accepting, start)


def _numbered(
    rows: np.ndarray, byte_class: np.ndarray, accepting: np.ndarray, start: int
) -> ByteDFA:
    """Minimal rows, without what is unreachable, numbered breadth-first, columns all different."""
    rows, accepting, start = watched(numbered, rows, accepting, start)
    column, count = watched(equal_columns, rows)
    _, kept = np.unique(column, return_index=True)
    rows = rows if count == rows.shape[1] else np.ascontiguousarray(rows[:, kept])
    return ByteDFA(rows, column[byte_class].astype(np.uint8), accepting, int(start))


@lru_cache(maxsize=1024)
def ecma_pattern(pattern: str, budget: Budget = _DEFAULT) -> ByteDFA:
    """The texts in which the ECMA-262 pattern matches somewhere, by code points.

    Raises RegexSyntaxError, UnsupportedRegexError for lookaround and backreferences (all with a
    position), BudgetExceededError.
    """
    try:
        translated = translate(pattern, budget)
        plain = _without_assertions(translated)
        if plain is None:
            return compile_marked(f"{_ANY}{translated.text}{_ANY}", budget)
        return compile_regex(plain, budget)
    except RecursionError:
        advice = "groups of the pattern are nested too deeply"
        raise BudgetExceededError("stack frames", sys.getrecursionlimit(), advice) from None


def _without_assertions(translated: Translated) -> str | None:
    """The whole text as a regex, if all assertions are a `^` that begins an alternative or a `$`
    that ends one; None if there are others."""
    bodies: dict[tuple[bool, bool], list[str]] = {}
    for terms in translated.alternatives:
        begins, ends = BEGIN in terms[:1], END in terms[-1:]
        body = "".join(terms[begins : len(terms) - ends])
        if any(marker in body for marker in MARKERS):
            return None
        bodies.setdefault((begins, ends), []).append(body)
    # What may stand around them is spelled once: a copy for each alternative would let the
    # determinized automaton count which of them have matched.
    found = []
    for ends in (False, True):
        inner = [
            f"{'' if begins else _ANY}(?:{'|'.join(bodies[begins, ends])})"
            for begins in (False, True)
            if (begins, ends) in bodies
        ]
        if inner:
            found.append(f"(?:{'|'.join(inner)}){'' if ends else _ANY}")
    return "|".join(found)
