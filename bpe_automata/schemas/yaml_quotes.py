"""A set of texts, written in YAML: { spelled(t) : t in L(dfa) }, on the table of the automaton.

In double quotes every state q of the texts gets the trie of the escapes, which ends in the states
after each escaped character. The raw spellings of such characters, which are still there, go when
the result meets the automaton of all quoted texts.
"""

from __future__ import annotations

import numpy as np

from bpe_automata.automata.algebra import difference, intersection, union
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.budget import Budget, out_of_memory
from bpe_automata.schemas.yaml_scalars import escapes, plain, quoted

_DEFAULT = Budget()


def yaml_texts(texts: ByteDFA, budget: Budget = _DEFAULT) -> ByteDFA:
    """{ spelled(t) : t in L(texts) }, see `yaml_scalars`. Raises BudgetExceededError."""
    bare = intersection(texts, plain(), budget)
    others = difference(texts, plain(), budget)
    return union(bare, in_quotes(others, budget), budget)


def in_quotes(texts: ByteDFA, budget: Budget = _DEFAULT) -> ByteDFA:
    """{ " + escaped characters of t + " : t in L(texts) }. Raises BudgetExceededError."""
    return intersection(_with_escapes(texts, budget), quoted(), budget)


def _with_escapes(texts: ByteDFA, budget: Budget) -> ByteDFA:
    """Each escaped character both raw and escaped, between quotes that are always quotes."""
    prefixes = sorted({text[:i] for text in escapes().values() for i in range(1, len(text))})
    after = {c: _after(texts, c.encode()) for c in escapes()}
    states = np.flatnonzero(np.logical_or.reduce([*after.values()]))
    n, m = texts.n_states, len(states)
    byte_class, old = _columns(texts)
    if (n + len(prefixes) * m + 2) * len(old) * 4 > budget.max_bytes:
        raise out_of_memory(budget)
    trans = np.zeros((n + len(prefixes) * m + 2, len(old)), np.int32)
    trans[:n] = texts.trans[:, old]
    trans[:n, byte_class[ord("\\")]] = 0  # a raw one would read like an escape
    rows = {"": states} | {p: n + i * m + np.arange(m) for i, p in enumerate(prefixes)}
    for prefix in prefixes:
        trans[rows[prefix[:-1]], byte_class[ord(prefix[-1])]] = rows[prefix]
    for character, text in escapes().items():
        trans[rows[text[:-1]], byte_class[ord(text[-1])]] = after[character][states]
    return _between_quotes(trans, byte_class, texts)


def _between_quotes(trans: np.ndarray, byte_class: np.ndarray, texts: ByteDFA) -> ByteDFA:
    """The last two rows become what stands before the first quote and after the last."""
    first, last, quote = len(trans) - 2, len(trans) - 1, byte_class[ord('"')]
    trans[: texts.n_states, quote] = np.where(texts.accepting, last, 0)
    trans[first, quote] = texts.start
    accepting = np.zeros(len(trans), np.bool_)
    accepting[last] = True
    return ByteDFA(trans, byte_class, accepting, first)


def _after(texts: ByteDFA, data: bytes) -> np.ndarray:
    """int32 [n_states]: where each state goes with some bytes."""
    found = np.arange(texts.n_states, dtype=np.int32)
    for column in texts.byte_class[np.frombuffer(data, np.uint8)]:
        found = texts.trans[found, column]
    return found


def _columns(texts: ByteDFA) -> tuple[np.ndarray, np.ndarray]:
    """Byte classes in which the bytes of escapes stand alone: (uint8 [256], the old class of
    each)."""
    alone = np.zeros(256, np.int32)
    special = sorted({ord(letter) for text in escapes().values() for letter in text})
    alone[special] = np.arange(1, len(special) + 1)
    pairs = alone * 256 + texts.byte_class
    used, byte_class = np.unique(pairs, return_inverse=True)
    return byte_class.astype(np.uint8), used % 256
