"""The vocabulary as a trie of bytes in depth-first order, and its walk under a byte DFA."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bpe_automata.kernels import kernel
from bpe_automata.kernels.references import by_reference


@by_reference
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


@kernel
def build_nodes(
    order: np.ndarray, start: np.ndarray, data: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Trie of the tokens `order` (int32, sorted by their bytes, none empty), of fewer than 2**31
    bytes in all. Tokens that spell the same end in sibling nodes with equal labels."""
    size = 0
    for token in order:
        size += start[token + 1] - start[token]
    label = np.empty(size, np.uint8)
    depth = np.empty(size, np.int32)
    token_at = np.full(size, -1, np.int32)
    count = 0
    previous = -1
    for token in order:
        low, n = start[token], start[token + 1] - start[token]
        shared = 0
        if previous >= 0:
            before, m = start[previous], start[previous + 1] - start[previous]
            while shared < n and shared < m and data[low + shared] == data[before + shared]:
                shared += 1
            if shared == n and shared == m:
                shared -= 1
        for i in range(shared, n):
            label[count] = data[low + i]
            depth[count] = i + 1
            count += 1
        token_at[count - 1] = token
        previous = token
    return (
        label[:count].copy(),
        depth[:count].copy(),
        skips(depth[:count]),
        token_at[:count].copy(),
    )


@kernel
def skips(depth: np.ndarray) -> np.ndarray:
    """For each node the next one that is not deeper."""
    skip = np.empty(len(depth), np.int32)
    open_nodes = np.empty(len(depth) + 1, np.int32)
    n_open = 0
    for node in range(len(depth)):
        while n_open > 0 and depth[open_nodes[n_open - 1]] >= depth[node]:
            n_open -= 1
            skip[open_nodes[n_open]] = node
        open_nodes[n_open] = node
        n_open += 1
    for i in range(n_open):
        skip[open_nodes[i]] = len(depth)
    return skip


@kernel
def walk(trans: np.ndarray, byte_class: np.ndarray, state: int, data: np.ndarray) -> int:
    """The DFA's state after the bytes `data`; 0 (dead) stays 0."""
    for byte in data:
        state = trans[state, byte_class[byte]]
        if state == 0:
            return 0
    return state
