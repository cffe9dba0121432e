"""Byte DFAs from other things than a regex: a finite set of strings, an automaton of characters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from bpe_automata._automata.assembly import by_first_byte
from bpe_automata._automata.codepoints import Inversion, complement, union
from bpe_automata._automata.compile import atoms, finish
from bpe_automata._automata.dfa import ByteDFA
from bpe_automata._automata.minimise import equal_columns
from bpe_automata._budget import Budget
from bpe_automata._kernels.minimise import subtrees, trie
from bpe_automata._kernels.utf8 import numbered
from bpe_automata._kernels.watch import watched
from bpe_automata._limits import NUMBERS, check_fits
from bpe_automata.errors import UnsupportedRegexError


def from_strings(strings: Iterable[str]) -> ByteDFA:
    """The minimal DFA of { s.encode() : s in strings }, which may be empty.

    Raises UnsupportedRegexError for a string with a surrogate: it has no UTF-8; BudgetExceededError
    for strings of 2**31 bytes in all.
    """
    encoded = sorted({_encode(s) for s in strings})
    check_fits("bytes of all strings", sum(map(len, encoded)), NUMBERS - 1, "list fewer strings")
    if not encoded:
        nothing = np.zeros((1, 1), np.int32)
        return ByteDFA(nothing, np.zeros(256, np.uint8), np.zeros(1, np.bool_), 0)
    ptr = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum([len(s) for s in encoded], out=ptr[1:])
    data = np.array(np.frombuffer(b"".join(encoded), np.uint8))
    parent, label, ends = watched(trie, data, ptr)
    state, n_states = watched(subtrees, parent, label, ends)
    used = np.unique(label[1:])
    column = np.zeros(256, np.int64)  # 0: bytes that lead nowhere
    column[used] = np.arange(1, len(used) + 1)
    table, accepting = np.zeros((n_states, len(used) + 1), np.int32), np.zeros(n_states, np.bool_)
    table[state[parent[1:]], column[label[1:]]], accepting[state] = state[1:], ends
    number, first = equal_columns(table)
    kept, byte_class = by_first_byte(number[column])
    rows = np.ascontiguousarray(table[:, first[kept]])
    rows, accepting, start = watched(numbered, rows, accepting, int(state[0]))
    return ByteDFA(rows, byte_class.astype(np.uint8), accepting, int(start))


def _encode(string: str) -> bytes:
    try:
        return string.encode()
    except UnicodeEncodeError as error:
        raise UnsupportedRegexError(string, error.start, "a surrogate has no UTF-8") from None


def from_interegular(fsm: Any, budget: Budget = Budget()) -> ByteDFA:  # noqa: B008 - frozen
    """The minimal byte DFA of an `interegular.fsm.FSM` over characters.

    Its `anything_else` stands for all characters that the alphabet does not name. Raises
    BudgetExceededError if the byte automaton would be too large.
    """
    keys, sets = _alphabet(fsm)
    starts, atom_of, member = atoms(sets)
    number = {state: i for i, state in enumerate(fsm.states, start=1)}
    trans = np.zeros((len(number) + 1, member.shape[0]), np.int32)
    for state, targets in fsm.map.items():
        for c, key in enumerate(keys):
            if key in targets:
                trans[number[state], member[:, c] != 0] = number.get(targets[key], 0)
    accepting = np.zeros(len(number) + 1, np.bool_)
    accepting[[number[state] for state in fsm.finals]] = True
    return finish(trans, accepting, number[fsm.initial], starts, atom_of, budget)


def _alphabet(fsm: Any) -> tuple[list[Any], list[Inversion]]:
    """The transition keys, and the code points of each."""
    letters = {key: [s for s in symbols if isinstance(s, str)] for key, symbols in _symbols(fsm)}
    named = {key: union((ord(s), ord(s) + 1) for s in found) for key, found in letters.items()}
    others = complement(union(named.values()))
    for key, symbols in _symbols(fsm):
        if len(symbols) > len(letters[key]):
            named[key] = union((named[key], others))
    return list(named), list(named.values())


def _symbols(fsm: Any) -> list[tuple[Any, list[Any]]]:
    return [(key, list(symbols)) for key, symbols in fsm.alphabet.by_transition.items()]
