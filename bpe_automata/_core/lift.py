"""Masks of the lift: of a status nothing is left but whether ids lead to acceptance from a state of
the byte automaton, which is found beforehand, so one walk over the vocabulary makes a mask. Wide
states have slices as in a `Product`."""

from __future__ import annotations

import numpy as np

from bpe_automata._automata.linked import LinkedDFA
from bpe_automata._budget import check
from bpe_automata._core.prefixed import PrefixedDfa
from bpe_automata._core.reader import Reader
from bpe_automata._core.steps import DEPTH, KLASS, LABEL, SKIP, TOKEN, Arrays, Int
from bpe_automata._core.tables import MOST_IDS, Tables, fixed, kinds_of_rows, packed_trie
from bpe_automata._core.vocabulary import vocabulary_trie
from bpe_automata._kernels import jit
from bpe_automata._kernels.distance import distances, distances_by_head
from bpe_automata._kernels.links import known_step
from bpe_automata._limits import check_fits
from bpe_automata._sharing import Lock, cached, locked
from bpe_automata._tokenizer.alphabet import build_alphabet, is_utf8
from bpe_automata._tokenizer.tokenizer import Tokenizer

_AT_ONCE = 200  # states that one call of a kernel settles
_ROOM = 1 << 16
_MISSING = 1 << 10  # steps that one call of a kernel may find that are not written down


class LiftTables(Tables):
    """Of a tokenizer. The tokens are all but the added ones, whose spelling may be that of another.
    They may begin and end inside a character; those of slices are whole characters."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        check_fits("ids", tokenizer.n_ids, MOST_IDS, "too many")
        added = {token.id for token in tokenizer.description.added}
        ids = (i for i in range(tokenizer.n_ids) if i not in added)
        trie = vocabulary_trie(tokenizer.spellings, ids)
        self.tokenizer, self.n_ids, self.deepest = tokenizer, tokenizer.n_ids, int(trie.deepest)
        self.lock, self.slices = Lock(), {}
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
        """bool [256]: those that an ordinary id spells alone which is not banned."""
        label, depth, _, token = self.trie[0].T[:4]
        found = np.zeros(256, np.bool_)
        found[label[(depth == 1) & (token >= 0) & ~np.isin(token, banned)]] = True
        return found


class LiftReader(Reader):
    """Of a byte automaton and a tokenizer. added: int64, the added tokens that may be read as text;
    banned: int32, ids that are not read; good: uint8 [n_states], see `good_states`."""

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
        accepting, far = fixed(dfa.accepting, np.empty(0, np.int32))
        states = accepting, self.good, np.zeros(1, np.uint8), none, far
        chars = np.ones((1, 2), np.int32), none, none[0, 0], none[None], far
        super().__init__(tables, dfa, fixed(*chars), states)

    @locked
    def mask(self, q: int) -> np.ndarray:
        """int32 words: the ids that lead from a state to a good one. Raises
        BudgetExceededError."""
        trie, mask = self._begun(q)
        whole = np.array([[0, len(trie[0]), q, 0]])
        todo, missing = whole, np.empty((_MISSING, 4), np.int64)
        while len(todo):
            n = read_mask(todo, self.good, self.steps, trie, self.tables.deepest, missing, mask)
            check()
            for number in sorted(set(missing[:n, 3].tolist())):
                self.dfa.enter(number)  # type: ignore[union-attr]
            todo = missing[:n].copy() if n < _MISSING else whole
        if len(self.added):
            ids = self.added[self.good[self.after_added(q, self.added)] == 1]
            np.bitwise_or.at(mask, ids >> 5, np.left_shift(1, ids & 31).astype(np.int32))
        return mask

    def _begun(self, q: int) -> tuple[Arrays, np.ndarray]:
        """The trie that is to be read, and what a mask has beside it. To make the trie that a slice
        leaves takes longer than to read all tokens, so that waits until reading those of the slice
        has cost about as much."""
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
        """The same of added tokens."""
        ends = self.after_each(int(self.prefixed.added_from[q]), tokens)
        return self.prefixed.after_added[ends]


@jit
def read_mask(
    todo: np.ndarray,
    good: np.ndarray,
    steps: Arrays,
    trie: Arrays,
    deepest: Int,
    missing: np.ndarray,
    mask: np.ndarray,
) -> Int:
    """Add to a mask, int32 words, the tokens that lead to good states. todo: int64 rows (first
    node, node behind the last, the state before the first, any). Where a step is not written down
    the nodes below it are left, and become such a row of `missing`, with the number of the step.
    Returns how many; all rows of `missing`: perhaps there are more."""
    trans, byte_class, behind = steps
    nodes, path, n, one = trie[0], np.empty(deepest + 2, np.int64), 0, np.int32(1)
    for k in range(len(todo)):
        node, end = todo[k, 0], todo[k, 1]
        if node < end:
            path[nodes[node, DEPTH] - 1] = todo[k, 2]
        while node < end:
            d = nodes[node, DEPTH]
            q = known_step(path[d - 1], byte_class[nodes[node, LABEL]], trans, behind)
            if q < 0 and n < len(missing):
                missing[n, 0], missing[n, 1] = node, nodes[node, SKIP]
                missing[n, 2], missing[n, 3] = path[d - 1], -1 - q
                n += 1
            if q <= 0:
                node = np.int64(nodes[node, SKIP])
                continue
            path[d] = q
            t = nodes[node, TOKEN]
            if t >= 0 and good[q] == 1:
                mask[t >> 5] |= one << np.int32(t & 31)
            node += 1
    return n


# ---------------------------------------------------------------- from where ids lead to acceptance


def good_states(
    tables: LiftTables, prefixed: PrefixedDfa, added: np.ndarray, banned: np.ndarray
) -> np.ndarray:
    """uint8 [n_states], 1: some ids lead to acceptance, none of them banned. That single bytes lead
    there is enough, and every state of a linked automaton is one from which they do (see
    `LinkedDFA.live_by`). Others are settled by tokens."""
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
        nodes = tables.trie[0].copy()
        nodes[np.isin(nodes[:, TOKEN], banned), KLASS] = 0
        settle(nearest_first, good, prefixed, (*fixed(nodes), *tables.trie[1:]), added)
    return good


def settle(
    open_: np.ndarray, good: np.ndarray, prefixed: PrefixedDfa, trie: Arrays, added: np.ndarray
) -> None:
    """Make those of the open states (int64) good from which ids lead to a good one: each is asked
    once where they lead, and these steps are followed backwards. trie: of class 0 where a node's
    token is not read; added: int64, the added tokens that are."""
    n, at = prefixed.dfa.n_states, 0
    seen, edges = np.full(n, -1, np.int64), np.empty((2, n + _ROOM), np.int32)
    listed = [edges[:, :0]]
    around = fixed(prefixed.added_from, prefixed.after_added)
    given = good, fixed(*prefixed.dfa.steps)[:2], trie, added, around, seen, edges
    while at < len(open_):
        check()
        at, count = lead_on(open_, at, *given)
        listed.append(edges[:, :count].copy())
    tails, heads = np.concatenate(listed, axis=1)
    ptr = np.concatenate([[0], np.cumsum(np.bincount(heads, minlength=n))])
    by_head = tails[np.argsort(heads, kind="stable")]
    good[:] = distances_by_head(ptr, by_head, good == 1) >= 0


@jit
def lead_on(
    open_: np.ndarray,
    at: Int,
    good: np.ndarray,
    steps: Arrays,
    trie: Arrays,
    added: np.ndarray,
    around: Arrays,
    seen: np.ndarray,
    edges: np.ndarray,
) -> tuple[Int, Int]:
    """Ask open_[at] and some states after it where ids lead. Those from which one leads to a good
    state are made good; of the others edges[:, :n] are (state, where an id leads). Returns (the
    next to be asked, n). steps: trans, byte_class; around: added_from, after_added; seen: int64
    [n_states], the last state for which each was listed."""
    trans, byte_class = steps
    nodes, start, data = trie
    path, n, last = np.empty(256, np.int64), 0, min(at + _AT_ONCE, len(open_))
    while at < last and n + len(trans) <= edges.shape[1]:
        q, begun = open_[at], n
        node: Int = np.int64(0)
        k, path[0] = 0, q
        while (node < len(nodes) or k < len(added)) and good[q] == 0:
            after = np.int64(0)
            if node < len(nodes):
                d = nodes[node, DEPTH]
                if d == len(path):
                    longer = np.empty(2 * d, np.int64)
                    longer[:d] = path
                    path = longer
                after = np.int64(trans[path[d - 1], byte_class[nodes[node, LABEL]]])
                path[d] = after
                is_read = nodes[node, KLASS] != 0
                node = node + 1 if after != 0 else np.int64(nodes[node, SKIP])
            else:
                after, is_read = np.int64(around[0][q]), True
                for i in range(start[added[k]], start[added[k] + 1]):
                    after = np.int64(trans[after, byte_class[data[i]]])
                after = np.int64(around[1][after])
                k += 1
            if not is_read or after == 0:
                continue
            if good[after] == 1:
                good[q] = 1
            elif seen[after] != q:
                seen[after] = q
                edges[0, n], edges[1, n] = q, after
                n += 1
        if good[q] == 1:
            n = begun
        at += 1
    return at, n
