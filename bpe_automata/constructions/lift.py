"""The lift: every tokenization of a matching text. Outlines admits the same sequences.

    { ids : bytes(ids) in L(dfa) },            Willard & Louf 2023

A state is the byte DFA's state; an id leads where its bytes lead. Added tokens are read as the text
that they spell, end-of-sequence ids are not. Where decoding removes a space at the beginning of a
text, that space is optional (see `PrefixedDfa`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bpe_automata._budget import Budget, spent
from bpe_automata._kernels.bits import clear_bits, has, set_bits
from bpe_automata._sharing import BoundedMemo, Immutable
from bpe_automata.automata.linked import ByteAutomaton, LinkedDFA
from bpe_automata.canonical.lift import LiftReader, LiftTables
from bpe_automata.canonical.prefixed import prefixed
from bpe_automata.errors import EmptyLanguageError, TokenOutOfRangeError
from bpe_automata.tokenizer.tokenizer import AddedTokens, Tokenizer


class Lift(Immutable):
    """Lazy lift of a byte DFA over a tokenizer's vocabulary; an `Engine` with int states."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        dfa: ByteAutomaton,
        eos_ids: tuple[int, ...] = (),
        added_tokens: AddedTokens = "plain",
        budget: Budget | None = None,
    ) -> None:
        """added_tokens: which added tokens may be read as text, see `Tokenizer.added_as_text`.
        budget: that of each later call. Raises EmptyLanguageError if no ids spell a text of the
        language."""
        self._given = tokenizer, dfa, eos_ids, added_tokens, budget
        self.tokenizer, self.eos_ids, self.budget = tokenizer, eos_ids, budget
        self.n_ids = tokenizer.n_ids
        self._eos = np.array([i for i in eos_ids if 0 <= i < self.n_ids], dtype=np.int64)
        tables: LiftTables = tokenizer.derived("lift tables", LiftTables)
        if isinstance(dfa, LinkedDFA):
            dfa = dfa.live_by(tables.single_bytes(self._eos))
        self.prefixed = prefixed(dfa, tokenizer.description.prefix)
        self.dfa = self.prefixed.dfa
        as_text = tokenizer.added_as_text(added_tokens).difference(eos_ids)
        ids = sorted(token for token in as_text if tokenizer.spellings[token])
        added = np.array(ids, dtype=np.int64)
        self.reader = LiftReader(tables, self.prefixed, added, self._eos)
        if not self.reader.good[self.prefixed.before]:
            raise EmptyLanguageError("no token sequence spells a text that matches the constraint")
        self._masks: BoundedMemo[int, np.ndarray] = BoundedMemo(self.n_ids // 8)

    def __reduce__(self) -> tuple[object, ...]:
        return Lift, self._given

    def initial(self, prefix: Sequence[int] = ()) -> int:
        for token in prefix:
            if not 0 <= token < self.n_ids:
                raise TokenOutOfRangeError(f"prompt id {token} is not in 0 .. {self.n_ids - 1}")
        return self.prefixed.start_after(self.tokenizer, prefix)

    def dfa_state(self, state: int) -> int:
        return state

    def accepting(self, state: int) -> bool:
        return bool(self.dfa.accepting[state])

    @spent
    def step(self, state: int, token: int) -> int:
        spelled = self.tokenizer.spellings[token]
        if token not in self.tokenizer.added_ids:
            return self.reader.after(state, spelled)
        after = self.reader.after(int(self.prefixed.added_from[state]), spelled)
        return int(self.prefixed.after_added[after])

    @spent
    def steps(self, state: int, tokens: np.ndarray) -> list[int]:
        after, added = self.reader.after_each(state, tokens), np.isin(tokens, self.reader.added)
        if added.any():
            after[added] = self.reader.after_added(state, tokens[added])
        return after.tolist()

    def mask(self, state: int) -> np.ndarray:
        bits = self._masks.get(state)
        if bits is None:
            bits = self._mask(state)
            bits.flags.writeable = False
            self._masks.put(state, bits)
        return bits

    @spent
    def _mask(self, state: int) -> np.ndarray:
        bits = self.reader.mask(state)
        (set_bits if self.accepting(state) else clear_bits)(bits, self._eos)
        return bits

    def allows(self, state: int, token: int) -> bool:
        """Is the id in the mask of the state? Only the bytes of this id are read."""
        bits = self._masks.get(state)
        if bits is not None:
            return has(bits, token)
        if token in self.eos_ids:
            return self.accepting(state)
        if not self.tokenizer.spellings[token]:
            return False
        if token in self.tokenizer.added_ids and token not in self.reader.added:
            return False
        return bool(self.reader.good[self.step(state, token)])
