"""Byte DFAs from other things than a regex: a finite set of strings, an automaton of characters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from bpe_automata._budget import Budget
from bpe_automata._kernels.minimise import breadth_first, subtrees, trie
from bpe_automata._limits import NUMBERS, check_fits
from bpe_automata.automata.assembly import Assembly, by_first_byte
from bpe_automata.automata.codepoints import complement, union
from bpe_automata.automata.compile import one_of
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.automata.minimise import equal_columns
from bpe_automata.errors import UnsupportedRegexError


def from_strings(strings: Iterable[str]) -> ByteDFA:
    """The minimal DFA of { s.encode() : s in strings }, which may be empty.

    Raises UnsupportedRegexError for a string with a surrogate: it has no UTF-8; BudgetExceededError
    for strings of 2**31 bytes in all.
    """
    trans, byte_class, kinds, start = of_texts({_encode(s): 1 for s in strings})
    return ByteDFA(trans, byte_class, kinds > 0, start)


def _encode(string: str) -> bytes:
    try:
        return string.encode()
    except UnicodeEncodeError as error:
        raise UnsupportedRegexError(string, error.start, "a surrogate has no UTF-8") from None


def of_texts(kinds: Mapping[bytes, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """(trans, byte_class, kind of each state, start): the minimal DFA that tells what kind a text
    is of, from 1 on, numbered as those of `compile_regex` are; 0 where it is none of the texts.
    Raises BudgetExceededError for texts of 2**31 bytes in all."""
    texts = sorted(kinds)
    check_fits("bytes of all strings", sum(map(len, texts)), NUMBERS - 1, "list fewer strings")
    if not texts:
        return np.zeros((1, 1), np.int32), np.zeros(256, np.uint8), np.zeros(1, np.int32), 0
    ptr = np.zeros(len(texts) + 1, np.int64)
    np.cumsum([len(text) for text in texts], out=ptr[1:])
    data = np.array(np.frombuffer(b"".join(texts), np.uint8))
    given = np.array([kinds[text] for text in texts], np.int32)
    parent, label, ends = trie(data, ptr, given)
    state, n_states = subtrees(parent, label, ends)
    used = np.unique(label[1:])
    column = np.zeros(256, np.int64)  # 0: bytes that lead nowhere
    column[used] = np.arange(1, len(used) + 1)
    table = np.zeros((n_states, len(used) + 1), np.int32)
    table[state[parent[1:]], column[label[1:]]] = state[1:]
    number, first = equal_columns(table)
    kept, byte_class = by_first_byte(number[column])
    table = np.ascontiguousarray(table[:, first[kept]])
    order, _ = breadth_first(table, int(state[0]))
    trans, found = np.zeros_like(table), np.zeros(n_states, np.int32)
    trans[order], found[order[state]] = order[table], ends
    return trans, byte_class.astype(np.uint8), found, int(order[state[0]])


def from_interegular(fsm: Any, budget: Budget = Budget()) -> ByteDFA:  # noqa: B008 - frozen
    """The minimal byte DFA of an `interegular.fsm.FSM` over characters.

    Its `anything_else` stands for all characters that the alphabet does not name. Raises
    BudgetExceededError if the byte automaton would be too large.
    """
    given = {key: list(symbols) for key, symbols in fsm.alphabet.by_transition.items()}
    point = {
        s: (ord(s), ord(s) + 1) for found in given.values() for s in found if isinstance(s, str)
    }
    others = complement(union(point.values()))
    texts = {
        key: one_of(union(point.get(symbol, others) for symbol in symbols), budget)
        for key, symbols in given.items()
    }
    parts = Assembly()
    number = {state: parts.state() for state in fsm.states}
    for state, targets in fsm.map.items():
        for key, target in targets.items():
            if key in texts and target in number:
                parts.put(number[state], texts[key], number[target])
    for state in fsm.finals:
        parts.accept(number[state])
    return parts.dfa(number[fsm.initial], budget)
