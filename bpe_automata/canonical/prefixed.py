"""A byte DFA over what ids spell, where `encode` puts a space before the text.

    { ' ' w : w in L }  at the beginning of a text,   L  after a prompt

So for a state q where a piece of text may begin there is a state before(q), which reads the space
and goes on to q, and is accepting if q is. The text automaton says whether the space must be there;
in the lift it is optional, since decoding removes a space only if there is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from bpe_automata._budget import check, check_bytes
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.automata.linked import ByteAutomaton, LinkedDFA
from bpe_automata.tokenizer.description import Prefix
from bpe_automata.tokenizer.tokenizer import Tokenizer

_ONCE = (Prefix.TEXT, Prefix.FIRST_UNLESS_SPACE, Prefix.PIECE_UNLESS_SPACE)
_SPACE = 0x20


@dataclass(frozen=True)
class PrefixedDfa:
    """dfa: L's states, then those before them; before: the state at the beginning of a text;
    added_from: int32 [n_states], where an added token's text is read from; after_added: int32
    [n_states], the state after an added token whose text ends there."""

    dfa: ByteAutomaton
    before: int
    added_from: np.ndarray
    after_added: np.ndarray

    def start_after(self, tokenizer: Tokenizer, prompt: Sequence[int]) -> int:
        """The state at the beginning of the constrained text, after the ids of a prompt."""
        if not prompt or prompt[-1] in tokenizer.description.controls:
            return self.before
        if prompt[-1] in tokenizer.added_ids:
            return int(self.after_added[self.dfa.start])
        return self.dfa.start


def prefixed(dfa: ByteAutomaton, prefix: Prefix) -> PrefixedDfa:
    """`dfa` with the states that the prefix needs; if it needs none, the same automaton. A linked
    one is made explicit if every state needs a state before it. Raises BudgetExceededError."""
    if isinstance(dfa, LinkedDFA):
        if prefix is not Prefix.PIECE:
            itself = _itself(dfa.n_states)
            before = dfa.state_before(_SPACE) if prefix in _ONCE else dfa.start
            return PrefixedDfa(dfa, before, itself, itself)
        dfa = dfa.to_dfa(dfa.budget)
    n = dfa.n_states
    if prefix in _ONCE:
        after = np.array([dfa.start], dtype=np.int32)
    elif prefix is Prefix.PIECE:
        after = np.arange(n, dtype=np.int32)
    else:
        after = np.empty(0, dtype=np.int32)
    itself = _itself(n)
    if not len(after):
        return PrefixedDfa(dfa, dfa.start, itself, itself)
    columns, byte_class = _with_space_column(dfa)
    check_bytes(4 * (n + len(after)) * len(columns), "the table with a space before the text")
    trans = np.empty((n + len(after), len(columns)), dtype=np.int32)
    # The table is filled without copies, as it may have hundreds of megabytes.
    np.take(dfa.trans, columns, axis=1, out=trans[:n], mode="clip")
    check()
    np.take(trans[:n], after, axis=0, out=trans[n:], mode="clip")
    check()
    trans[n:, byte_class[_SPACE]] = after
    trans[n:][after == 0] = 0
    accepting = np.concatenate([dfa.accepting, dfa.accepting[after]])
    bigger = ByteDFA(trans, byte_class, accepting, dfa.start)
    check()
    before = n if prefix in _ONCE else n + dfa.start
    after_added = np.arange(n + len(after), dtype=np.int32)
    if prefix is Prefix.PIECE:
        after_added[1:n] += n
    return PrefixedDfa(bigger, before, np.concatenate([itself, after]), after_added)


@lru_cache(maxsize=16)
def _itself(n: int) -> np.ndarray:
    """int32 [n]: each state itself. The array is shared, so it must not be written to. (Most linked
    automata have room for the same number of states.)"""
    return np.arange(n, dtype=np.int32)


def _with_space_column(dfa: ByteDFA) -> tuple[np.ndarray, np.ndarray]:
    """(columns of the table, byte_class), so that the space has a column of its own."""
    column = dfa.byte_class[_SPACE]
    if (dfa.byte_class == column).sum() == 1:
        return np.arange(dfa.trans.shape[1]), dfa.byte_class
    # Columns without a byte are dropped, so with one for the space there are at most 256.
    used, byte_class = np.unique(dfa.byte_class, return_inverse=True)
    byte_class = byte_class.astype(np.uint8)
    byte_class[_SPACE] = len(used)
    return np.array([*used.tolist(), int(column)]), byte_class
