"""Slices of the vocabulary. A wide state (in a string, a line, a counted class) reads hundreds of
bytes alike, a set K (and perhaps all characters beyond ASCII). Tokens of at most L of these bytes
are read there as a loop over K reads them: they are the *slice* of K and L. Whether a token
may come depends for most of them, `Taken.surely`, only on the hypotheses H and the text state a
(see `status`), and is cached by tokenizer, K, L, a and H. For some, `Taken.later`, it also depends
on whether all ids are live at the states nearby. A few, `Taken.few`, are read one by one.
Tokens after which the text state is not harmless are in no slice. All tokens outside a slice are
read in a trie of their own.

Tokens are read by groups (see `groups`). If they end inside a character, one of the characters that
this can become must have a way to acceptance after it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bpe_automata._sharing import BoundedMemo, Lock, cached, locked
from bpe_automata.automata.algebra import all_texts
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.canonical.arrays import ALIVE, HARMLESS, Trie
from bpe_automata.canonical.tables import Tables, fixed
from bpe_automata.canonical.tokens import inside, without

Arrays = tuple[np.ndarray, ...]
MakeProduct = Callable[[Any, ByteDFA, bool], Any]
MOST_FEW = 4000
_SINGLY = 300
_WORTH = 0.5  # reads of the vocabulary
_NONE = np.empty(0, np.int32)
_EACH = 40  # calls of `candidates` for one id
_CHARACTER = 3  # bytes of tokens that end one, at most


class Taken(NamedTuple):
    """surely: packed int32 [2, words], the tokens of a slice that may come, with and without a
    boundary before them; few: int32, those that are to be read one by one; perhaps: `surely` and
    the tokens that may come if every id is live at all states nearby with the sets `needs` (int64);
    later: int32, these tokens; singly: `later` and `few`, if `later` is empty or both are so few
    that reading them one by one is cheaper than testing all states nearby; else None."""

    surely: np.ndarray
    few: np.ndarray
    perhaps: np.ndarray
    later: np.ndarray
    needs: np.ndarray
    singly: np.ndarray | None


def _taken(
    surely: np.ndarray, few: np.ndarray, perhaps: np.ndarray, later: np.ndarray, needs: np.ndarray
) -> Taken:
    singly = np.union1d(few, later) if len(few) + len(later) <= _SINGLY or not len(later) else None
    return Taken(surely, few, perhaps, later, needs, singly)


class Slice:
    """ids: int32, the tokens of the slice; rest: the trie of all others. A slice has a product of
    its loop for itself, so nothing else takes the lock of that product."""

    def __init__(self, tables: Tables, K: np.ndarray, wide: bool, length: int) -> None:
        """K: bool [128]; wide: also all characters beyond ASCII."""
        self._tables, self.K, self.wide, self.lock = tables, K, wide, Lock()
        use = np.zeros(256, np.bool_)
        use[:128], use[128:] = K, wide
        self._inside = inside(use, length, tables.sliceable(), tables.trie)
        self.ids = np.flatnonzero(self._inside).astype(np.int32)
        self._asked = 0
        self._rows: BoundedMemo[tuple[int, int], tuple[Taken | None]]
        self._rows = BoundedMemo(tables.n_ids // 2)
        self._odd: dict[int, np.ndarray] = {}
        self._loop: Any = None  # its product

    def is_worth_it(self) -> bool:
        """Would reading the tokens of the slice, at every call so far, have cost about as much as
        building the slice? To be called once for each new mask."""
        self._asked += 1
        return self._asked * len(self.ids) >= _WORTH * self._tables.n_ids

    @cached
    def rest(self) -> Trie:
        trie = self._tables.trie
        return trie.with_nodes(*fixed(without(trie, self._inside)))

    @cached
    def packed(self) -> np.ndarray:
        """int32 [words]: the tokens of the slice."""
        found = np.zeros(((self._tables.n_ids + 31) >> 5) * 32, np.bool_)
        found[self.ids] = True
        return np.packbits(found, bitorder="little").view(np.int32)

    @property
    def detour(self) -> int:
        """See `Product.detour`: that of the loop, which has no slices itself."""
        return max(_CHARACTER, self._loop.own_detour) if self._loop else 0

    def taken(self, a: int, H: int, product: MakeProduct) -> Taken | None:
        """The tokens of the slice that may come at (a, H); None if too many are to be read one by
        one. product: makes the product of the loop."""
        key = (a, H) if len(self._read_otherwise(a)) else (0, H)
        found = self._rows.get(key)
        return found[0] if found is not None else self._new(*key, product)

    @locked
    def _new(self, a: int, H: int, product: MakeProduct) -> Taken | None:
        cached_row = self._rows.get((a, H))  # made by another thread meanwhile
        if cached_row is not None:
            return cached_row[0]
        found = self._surely(H, product) if a == 0 else self.taken(0, H, product)
        if self.detour > self._tables.detour:
            with self._tables.lock:
                self._tables.detour = max(self._tables.detour, self.detour)
        odd = self._read_otherwise(a)
        if found is not None and len(odd):
            gone = np.zeros(found.surely.shape[1] * 32, np.bool_)
            gone[odd] = True
            kept = ~np.packbits(gone, bitorder="little").view(np.int32)
            few = np.union1d(found.few, odd)
            later = found.later[~gone[found.later]]
            found = _taken(found.surely & kept, few, found.perhaps & kept, later, found.needs)
        if found is not None and len(found.few) > MOST_FEW:
            found = None
        self._rows.put((a, H), (found,))
        return found

    def _surely(self, H: int, product: MakeProduct) -> Taken:
        if self._loop is None:
            self._loop = product(self._tables, _loop_of(self.K, self.wide), False)
        (of, rows, tail, ended), loop = self._groups, self._loop
        c = loop.judged(rows, H)
        keys, statuses = loop.configurations(c)
        surely, sets = statuses == ALIVE, np.where(c >= 0, keys & 0xFFFFFF, 0)
        inside = np.nonzero((c >= 0) & (tail > 0))
        surely[inside] = (loop.characters_behind(sets[inside]) & ended[inside[1]]).any(axis=1)
        bits = _of_tokens(surely, of)
        side, ids = np.nonzero(_of_tokens((c >= 0) & ~surely, of))
        found = loop.settled(ids, c[side, of[ids]], _EACH if surely.any() else 0)
        bits[side[found == 1], ids[found == 1]] = True
        proved = perhaps = np.packbits(bits, axis=1, bitorder="little").view(np.int32)
        side, ids = side[found != 1], ids[found != 1]
        whole = tail[of[ids]] == 0
        later, needs = ids[whole], np.unique(sets[side[whole], of[ids[whole]]]).astype(np.int64)
        if len(later):
            bits[side[whole], later] = True
            perhaps = np.packbits(bits, axis=1, bitorder="little").view(np.int32)
        unsure = self._not_dead(H, side[~whole], ids[~whole], product)
        return _taken(proved, unsure, perhaps, np.unique(later), needs)

    def _not_dead(
        self, H: int, side: np.ndarray, ids: np.ndarray, product: MakeProduct
    ) -> np.ndarray:
        """int32: those of some tokens, which end inside a character, that are not proved dead in
        the product with all texts."""
        tables = self._tables
        if not len(ids):
            return _NONE
        if tables.any_text is None:
            with tables.lock:
                tables.any_text = tables.any_text or product(tables, all_texts(), True)
        q, a = tables.any_text.step_each(tables.any_text.dfa.start, 0, 0, ids).T
        rows = np.stack([ids, q, a, tables.by_id[ids, 0]], axis=1).astype(np.int32)
        with tables.any_text.lock:  # all slices of the tokenizer use it
            c = tables.any_text.judged(rows, H)[side, np.arange(len(ids))]
            found = tables.any_text.settled(ids, c, _EACH)
        return np.unique(ids[found >= 0]).astype(np.int32)

    @cached
    def _groups(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """of: int32 [n_ids, rounded up], the number of each token's group among those of the slice,
        for all others the number of these groups; rows int32 [groups, 4], as in `read_tokens`; tail
        int32 [groups], ended bool [groups, kinds], see `Groups`."""
        groups, n = self._tables.groups, ((self._tables.n_ids + 31) >> 5) * 32
        some = np.zeros(len(groups.tail) + 1, np.int32)
        some[groups.of[self.ids]] = 1
        here = np.flatnonzero(some)
        some = np.where(some, np.cumsum(some) - 1, 0)
        of = np.full(n, len(here), np.int32)
        of[self.ids] = some[groups.of[self.ids]]
        one = np.zeros(len(here), np.int32)
        one[of[self.ids]] = self.ids
        tail, q = groups.tail[here], np.full(len(here), self._loop.dfa.start)
        q[tail > 0] = self._loop.step_each(q[0], 0, 0, one[tail > 0].astype(np.int64))[:, 0]
        rows = np.stack([one, q, groups.after[here], groups.klass[here]], axis=1).astype(np.int32)
        return of, rows, tail, groups.ended[here]

    def _read_otherwise(self, a: int) -> np.ndarray:
        """The tokens of the slice that a text state may read in another way than state 0 does."""
        found = self._odd.get(a)
        if found is None:
            next_, first = self._tables.text[1], self._tables.by_id[self.ids, 2]
            if a == 0 or len(next_) == 1:
                found = self.ids[:0]
            else:
                begun = np.maximum(first, 0)
                odd = (first >= 0) & (next_[a, begun] != next_[0, begun])
                if not self._tables.text[2][a, HARMLESS]:
                    odd |= first < 0
                found = self.ids[odd]
            self._odd[a] = found
        return found


def _loop_of(K: np.ndarray, wide: bool) -> ByteDFA:
    """The DFA of (...)*, all texts of such characters."""
    every = all_texts()
    trans = np.append(every.trans, np.zeros_like(every.trans[:, :1]), axis=1)
    byte_class = every.byte_class.copy()
    byte_class[np.append(~K, np.full(128, not wide))] = trans.shape[1] - 1
    return ByteDFA(trans, byte_class, every.accepting, every.start)


def _of_tokens(groups: np.ndarray, of: np.ndarray) -> np.ndarray:
    """bool [..., n]: for each token the value of its group, bool [..., groups]; False outside."""
    return np.take(np.append(groups, np.zeros_like(groups[..., :1]), axis=-1), of, axis=-1)
