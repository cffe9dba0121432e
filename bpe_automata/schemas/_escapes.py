"""Computes the string literals, quotes included, of a set of strings.

    L(json_string(dfa, "minimal")) = { json.dumps(w, ensure_ascii=False) : w in L(dfa) }
    L(json_string(dfa, "any"))     = { literal : json.loads(literal) in L(dfa) }

"any" lacks only escapes of an unpaired surrogate, which JSON allows and Unicode does not.

A transducer reads the escapes: each of its steps reads a letter and outputs the bytes of UTF-8 that
are determined by then. A state of the result is a node of the transducer together with the state of
`dfa` after the bytes that were output; the node `_OUTSIDE` is outside of all escapes.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Iterator, Mapping
from functools import lru_cache
from graphlib import TopologicalSorter
from itertools import groupby
from typing import Literal

import numpy as np

from bpe_automata._budget import Budget, out_of_memory
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.automata.minimise import equal_columns, numbered
from bpe_automata.automata.sources import from_strings
from bpe_automata.automata.utf8 import bytes_to_go
from bpe_automata.errors import ArgumentError

Escapes = Literal["minimal", "any"]
_DEFAULT = Budget()
_MINIMAL = {c: json.dumps(c)[2:-1] for c in (*map(chr, range(0x20)), '"', "\\")}
_SHORT = {c: text for c, text in _MINIMAL.items() if len(text) == 1} | {"/": "/"}
_COPIES = 3  # of the table, while its states are merged
Step = tuple[Hashable, str, Hashable, bytes]
"""(node, letters, the node that each of these leads to, bytes that are output then)."""
_OUTSIDE, _BEGUN = "", "\\"


def json_string(dfa: ByteDFA, escapes: Escapes = "minimal", budget: Budget = _DEFAULT) -> ByteDFA:
    """The literals of the strings of `dfa`, which must be minimal and of well-formed UTF-8.

    escapes: "minimal" escapes only the characters that must be, each in one way, as `json.dumps`
    does with ensure_ascii=False; "any" allows also `\\/`, and `\\uXXXX` for every character. The
    result is trimmed, numbered breadth-first by byte, and not always minimal. Raises ArgumentError,
    and BudgetExceededError if the table would take more than the budget's bytes.
    """
    if escapes not in ("minimal", "any"):
        raise ArgumentError(f'escapes={escapes!r}: give "minimal" or "any"')
    steps = _steps_of_json(escapes)
    return _through(dfa, steps, budget)


@lru_cache(maxsize=2)
def _steps_of_json(escapes: Escapes) -> list[Step]:
    if escapes == "minimal":
        return _ordered(_listed(_MINIMAL))
    return _ordered((*_listed(_SHORT), *_hexadecimal()))


def with_escapes(dfa: ByteDFA, escapes: Mapping[str, str], budget: Budget) -> ByteDFA:
    """The strings of `dfa` (see `json_string`) in double quotes. escapes: what follows the
    backslash, for each character that has an escape; all of them but U+0000 to U+001F, `"` and the
    backslash may also stand for themselves."""
    return _through(dfa, _ordered(_listed(escapes)), budget)


def _listed(escapes: Mapping[str, str]) -> Iterator[Step]:
    """The steps of escapes, given by what follows the backslash: none is a prefix of another."""
    seen = set[str]()
    for character, text in escapes.items():
        for at in range(1, len(text)):
            if text[:at] not in seen:
                seen.add(text[:at])
                yield _BEGUN + text[: at - 1], text[at - 1], _BEGUN + text[:at], b""
        yield _BEGUN + text[:-1], text[-1], _OUTSIDE, character.encode()


# `\uXXXX` of every character: four hexadecimal digits divide a code point into 4 + 4 + 4 + 4 bits,
# UTF-8 divides it into groups of 6 bits from the right.

_DIGITS = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "aA", "bB", "cC", "dD", "eE", "fF"]


def _hexadecimal() -> Iterator[Step]:
    yield _BEGUN, "u", "u", b""
    for digit, letters in enumerate(_DIGITS):
        if digit not in (0, 0xD):
            yield "u", letters, "3 bytes", bytes((0xE0 + digit,))
        yield "3 bytes", letters, ("second", digit), b""
        for bits in range(16):  # of the digit before, or the last ones of it
            second = 0x80 + bits * 4 + (digit >> 2)
            yield ("second", bits), letters, ("last", digit & 3), bytes((second,))
        for bits in range(4):
            yield ("last", bits), letters, _OUTSIDE, bytes((0x80 + bits * 16 + digit,))
        for bits in range(8):
            first = 0xC0 + bits * 4 + (digit >> 2)
            if bits:
                yield ("2 bytes", bits), letters, ("last", digit & 3), bytes((first,))
            yield ("ascii", bits), letters, _OUTSIDE, bytes((bits * 16 + digit,))
        if digit >= 8:
            yield "u0", letters, ("second", digit), b"\xe0"
            yield "u00", letters, ("last", digit & 3), bytes((0xC0 + (digit >> 2),))
        else:
            yield "u0", letters, ("2 bytes", digit) if digit else "u00", b""
            yield "u00", letters, ("ascii", digit), b""
            yield "ud", letters, ("second", digit), b"\xed"
    yield "u", _DIGITS[0], "u0", b""
    yield "u", _DIGITS[0xD], "ud", b""
    yield from _surrogates()


def _surrogates() -> Iterator[Step]:
    """`\\uD8XX\\uDCXX`, of which each has ten bits of the code point minus 0x10000."""
    for two in range(4):
        yield "ud", _DIGITS[8 + two], ("high", two), b""
        yield ("low", two), "\\", ("low u", two), b""
        yield ("low u", two), "u", ("low d", two), b""
        yield ("low d", two), _DIGITS[0xD], ("low digit", two), b""
        for digit, letters in enumerate(_DIGITS):
            plane = two * 4 + (digit >> 2) + 1
            first = bytes((0xF0 + (plane >> 2),))
            yield ("high", two), letters, ("high", plane & 3, digit & 3), first
            for bits in range(4):
                second = bytes((0x80 + two * 16 + bits * 4 + (digit >> 2),))
                yield ("high", two, bits), letters, ("low", digit & 3), second
                yield ("low", two, bits), letters, ("last", digit & 3), second
        for bits in range(4):
            yield ("low digit", two), _DIGITS[0xC + bits], ("low", two, bits), b""


def _ordered(steps: Iterable[Step]) -> list[Step]:
    """The steps in an order in which those into a node come before those out of it."""
    found, into = dict[Hashable, list[Step]](), dict[Hashable, set[Hashable]]()
    for step in steps:
        found.setdefault(step[0], []).append(step)
        if step[2] != _OUTSIDE:
            into.setdefault(step[2], set()).add(step[0])
    return [step for node in TopologicalSorter(into).static_order() for step in found[node]]


def _through(dfa: ByteDFA, steps: list[Step], budget: Budget) -> ByteDFA:
    """The literals that are strings of `dfa` once the transducer has replaced their escapes."""
    if dfa.start == 0:
        return from_strings(())
    n, begin = dfa.n_states, 0
    reached: dict[Hashable, np.ndarray] = {_OUTSIDE: np.ones(n, np.bool_)}
    reached[_BEGUN] = (bytes_to_go(dfa) == 0) & (np.arange(n) > 0)
    moves = list[tuple[Hashable, str, Hashable, np.ndarray, np.ndarray]]()
    for node, some in groupby(steps, lambda step: step[0]):
        states = np.flatnonzero(reached.get(node, ()))
        for _, letters, following, output in some if states.size else ():
            here = after = states
            for byte in output:
                after = dfa.trans[after, dfa.byte_class[byte]]
            here, after = here[after > 0], after[after > 0]
            if here.size:
                reached.setdefault(following, np.zeros(n, np.bool_))[after] = True
                moves.append((node, letters, following, here, after))
    live = {node: np.full(n, node == _OUTSIDE) for node in reached}  # does anything follow?
    for node, _, following, here, after in reversed(moves):
        live[node][here] |= live[following][after]
    number = dict[Hashable, np.ndarray]()
    for node, kept in live.items():
        number[node] = np.where(kept, begin + np.cumsum(kept) - 1, 0).astype(np.int32)
        begin += int(np.count_nonzero(kept))
    column, some_byte = _columns(dfa, {*'"\\', *"".join(letters for _, letters, _, _ in steps)})
    if (begin + 2) * len(some_byte) * 4 * _COPIES > budget.max_bytes:
        raise out_of_memory(budget)
    table = np.zeros((begin + 2, len(some_byte)), np.int32)
    table[:n] = dfa.trans[:, dfa.byte_class[some_byte]]
    table[:n, column[:0x20]] = 0
    table[:n, column[ord("\\")]] = number[_BEGUN]
    table[:n, column[ord('"')]] = np.where(dfa.accepting, begin + 1, 0)
    table[begin, column[ord('"')]] = dfa.start
    for node, letters, following, here, after in moves:
        here, after = here[live[node][here]], after[live[node][here]]
        for letter in letters:
            table[number[node][here], column[ord(letter)]] = number[following][after]
    is_end = np.arange(begin + 2) == begin + 1
    table, accepting, start = numbered(table, is_end, begin)
    return ByteDFA(table, column.astype(np.uint8), accepting, start)


def _columns(dfa: ByteDFA, letters: set[str]) -> tuple[np.ndarray, np.ndarray]:
    """(the column of each byte, the first byte of each column). Each letter has a column of its
    own, and control characters, which must be escaped, share none with other bytes."""
    kind = np.zeros(256, np.int32)
    kind[:0x20] = 1
    kind[[ord(letter) for letter in sorted(letters)]] = 2 + np.arange(len(letters))
    return equal_columns(np.array([kind, dfa.byte_class]))
