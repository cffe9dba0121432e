"""Computes the set of strings with a bounded length, or with a match of an ECMA-262 pattern.

    L(within_length(dfa, m, n)) = { w in L(dfa) : m <= characters of w <= n }
    L(ecma_pattern(p)) = { w in UTF-8 : new RegExp(p, "u").test(w) }

A character is a code point, as in JSON Schema. Lengths are bounded layer by layer, in time linear
in the result; a product with `(?s:.{0,65535})` and its minimisation would take seconds.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import lru_cache

import numpy as np

from bpe_automata._automata.algebra import any_of, difference, intersection
from bpe_automata._automata.codepoints import Inversion, complement, union, without
from bpe_automata._automata.compile import atoms, compile_regex, determinized, finish
from bpe_automata._automata.dfa import ByteDFA
from bpe_automata._automata.minimise import equal_columns
from bpe_automata._automata.program import JUMP, MATCH, SPLIT, Program
from bpe_automata._automata.sources import from_strings
from bpe_automata._automata.syntax import parse
from bpe_automata._budget import Budget, check, out_of_instructions, out_of_memory, spending
from bpe_automata._kernels.byte_product import Layers, layers, made, to_go
from bpe_automata._kernels.utf8 import numbered
from bpe_automata._kernels.watch import watched
from bpe_automata.errors import BudgetExceededError
from bpe_automata.schemas._ecma import (
    BEGIN,
    BOUNDARY,
    END,
    MARKERS,
    NO_BOUNDARY,
    WORD,
    Alternatives,
    Condition,
    Conditional,
    all_dialects,
    grouped,
    spelled,
    translate,
)

# Assertions are removed from a program: it keeps the paths on which each assertion is true.
#
# An assertion is about the characters before and after it. So each instruction is copied for each
# context (the character read last, the characters that may come next): reading a character must be
# allowed by the second part and sets the first; an assertion narrows the second part.

# The character read last, and (as a set) those that may come next: word, other, end of the string.
_START, _WORD, _OTHER = 0, 1, 2
_NEXT_WORD, _NEXT_OTHER, _NEXT_END = 1, 2, 4
_ANYTHING = _NEXT_WORD | _NEXT_OTHER | _NEXT_END
_NO_CLASS = 0
_STRIDE = 5  # instructions for one in a context: SPLIT, character, JUMP, character, JUMP
_Context = tuple[int, int]


def compile_marked(text: str, budget: Budget) -> ByteDFA:
    """The minimal byte DFA of a regex with MARKERS, which must match a whole string.

    Raises BudgetExceededError.
    """
    for marker in MARKERS:  # twice: the parser makes one class of alternatives of one character
        text = text.replace(marker, 2 * marker)
    program = Program(parse(text), budget)
    rows = program.rows()
    markers = {c: m for c, m in enumerate(map(_marker, program.classes)) if m}
    contexts = _contexts(markers.values())
    if len(contexts) * rows.shape[1] * _STRIDE > budget.max_instructions:
        raise out_of_instructions(budget)
    classes: list[Inversion] = [()]
    for members in program.classes:
        plain = () if _marker(members) else members
        classes += [without(plain, complement(WORD)), without(plain, WORD)]
    starts, atom_of, member = atoms(classes)
    trans, accepting = determinized(_expanded(rows, markers, contexts), member, budget)
    return finish(trans, accepting, 1, starts, atom_of, budget)


def _marker(members: Inversion) -> str:
    """The marker that a class represents; empty for a class of characters."""
    single = len(members) == 2 and members[1] == members[0] + 1
    return chr(members[0]) if single and chr(members[0]) in MARKERS else ""


def _asserted(marker: str, context: _Context) -> _Context | None:
    """The context after an assertion; None if it is false."""
    before, allowed = context
    if marker == BEGIN:
        return context if before == _START else None
    if marker == END:
        allowed &= _NEXT_END
    if marker in (BOUNDARY, NO_BOUNDARY):
        same = (before == _WORD) == (marker == NO_BOUNDARY)
        allowed &= _NEXT_WORD if same else _NEXT_OTHER | _NEXT_END
    return (before, allowed) if allowed else None


def _contexts(markers: Iterable[str]) -> dict[_Context, int]:
    """All contexts that can be reached, numbered from 0, the start."""
    found = {(_START, _ANYTHING): 0}
    queue = list(found)
    for context in queue:
        after = [_asserted(marker, context) for marker in markers]
        for other in (*after, (_WORD, _ANYTHING), (_OTHER, _ANYTHING)):
            if other is not None and other not in found:
                found[other] = len(found)
                queue.append(other)
    return found


def _expanded(
    rows: np.ndarray, markers: dict[int, str], contexts: dict[_Context, int]
) -> np.ndarray:
    """int32 [4, size], as `Program.rows`: an instruction for each context and each one
    of the source. Class c of the source becomes 2 c + 1, its word characters, and 2 c + 2, the
    others."""
    code, arg, *distances = rows
    n = len(code)
    out = np.full((4, len(contexts), n, _STRIDE), -1, np.int32)
    out[0], out[1] = _NO_CLASS, 0
    for row, distance in zip(out[2:], distances, strict=True):  # in the first copy of a context
        row[:] = np.where(distance >= 0, distance * _STRIDE, -1)[:, None]
    matches, moves = code == MATCH, np.isin(code, (JUMP, SPLIT))
    reads = ~(matches | moves | np.isin(code, list(markers)))
    for context, number in contexts.items():
        codes, args = out[:2, number]
        codes[matches, 0] = MATCH if context[1] & _NEXT_END else _NO_CLASS
        codes[moves, 0], args[moves, 0] = code[moves], arg[moves] * _STRIDE
        codes[moves, 1], args[moves, 1] = JUMP, _STRIDE - 1
        codes[reads, 0], args[reads, 0] = SPLIT, 3
        ways = [(code == c, 0, _asserted(marker, context)) for c, marker in markers.items()]
        for k, (kind, before) in enumerate(((_NEXT_WORD, _WORD), (_NEXT_OTHER, _OTHER)), 1):
            if context[1] & kind:
                codes[reads, 2 * k - 1] = 2 * code[reads] + k
            ways.append((reads, 2 * k, (before, _ANYTHING)))
        for where, slot, then in ways:
            if then is not None:  # to the next instruction, in another context
                codes[where, slot] = JUMP
                args[where, slot] = ((contexts[then] - number) * n + 1) * _STRIDE - slot
    return out.reshape(4, -1)


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
    """The automaton without unreachable states and equal columns, numbered breadth-first."""
    rows, accepting, start = watched(numbered, rows, accepting, start)
    column, kept = equal_columns(rows)
    rows = rows if len(kept) == rows.shape[1] else np.ascontiguousarray(rows[:, kept])
    return ByteDFA(rows, column[byte_class].astype(np.uint8), accepting, int(start))


@lru_cache(maxsize=1024)
def ecma_pattern(pattern: str, budget: Budget = _DEFAULT, agreed: bool = False) -> ByteDFA:
    """The strings in which the ECMA-262 pattern matches somewhere, by code points.

    agreed: those in which it matches by Python's `re` and Rust's `regex` too, but for some: if it
    has `\\b` or `\\B`, strings with characters of words to one of them only, and the empty one for
    `\\B`; with `$` in a `(?!...)`, those that end in a line feed. `\\A \\Z \\z` are then known.

    Raises RegexSyntaxError for what is no pattern, and for what other dialects read otherwise,
    UnsupportedRegexError for backreferences and for lookaround but that behind a `^` at the
    beginning (all with a position), BudgetExceededError.
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
    """Without the strings in which dialects differ about the markers of a pattern."""
    denied = "".join(grouped(c) for _, every in alternatives for there, c in every if not there)
    if END in denied:
        found = difference(found, compile_regex(rf"{_ANY}\n", budget), budget)
    text = "".join(
        grouped((terms, *(t for _, c in every for t in c))) for terms, every in alternatives
    )
    if BOUNDARY in text or NO_BOUNDARY in text:
        words = [sets["w"] for sets in all_dialects()]
        same = union((WORD, complement(union(words))))
        least = "+" if NO_BOUNDARY in text else "*"  # `re` finds no `\\B` in the empty string
        found = intersection(found, compile_regex(f"{spelled(same)}{least}", budget), budget)
    return found


@lru_cache(maxsize=1024)
def _language(alternatives: Alternatives, budget: Budget) -> ByteDFA:
    plain = _without_assertions(alternatives)
    if plain is None:
        return compile_marked(f"{_ANY}{grouped(alternatives)}{_ANY}", budget)
    return compile_regex(plain, budget)


def _looked_ahead(found: ByteDFA, conditions: list[Condition], budget: Budget) -> ByteDFA:
    """A condition on what follows is a language of its own where the beginning of the string is the
    only place to look from: ^(?=A)(?!B)C has a match in the strings of ^C & ^(?:A) - ^(?:B)."""
    for is_there, inside in conditions:
        check()
        there = _language(((BEGIN, grouped(inside)),), budget)
        found = (intersection if is_there else difference)(found, there, budget)
    return found


def _without_assertions(alternatives: Alternatives) -> str | None:
    """A regex for the whole string, if each assertion is a `^` that begins an alternative or a `$`
    that ends one; otherwise None."""
    bodies: dict[tuple[bool, bool], list[str]] = {}
    for terms in alternatives:
        begins, ends = BEGIN in terms[:1], END in terms[-1:]
        body = "".join(terms[begins : len(terms) - ends])
        if any(marker in body for marker in MARKERS):
            return None
        bodies.setdefault((begins, ends), []).append(body)
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
    return "|".join(found)
