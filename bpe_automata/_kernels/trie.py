"""The vocabulary as a trie of bytes in depth-first order, and tokens read as characters."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bpe_automata._kernels import jit


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


# Tokens read as characters: leading fragment, whole characters, trailing fragment.

BROKEN = -1


@jit
def spell_tokens(
    usable: np.ndarray,
    root: np.ndarray,
    start: np.ndarray,
    data: np.ndarray,
    utf8: np.ndarray,
    text_next: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Read every usable token with the UTF-8 automaton (see `_tokenizer.alphabet`), from the row
    root[token].

    Returns lead uint8 [n]: number of leading continuation bytes; atom_start int32 [n+1] and atoms
    int32: CSR of its whole characters; tail int32 [n]: the UTF-8 row where it ends (0: at a
    character's end, BROKEN: it is no part of any readable text, or not usable); after int32 [n]:
    state of the text automaton after it from state 0 (-1: no text goes on so), for tokens that
    begin at a character's beginning.
    """
    n = len(usable)
    lead = np.zeros(n, np.uint8)
    tail = np.full(n, BROKEN, np.int32)
    after = np.zeros(n, np.int32)
    atom_start = np.zeros(n + 1, np.int32)
    atoms = np.empty(len(data), np.int32)
    count = 0
    for token in range(n):
        atom_start[token] = count
        if not usable[token]:
            continue
        at, end = start[token], start[token + 1]
        while at < end and 0x80 <= data[at] < 0xC0 and at - start[token] < 4:
            at += 1
        lead[token] = at - start[token]
        row = root[token]
        while at < end and row >= 0:
            entry = utf8[row, data[at]]
            if entry <= -2:
                atom = -2 - entry
                atoms[count] = atom
                count += 1
                if after[token] >= 0:
                    after[token] = text_next[after[token], atom]
                entry = root[token]
            row = entry
            at += 1
        tail[token] = 0 if row == root[token] else row
        if row < 0 or lead[token] > 3:
            tail[token] = BROKEN
            count = atom_start[token]
    atom_start[n] = count
    return lead, atom_start, atoms[:count].copy(), tail, after


@jit
def fold_words(
    current: np.ndarray,
    atom_start: np.ndarray,
    atoms: np.ndarray,
    table: np.ndarray,
) -> tuple[int, int]:
    """Run each token's atoms through `table` (int32 [elements, n_atoms], -1: not known yet) from
    element current[token], in place. Stops at the first unknown entry and returns it, or (-1, -1).

    A token whose element is -2 - e has been finished before with element e.
    """
    for token in range(len(current)):
        element = current[token]
        if element < 0:
            continue
        for i in range(atom_start[token], atom_start[token + 1]):
            after = table[element, atoms[i]]
            if after < 0:
                return element, atoms[i]
            element = after
        current[token] = -2 - element
    return -1, -1
