"""The lift: every tokenization of a matching text. What Outlines admits.

    { ids : bytes(ids) in L(dfa) },            Willard & Louf 2023

A state is the byte DFA's state; an id leads where its bytes lead. Added tokens are read as the text
that they spell, end-of-sequence ids never are. Where decoding takes away the space that a text
begins with, that space may be there or not (see `prefixed`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.constructions.horizon import Horizon
from bpe_automata.constructions.horizon_plain import LiftReader
from bpe_automata.constructions.memo import BoundedMemo
from bpe_automata.constructions.prefixed import prefixed
from bpe_automata.constructions.vocabulary_trie import vocabulary_trie
from bpe_automata.errors import EmptyLanguageError, TokenOutOfRangeError
from bpe_automata.kernels.bits import clear_bits, has, members, set_bits
from bpe_automata.kernels.token_walks import states_after
from bpe_automata.kernels.trie import Trie, lift_row, walk
from bpe_automata.tokenizer import Tokenizer


class Lift:
    """Lazy lift of a byte DFA over a tokenizer's vocabulary; an `Engine` with int states."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        dfa: ByteDFA,
        eos_ids: tuple[int, ...] = (),
        added_tokens: bool = True,
    ) -> None:
        """added_tokens: may added tokens be read as text? Raises EmptyLanguageError when no ids
        spell a text of the language."""
        self.tokenizer, self.eos_ids = tokenizer, eos_ids
        self.prefixed = prefixed(dfa, tokenizer.description.prefix)
        self.dfa = self.prefixed.dfa
        self.trie = tokenizer.derived("lift trie", _ordinary_trie)
        added = [token.id for token in tokenizer.description.added]
        self.added = [i for i in added if added_tokens and i not in eos_ids]
        self._banned = np.array([i for i in eos_ids if 0 <= i < tokenizer.n_ids], dtype=np.int64)
        self._masks: BoundedMemo[int, np.ndarray] = BoundedMemo(tokenizer.n_ids // 8)
        self._alive = self._alive_states()
        if not self._alive[self.prefixed.before]:
            raise EmptyLanguageError("no token sequence spells a text that matches the constraint")

    @property
    def n_ids(self) -> int:
        return self.tokenizer.n_ids

    @cached_property
    def horizon(self) -> Horizon[int]:
        """How many ids it takes to acceptance, lazily."""
        return Horizon(LiftReader(self, self._alive))

    def initial(self, prefix: Sequence[int] = ()) -> int:
        for token in prefix:
            if not 0 <= token < self.n_ids:
                raise TokenOutOfRangeError(f"prompt id {token} is not in 0 .. {self.n_ids - 1}")
        return self.prefixed.start_after(self.tokenizer, prefix)

    def dfa_state(self, state: int) -> int:
        return state

    def accepting(self, state: int) -> bool:
        return bool(self.dfa.accepting[state])

    def step(self, state: int, token: int) -> int:
        spelled = self.tokenizer.spellings[token]
        if token not in self.tokenizer.added_ids:
            return self._walk(state, spelled)
        after = self._walk(int(self.prefixed.added_from[state]), spelled)
        return int(self.prefixed.after_added[after])

    def steps(self, state: int, tokens: np.ndarray) -> list[int]:
        trans, byte_class, trie = self.dfa.trans, self.dfa.byte_class, self.trie
        after = states_after(trans, byte_class, state, trie.start, trie.data, tokens)
        for k in np.flatnonzero(np.isin(tokens, self.added)).tolist():
            after[k] = self.step(state, int(tokens[k]))
        return after.tolist()

    def mask(self, state: int) -> np.ndarray:
        bits = self._masks.get(state)
        if bits is None:
            bits = self._row(state, self._alive)
            if self.accepting(state):
                set_bits(bits, self._banned)
            bits.flags.writeable = False
            self._masks.put(state, bits)
        return bits

    def allows(self, state: int, token: int) -> bool:
        """Is the id in the mask of the state? Walks over its bytes alone."""
        bits = self._masks.get(state)
        if bits is not None:
            return has(bits, token)
        if token in self.eos_ids:
            return self.accepting(state)
        if not self.tokenizer.spellings[token]:
            return False
        if token in self.tokenizer.added_ids and token not in self.added:
            return False
        return bool(self._alive[self.step(state, token)])

    def _walk(self, state: int, data: bytes) -> int:
        spelled = np.frombuffer(data, dtype=np.uint8)
        return int(walk(self.dfa.trans, self.dfa.byte_class, state, spelled))

    def _row(self, state: int, alive: np.ndarray) -> np.ndarray:
        bits = lift_row(self.trie, self.dfa.trans, self.dfa.byte_class, alive, state)
        spelled = [i for i in self.added if alive[self.step(state, i)]]
        set_bits(bits, np.array(spelled, dtype=np.int64))
        clear_bits(bits, self._banned)
        return bits

    def _alive_states(self) -> np.ndarray:
        """bool [n_states]: some ids lead to acceptance. Single bytes settle nearly all states; a
        state that they leave open is settled by all tokens."""
        added = {token.id for token in self.tokenizer.description.added}
        unread = {*added.difference(self.added), *self.eos_ids}
        single = np.zeros(256, dtype=bool)
        for token, byte in self.tokenizer.derived("single bytes", _single_bytes):
            single[byte] |= token not in unread
        alive = _reach_back(self.dfa, single)
        grown = True
        while grown:
            grown = False
            for state in np.flatnonzero(~alive)[1:].tolist():
                if len(members(self._row(state, alive))):
                    alive[state] = grown = True
        return alive


def _ordinary_trie(tokenizer: Tokenizer) -> Trie:
    """All tokens but the added ones, whose spelling may be that of an ordinary one."""
    added = {token.id for token in tokenizer.description.added}
    ids = (i for i in range(tokenizer.n_ids) if i not in added)
    return vocabulary_trie(tokenizer.spellings, ids)


def _single_bytes(tokenizer: Tokenizer) -> list[tuple[int, int]]:
    """(id, byte) for each token of one byte."""
    return [(i, s[0]) for i, s in enumerate(tokenizer.spellings) if len(s) == 1]


def _reach_back(dfa: ByteDFA, bytes_: np.ndarray) -> np.ndarray:
    """bool [n_states]: an accepting state can be reached by these bytes (bool [256])."""
    classes = np.unique(dfa.byte_class[bytes_])
    alive = dfa.accepting.copy()
    while True:
        grown = alive | alive[dfa.trans[:, classes]].any(axis=1)
        if (grown == alive).all():
            return alive
        alive = grown
