"""The vocabulary of a tokenizer as a trie of bytes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

_AT_ONCE = 7  # bytes that are compared as one number, together with how many there are
_GOES_ON = 8


class Trie(NamedTuple):
    """Nodes in depth-first order, without the root: label uint8, depth int32 (root's children: 1),
    skip int32 (the next node outside the subtree), token int32 (-1: none); first int32 [257]: where
    the nodes below each first byte begin; deepest: int. `start` int32 [n_ids + 1] and `data` uint8:
    CSR of every token's bytes."""

    label: np.ndarray
    depth: np.ndarray
    skip: np.ndarray
    token: np.ndarray
    first: np.ndarray
    deepest: int
    start: np.ndarray
    data: np.ndarray


class Nodes(NamedTuple):
    """The token at each node of the trie, int32 [nodes]: token_class, its class (0: no token that
    can be read); text, state of the text automaton after the token from state 0 and UTF-8 row 0
    (-1: none); first, the atom of its first character (-1: it begins with a part of one)."""

    token_class: np.ndarray
    text: np.ndarray
    first: np.ndarray


def vocabulary_trie(spellings: Sequence[bytes], ids: Iterable[int]) -> Trie:
    """Trie of the tokens `ids`, without empty ones; equal ones end in sibling nodes."""
    start = np.zeros(len(spellings) + 1, dtype=np.int32)
    np.cumsum(np.fromiter(map(len, spellings), np.int64, len(spellings)), out=start[1:])
    data = np.frombuffer(b"".join(spellings), dtype=np.uint8)
    tokens = np.fromiter(ids, np.int64) if not isinstance(ids, np.ndarray) else ids
    order = _sorted(tokens[start[tokens + 1] > start[tokens]], start, data).astype(np.int32)
    label, depth, token = _nodes(order, start, data)
    roots = np.flatnonzero(depth == 1)
    first = np.append(roots, len(label))[np.searchsorted(label[roots], np.arange(257))]
    deepest = int(depth.max(initial=0))
    return Trie(label, depth, _skips(depth), token, first.astype(np.int32), deepest, start, data)


def _nodes(
    order: np.ndarray, start: np.ndarray, data: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(label, depth, token) of the trie of the tokens `order`, which are sorted by their bytes:
    each has the nodes of the bytes that it does not share with the one before."""
    begin, length = start[order], start[order + 1] - start[order]
    shared, pairs, k = np.zeros(len(order), dtype=np.int32), np.arange(1, len(order)), 0
    while len(pairs):
        pairs = pairs[np.minimum(length[pairs], length[pairs - 1]) > k]
        pairs = pairs[data[begin[pairs] + k] == data[begin[pairs - 1] + k]]
        k += 1
        shared[pairs] = k
    shared -= shared == length  # equal tokens
    count = length - shared
    past, owner = np.cumsum(count), np.repeat(np.arange(len(order)), count)
    depth = np.arange(1, len(owner) + 1) - (past - length)[owner]
    token = np.full(len(owner), -1, dtype=np.int32)
    token[past - 1] = order
    return data[begin[owner] + depth - 1], depth.astype(np.int32), token


def _skips(depth: np.ndarray) -> np.ndarray:
    """For each node the next one that is not deeper, after all nodes of its subtree."""
    below = np.cumsum(np.bincount(depth))[:-1]
    levels = np.split(np.argsort(depth, kind="stable"), below)[1:]
    size = np.ones(len(depth), dtype=np.int32)
    for upper, lower in reversed(list(pairwise(levels))):
        np.add.at(size, upper[np.searchsorted(upper, lower) - 1], size[lower])
    return np.arange(len(depth), dtype=np.int32) + size


def _sorted(tokens: np.ndarray, start: np.ndarray, data: np.ndarray) -> np.ndarray:
    """`tokens` sorted by their bytes, equal ones in the order given: first by their first bytes,
    then each run of tokens that agree in these by the next bytes, and so on."""
    padded = np.append(data, np.zeros(_GOES_ON, dtype=np.uint8))
    words = np.ndarray(len(data) + 1, ">u8", padded, strides=(1,))  # the 8 bytes from each position
    order = tokens.copy()
    positions, runs, done = np.arange(len(order)), np.zeros(len(order), dtype=np.int64), 0
    while len(positions):
        keys = _keys(order[positions], done, start, words)
        by_key = np.lexsort((keys, runs))
        order[positions], keys = order[positions[by_key]], keys[by_key]
        begins = np.ones(len(keys), dtype=bool)
        begins[1:] = (keys[1:] != keys[:-1]) | (runs[1:] != runs[:-1])
        runs = np.cumsum(begins)
        tied = (keys & 15 == _GOES_ON) & (np.bincount(runs)[runs] > 1)
        positions, runs, done = positions[tied], runs[tied], done + _AT_ONCE
    return order


def _keys(tokens: np.ndarray, done: int, start: np.ndarray, words: np.ndarray) -> np.ndarray:
    """uint64: the next 7 bytes of each token after `done`, then how many bytes remain, where 8
    stands for more than 7. The numbers are ordered as the bytes are."""
    remaining = np.minimum(start[tokens + 1] - start[tokens] - done, _GOES_ON)
    taken = np.minimum(remaining, _AT_ONCE).astype(np.uint64)
    kept = ~np.uint64(0) << (np.uint64(64) - np.uint64(8) * taken)  # taken is never 0
    return (words[start[tokens] + done].astype(np.uint64) & kept) | remaining.astype(np.uint64)
