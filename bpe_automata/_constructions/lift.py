"""The lift: every tokenization of a matching text. What Outlines admits.

    { ids : bytes(ids) in L(dfa) },            Willard & Louf 2023

A state is the byte DFA's state; an id leads where its bytes lead. Added tokens are read as the text
that they spell, end-of-sequence ids never are. Where decoding takes away the space that a text
begins with, that space may be there or not (see `PrefixedDfa`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bpe_automata._automata.linked import ByteAutomaton, LinkedDFA, explicit
from bpe_automata._budget import Budget, check, spent
from bpe_automata._constructions.collapsed import (
    NOTHING,
    CollapsedVocabularies,
    Regions,
    vocabulary_trie,
)
from bpe_automata._constructions.prefixed import prefixed
from bpe_automata._constructions.stored import cache_key, is_kept
from bpe_automata._kernels.bits import clear_bits, has, set_bits
from bpe_automata._kernels.distance import distances
from bpe_automata._kernels.edges import Nodes, Vocabulary
from bpe_automata._kernels.fewest_tokens import ANYWHERE
from bpe_automata._kernels.masks import lift_ids
from bpe_automata._kernels.references import packed
from bpe_automata._kernels.trie import Spelled, Trie, settle_alive, states_after, walk
from bpe_automata._kernels.watch import armed, called, watched
from bpe_automata._sharing import BoundedMemo, Immutable, cached
from bpe_automata._tokenizer.tokenizer import AddedTokens, Tokenizer
from bpe_automata.errors import EmptyLanguageError, TokenOutOfRangeError

# A byte DFA over what ids spell, where `encode` puts a space before the text.
#
#     { ' ' w : w in L }  at the beginning of a text,   L  after a prompt
#
# So for a state q where a piece of text may begin there is a state before(q), which reads the space
# and goes on to q, and accepts what q accepts. Whether the space must be there is said by the text
# automaton; the lift may leave it out, since decoding takes it away only where it is.


_ALL = np.zeros(2, dtype=np.int32)  # what is after a token of each class


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
        budget: of each later call. Raises EmptyLanguageError when no ids spell a text of the
        language."""
        self._given = tokenizer, dfa, eos_ids, added_tokens, budget
        self.tokenizer, self.eos_ids, self.budget = tokenizer, eos_ids, budget
        self.n_ids = tokenizer.n_ids
        if isinstance(dfa, LinkedDFA):
            dfa = dfa.live_by(_single_bytes(tokenizer, eos_ids))
        self.prefixed = prefixed(dfa, tokenizer.description.prefix)
        self.dfa = self.prefixed.dfa
        self.trie = tokenizer.derived("lift trie", _ordinary_trie)
        text = tokenizer.added_as_text(added_tokens).difference(eos_ids)
        self.added = np.array(
            sorted(token for token in text if tokenizer.spellings[token]), dtype=np.int64
        )
        self._banned = np.array([i for i in eos_ids if 0 <= i < tokenizer.n_ids], dtype=np.int64)
        read = (self.trie.token >= 0) & ~np.isin(self.trie.token, self._banned)
        self.token_classes = read.astype(np.int32)
        self._masks: BoundedMemo[int, np.ndarray] = BoundedMemo(tokenizer.n_ids // 8)
        self._regions = Regions(self.dfa, tokenizer.lock, self.trie, lambda: self._vocabularies)
        self.alive = self._alive_states()
        if not self.alive[self.prefixed.before]:
            raise EmptyLanguageError("no token sequence spells a text that matches the constraint")

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

    def step(self, state: int, token: int) -> int:
        if token in self.tokenizer.added_ids:
            return int(self.after_added(state, np.array([token]))[0])
        spelled = np.frombuffer(self.tokenizer.spellings[token], dtype=np.uint8)
        return int(called(armed(), walk, packed(self.dfa.steps), state, spelled))

    @spent
    def steps(self, state: int, tokens: np.ndarray) -> list[int]:
        after, added = self._after(state, tokens), np.isin(tokens, self.added)
        after[added] = self.after_added(state, tokens[added])
        return after.tolist()

    def mask(self, state: int) -> np.ndarray:
        bits = self._masks.get(state)
        if bits is None:
            bits = self.readable(state, self.alive)
            set_bits(bits, self.added[self.alive[self.after_added(state, self.added)]])
            self.mark_ends(state, bits)
            bits.flags.writeable = False
            self._masks.put(state, bits)
        return bits

    def keep(self) -> None:
        """Put on the disk what was found out of the tokenizer alone."""
        self._regions.keep()

    def readable(self, state: int, alive: np.ndarray) -> np.ndarray:
        """Packed: the ordinary ids that lead from a state to one of `alive` (bool [n_states])."""
        collapsed = self._regions.at(state)
        full = collapsed.ids
        if collapsed is not NOTHING:
            full = self._vocabularies.full_row(collapsed, 0, _ALL, _ALL)
        dfa, vocabulary = self.dfa, self.tokenizer.derived("lift vocabulary", _vocabulary)
        begin = state, self._regions.outside(state), packed(dfa.steps), alive
        return watched(lift_ids, *begin, packed(collapsed), full, packed(vocabulary))

    @property
    def _vocabularies(self) -> CollapsedVocabularies:
        found: CollapsedVocabularies = self.tokenizer.derived("lift collapsed", _collapsed)
        return found

    def mark_ends(self, state: int, bits: np.ndarray) -> None:
        """Admit end-of-sequence where the state accepts, and nowhere else."""
        clear_bits(bits, self._banned)
        if self.accepting(state):
            set_bits(bits, self._banned)

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
        return bool(self.alive[self.step(state, token)])

    def after_added(self, state: int, tokens: np.ndarray) -> np.ndarray:
        """int32: the state after each of these added tokens (int64), 0 where it cannot be read."""
        after = self._after(int(self.prefixed.added_from[state]), tokens)
        return self.prefixed.after_added[after]

    def _after(self, state: int, tokens: np.ndarray) -> np.ndarray:
        dfa, trie = self.dfa, self.trie
        given = packed(dfa.steps), state, trie.start, trie.data, tokens
        return called(armed(), states_after, *given)

    @cached
    def by_bytes(self) -> np.ndarray:
        """int32 [n_states]: ids of one byte from each state to acceptance, -1 where these do not
        lead there."""
        dfa = self.dfa
        ids, bytes_ = self.tokenizer.derived("tokens of one byte", _tokens_of_one_byte)
        single = np.unique(dfa.byte_class[bytes_[~np.isin(ids, self._banned)]])
        dfa = explicit(dfa, "a shortest way")
        if len(single) == dfa.n_classes:
            return dfa.distance()
        return distances(np.ascontiguousarray(dfa.trans[:, single]), dfa.accepting)

    def _alive_states(self) -> np.ndarray:
        """bool [n_states]: some ids lead to acceptance. That single bytes lead there is enough, and
        that the bytes of all tokens do is needed; a state between the two is settled by tokens.
        """
        dfa, prefixed = self.dfa, self.prefixed
        if isinstance(dfa, LinkedDFA):
            alive = np.ones(dfa.n_states, np.bool_)
            alive[0] = False
            return alive
        alive = self.by_bytes >= 0
        if alive[1:].all():
            return alive
        some = np.unique(dfa.byte_class[self.tokenizer.derived("bytes of tokens", _bytes)])
        silent = [prefixed.added_from[:, None], prefixed.after_added[:, None]]
        check()
        read = dfa.trans if len(some) == dfa.trans.shape[1] else dfa.trans[:, some]
        check()  # a table may have hundreds of megabytes
        steps = np.concatenate([read, *silent], axis=1)
        check()
        open_ = np.flatnonzero((distances(steps, dfa.accepting) >= 0) & ~alive)
        if len(open_):
            added = self.added, prefixed.added_from, prefixed.after_added
            spelled = Spelled(self.trie, self.token_classes, *added)
            open_ = open_.astype(np.int32)
            watched(settle_alive, packed(dfa.steps), alive, open_, spelled)
        return alive


def _ordinary_trie(tokenizer: Tokenizer) -> Trie:
    """All tokens but the added ones, whose spelling may be that of an ordinary one."""
    added = {token.id for token in tokenizer.description.added}
    ids = (i for i in range(tokenizer.n_ids) if i not in added)
    return vocabulary_trie(tokenizer.spellings, ids)


def _vocabulary(tokenizer: Tokenizer) -> Vocabulary:
    """All ids at a node of this trie lead alike, and any byte may begin one."""
    trie = tokenizer.derived("lift trie", _ordinary_trie)
    nothing = np.zeros_like(trie.token)
    nodes = Nodes((trie.token >= 0).astype(np.int32), nothing, nothing)
    utf8, next_ = np.zeros((1, 256), dtype=np.int32), np.zeros((1, 1), dtype=np.int32)
    return Vocabulary(trie, nodes, utf8, next_, ANYWHERE)


def _collapsed(tokenizer: Tokenizer) -> CollapsedVocabularies:
    vocabulary = tokenizer.derived("lift vocabulary", _vocabulary)
    key = f"{cache_key(tokenizer)}; lift" if is_kept(tokenizer) else ""
    return CollapsedVocabularies(vocabulary.trie, vocabulary.nodes, key)


def _tokens_of_one_byte(tokenizer: Tokenizer) -> tuple[np.ndarray, np.ndarray]:
    """(ids int32, bytes uint8) of the ordinary ones."""
    trie = tokenizer.derived("lift trie", _ordinary_trie)
    nodes = np.flatnonzero((trie.depth == 1) & (trie.token >= 0))
    return trie.token[nodes], trie.label[nodes]


def _single_bytes(tokenizer: Tokenizer, eos_ids: tuple[int, ...]) -> np.ndarray:
    """bool [256]: those that an id of text spells alone."""
    ids, bytes_ = tokenizer.derived("tokens of one byte", _tokens_of_one_byte)
    found = np.zeros(256, dtype=np.bool_)
    found[bytes_[~np.isin(ids, np.array(eos_ids, dtype=np.int64))]] = True
    return found


def _bytes(tokenizer: Tokenizer) -> np.ndarray:
    """uint8: those that occur in any token."""
    return np.unique(np.frombuffer(b"".join(tokenizer.spellings), dtype=np.uint8))
