"""CartesianMerge: the canonical tokenizations of a regular language, never built as a whole.

    { ids in D : bytes(ids) in L(dfa) },      D = { ids : encode(decode(ids)) = ids }

A state is (state pair, hypotheses, last): a DFA state with that of the text automaton, a set of
boundary hypotheses, and the last id. What is readable there depends on the last id in one way
only:

    mask(state) = free(state pair, hypotheses) | (bound(state pair, hypotheses) & ~forbidden(last))

free: ids with a boundary at the joint, bound: ids without one. Both hold only ids that lead to a
relevant state, one from which acceptance can be reached (see `relevance`). After a prompt the state
is the one that the prompt's own ids lead to.

Source: Tran-Thien 2024 for the product; pretokenizers, added tokens and lazy relevance are ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, NoReturn

import numpy as np

from bpe_automata._automata.linked import ByteAutomaton
from bpe_automata._budget import Budget, spent
from bpe_automata._constructions.canonical import (
    NO_TOKEN,
    CanonicalAutomaton,
    CanonicalState,
    canonical_automaton,
)
from bpe_automata._constructions.hypothesis_sets import BEGINNING, NONE
from bpe_automata._constructions.prefixed import prefixed
from bpe_automata._constructions.product_tables import ProductTables
from bpe_automata._constructions.relevance import Configuration, Readable, Relevance
from bpe_automata._kernels.bits import contained, has, members, set_bits
from bpe_automata._kernels.references import packed
from bpe_automata._kernels.trie import walk
from bpe_automata._sharing import BoundedMemo, Immutable
from bpe_automata._tokenizer.tokenizer import AddedTokens, Tokenizer
from bpe_automata.errors import (
    EmptyLanguageError,
    PromptError,
    TokenOutOfRangeError,
    UnsupportedTokenizerError,
)

if TYPE_CHECKING:
    from bpe_automata._constructions.lift import Lift

# Where all the ids of one configuration of CartesianMerge lead, at once.
#
# A configuration is (state pair, hypotheses). Where an id leads from a state there depends on the
# last id only in one bit, whether the two may stand side by side in one pretoken; so what is known
# of a configuration serves all of its states.

_BYTES_OF_ID = 29  # in Leads, whose `free` is int32
_LOW = (1 << 32) - 1


class Leads(NamedTuple):
    """ids: int64, ascending, all that can be read at the configuration, end-of-sequence left out;
    added: bool, the added tokens, of which nothing else is said; state_pairs: where each leads;
    free, bound: the hypothesis set after it if it may not, or may, follow the last id without a
    boundary."""

    ids: np.ndarray
    added: np.ndarray
    state_pairs: np.ndarray
    free: np.ndarray
    bound: np.ndarray


class AllLeads:
    """The successors of the configurations of one product, memoised."""

    def __init__(self, tables: ProductTables, relevance: Relevance) -> None:
        self._tables, self._relevance = tables, relevance
        self._canonical = tables.canonical
        self._configurations: BoundedMemo[Configuration, Leads] = BoundedMemo(
            _BYTES_OF_ID * self._canonical.tokenizer.n_ids
        )

    def of_configuration(self, state_pair: int, hypotheses: int) -> Leads:
        """The ids of the configuration, and where they lead."""
        found = self._configurations.get((state_pair, hypotheses))
        if found is None:
            found = self._led(state_pair, hypotheses)
            self._configurations.put((state_pair, hypotheses), found)
        return found

    def _led(self, state_pair: int, hypotheses: int) -> Leads:
        row, sets = self._relevance.readable(state_pair, hypotheses), self._canonical.sets
        ids = members(row.free | row.bound)
        state_pairs, token_classes, start, grouped = self._tables.edges(
            state_pair, sets.sets[hypotheses].utf8_row
        )
        # Added tokens are in no group: their own is the last one, of which nothing is said.
        group_of = np.full(self._canonical.tokenizer.n_ids, len(token_classes), dtype=np.int32)
        group_of[grouped] = np.repeat(np.arange(len(token_classes), dtype=np.int32), np.diff(start))
        group, state_pairs = group_of[ids], np.append(state_pairs, 0)
        none = np.int32(NONE)
        free, bound = (np.append(after, none) for after in sets.after(hypotheses, token_classes))
        by_free = np.where(contained(row.free, ids), free[group], none)
        by_bound = np.where(contained(row.bound, ids), bound[group], none)
        # (numpy's own way with pairs makes another error of an interrupt.)
        both = (by_free.astype(np.int64) + 1) << 32 | (by_bound.astype(np.int64) + 1)
        pairs, which = np.unique(both, return_inverse=True)
        unions = [sets.union((pair >> 32) - 1, (pair & _LOW) - 1) for pair in pairs.tolist()]
        by_bound = np.array(unions, dtype=np.int64)[which]
        return Leads(ids, group == len(token_classes), state_pairs[group], by_free, by_bound)


class ProductState(NamedTuple):
    """state_pair: number of (DFA state, text state); hypotheses: number of a hypothesis set;
    last: the last id, or NO_TOKEN."""

    state_pair: int
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
        budget: of each later call. Raises what `canonical_automaton` raises."""
        self.tokenizer, self.eos_ids, self.budget = tokenizer, eos_ids, budget
        self._given = tokenizer, dfa, eos_ids, added_tokens, budget
        self.n_ids = tokenizer.n_ids
        self.prefixed = prefixed(dfa, tokenizer.description.prefix)
        self.dfa = self.prefixed.dfa
        self.canonical: CanonicalAutomaton = canonical_automaton(tokenizer)
        refuse_text(self.canonical, eos_ids)
        unread = tokenizer.added_ids - tokenizer.added_as_text(added_tokens)
        self._tables = ProductTables(self.canonical, self.prefixed, {*eos_ids, *unread})
        self._relevance = Relevance(self._tables, self.canonical.geometry)
        # One is got again out of what `Relevance` keeps in little more time than it takes to copy,
        # so a small part of the usual is kept, for those that are asked for again soon.
        self._masks: BoundedMemo[ProductState, np.ndarray] = BoundedMemo(4 * tokenizer.n_ids)
        self._after: BoundedMemo[tuple[ProductState, int], ProductState] = BoundedMemo(1 << 12)
        self.leads = AllLeads(self._tables, self._relevance).of_configuration
        self._eos = np.array([i for i in eos_ids if 0 <= i < tokenizer.n_ids], dtype=np.int64)

    def __reduce__(self) -> tuple[object, ...]:
        return CartesianMerge, self._given

    @property
    def tables(self) -> ProductTables:
        """What the kernels run on."""
        return self._tables

    @property
    def relevance(self) -> Relevance:
        """The ids that can be read at each configuration, and its dead sets."""
        return self._relevance

    def keep(self) -> None:
        """Put on the disk what was found out of the tokenizer alone."""
        self._tables.keep()
        self.canonical.sets.keep_rows()

    def lift(self) -> Lift:
        """The lift of the same constraint, made anew. Raises what `Lift` raises."""
        from bpe_automata._constructions.lift import Lift

        return Lift(*self._given[:4])

    @spent
    def initial(self, prefix: Sequence[int] = ()) -> ProductState:
        if self.dfa.is_empty:
            raise EmptyLanguageError("nothing matches the constraint")
        after = after_prompt(self.canonical, prefix)
        state_pair = self._tables.state_pair(self._start_after(prefix), after.text)
        state = ProductState(state_pair, after.hypotheses, after.last)
        if not self.accepting(state) and not self.mask(state).any():
            explain_impossible(self.tokenizer, prefix)
        return state

    def accepting(self, state: ProductState) -> bool:
        memo, text = self._tables.memo, self.canonical.pipeline.text
        return (
            bool(self.dfa.accepting[memo.state[state.state_pair]])
            and bool(text.ends[memo.text_state[state.state_pair]])
            and self.canonical.sets.ends(state.hypotheses)
        )

    def dfa_state(self, state: ProductState) -> int:
        return int(self._tables.memo.state[state.state_pair])

    def _start_after(self, prefix: Sequence[int]) -> int:
        """The DFA state at the beginning of the constrained text."""
        return self.prefixed.start_after(self.tokenizer, prefix)

    def mask(self, state: ProductState) -> np.ndarray:
        bits = self._masks.get(state)
        if bits is None:
            bits = self._mask(state)
            bits.flags.writeable = False
            self._masks.put(state, bits)
        return bits

    @spent
    def _mask(self, state: ProductState) -> np.ndarray:
        row = self._relevance.readable(state.state_pair, state.hypotheses)
        bits: np.ndarray = self._bound(row, state.last) | row.free
        if self.accepting(state):
            set_bits(bits, self._eos)
        return bits

    def bound(self, state: ProductState) -> np.ndarray:
        """The ids of the mask that come without a boundary at the joint, packed."""
        return self._bound(self._relevance.readable(state.state_pair, state.hypotheses), state.last)

    def _bound(self, row: Readable, last: int) -> np.ndarray:
        """Those of a row that is written to."""
        if last == NO_TOKEN or not self.canonical.derivation.reachable[last]:
            row.bound[:] = 0
        else:
            self.canonical.geometry.clear_followers(last, row.bound)
        return row.bound

    def allows(self, state: ProductState, token: int) -> bool:
        """Is the id in the mask? A step that is remembered was allowed."""
        return self._after.get((state, token)) is not None or has(self.mask(state), token)

    def step(self, state: ProductState, token: int) -> ProductState:
        after = self._after.get((state, token))
        if after is None:
            after = self._step(state, token)
            self._after.put((state, token), after)
        return after

    @spent
    def _step(self, state: ProductState, token: int) -> ProductState:
        """Readings that cannot be completed are dropped, so equal futures meet in equal states."""
        canonical, tables = self.canonical, self._tables
        if canonical.is_added(token):
            return self._step_added(state, token)
        is_free, is_bound = self._relevance.holds(state.state_pair, state.hypotheses, token)
        free, bound = canonical.sets.successors(state.hypotheses)
        token_class = canonical.actions.of_token[token]
        number = int(free[token_class]) if is_free else NONE
        if is_bound and canonical.allowed(state.last, token):
            number = canonical.sets.union(number, int(bound[token_class]))
        return ProductState(
            tables.state_pair_after(state.state_pair, state.hypotheses, token), number, token
        )

    def _step_added(self, state: ProductState, token: int) -> ProductState:
        memo = self._tables.memo
        text, q = int(memo.text_state[state.state_pair]), int(memo.state[state.state_pair])
        before = CanonicalState(text, state.hypotheses, state.last)
        after = self.canonical.step(before, token) or self.canonical.start
        data = np.frombuffer(self.tokenizer.spellings[token], dtype=np.uint8)
        q = int(walk(packed(self.dfa.steps), int(self.prefixed.added_from[q]), data))
        state_pair = self._tables.state_pair(int(self.prefixed.after_added[q]), after.text)
        return ProductState(state_pair, BEGINNING, NO_TOKEN)

    @spent
    def steps(self, state: ProductState, tokens: np.ndarray) -> list[ProductState]:
        leads = self.leads(state.state_pair, state.hypotheses)
        at = np.searchsorted(leads.ids, tokens)
        binds = contained(self.bound(state), tokens)
        numbers = np.where(binds, leads.bound[at], leads.free[at])
        columns = leads.state_pairs[at].tolist(), numbers.tolist(), tokens.tolist()
        triples = zip(*columns, strict=True)
        # As ProductState(*triple), without a call in Python for each.
        found = list(map(partial(tuple.__new__, ProductState), triples))
        for k in np.flatnonzero(leads.added[at]).tolist():
            found[k] = self.step(state, found[k].last)
        return found


def after_prompt(canonical: CanonicalAutomaton, prefix: Sequence[int]) -> CanonicalState:
    """Where the ids of a prompt lead. Raises TokenOutOfRangeError, PromptError."""
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
    """Raises EmptyLanguageError, and after a prompt PromptError."""
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
    """Texts that need an end-of-sequence id have no tokenization; only added tokens are so rare
    that this is followed exactly."""
    for token in eos_ids:
        if 0 <= token < canonical.tokenizer.n_ids and canonical.usable[token]:
            spelled = canonical.tokenizer.token_bytes(token)
            raise UnsupportedTokenizerError(
                "end-of-sequence id",
                token,
                f"it is the ordinary token {spelled!r}; give the id of an added token",
            )
