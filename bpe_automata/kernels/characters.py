"""Where one character leads: the steps of a byte DFA over the atoms of the alphabet."""

from __future__ import annotations

import numpy as np

from bpe_automata.kernels import kernel
from bpe_automata.kernels.growing import grown
from bpe_automata.kernels.hashing import EMPTY, keys_with_room, slot_of
from bpe_automata.kernels.mixing import table_size
from bpe_automata.kernels.world import World


@kernel
def ascii_steps(state: int, w: World) -> tuple[np.ndarray, np.ndarray]:
    """(atoms, states): where one-byte characters lead, neighbouring repeats left out."""
    atoms, states = np.empty(128, np.int32), np.empty(128, np.int32)
    count = 0
    for byte in range(128):
        after = w.dfa.trans[state, w.dfa.byte_class[byte]]
        entry = w.reading.utf8[0, byte]
        if after == 0 or entry > -2:
            continue
        if count == 0 or atoms[count - 1] != -2 - entry or states[count - 1] != after:
            atoms[count], states[count] = -2 - entry, after
            count += 1
    return atoms[:count], states[:count]


@kernel
def wide_steps(row: int, state: int, w: World) -> tuple[np.ndarray, np.ndarray]:
    """(atoms, states): where characters of several bytes lead, or (row > 0) the rest of one."""
    atoms, states = np.empty(256, np.int32), np.empty(256, np.int32)
    rows, at = np.empty(256, np.int32), np.empty(256, np.int32)
    seen = np.full(table_size(2048), EMPTY, np.int64)
    n_seen, count, open_ = 0, 0, 1
    rows[0], at[0] = row, state
    while open_ > 0:
        open_ -= 1
        r, q = rows[open_], at[open_]
        # Room for all bytes at once: an array that a loop replaces has its references counted.
        if open_ + 128 > len(rows):
            rows, at = grown(rows, len(rows)), grown(at, len(at))
        if count + 128 > len(atoms):
            atoms, states = grown(atoms, len(atoms)), grown(states, len(states))
        if 2 * (n_seen + 128) > len(seen):
            seen = keys_with_room(seen, 2 * (n_seen + 128))
        for byte in range(0x80, 0x100):
            after = w.dfa.trans[q, w.dfa.byte_class[byte]]
            entry = w.reading.utf8[r, byte]
            if after == 0 or entry == -1:
                continue
            key = np.int64(after) * (1 << 32) + (entry if entry > 0 else (1 << 31) - entry)
            slot = slot_of(seen, key)
            if seen[slot] == key:
                continue
            seen[slot] = key
            n_seen += 1
            if entry > 0:
                rows[open_], at[open_] = entry, after
                open_ += 1
            else:
                atoms[count], states[count] = -2 - entry, after
                count += 1
    return atoms[:count], states[:count]
