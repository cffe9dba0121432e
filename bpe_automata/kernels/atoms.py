"""Atoms: two code points share an atom iff every class holds both of them or neither.

    atom(x) == atom(y)  <=>  for all classes C:  x in C <=> y in C

A sweep over the ends of the ranges: between two neighbouring ends the set of classes that are
open is constant, and it is interned. Atom 0 is reserved for code points that no class holds.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bpe_automata.kernels import kernel
from bpe_automata.kernels.mixing import first_slot, mix, next_slot, table_size
from bpe_automata.kernels.watch import poll

N_CODE_POINTS = 0x110000


@kernel
def partition(
    toggles: np.ndarray, order: np.ndarray, ptr: np.ndarray, watch: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The atoms of the classes `toggles[ptr[c]:ptr[c+1]]`, as (starts, atom_of, member).

    toggles: int32, inversion lists: the class holds [t0, t1), [t2, t3), ...
    order: int64, `argsort` of toggles. ptr: int32 [n_classes + 1]. The last class is a hole: what
    it holds belongs to no class.
    Returns starts int32 [k], where starts[0] == 0 and interval i ends where i + 1 begins (the last
    one at 0x110000), its atom_of int32 [k], and member uint8 [n_atoms, n_classes].
    """
    n_classes = ptr.size - 1
    owner = np.empty(toggles.size, np.int32)
    for c in range(n_classes):
        owner[ptr[c] : ptr[c + 1]] = c
    most = 2 + _distinct(toggles, order)
    member = np.zeros((most, n_classes), np.uint8)
    table, keys = np.zeros(table_size(most), np.int32), np.zeros(most, np.uint64)
    starts = np.empty(toggles.size + 1, np.int32)
    atom_of = np.empty(toggles.size + 1, np.int32)
    intervals, n_atoms, event, position = 0, 1, 0, 0
    active, key = np.zeros(n_classes, np.uint8), np.uint64(0)
    while position < N_CODE_POINTS and not poll(watch):
        while event < order.size and toggles[order[event]] == position:
            c = owner[order[event]]
            active[c] ^= 1
            key ^= mix(c + 1)
            event += 1
        atom, n_atoms = _atom(active, key, member, keys, table, n_atoms)
        if intervals == 0 or atom_of[intervals - 1] != atom:
            starts[intervals], atom_of[intervals] = position, atom
            intervals += 1
        position = toggles[order[event]] if event < order.size else N_CODE_POINTS
    return starts[:intervals].copy(), atom_of[:intervals].copy(), member[:n_atoms].copy()


@kernel
def _distinct(toggles: np.ndarray, order: np.ndarray) -> int:
    """How many different ends there are."""
    count = min(1, order.size)
    for i in range(1, order.size):
        count += toggles[order[i]] != toggles[order[i - 1]]
    return count


@kernel
def _atom(
    active: np.ndarray,
    key: Any,
    member: np.ndarray,
    keys: np.ndarray,
    table: np.ndarray,
    n_atoms: int,
) -> tuple[int, int]:
    """Intern a set of open classes: (its atom, the number of atoms)."""
    if active[active.size - 1] or not active.any():
        return 0, n_atoms
    slot = first_slot(key, table)
    while table[slot] != 0:
        atom = int(table[slot])
        if keys[atom] == key and (member[atom] == active).all():
            return atom, n_atoms
        slot = next_slot(slot, table)
    table[slot], keys[n_atoms] = n_atoms, key
    member[n_atoms] = active
    return n_atoms, n_atoms + 1
