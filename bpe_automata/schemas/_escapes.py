"""Computes the JSON string literals, quotes included, of a set of strings.

    L(json_string(dfa, "minimal")) = { json.dumps(w, ensure_ascii=False) : w in L(dfa) }
    L(json_string(dfa, "any"))     = { literal : json.loads(literal) in L(dfa) }

"any" lacks only escapes of an unpaired surrogate, which JSON allows and Unicode does not. The table
is transformed in time linear in its size: the states of `dfa` remain, and states inside an escape
are added to them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Literal

import numpy as np

from bpe_automata._automata.dfa import ByteDFA
from bpe_automata._automata.minimise import equal_columns
from bpe_automata._automata.sources import from_strings
from bpe_automata._automata.utf8 import bytes_to_go
from bpe_automata._budget import Budget, out_of_memory
from bpe_automata._kernels.utf8 import numbered
from bpe_automata._kernels.watch import watched
from bpe_automata.errors import ArgumentError

# The states inside `\uXXXX`.
#
#     q  --\uXXXX-->  p        iff  the automaton goes from q to p by that character's UTF-8
#
# Four hexadecimal digits divide a code point into 4 + 4 + 4 + 4 bits; UTF-8 divides it into groups
# of 6 bits from the right. So the last digit chooses among a quarter of the continuation bytes that
# the last byte chooses among, and a state inside the escape depends on one state that the automaton
# has inside the character.

HEX = tuple(f"{digit:x}".encode() for digit in range(16))
HEX_BOTH = tuple(digit if digit.isdigit() else digit + digit.upper() for digit in HEX)
_ROW_BYTES = 64  # at least, of a row of the table
_CHUNK = 4096  # states whose rows are computed at a time, before equal ones are merged


class NewStates:
    """The states that are added to a table, numbered from `first` on.

    letters: for each target of a state, the bytes that lead there.
    """

    def __init__(self, first: int, budget: Budget) -> None:
        self.count = first
        self._max_rows = budget.max_bytes // _ROW_BYTES
        self._budget = budget
        self._blocks: list[tuple[int, np.ndarray, tuple[bytes, ...]]] = []

    def add(self, targets: np.ndarray, letters: tuple[bytes, ...]) -> np.ndarray:
        """int32 [...]: a state for each row of targets, int32 [..., len(letters)]. Equal rows get
        the same state, rows of zeros the dead state. Raises BudgetExceededError."""
        shape, rows = targets.shape[:-1], targets.reshape(-1, targets.shape[-1])
        some, which = _distinct(rows)
        live = rows[some].any(axis=1)
        number = np.zeros(len(some), np.int32)
        number[live] = self.count + np.arange(np.count_nonzero(live))
        if live.any():
            self._blocks.append((self.count, rows[some[live]], letters))
            self.count += int(np.count_nonzero(live))
        if self.count > self._max_rows:
            raise out_of_memory(self._budget)
        return number[which].reshape(shape)

    def single(self, targets: np.ndarray, letters: bytes) -> np.ndarray:
        """int32 [...]: states that go to `targets`, int32 [...], by any of the letters."""
        return self.add(targets[..., None], (letters,))

    def byte_rows(self) -> np.ndarray:
        """int64 [256, m]: bytes with equal rows have equal transitions from all added states."""
        found = np.full((256, len(self._blocks)), -1)
        for i, (_, rows, letters) in enumerate(self._blocks):
            numbers, _ = equal_columns(rows)
            for number, alike in zip(numbers, letters, strict=True):
                found[list(alike), i] = number
        return found

    def fill(self, table: np.ndarray, column: np.ndarray) -> None:
        """Write the transitions into `table`, int32 [count, k]; column: int64 [256]."""
        for first, rows, letters in self._blocks:
            for i, alike in enumerate(letters):
                for letter in alike:
                    table[first : first + len(rows), column[letter]] = rows[:, i]


def _distinct(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(indices of rows that are all different, for each row which of those it equals)."""
    key = (rows.astype(np.uint64) * _odd_numbers(rows.shape[1])).sum(axis=1, dtype=np.uint64)
    _, some, which = np.unique(key, return_index=True, return_inverse=True)
    if not np.array_equal(rows[some[which]], rows):  # two rows with one key
        _, some, which = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return some, which.ravel()


@lru_cache(maxsize=64)
def _odd_numbers(count: int) -> np.ndarray:
    """uint64 [count]: drawn by lot."""
    drawn = np.random.default_rng(0).integers(1 << 62, size=count, dtype=np.uint64)
    return 2 * drawn + np.uint64(1)


def chunks(states: np.ndarray) -> list[np.ndarray]:
    """The states in parts, which limits the size of arrays over states and code points."""
    return [states[i : i + _CHUNK] for i in range(0, len(states), _CHUNK)]


_Z = np.arange(16)
_QUARTER = _Z & 3


class UnicodeEscapes:
    """The states inside `\\uXXXX` of one automaton.

    bytes_to_go: int8 [n], how many bytes complete the character begun at each state. Each table has
    added states by state of the automaton, 0 for states with another number of bytes to go.
    """

    def __init__(self, dfa: ByteDFA, bytes_to_go: np.ndarray, added: NewStates) -> None:
        self._trans, self._class, self._added = dfa.trans, dfa.byte_class, added
        n = dfa.n_states
        self._last = np.zeros((n, 4), np.int32)  # one digit to go, by quarter
        self._two = np.zeros((n, 16), np.int32)  # two to go, by the digit before
        self._high = np.zeros((n, 4, 4), np.int32)  # a high surrogate's last digit to go
        for states in chunks(np.flatnonzero(bytes_to_go == 1)):
            targets = self._after(states[:, None, None], np.arange(64).reshape(4, 16))
            self._last[states] = added.add(targets, HEX_BOTH)
        for states in chunks(np.flatnonzero(bytes_to_go == 2)):
            self._two[states] = added.add(self._by_two_digits(states), HEX_BOTH)
        low = np.zeros((n, 4), np.int32)  # before a low surrogate, by two bits of the high one
        for states in chunks(np.flatnonzero(bytes_to_go == 2)):
            low[states] = self._low_surrogates(states)
        for states in chunks(np.flatnonzero(bytes_to_go == 3)):
            self._high[states] = added.add(self._high_surrogates(states, low), HEX_BOTH)

    def _after(self, states: np.ndarray, continuation: np.ndarray) -> np.ndarray:
        """The states after a continuation byte, given by its 6 bits."""
        return self._trans[states, self._class[0x80 + continuation]]

    def _by(self, states: np.ndarray, first: int) -> np.ndarray:
        """The states after a byte."""
        return self._trans[states, self._class[first]]

    def _by_two_digits(self, states: np.ndarray) -> np.ndarray:
        """int32 [m, 16, 16]: what two digits lead to, with one more to go."""
        inside = self._after(states[:, None, None], _Z[:, None] * 4 + (_Z >> 2))
        return self._last[inside, _QUARTER]

    def _low_surrogates(self, states: np.ndarray) -> np.ndarray:
        """int32 [m, 4]: the state before `\\uDXXX`, which has the last ten bits of a character, by
        the two bits before them."""
        high, third = np.arange(4)[:, None, None], np.arange(4)[:, None]
        inside = self._after(states[:, None, None, None], high * 16 + third * 4 + (_Z >> 2))
        third_digit = self._added.add(self._last[inside, _QUARTER], HEX_BOTH)
        second_digit = self._added.add(third_digit, (b"cC", b"dD", b"eE", b"fF"))
        before = self._added.single(second_digit, b"dD")
        return self._added.single(self._added.single(before, b"u"), b"\\")

    def _high_surrogates(self, states: np.ndarray, low: np.ndarray) -> np.ndarray:
        """int32 [m, 4, 4, 16]: the last digit of a high surrogate, by the two last bits of the
        plane and the two first bits of the 16 in the plane."""
        plane, first = np.arange(4)[:, None, None], np.arange(4)[:, None]
        inside = self._after(states[:, None, None, None], plane * 16 + first * 4 + (_Z >> 2))
        return low[inside, _QUARTER]

    def from_states(self, states: np.ndarray) -> np.ndarray:
        """int32 [m]: after `\\u`, four digits to go, for states between two characters."""
        found = np.zeros((len(states), 16), np.int32)
        for first in range(1, 16):
            two = self._two[self._by(states, 0xE0 + first)]
            if first == 0xD:
                two = two.copy()
                two[:, 8:12] = self._added.add(self._pairs(states), HEX_BOTH)
            found[:, first] = self._added.add(two, HEX_BOTH)
        found[:, 0] = self._added.add(self._below_1000(states), HEX_BOTH)
        return self._added.add(found, HEX_BOTH)

    def _pairs(self, states: np.ndarray) -> np.ndarray:
        """int32 [m, 4, 16]: after `\\uD` and 8, 9, A or B, what the next digit leads to."""
        plane = np.arange(4)[:, None] * 4 + (_Z >> 2) + 1
        inside = self._trans[states[:, None, None], self._class[0xF0 + (plane >> 2)]]
        return self._high[inside, plane & 3, _QUARTER]

    def _below_1000(self, states: np.ndarray) -> np.ndarray:
        """int32 [m, 16]: after `\\u0`, what the next digit leads to."""
        ascii_targets = self._trans[states[:, None, None], self._class[:128].reshape(8, 16)]
        two = np.zeros((len(states), 8, 16), np.int32)
        two[:, 0, :8] = self._added.add(ascii_targets, HEX_BOTH)
        for second in range(8):
            for third in range(8 if second == 0 else 0, 16):
                inside = self._by(states, 0xC0 + second * 4 + (third >> 2))
                two[:, second, third] = self._last[inside, third & 3]
        found = np.zeros((len(states), 16), np.int32)
        found[:, :8] = self._added.add(two, HEX_BOTH)
        found[:, 8:] = self._two[self._by(states, 0xE0)][:, 8:]
        return found


Escapes = Literal["minimal", "any"]
_DEFAULT = Budget()
_MINIMAL = {c: json.dumps(c)[2:-1] for c in (*map(chr, range(0x20)), '"', "\\")}
_SHORT = {c: text for c, text in _MINIMAL.items() if len(text) == 1} | {"/": "/"}
_COPIES = 2  # of the table, while its states are numbered


def json_string(dfa: ByteDFA, escapes: Escapes = "minimal", budget: Budget = _DEFAULT) -> ByteDFA:
    """The literals of the strings of `dfa`, which must be minimal and of well-formed UTF-8.

    escapes: "minimal", for characters that must be escaped, in one way, as `json.dumps` does with
    ensure_ascii=False; "any", also `\\/` and `\\uXXXX` for every character. The result is trimmed
    and numbered breadth-first by byte, and may not be minimal. Raises ArgumentError, and
    BudgetExceededError if the table would take more than the budget's bytes.
    """
    if escapes not in ("minimal", "any"):
        raise ArgumentError(f'escapes={escapes!r}: give "minimal" or "any"')
    if escapes == "minimal":
        return with_escapes(dfa, _MINIMAL, budget)
    return with_escapes(dfa, _SHORT, budget, any_character=True)


def with_escapes(
    dfa: ByteDFA, escapes: Mapping[str, str], budget: Budget, any_character: bool = False
) -> ByteDFA:
    """The strings of `dfa` in double quotes, with the same requirements. escapes: of characters
    that may be escaped, what follows the backslash; those beyond ASCII may be themselves, too.
    any_character: may each be `\\uXXXX`?"""
    if dfa.start == 0:
        return from_strings(())
    left = bytes_to_go(dfa)
    between = np.flatnonzero(left == 0)[1:].astype(np.int32)  # state 0 is dead
    added = NewStates(dfa.n_states + 2, budget)
    tree = UnicodeEscapes(dfa, left, added) if any_character else None
    escaped = [_escaped(dfa, states, added, escapes, tree) for states in chunks(between)]
    column = _columns(dfa.byte_class, added.byte_rows())
    _, some_byte = np.unique(column, return_index=True)
    if added.count * len(some_byte) * 4 * _COPIES > budget.max_bytes:
        raise out_of_memory(budget)
    table = np.zeros((added.count, len(some_byte)), np.int32)
    table[: dfa.n_states] = dfa.trans[:, dfa.byte_class[some_byte]]
    begin, end = dfa.n_states, dfa.n_states + 1
    table[between, column[0]] = 0
    table[between, column[ord('"')]] = np.where(dfa.accepting[between], end, 0)
    table[between, column[ord("\\")]] = np.concatenate(escaped)
    table[begin, column[ord('"')]] = dfa.start
    added.fill(table, column)
    accepting = np.zeros(len(table), np.bool_)
    accepting[end] = True
    table, accepting, start = watched(numbered, table, accepting, begin)
    return ByteDFA(table, column.astype(np.uint8), accepting, int(start))


def _columns(byte_class: np.ndarray, inside: np.ndarray) -> np.ndarray:
    """int64 [256]: the class of each byte, numbered by first byte. The quote and the backslash have
    classes of their own, control characters share one; other bytes are in one class if they were
    before and have equal rows in `inside`."""
    outside = byte_class.astype(np.int64)
    outside[[ord('"'), ord("\\")]] = 256, 257
    outside[:0x20] = 258
    rows = np.column_stack((outside, inside))
    _, first, column = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    number = np.empty(len(first), np.int64)
    number[np.argsort(first)] = np.arange(len(first))
    return number[column.ravel()]


def _escaped(
    dfa: ByteDFA,
    states: np.ndarray,
    added: NewStates,
    escapes: Mapping[str, str],
    tree: UnicodeEscapes | None,
) -> np.ndarray:
    """int32 [m]: the state after a backslash, for some states between two characters."""
    after = {"u": tree.from_states(states)} if tree else {}
    for character, text in escapes.items():
        found = states
        for byte in character.encode():
            found = dfa.trans[found, dfa.byte_class[byte]]
        after[text] = found
    return _before(after, added)


def _before(after: dict[str, np.ndarray], added: NewStates) -> np.ndarray:
    """int32 [m]: the states before some texts; after: by the text, those that it leads to."""
    by_letter: dict[str, dict[str, np.ndarray]] = {}
    for text, states in after.items():
        by_letter.setdefault(text[0], {})[text[1:]] = states
    targets = [rest[""] if "" in rest else _before(rest, added) for rest in by_letter.values()]
    return added.add(np.stack(targets, axis=1), tuple(map(str.encode, by_letter)))
