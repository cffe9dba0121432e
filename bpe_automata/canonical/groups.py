"""Groups of tokens that every loop reads alike (see `slices`), and the characters that a fragment
at the end of a token may become."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bpe_automata.canonical.arrays import Trie
from bpe_automata.canonical.pairs import may_follow_any

Tables = Any  # a `tables.TokenizerTables`, which imports this module


class Groups(NamedTuple):
    """of: int32 [n_ids], the group of each token that may be in a slice, the number of groups for
    all others; klass, after, tail int32 [groups]: the class of each group's tokens, and the text
    state and UTF-8 row after them; ended bool [groups, kinds]: the kinds of steady characters that
    the incomplete character at the end of its tokens can become within a pretoken."""

    of: np.ndarray
    klass: np.ndarray
    after: np.ndarray
    tail: np.ndarray
    ended: np.ndarray


def grouped(tables: Tables) -> Groups:
    """The groups. Tokens of the same class with the same text state after them are one group; each
    token that ends inside a character is a group of its own."""
    ids, (klass, after, _) = np.flatnonzero(tables.sliceable()), tables.by_id.T
    classes = tables.canonical.actions.classes
    tails = np.array([c.tail for c in classes], np.int32)[klass]
    width = int(after[ids].max(initial=0)) + 1
    key = klass[ids].astype(np.int64) * width + after[ids]
    key = np.where(tails[ids] > 0, len(classes) * width + ids, key)
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    of = np.full(tables.n_ids, len(first), np.int32)
    of[ids], some = group.reshape(-1), ids[first]
    tail = tails[some]
    ended = np.zeros((len(some), tables.chars[3].shape[2]), np.bool_)
    characters = Characters(tables)
    for k in np.flatnonzero(tail > 0):
        ended[k, list(characters.kinds(int(some[k]), int(tail[k])))] = True
    return Groups(of, klass[some], after[some], tail, ended)


class Characters:
    """The kinds of steady characters that can be completed, within a pretoken, by fragments: tokens
    of only the last bytes of a character."""

    def __init__(self, tables: Tables) -> None:
        coarse, steady = tables.chars[0].T
        self._tables, self._kind = tables, np.where(steady == 1, coarse, -1)
        self._tokens = tables.chars[4].astype(np.int64)
        self._entries = _entries(self._tokens, tables.trie, tables.text[0])
        self._cached: dict[tuple[int, int], frozenset[int]] = {}

    def kinds(self, token: int, row: int) -> frozenset[int]:
        """The kinds that the last character of a token can have. row: the UTF-8 row at the token's
        end, inside that character."""
        found = self._cached.get((token, row))
        if found is None:
            may = may_follow_any(np.array([token]), self._tokens, self._tables.pairs)
            there = self._entries[row]
            kinds = self._kind[-2 - there[may & (there < -1)]]
            found = frozenset(kinds[kinds >= 0].tolist())
            for k in np.flatnonzero(may & (there > 0)):
                found |= self.kinds(int(self._tokens[k]), int(there[k]))
            self._cached[token, row] = found
        return found


def _entries(tokens: np.ndarray, trie: Trie, utf8: np.ndarray) -> np.ndarray:
    """int64 [rows, tokens]: where each token leads from each row of UTF-8: another row, -2 - an
    atom, or -1 for nowhere."""
    begin, end = trie.start_array[tokens], trie.start_array[tokens + 1]
    found = np.repeat(np.arange(len(utf8))[:, None], len(tokens), axis=1)
    for at in range((end - begin).max(initial=0)):
        here = begin + at < end
        letters = trie.data_array[np.where(here, begin + at, 0)]
        after = np.where(found >= 0, utf8[np.maximum(found, 0), letters], -1)
        found = np.where(here, after, found)
    return found
