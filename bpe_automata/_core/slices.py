"""Slices of the vocabulary. In a wide state (a string, a line, a counted class) hundreds of bytes
do alike. Tokens of at most L bytes, each in K (or beyond ASCII, where all of that stays there too),
are read there as a loop over K reads them. Which of them may come depends for most on the
hypotheses H and the text state a alone (see `steps`), and is remembered for a tokenizer, K, L, a
and H; for the others, `Taken.later`, also on what is live nearby. Tokens behind which the text
state is not harmless are in no slice. All others are read in a trie of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bpe_automata._automata.compile import compile_regex
from bpe_automata._automata.dfa import ByteDFA
from bpe_automata._core.steps import Int
from bpe_automata._core.tables import Tables, fixed
from bpe_automata._kernels import jit
from bpe_automata._sharing import BoundedMemo, Lock, cached, locked

Arrays = tuple[np.ndarray, ...]
MakeProduct = Callable[[Any, ByteDFA], Any]
MOST_FEW = 4000
_SINGLY = 300


class Taken(NamedTuple):
    """base: packed int32 [2, words], the tokens of a slice that surely may come, with and without a
    boundary before them; few: int32, those that are to be read one by one; both: as `base`, with
    those that may come if every id is live at all states nearby with the sets `needs` (int64);
    later: int32, these tokens; singly: these and `few`, where they are so few that they are rather
    read one by one than looked at everywhere nearby, or `later` is empty."""

    base: np.ndarray
    few: np.ndarray
    both: np.ndarray
    later: np.ndarray
    needs: np.ndarray
    singly: np.ndarray | None


def _taken(
    base: np.ndarray, few: np.ndarray, both: np.ndarray, later: np.ndarray, needs: np.ndarray
) -> Taken:
    singly = np.union1d(few, later) if len(few) + len(later) <= _SINGLY or not len(later) else None
    return Taken(base, few, both, later, needs, singly)


class Groups(NamedTuple):
    """Tokens that lead to one place in a loop, whatever the hypotheses: rows int32 [n, 4], one of
    them as in `read_tokens`; start int64 [n + 1] and ids int32: all of each group."""

    rows: np.ndarray
    start: np.ndarray
    ids: np.ndarray


def grouped(ids: np.ndarray, loop: Any) -> Groups:
    """Some tokens, read from the start of a loop."""
    q, a = loop.step_each(1, 0, 0, ids.astype(np.int64)).T
    ids, q, a = ids[q > 0], q[q > 0], a[q > 0]
    klass = loop.tables.by_id[0][ids]
    key = (q * (a.max(initial=0) + 1) + a) * (klass.max(initial=0) + 1) + klass
    present = np.zeros(key.max(initial=0) + 1, np.bool_)
    present[key] = True
    group = np.cumsum(present)[key] - 1
    order = np.argsort(group.astype(np.uint16), kind="stable")  # a radix sort
    start = np.append(0, np.cumsum(np.bincount(group)))
    rows = np.stack([ids, q, a, klass], axis=1)[order].astype(np.int32)
    return Groups(rows[start[:-1]], start, rows[:, 0].copy())


class Slice:
    """ids: int32, the tokens of the slice; rest: the trie of all others. The product of the loop is
    its own: nobody else takes that one's lock."""

    def __init__(self, tables: Tables, K: np.ndarray, wide: bool, length: int) -> None:
        """K: bool [128]; wide: also all characters beyond ASCII."""
        self._tables, self.K, self.wide, self.lock = tables, K, wide, Lock()
        use = np.zeros(256, np.bool_)
        use[:128], use[128:] = K, wide
        self._inside = inside(use, length, tables.sliceable(), tables.trie)
        self.ids = np.flatnonzero(self._inside).astype(np.int32)
        self.asked = 0  # see `_core.lift`
        self._rows: BoundedMemo[tuple[int, int], tuple[Taken | None]]
        self._rows = BoundedMemo(tables.n_ids // 2)
        self._odd: dict[int, np.ndarray] = {}
        self._loop: Any = None  # its product, and the tokens by where they lead there

    @cached
    def rest(self) -> Arrays:
        return self._part(~self._inside)

    def _part(self, kept: np.ndarray) -> Arrays:
        """The trie of some tokens alone, bool [n_ids]."""
        trie = self._tables.trie
        return *fixed(*part_of(kept, trie)), *trie[7:]

    @cached
    def packed(self) -> np.ndarray:
        """int32 [words]: the tokens of the slice."""
        found = np.zeros(((self._tables.n_ids + 31) >> 5) * 32, np.bool_)
        found[self.ids] = True
        return np.packbits(found, bitorder="little").view(np.int32)

    @property
    def detour(self) -> int:
        """As of a product. (What is known of a loop that is a slice of no others.)"""
        return int(self._loop[0]._memo[4][2]) if self._loop else 0

    def taken(self, a: int, H: int, product: MakeProduct) -> Taken | None:
        """What is known of the tokens of the slice at (a, H); None where too many are to be read
        one by one. product: makes that of the loop."""
        key = (a, H) if len(self._read_otherwise(a)) else (0, H)
        found = self._rows.get(key)
        return found[0] if found is not None else self._new(*key, product)

    @locked
    def _new(self, a: int, H: int, product: MakeProduct) -> Taken | None:
        known = self._rows.get((a, H))  # by another thread meanwhile
        if known is not None:
            return known[0]
        found = self._surely(H, product) if a == 0 else self.taken(0, H, product)
        odd = self._read_otherwise(a)
        if found is not None and len(odd):
            gone = np.zeros(found.base.shape[1] * 32, np.bool_)
            gone[odd] = True
            kept = ~np.packbits(gone, bitorder="little").view(np.int32)
            few = np.union1d(found.few, odd)
            later = found.later[~gone[found.later]]
            found = _taken(found.base & kept, few, found.both & kept, later, found.needs)
        if found is not None and len(found.few) > MOST_FEW:
            found = None
        self._rows.put((a, H), (found,))
        return found

    def _surely(self, H: int, product: MakeProduct) -> Taken:
        if self._loop is None:
            one_of = [f"\\x{b:02x}" for b in np.flatnonzero(self.K)]
            one_of += ["[^\\x00-\\x7f]"] * self.wide
            loop = product(self._tables, compile_regex(f"(?:{'|'.join(one_of)})*"))
            self._loop = loop, grouped(self.ids, loop)
        n_bits = ((self._tables.n_ids + 31) >> 5) * 32
        loop, groups = self._loop
        free, bound, later, unsure = loop.read_slice(H, groups)
        surely = np.zeros((2, n_bits), np.bool_)
        surely[0, free] = surely[1, bound] = True
        base = np.packbits(surely, axis=1, bitorder="little").view(np.int32)
        both, needs = base, np.unique(later[:, 2]).astype(np.int64)
        if len(later):
            surely[later[:, 1], later[:, 0]] = True
            both = np.packbits(surely, axis=1, bitorder="little").view(np.int32)
        return _taken(base, unsure, both, np.unique(later[:, 0]), needs)

    def _read_otherwise(self, a: int) -> np.ndarray:
        """The tokens of the slice that a text state may read otherwise than state 0 does."""
        found = self._odd.get(a)
        if found is None:
            next_, first = self._tables.text[1], self._tables.by_id[2][self.ids]
            if a == 0 or len(next_) == 1:
                found = self.ids[:0]
            else:
                begun = np.maximum(first, 0)
                odd = (first >= 0) & (next_[a, begun] != next_[0, begun])
                if not self._tables.text[3][a]:
                    odd |= first < 0
                found = self.ids[odd]
            self._odd[a] = found
        return found


@jit
def inside(use: np.ndarray, length: Int, may: np.ndarray, trie: Arrays) -> np.ndarray:
    """bool [n_ids]: the tokens of at most so many bytes, all of which are in `use` (bool [256]).
    may: bool [n_ids], those that come into question."""
    label, depth, skip, token = trie[0], trie[1], trie[2], trie[3]
    found, node = np.zeros(len(may), np.bool_), 0
    while node < len(label):
        if depth[node] > length or not use[label[node]]:
            node = skip[node]
            continue
        if token[node] >= 0:
            found[token[node]] = may[token[node]]
        node += 1
    return found


@jit
def part_of(kept: np.ndarray, trie: Arrays) -> Arrays:
    """The first seven arrays of the trie of some tokens alone, bool [n_ids]."""
    label, depth, skip, token, klass, after, first = trie[:7]
    n = len(label)
    number = np.zeros(n + 1, np.int32)  # of tokens before each node
    for node in range(n):
        t = token[node]
        number[node + 1] = number[node] + (t >= 0 and kept[t])
    at, m = np.empty(n, np.int32), 0
    for node in range(n):
        if number[skip[node]] > number[node]:  # there are some below, itself included
            at[m] = node
            m += 1
    count = 0
    for node in range(n):
        number[node] = count
        count += count < m and at[count] == node
    number[n] = count
    tokens, classes, skips = np.empty(m, np.int32), np.empty(m, np.int32), np.empty(m, np.int32)
    for k in range(m):
        t = token[at[k]]
        here = t >= 0 and kept[t]
        tokens[k], classes[k] = t if here else -1, klass[at[k]] if here else 0
        skips[k] = number[skip[at[k]]]
    at = at[:m]
    return label[at], depth[at], skips, tokens, classes, after[at], first[at]
