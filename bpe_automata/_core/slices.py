"""Slices of the vocabulary. In a wide state (a string, a line, a counted class) hundreds of bytes
do alike. Tokens of at most L bytes, all in K, are read there as a loop over K reads them: which of
them may come depends on the hypotheses H and the text state a alone (see `steps`), and is found
once for a tokenizer, K, L, a and H, as long as it is remembered. Tokens behind which the text state
is not harmless are in no slice. All others are read in a trie of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bpe_automata._automata.compile import compile_regex
from bpe_automata._automata.dfa import ByteDFA
from bpe_automata._core.tables import TokenizerTables, fixed
from bpe_automata._sharing import BoundedMemo, Lock, cached, locked

Arrays = tuple[np.ndarray, ...]
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


class Slice:
    """ids: int32, the tokens of the slice; rest: the trie of all others. The product of the loop is
    its own: nobody else takes that one's lock."""

    def __init__(
        self,
        tables: TokenizerTables,
        K: np.ndarray,
        wide: bool,
        length: int,
        product: Callable[[TokenizerTables, ByteDFA], Any],
    ) -> None:
        """K: bool [128]; wide: also all characters beyond ASCII; product: that of a loop."""
        self._product = product
        self._tables, self.K, self.wide, self.lock = tables, K, wide, Lock()
        use = np.zeros(256, np.bool_)
        use[:128], use[128:] = K, wide
        token, start, data = tables.trie[3], tables.trie[7], tables.trie[8]
        ids = token[token >= 0]
        bad = np.concatenate([[0], np.cumsum(~use[data])])
        inside = (bad[start[1:]] == bad[start[:-1]]) & (np.diff(start) <= length)
        inside &= tables.quietly()
        self.ids = ids[inside[ids]].astype(np.int32)
        self.rest = _part_of(tables.trie, (token >= 0) & ~inside[np.maximum(token, 0)])
        self._part = _part_of(tables.trie, (token >= 0) & inside[np.maximum(token, 0)])
        self._rows: BoundedMemo[tuple[int, int], tuple[Taken | None]]
        self._rows = BoundedMemo(tables.n_ids // 2)
        self._odd: dict[int, np.ndarray] = {}

    @cached
    def _loop(self) -> Any:
        one_of = [f"\\x{b:02x}" for b in np.flatnonzero(self.K)] + ["[^\\x00-\\x7f]"] * self.wide
        return self._product(self._tables, compile_regex(f"(?:{'|'.join(one_of)})*"))

    def taken(self, a: int, H: int) -> Taken | None:
        """What is known of the tokens of the slice at (a, H); None where too many are to be read
        one by one."""
        key = (a, H) if len(self._read_otherwise(a)) else (0, H)
        found = self._rows.get(key)
        return found[0] if found is not None else self._new(*key)

    @locked
    def _new(self, a: int, H: int) -> Taken | None:
        known = self._rows.get((a, H))  # by another thread meanwhile
        if known is not None:
            return known[0]
        found = self._surely(H) if a == 0 else self.taken(0, H)
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

    def _surely(self, H: int) -> Taken:
        n_bits = ((self._tables.n_ids + 31) >> 5) * 32
        free, bound, later, unsure = self._loop.read_slice(H, self._part)
        surely = np.zeros((2, n_bits), np.bool_)
        surely[0, free] = surely[1, bound] = True
        base = np.packbits(surely, axis=1, bitorder="little").view(np.int32)
        both, needs = base, np.unique(later[:, 2]).astype(np.int64)
        if len(later):
            surely[later[:, 1], later[:, 0]] = True
            both = np.packbits(surely, axis=1, bitorder="little").view(np.int32)
        return _taken(base, np.unique(unsure[:, 0]), both, np.unique(later[:, 0]), needs)

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
                if not self._tables.harmless[a]:
                    odd |= first < 0
                found = self.ids[odd]
            self._odd[a] = found
        return found


def _part_of(trie: Arrays, kept: np.ndarray) -> Arrays:
    """The trie of the tokens at some nodes alone."""
    label, depth, skip, token, klass, after, first, start, data = trie
    count = np.concatenate([[0], np.cumsum(kept)])
    some = count[skip] > count[:-1]  # below a node, itself included
    at, number = np.flatnonzero(some), np.concatenate([[0], np.cumsum(some)])
    here = kept[at]
    return fixed(
        label[at],
        depth[at],
        number[skip[at]].astype(np.int32),
        np.where(here, token[at], -1).astype(np.int32),
        np.where(here, klass[at], 0).astype(np.int32),
        after[at],
        first[at],
        start,
        data,
    )
