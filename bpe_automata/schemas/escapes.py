"""Texts as JSON string literals, quotes included.

    L(json_string(dfa, "minimal")) = { json.dumps(w, ensure_ascii=False) : w in L(dfa) }
    L(json_string(dfa, "any"))     = { literal : json.loads(literal) in L(dfa) }

"any" leaves out only what JSON allows and Unicode does not: escapes that are half a surrogate pair.
A transduction of the table, linear in its size: the states of the text automaton stay, and each
gets the states that stand inside an escape.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.automata.sources import from_strings
from bpe_automata.budget import Budget, out_of_memory
from bpe_automata.errors import ArgumentError
from bpe_automata.kernels.lengths import to_go
from bpe_automata.kernels.utf8 import numbered
from bpe_automata.kernels.watch import watched
from bpe_automata.schemas.escape_nodes import HEX, Nodes, chunks
from bpe_automata.schemas.unicode_escapes import UnicodeEscapes

Escapes = Literal["minimal", "any"]
_DEFAULT = Budget()
_SHORT = {b'"': b'"', b"\\": b"\\", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t"}
_N_CONTROLS = 0x20
_COPIES = 2  # of the table, while its states are numbered


def json_string(dfa: ByteDFA, escapes: Escapes = "minimal", budget: Budget = _DEFAULT) -> ByteDFA:
    """The literals of the texts of `dfa`, which must be minimal and hold well-formed UTF-8 only.

    escapes: "minimal", one spelling per character, escaped only where it must be, as `json.dumps`
    does with ensure_ascii=False; "any", besides that `\\/` and `\\uXXXX` for every character. The
    result is trimmed, numbered breadth-first by byte, and perhaps not minimal. Raises
    ArgumentError, and BudgetExceededError if the table would take more than the budget's bytes.
    """
    if escapes not in ("minimal", "any"):
        raise ArgumentError(f'escapes={escapes!r}: give "minimal" or "any"')
    if dfa.start == 0:
        return from_strings(())
    left = to_go(dfa.trans, _some_byte(dfa.byte_class), dfa.start)
    between = np.flatnonzero(left == 0)[1:].astype(np.int32)  # state 0 is dead
    nodes = Nodes(dfa.n_states + 2, budget)
    escaped = _escapes(dfa, left, between, nodes, escapes)
    column = _columns(dfa.byte_class, nodes.told_apart())
    _, some_byte = np.unique(column, return_index=True)
    if nodes.count * len(some_byte) * 4 * _COPIES > budget.max_bytes:
        raise out_of_memory(budget)
    table = np.zeros((nodes.count, len(some_byte)), np.int32)
    table[: dfa.n_states] = dfa.trans[:, dfa.byte_class[some_byte]]
    begin, end = dfa.n_states, dfa.n_states + 1
    table[between, column[0]] = 0
    table[between, column[ord('"')]] = np.where(dfa.accepting[between], end, 0)
    table[between, column[ord("\\")]] = escaped
    table[begin, column[ord('"')]] = dfa.start
    nodes.fill(table, column)
    accepting = np.zeros(len(table), np.bool_)
    accepting[end] = True
    table, accepting, start = watched(numbered, table, accepting, begin)
    return ByteDFA(table, column.astype(np.uint8), accepting, int(start))


def _some_byte(byte_class: np.ndarray) -> np.ndarray:
    """int32 [k]: a byte of each column."""
    return np.unique(byte_class, return_index=True)[1].astype(np.int32)


def _columns(byte_class: np.ndarray, inside: np.ndarray) -> np.ndarray:
    """int64 [256]: the column of each byte, numbered by first byte. Quotes and backslashes have
    their own, control characters have one; others are told apart as before, and inside escapes."""
    kind = byte_class.astype(np.int64)
    kind[[ord('"'), ord("\\")]] = 256, 257
    kind[:_N_CONTROLS] = 258
    rows = np.column_stack((kind, inside))
    _, first, column = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    number = np.empty(len(first), np.int64)
    number[np.argsort(first)] = np.arange(len(first))
    return number[column.ravel()]


def _escapes(
    dfa: ByteDFA, left: np.ndarray, between: np.ndarray, nodes: Nodes, escapes: Escapes
) -> np.ndarray:
    """int32 [m]: the state after a backslash, for each state between two characters."""
    tree = UnicodeEscapes(dfa, left, nodes) if escapes == "any" else None
    short = dict(_SHORT) if tree is None else {**_SHORT, b"/": b"/"}
    found = []
    for states in chunks(between):
        rows = np.zeros((len(states), len(short) + 1), np.int32)
        after = dfa.trans[states][:, dfa.byte_class[:128]]
        rows[:, :-1] = after[:, [ord(character) for character in short.values()]]
        controls = after[:, :_N_CONTROLS]
        rows[:, -1] = _controls(controls, nodes) if tree is None else tree.from_states(states)
        found.append(nodes.add(rows, (*short, b"u")))
    return np.concatenate(found)


def _controls(after: np.ndarray, nodes: Nodes) -> np.ndarray:
    """int32 [m]: after `\\u`, where only the control characters without a short escape may come;
    after: int32 [m, 32], where each control character leads."""
    after = after.copy()
    after[:, [ord(c) for c in _SHORT.values() if ord(c) < _N_CONTROLS]] = 0
    digit = nodes.add(after.reshape(-1, 2, 16), HEX)
    return nodes.single(nodes.single(nodes.add(digit, (b"0", b"1")), b"0"), b"0")
