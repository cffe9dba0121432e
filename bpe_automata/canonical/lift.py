"""Masks of the lift. Here a configuration is a state of the byte automaton alone, and it is found
beforehand whether ids lead from it to acceptance. So one walk over the vocabulary makes a mask.
Wide states have slices as in a `Product`."""

from __future__ import annotations

import numpy as np

from bpe_automata._budget import check
from bpe_automata._kernels.distance import distances, distances_by_head
from bpe_automata._limits import check_fits
from bpe_automata._sharing import Lock, cached, locked
from bpe_automata.automata.linked import LinkedDFA
from bpe_automata.canonical.arrays import Base, Trie
from bpe_automata.canonical.lifting import lead_on, read_mask
from bpe_automata.canonical.prefixed import PrefixedDfa
from bpe_automata.canonical.reader import Reader
from bpe_automata.canonical.tables import (
    MOST_IDS,
    Tables,
    fixed,
    kinds_of_rows,
    memo_of_slices,
    packed_trie,
)
from bpe_automata.canonical.vocabulary import vocabulary_trie
from bpe_automata.tokenizer.alphabet import build_alphabet, is_utf8
from bpe_automata.tokenizer.tokenizer import Tokenizer

_ROOM = 1 << 16
_MISSING = 1 << 10  # steps, not written down, that one call of a kernel can report


class LiftTables(Tables):
    """The tables of a tokenizer. Its tokens are all but the added ones, which may be spelled like
    other ones. They may begin and end inside a character; those of slices are whole characters."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        check_fits("ids", tokenizer.n_ids, MOST_IDS, "too many")
        added = {token.id for token in tokenizer.description.added}
        ids = (i for i in range(tokenizer.n_ids) if i not in added)
        trie = vocabulary_trie(tokenizer.spellings, ids)
        self.tokenizer, self.n_ids, self.deepest = tokenizer, tokenizer.n_ids, int(trie.deepest)
        self.lock, self.slices = Lock(), memo_of_slices(trie)
        utf8 = build_alphabet([], ()).utf8
        self.text = fixed(utf8, np.zeros((1, 1), np.int32), np.ones((1, 2), np.bool_))
        (self.kinds,) = fixed(kinds_of_rows(utf8))
        is_token = (trie.token >= 0).astype(np.int32)
        self.trie = packed_trie(trie, is_token, *np.zeros((2, len(is_token)), np.int32))
        (self.by_id,) = fixed(np.zeros((self.n_ids, 3), np.int32))

    def sliceable(self) -> np.ndarray:
        return self._whole

    @cached
    def _whole(self) -> np.ndarray:
        return np.array(list(map(is_utf8, self.tokenizer.spellings)), np.bool_)

    def single_bytes(self, banned: np.ndarray) -> np.ndarray:
        """bool [256]: the bytes that some ordinary id spells alone that is not banned."""
        nodes, found = self.trie.nodes_array, np.zeros(256, np.bool_)
        alone = nodes[(nodes["depth"] == 1) & (nodes["token"] >= 0)]
        found[alone["label"][~np.isin(alone["token"], banned)]] = True
        return found


class LiftReader(Reader):
    """Makes masks over a byte automaton, for a tokenizer. added: int64, the added tokens that may
    be read as text; banned: int32, ids that are not read; good: uint8 [n_states], see
    `good_states`."""

    def __init__(
        self,
        tables: LiftTables,
        prefixed: PrefixedDfa,
        added: np.ndarray,
        banned: np.ndarray,
    ) -> None:
        self.added, self.prefixed = added, prefixed
        dfa, none = prefixed.dfa, np.zeros((1, 1, 1), np.uint64)
        self.good = good_states(tables, prefixed, added, banned)
        far = np.empty(0, np.int32)
        states = dfa.accepting, self.good, np.zeros(1, np.uint8), none, far
        chars = np.ones((1, 2), np.int32), none, none[0, 0], none[None], far
        super().__init__(tables, dfa)
        self.base = Base(dfa.steps, tables.text, chars, states)

    @locked
    def mask(self, q: int) -> np.ndarray:
        """int32 words: the ids that lead from a state to a good one. Raises
        BudgetExceededError."""
        trie, mask = self._begun(q)
        whole = np.array([[0, len(trie.nodes_array), q, 0]])
        todo, missing = whole, np.empty((_MISSING, 4), np.int64)
        while len(todo):
            n = read_mask(todo, self.base, trie, self.tables.deepest, missing, mask)
            check()
            for number in sorted(set(missing[:n, 3].tolist())):
                self.dfa.enter(number)  # type: ignore[union-attr]
            todo = missing[:n].copy() if n < _MISSING else whole
        if len(self.added):
            ids = self.added[self.good[self.after_added(q, self.added)] == 1]
            np.bitwise_or.at(mask, ids >> 5, np.left_shift(1, ids & 31).astype(np.int32))
        return mask

    def _begun(self, q: int) -> tuple[Trie, np.ndarray]:
        """(the trie that is still to be read, the mask of all other tokens). Making a slice's
        `rest` takes longer than reading all tokens once, so it is put off until reading the slice's
        tokens, again and again, has cost about as much."""
        found = self.slice_of(q)
        if found is not None:
            part = found[0]
            if part.is_worth_it():
                return part.rest, part.packed.copy()
        return self.tables.trie, np.zeros((self.tables.n_ids + 31) >> 5, np.int32)

    def after_each(self, q: int, tokens: np.ndarray) -> np.ndarray:
        """int64: the state after each ordinary token (int64)."""
        return self.step_each(q, 0, 0, tokens)[:, 0]

    def after_added(self, q: int, tokens: np.ndarray) -> np.ndarray:
        """The same for added tokens."""
        ends = self.after_each(int(self.prefixed.added_from[q]), tokens)
        return self.prefixed.after_added[ends]


# ---------------------------------------------------------------- states with a way to acceptance


def good_states(
    tables: LiftTables, prefixed: PrefixedDfa, added: np.ndarray, banned: np.ndarray
) -> np.ndarray:
    """uint8 [n_states], 1: some ids lead to acceptance, none of them banned. Ids of single bytes
    lead there from most states, and from all states of a linked automaton (see
    `LinkedDFA.live_by`). The other states are settled by longer ids."""
    dfa = prefixed.dfa
    if isinstance(dfa, LinkedDFA):
        good = np.ones(dfa.n_states, np.uint8)
        good[0] = 0
        return good
    columns = np.unique(dfa.byte_class[tables.single_bytes(banned)])
    far = by_bytes = dfa.far
    if len(columns) < dfa.n_classes:
        check()  # a table may have hundreds of megabytes
        by_bytes = distances(np.ascontiguousarray(dfa.trans[:, columns]), dfa.accepting)
    good = (by_bytes >= 0).view(np.uint8)
    open_ = np.flatnonzero((far >= 0) & (good == 0))
    if len(open_):
        nearest_first = open_[np.argsort(far[open_], kind="stable")]
        nodes = tables.trie.nodes_array.copy()
        nodes["klass"][np.isin(nodes["token"], banned)] = 0
        settle(nearest_first, good, prefixed, tables.trie.with_nodes(nodes), added)
    return good


def settle(
    open_: np.ndarray, good: np.ndarray, prefixed: PrefixedDfa, trie: Trie, added: np.ndarray
) -> None:
    """Make the open states (int64) good from which ids lead to a good one: find once where the ids
    of each lead, then follow these steps backwards. trie: a node has class 0 if its token is not
    read; added: int64, the added tokens that are read."""
    n, at = prefixed.dfa.n_states, 0
    seen, edges = np.full(n, -1, np.int64), np.empty((2, n + _ROOM), np.int32)
    listed = [edges[:, :0]]
    around = prefixed.added_from, prefixed.after_added
    given = good, *prefixed.dfa.steps[:2], trie, added, around, seen, edges
    while at < len(open_):
        check()
        at, count = lead_on(open_, at, *given)
        listed.append(edges[:, :count].copy())
    tails, heads = np.concatenate(listed, axis=1)
    ptr = np.concatenate([[0], np.cumsum(np.bincount(heads, minlength=n))])
    by_head = tails[np.argsort(heads, kind="stable")]
    good[:] = distances_by_head(ptr, by_head, good == 1) >= 0
