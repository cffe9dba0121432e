"""Computes the set of strings with a bounded length, or with a match of an ECMA-262 pattern.

    L(within_length(dfa, m, n)) = { w in L(dfa) : m <= characters of w <= n }
    L(ecma_pattern(p)) = { w in UTF-8 : new RegExp(p, "u").test(w) }

A character is a code point, as in JSON Schema. Lengths are bounded layer by layer, in time linear
in the result; a product with `(?s:.{0,65535})` and its minimisation would take seconds.
"""

from __future__ import annotations

import re
import sys
from functools import lru_cache

import numpy as np

from bpe_automata._automata.algebra import any_of, difference, intersection
from bpe_automata._automata.codepoints import Inversion, complement, without
from bpe_automata._automata.compile import atoms, compile_regex, determinized, finish
from bpe_automata._automata.dfa import ByteDFA
from bpe_automata._automata.program import Program
from bpe_automata._automata.sources import from_strings
from bpe_automata._automata.syntax import parse
from bpe_automata._budget import Budget, check, out_of_instructions, out_of_memory, spending
from bpe_automata._kernels.byte_product import Layers, layers, made, to_go
from bpe_automata._kernels.determinize import JUMP, MATCH, SPLIT
from bpe_automata._kernels.minimise import equal_columns
from bpe_automata._kernels.utf8 import numbered
from bpe_automata._kernels.watch import watched
from bpe_automata.errors import BudgetExceededError, RegexSyntaxError, UnsupportedRegexError
from bpe_automata.schemas._ecma import (
    BEGIN,
    BOUNDARY,
    END,
    GROUP,
    MARKERS,
    NO_BOUNDARY,
    WORD,
    Alternatives,
    grouped,
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
    markers = {c: _marker(members) for c, members in enumerate(program.classes)}
    expanded = _Expanded(rows, {c: m for c, m in markers.items() if m})
    if expanded.size > budget.max_instructions:
        raise out_of_instructions(budget)
    classes: list[Inversion] = [()]
    for members in program.classes:
        plain = () if _marker(members) else members
        classes += [without(plain, complement(WORD)), without(plain, WORD)]
    starts, atom_of, member = atoms(classes)
    trans, accepting = determinized(expanded.rows(), member, budget)
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


class _Expanded:
    """The program with an instruction for each context and each instruction of the source. Class c
    of the source becomes 2 c + 1, its word characters, and 2 c + 2, the others."""

    def __init__(self, rows: np.ndarray, markers: dict[int, str]) -> None:
        self._source, self._markers = rows, markers
        self._n = rows.shape[1]
        self._contexts = self._closure()
        self.size = len(self._contexts) * self._n * _STRIDE

    def _closure(self) -> dict[_Context, int]:
        """All contexts that can be reached, numbered from 0, the start."""
        contexts = {(_START, _ANYTHING): 0}
        queue = list(contexts)
        for context in queue:
            after = [_asserted(marker, context) for marker in self._markers.values()]
            for found in (*after, (_WORD, _ANYTHING), (_OTHER, _ANYTHING)):
                if found is not None and found not in contexts:
                    contexts[found] = len(contexts)
                    queue.append(found)
        return contexts

    def rows(self) -> np.ndarray:
        """int32 [4, size], as for `_kernels.determinize`."""
        out = np.full((4, self.size), -1, np.int32)
        out[0], out[1] = _NO_CLASS, 0
        code, arg, near, far = self._source.tolist()
        for context, number in self._contexts.items():
            for i in range(self._n):
                at = self._at(number, i)
                self._copy(out[:2], at, context, (i, code[i], arg[i]))
                for row, distance in ((2, near[i]), (3, far[i])):
                    if distance >= 0:  # contexts lie apart, so the first copy is in the same one
                        out[row, at : at + _STRIDE] = distance * _STRIDE
        return out

    def _at(self, context: int, instruction: int) -> int:
        return (context * self._n + instruction) * _STRIDE

    def _copy(
        self, out: np.ndarray, at: int, context: _Context, source: tuple[int, int, int]
    ) -> None:
        """Write the copy of one instruction in one context, at `at`."""
        i, code, arg = source
        if code == MATCH:
            if context[1] & _NEXT_END:
                out[0, at] = MATCH
        elif code in (JUMP, SPLIT):
            out[:, at] = code, arg * _STRIDE
            out[:, at + 1] = JUMP, _STRIDE - 1
        elif code in self._markers:
            after = _asserted(self._markers[code], context)
            if after is not None:
                out[:, at] = JUMP, self._at(self._contexts[after], i + 1) - at
        else:
            self._characters(out, at, context[1], (i, code))

    def _characters(self, out: np.ndarray, at: int, allowed: int, source: tuple[int, int]) -> None:
        i, code = source
        out[:, at] = SPLIT, 3
        kinds = ((_NEXT_WORD, _WORD, 1), (_NEXT_OTHER, _OTHER, 3))
        for k, (kind, before, slot) in enumerate(kinds, start=1):
            out[0, at + slot] = 2 * code + k if allowed & kind else _NO_CLASS
            to = self._at(self._contexts[before, _ANYTHING], i + 1)
            out[:, at + slot + 1] = JUMP, to - (at + slot + 1)


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
    column, count = watched(equal_columns, rows)
    _, kept = np.unique(column, return_index=True)
    rows = rows if count == rows.shape[1] else np.ascontiguousarray(rows[:, kept])
    return ByteDFA(rows, column[byte_class].astype(np.uint8), accepting, int(start))


@lru_cache(maxsize=1024)
def ecma_pattern(pattern: str, budget: Budget = _DEFAULT) -> ByteDFA:
    """The strings in which the ECMA-262 pattern matches somewhere, by code points.

    Raises RegexSyntaxError, UnsupportedRegexError for backreferences and for lookaround but that
    behind a `^` at the beginning (all with a position), BudgetExceededError.
    """
    try:
        if _AHEAD.search(pattern):
            _refuse_references(pattern)
            alternatives = _apart(pattern, "|")
            if len(alternatives) > 1:
                return any_of(ecma_pattern(one, budget) for one in alternatives)
            if _AHEAD.match(pattern):
                return _looked_ahead(pattern, budget)
        translated = translate(pattern, budget)
        plain = _without_assertions(translated)
        if plain is None:
            return compile_marked(f"{_ANY}{grouped(translated)}{_ANY}", budget)
        return compile_regex(plain, budget)
    except RecursionError:
        advice = "groups of the pattern are nested too deeply"
        raise BudgetExceededError("stack frames", sys.getrecursionlimit(), advice) from None


# A condition on what follows is a language of its own where the beginning of the string is the only
# place to look from:   ^(?=A)(?!B)C   has a match in the strings of   ^C & ^(?:A) - ^(?:B)

_AHEAD = re.compile(r"\^\(\?[=!]")
_TOKEN = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|.", re.DOTALL)  # escapes and classes are one


def _looked_ahead(pattern: str, budget: Budget) -> ByteDFA:
    """The same for a pattern that begins with such conditions."""
    conditions, rest = list[str](), pattern
    while _AHEAD.match(rest):
        check()
        condition, *after = _apart(rest[1:], ")")
        if not after:
            raise RegexSyntaxError(pattern, 1, "a bracket that is not closed")
        conditions.append(condition)
        rest = f"^{after[0]}"
    found = ecma_pattern(rest, budget)
    for condition in conditions:
        there = ecma_pattern(f"^(?:{condition[3:]})", budget)
        found = (intersection if condition[2] == "=" else difference)(found, there, budget)
    return found


def _refuse_references(pattern: str) -> None:
    """Raises UnsupportedRegexError for what may be a backreference: the groups of a pattern are no
    longer counted once it is taken apart."""
    for token in _TOKEN.finditer(pattern):
        if re.match(r"\\[1-9k]", token[0]) and GROUP.search(pattern):
            raise UnsupportedRegexError(pattern, token.start(), "a backreference is not regular")


def _apart(pattern: str, mark: str) -> list[str]:
    """The pattern, apart at each `|` outside all brackets; or, after the first bracket that closes,
    at that one (which is left out)."""
    found, depth, begin = list[str](), 0, 0
    for token in _TOKEN.finditer(pattern):
        depth += (token[0] == "(") - (token[0] == ")")
        if token[0] == mark and depth == 0:
            found.append(pattern[begin : token.start()])
            begin = token.end()
            if mark == ")":
                break
    return [*found, pattern[begin:]]


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
