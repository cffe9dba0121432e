"""CartesianMerge: the canonical tokenizations of a regular language, never built as a whole.

    { ids in D : bytes(ids) in L(dfa) },      D = { ids : encode(decode(ids)) = ids }

A state is (state, text, hypotheses, last): a state of the byte DFA and one of the text automaton,
a set of boundary hypotheses, and the last id. The first three are its *configuration*. The last id
restricts the mask in one way only:

    mask(state) = free(configuration) | (bound(configuration) & ~forbidden(last))

free: ids with a pretoken boundary before them, bound: ids without one. Both hold only ids after
which acceptance can be reached (see `canonical`). After a prompt the state is the one that the
prompt's own ids lead to.

Source: Tran-Thien 2024 for the product; pretokenizers, added tokens and lazy relevance are ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, NoReturn

import numpy as np

from bpe_automata._budget import Budget, spent
from bpe_automata._kernels.bits import contained, has
from bpe_automata._sharing import BoundedMemo, Immutable
from bpe_automata.automata.linked import ByteAutomaton
from bpe_automata.canonical.arrays import BEGINNING, NO_SET, NO_TOKEN
from bpe_automata.canonical.canonical import CanonicalAutomaton, CanonicalState, canonical_automaton
from bpe_automata.canonical.prefixed import prefixed
from bpe_automata.canonical.product import Product
from bpe_automata.canonical.tables import TokenizerTables, added_arrays
from bpe_automata.errors import (
    EmptyLanguageError,
    PromptError,
    TokenOutOfRangeError,
    UnsupportedTokenizerError,
)
from bpe_automata.tokenizer.tokenizer import AddedTokens, Tokenizer


class ProductState(NamedTuple):
    """state: of the byte DFA; text: of the text automaton; hypotheses: number of a hypothesis set;
    last: the last id, or NO_TOKEN."""

    state: int
    text: int
    hypotheses: int
    last: int


class CartesianMerge(Immutable):
    """Lazy product of a byte DFA with a tokenizer's canonical automaton; an `Engine`."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        dfa: ByteAutomaton,
        eos_ids: tuple[int, ...] = (),
        added_tokens: AddedTokens = "plain",
        budget: Budget | None = None,
    ) -> None:
        """added_tokens: which added tokens may be read as the text that they spell, see
        `Tokenizer.added_as_text`; texts that spell another one have no tokenization here.
        budget: that of each later call. Raises what `canonical_automaton` raises."""
        self.tokenizer, self.eos_ids, self.budget = tokenizer, eos_ids, budget
        self._given = tokenizer, dfa, eos_ids, added_tokens, budget
        self.n_ids = tokenizer.n_ids
        self.prefixed = prefixed(dfa, tokenizer.description.prefix)
        self.dfa = self.prefixed.dfa
        self.canonical: CanonicalAutomaton = canonical_automaton(tokenizer)
        refuse_text(self.canonical, eos_ids)
        tables = tokenizer.derived("tables", lambda _: TokenizerTables(self.canonical))
        unread = tokenizer.added_ids - tokenizer.added_as_text(added_tokens)
        added = added_arrays(self.canonical, self.prefixed, {*eos_ids, *unread})
        self.product = Product(tables, self.dfa, added)
        self._after: BoundedMemo[tuple[ProductState, int], ProductState] = BoundedMemo(1 << 12)
        self._masks: BoundedMemo[ProductState, np.ndarray] = BoundedMemo(4 * tokenizer.n_ids)
        self._eos = np.array([i for i in eos_ids if 0 <= i < tokenizer.n_ids], dtype=np.int32)
        self._none = self._eos[:0]

    def __reduce__(self) -> tuple[object, ...]:
        return CartesianMerge, self._given

    @spent
    def initial(self, prefix: Sequence[int] = ()) -> ProductState:
        if self.dfa.is_empty:
            raise EmptyLanguageError("nothing matches the constraint")
        after = after_prompt(self.canonical, prefix)
        start = self.prefixed.start_after(self.tokenizer, prefix)
        state = ProductState(start, after.text, after.hypotheses, after.last)
        if not self.accepting(state) and not self.mask(state).any():
            explain_impossible(self.tokenizer, prefix)
        return state

    def accepting(self, state: ProductState) -> bool:
        return (
            bool(self.dfa.accepting[state.state])
            and bool(self.canonical.pipeline.text.ends[state.text])
            and self.canonical.sets.ends(state.hypotheses)
        )

    def dfa_state(self, state: ProductState) -> int:
        return state.state

    def mask(self, state: ProductState) -> np.ndarray:
        bits = self._masks.get(state)
        if bits is None:
            bits = self._mask(state)
            bits.flags.writeable = False
            self._masks.put(state, bits)
        return bits

    @spent
    def _mask(self, state: ProductState) -> np.ndarray:
        ends = self._eos if self.accepting(state) else self._none
        return self.product.mask(*state, ends)

    def followers(self, state: ProductState, bits: np.ndarray) -> np.ndarray:
        """`bits` (packed ids, which are overwritten) without the ids that may not follow the last
        one without a boundary."""
        if state.last == NO_TOKEN or not self.canonical.derivation.reachable[state.last]:
            bits[:] = 0
        else:
            self.canonical.geometry.clear_followers(state.last, bits)
        return bits

    def allows(self, state: ProductState, token: int) -> bool:
        """Is the id in the mask? It is if its step is cached."""
        return self._after.get((state, token)) is not None or has(self.mask(state), token)

    def step(self, state: ProductState, token: int) -> ProductState:
        after = self._after.get((state, token))
        if after is None:
            after = self._step(state, token)
            self._after.put((state, token), after)
        return after

    @spent
    def _step(self, state: ProductState, token: int) -> ProductState:
        """Hypotheses under which the text cannot be completed are dropped, so that states with the
        same future are more often equal."""
        canonical = self.canonical
        if canonical.is_added(token):
            return self._step_added(state, token)
        is_free, is_bound = self.product.row(*state[:3]).holds(token)
        free, bound = canonical.sets.successors(state.hypotheses)
        token_class = canonical.actions.of_token[token]
        number = int(free[token_class]) if is_free else NO_SET
        if is_bound and canonical.allowed(state.last, token):
            number = canonical.sets.union(number, int(bound[token_class]))
        text = canonical.text_after(state.text, state.hypotheses, token)
        q = self.product.after(state.state, self.tokenizer.spellings[token])
        return ProductState(q, text, number, token)

    def _step_added(self, state: ProductState, token: int) -> ProductState:
        before = CanonicalState(state.text, state.hypotheses, state.last)
        after = self.canonical.step(before, token) or self.canonical.start
        begin = int(self.prefixed.added_from[state.state])
        q = self.product.after(begin, self.tokenizer.spellings[token])
        return ProductState(int(self.prefixed.after_added[q]), after.text, BEGINNING, NO_TOKEN)

    @spent
    def steps(self, state: ProductState, tokens: np.ndarray) -> list[ProductState]:
        canonical = self.canonical
        added = np.flatnonzero(np.isin(tokens, list(self.tokenizer.added_ids)))
        reached = self.product.after_each(*state[:3], tokens)
        free_bits, bound_bits = self.product.sides(*state[:3])
        bound_bits = self.followers(state, bound_bits)
        free, bound = canonical.sets.successors(state.hypotheses)
        classes = canonical.actions.of_token[tokens]
        by_free = np.where(contained(free_bits, tokens), free[classes], NO_SET).astype(np.int64)
        by_bound = np.where(contained(bound_bits, tokens), bound[classes], NO_SET).astype(np.int64)
        pairs, which = np.unique((by_free + 1) << 32 | (by_bound + 1), return_inverse=True)
        low = (1 << 32) - 1
        union = canonical.sets.union
        unions = [union((pair >> 32) - 1, (pair & low) - 1) for pair in pairs.tolist()]
        numbers = np.array(unions, np.int64)[which]
        columns = reached[:, 0].tolist(), reached[:, 1].tolist(), numbers.tolist(), tokens.tolist()
        found = [ProductState(*row) for row in zip(*columns, strict=True)]
        for k in added.tolist():
            found[k] = self.step(state, found[k].last)
        return found


def after_prompt(canonical: CanonicalAutomaton, prefix: Sequence[int]) -> CanonicalState:
    """The state after the ids of a prompt. Raises TokenOutOfRangeError, PromptError."""
    tokenizer = canonical.tokenizer
    state = canonical.start
    for position, token in enumerate(prefix):
        if not 0 <= token < tokenizer.n_ids:
            raise TokenOutOfRangeError(f"prompt id {token} is not in 0 .. {tokenizer.n_ids - 1}")
        if token in tokenizer.description.controls:
            after = canonical.start if canonical.ends(state) else None
        else:
            after = canonical.step(state, token)
        if after is None:
            raise PromptError(
                f"the prompt is not canonical at its token {position} "
                f"({tokenizer.token_bytes(token)!r}): give the ids that encode makes of "
                "its text, or start afresh with no prefix"
            )
        state = after
    return state


def explain_impossible(tokenizer: Tokenizer, prefix: Sequence[int]) -> NoReturn:
    """Raises EmptyLanguageError; after a prompt, PromptError."""
    if not prefix:
        raise EmptyLanguageError(
            "no canonical token sequence spells a text that matches the constraint: it needs "
            "bytes, special tokens (added_tokens=True lets them be text) or end-of-sequence "
            "ids that cannot be generated as text, or only texts match that the tokenizer "
            "itself would change (normalizer, prefix)"
        )
    last = tokenizer.token_bytes(prefix[-1])
    raise PromptError(
        f"after this prompt no answer is canonical: the prompt's last token {last!r} would "
        "merge with the answer, or the text between them is split elsewhere. End the prompt "
        "before that text and let the constraint begin with it (a space belongs to the "
        "answer), or let `heal` give it back"
    )


def refuse_text(canonical: CanonicalAutomaton, eos_ids: tuple[int, ...]) -> None:
    """Raises UnsupportedTokenizerError for an end-of-sequence id that is an ordinary token. Texts
    that need such an id have no tokenization, and this is modelled only for added tokens."""
    for token in eos_ids:
        if 0 <= token < canonical.tokenizer.n_ids and canonical.usable[token]:
            spelled = canonical.tokenizer.token_bytes(token)
            raise UnsupportedTokenizerError(
                "end-of-sequence id",
                token,
                f"it is the ordinary token {spelled!r}; give the id of an added token",
            )
