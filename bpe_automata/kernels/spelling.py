"""Tokens read as characters: leading fragment, whole characters, trailing fragment."""

from __future__ import annotations

import numpy as np

from bpe_automata.kernels import kernel
from bpe_automata.kernels.hashing import EMPTY, grown, keys_with_room, slot_of, table_size

BROKEN = -1
_MOST_LOOKS = 30_000_000  # some 50 ms


@kernel
def spell_tokens(
    usable: np.ndarray,
    root: np.ndarray,
    start: np.ndarray,
    data: np.ndarray,
    utf8: np.ndarray,
    text_next: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Read every usable token with the UTF-8 automaton (see `tokenizer.alphabet`), from the row
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


@kernel
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


@kernel
def wide_atoms(
    trans: np.ndarray, byte_class: np.ndarray, utf8: np.ndarray, n_atoms: int
) -> np.ndarray:
    """bool [n_atoms]: the atoms of which a byte DFA can read a character of several bytes, from any
    of its states; all of them where that takes more than _MOST_LOOKS.

    trans: int32 [n, k], row 0 dead. Each pair of a UTF-8 row and a state is looked at once, and
    none of a row whose atoms are all found.
    """
    found, whole = np.zeros(n_atoms, np.bool_), np.zeros(len(utf8), np.bool_)
    seen, n_seen, looks = np.full(table_size(512), EMPTY, np.int64), 0, 0
    rows, states = np.empty(64, np.int32), np.empty(64, np.int32)
    for start in range(1, len(trans)):
        rows[0], states[0], n_open = 0, start, 1
        while n_open > 0:
            n_open -= 1
            row, state = rows[n_open], states[n_open]
            whole[row] = whole[row] or _is_whole(utf8[row], found, whole)
            if whole[row]:
                continue
            looks += 128
            for byte in range(0x80, 0x100):
                entry, after = utf8[row, byte], trans[state, byte_class[byte]]
                if after == 0 or entry == -1:
                    continue
                if entry < -1:
                    found[-2 - entry] = True
                    continue
                key = entry * len(trans) + after
                slot = slot_of(seen, key)
                if whole[entry] or seen[slot] == key:
                    continue
                seen[slot] = key
                n_seen += 1
                if 2 * n_seen > len(seen):
                    seen = keys_with_room(seen, 2 * n_seen)
                rows, states = grown(rows, n_open), grown(states, n_open)
                rows[n_open], states[n_open] = entry, after
                n_open += 1
            if looks > _MOST_LOOKS:
                found[:] = True
                return found
    return found


@kernel
def _is_whole(entries: np.ndarray, found: np.ndarray, whole: np.ndarray) -> bool:
    """Are all atoms that a UTF-8 row leads to found, by characters of several bytes?"""
    for byte in range(0x80, 0x100):
        entry = entries[byte]
        if (entry < -1 and not found[-2 - entry]) or (entry > 0 and not whole[entry]):
            return False
    return True
