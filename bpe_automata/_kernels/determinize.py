"""Subset construction: states of the DFA are sets of instructions of a Thompson program.

    L(set) = union of L(instruction) over its instructions

Two things differ from the textbook. Sets are interned by a hash that does not depend on order, so
nothing is sorted. And an instruction is dropped if a stronger one is in the set: in x{m,n} the same
instruction of an *earlier* optional copy can do all that the later copy can (one more repeat may
follow), so only the earliest copy is kept. Without this, `.{0,200}b.{0,200}` has 2**200 sets; with
it, 20,503.

A program is three parallel arrays `code, near, far` and `arg`: instruction i reads a character of
class code[i] >= 0 and goes to i + 1; SPLIT goes to i + 1 and i + arg[i]; JUMP to i + arg[i]; MATCH
ends. near[i] is the distance back to the same instruction in the first copy of the innermost
bounded repeat, far[i] the same for the next repeat around it, -1 where there is none.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bpe_automata._kernels import inner, jit
from bpe_automata._kernels.hashing import first_slot, longer, mix, next_slot, rehashed
from bpe_automata._kernels.watch import poll

SPLIT, JUMP, MATCH = -1, -2, -3
DONE, RUNNING, OUT_OF_STATES, OUT_OF_MEMORY = 0, 1, 2, 3

# Rows of the scratch array, one column per instruction.
_SEEN, _SET, _STACK, _IN_SET, _NEAR, _NEAR_AT, _FAR, _FAR_AT = 0, 1, 2, 3, 4, 5, 6, 7
_SCRATCH_ROWS = 8
# Rows of the array of groups, one column per atom or per group.
_GROUP, _COUNT, _READ, _SOME, _MOVED, _ORIGIN, _TARGET = 0, 1, 2, 3, 4, 5, 6
_GROUP_ROWS = 7


@jit
def determinize(
    program: np.ndarray,
    member: np.ndarray,
    limits: np.ndarray,
    counters: np.ndarray,
    trans: np.ndarray,
    pool: np.ndarray,
    ptr: np.ndarray,
    accepting: np.ndarray,
    keys: np.ndarray,
    table: np.ndarray,
    watch: np.ndarray,
) -> tuple[int, np.ndarray, np.ndarray]:
    """(DONE, or what ran out; trans, accepting).

    program: int32 [4, n] rows code, arg, near, far. member: uint8 [n_atoms, n_classes].
    limits: int64 [2] states, bytes. counters: int64 [2] states so far, states expanded.
    trans: int32 [capacity, n_atoms]; pool, ptr: int32, the instructions of state s are
    pool[ptr[s]:ptr[s+1]]; accepting: bool [capacity]; keys: uint64 [capacity]; table: int32.
    State 0 is dead, state 1 is the start. All arrays are zeros at first, and are replaced by larger
    ones.
    """
    scratch = np.zeros((_SCRATCH_ROWS, program.shape[1]), np.int32)
    groups = np.full((_GROUP_ROWS, member.shape[0]), -1, np.int32)
    groups[_READ, :] = 0
    class_ptr, class_atoms = _atoms_of_classes(member)
    epoch: Any = np.int64(1)  # numba would compile all callees anew for a literal
    status = RUNNING
    pool = _begin(program, scratch, epoch, pool, ptr, accepting, keys, table, counters)
    while status == RUNNING and not poll(watch):
        state = counters[1]
        if state == counters[0]:
            status = DONE
            break
        counters[1] += 1
        trans, ptr, accepting, keys, table = _with_room(
            counters[0] + member.shape[0] + 2, trans, ptr, accepting, keys, table
        )
        instructions = pool[ptr[state] : ptr[state + 1]]
        n_groups = _group_atoms(program, class_ptr, class_atoms, instructions, groups, watch)
        for g in range(n_groups):
            if poll(watch):
                break
            epoch += 1
            count = _step(program, member[groups[_SOME, g]], scratch, epoch, instructions)
            count = _prune(program, scratch, epoch, count)
            groups[_TARGET, g], pool = _intern(
                program, scratch, epoch, count, pool, ptr, accepting, keys, table, counters
            )
        for a in range(member.shape[0]):
            trans[state, a] = groups[_TARGET, groups[_GROUP, a]]
        if counters[0] > limits[0]:
            status = OUT_OF_STATES
        elif 3 * (4 * (trans.size + pool.size) + 17 * keys.size) > limits[1]:  # when doubled
            status = OUT_OF_MEMORY
    return status, trans, accepting


@inner
def _begin(
    program: np.ndarray,
    scratch: np.ndarray,
    epoch: int,
    pool: np.ndarray,
    ptr: np.ndarray,
    accepting: np.ndarray,
    keys: np.ndarray,
    table: np.ndarray,
    counters: np.ndarray,
) -> np.ndarray:
    """Make the dead state and the start state in arrays of zeros; the pool."""
    counters[:] = 1
    none: Any = np.int64(0)
    count = _prune(program, scratch, epoch, _close(program, scratch, epoch, none, none))
    return _intern(program, scratch, epoch, count, pool, ptr, accepting, keys, table, counters)[1]


@inner
def _atoms_of_classes(member: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The columns of `member` as lists: atoms of class c are atoms[ptr[c]:ptr[c+1]]."""
    n_atoms, n_classes = member.shape
    ptr, atoms = np.zeros(n_classes + 1, np.int32), np.empty(member.sum(), np.int32)
    used = 0
    for c in range(n_classes):
        for a in range(n_atoms):
            if member[a, c]:
                atoms[used] = a
                used += 1
        ptr[c + 1] = used
    return ptr, atoms


@inner
def _close(program: np.ndarray, scratch: np.ndarray, epoch: int, first: int, count: int) -> int:
    """Add to the set all reading or matching instructions that `first` leads to; the new count."""
    if scratch[_SEEN, first] == epoch:
        return count
    scratch[_SEEN, first], scratch[_STACK, 0], top = epoch, first, 1
    while top > 0:
        top -= 1
        i = scratch[_STACK, top]
        op = program[0, i]
        if op >= 0 or op == MATCH:
            scratch[_SET, count] = i
            count += 1
            continue
        j = i + program[1, i]
        if scratch[_SEEN, j] != epoch:
            scratch[_SEEN, j], scratch[_STACK, top] = epoch, j
            top += 1
        if op == SPLIT and scratch[_SEEN, i + 1] != epoch:
            scratch[_SEEN, i + 1], scratch[_STACK, top] = epoch, i + 1
            top += 1
    return count


@inner
def _prune(program: np.ndarray, scratch: np.ndarray, epoch: int, count: int) -> int:
    """Keep the instructions that no other instruction of the set dominates, and mark them; their
    count."""
    for k in range(count):
        i = scratch[_SET, k]
        for row in (_NEAR, _FAR):  # how near the nearest copy in the set is, noted at the first
            distance = program[2 if row == _NEAR else 3, i]
            first = i - distance
            if distance >= 0 and (
                scratch[row + 1, first] != epoch or distance < scratch[row, first]
            ):
                scratch[row, first], scratch[row + 1, first] = distance, epoch
    kept = 0
    for k in range(count):
        i = scratch[_SET, k]
        near, far = program[2, i], program[3, i]
        if near > 0 and scratch[_NEAR, i - near] < near:
            continue
        if far > 0 and scratch[_FAR, i - far] < far:
            continue
        scratch[_SET, kept], scratch[_IN_SET, i] = i, epoch
        kept += 1
    return kept


@inner
def _group_atoms(
    program: np.ndarray,
    class_ptr: np.ndarray,
    class_atoms: np.ndarray,
    instructions: np.ndarray,
    groups: np.ndarray,
    watch: np.ndarray,
) -> int:
    """Group the atoms that none of `instructions` tells apart; the number of groups.

    Afterwards groups[_GROUP, a] is the group of atom a and groups[_SOME, g] an atom of group g.
    """
    n_atoms = groups.shape[1]
    groups[_GROUP, :], groups[_COUNT, 0] = 0, n_atoms
    n_groups: Any = np.int64(1)
    for instruction in instructions:
        if poll(watch):
            break
        c = program[0, instruction]
        if c >= 0:
            atoms = class_atoms[class_ptr[c] : class_ptr[c + 1]]
            n_groups = _split_groups(atoms, groups, n_groups)
    for a in range(n_atoms):
        groups[_SOME, groups[_GROUP, a]] = a
    return n_groups


@inner
def _split_groups(atoms: np.ndarray, groups: np.ndarray, n_groups: int) -> int:
    """Split each group that `atoms` cuts into a part inside and a part outside of `atoms`."""
    before = n_groups
    for a in atoms:
        groups[_READ, groups[_GROUP, a]] += 1
    for a in atoms:
        g = groups[_GROUP, a]
        if groups[_MOVED, g] < 0:
            groups[_MOVED, g] = g
            if groups[_READ, g] < groups[_COUNT, g]:
                groups[_MOVED, g], groups[_ORIGIN, n_groups] = n_groups, g
                groups[_COUNT, n_groups] = 0
                n_groups += 1
        groups[_GROUP, a] = groups[_MOVED, g]
    for a in atoms:
        g = groups[_GROUP, a]
        if g >= before:
            groups[_COUNT, g] += 1
            g = groups[_ORIGIN, g]
            groups[_COUNT, g] -= 1
        groups[_READ, g], groups[_MOVED, g] = 0, -1
    return n_groups


@inner
def _step(
    program: np.ndarray,
    reads: np.ndarray,
    scratch: np.ndarray,
    epoch: int,
    instructions: np.ndarray,
) -> int:
    """Put what `instructions` lead to by an atom into the set; `reads` is its row of `member`."""
    count: Any = np.int64(0)
    for instruction in instructions:
        c = program[0, instruction]
        if c >= 0 and reads[c]:
            count = _close(program, scratch, epoch, instruction + 1, count)
    return count


@inner
def _intern(
    program: np.ndarray,
    scratch: np.ndarray,
    epoch: int,
    count: int,
    pool: np.ndarray,
    ptr: np.ndarray,
    accepting: np.ndarray,
    keys: np.ndarray,
    table: np.ndarray,
    counters: np.ndarray,
) -> tuple[int, np.ndarray]:
    """The state of the set in scratch, a new one if need be: (state, pool)."""
    if count == 0:
        return 0, pool
    key = np.uint64(0)
    for k in range(count):
        key += mix(np.uint64(scratch[_SET, k]))
    slot = first_slot(key, table)
    while table[slot] != 0:
        state = int(table[slot])
        if keys[state] == key and _same(scratch, epoch, count, pool[ptr[state] : ptr[state + 1]]):
            return state, pool
        slot = next_slot(slot, table)
    state = counters[0]
    counters[0] += 1
    used = ptr[state]
    if used + count > pool.size:
        pool = longer(pool, 2 * pool.size + count)
    table[slot], keys[state], ptr[state + 1] = state, key, used + count
    accepting[state] = False
    for k in range(count):
        instruction = scratch[_SET, k]
        pool[used + k] = instruction
        if program[0, instruction] == MATCH:
            accepting[state] = True
    return state, pool


@inner
def _same(scratch: np.ndarray, epoch: int, count: int, instructions: np.ndarray) -> bool:
    """Whether `instructions` are the set in scratch; both hold each instruction once."""
    if instructions.size != count:
        return False
    for instruction in instructions:  # noqa: SIM110 - numba compiles a loop better than a generator
        if scratch[_IN_SET, instruction] != epoch:
            return False
    return True


@inner
def _with_room(
    needed: int,
    trans: np.ndarray,
    ptr: np.ndarray,
    accepting: np.ndarray,
    keys: np.ndarray,
    table: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The arrays, doubled if they cannot hold `needed` states."""
    old = keys.size
    if needed <= old:
        return trans, ptr, accepting, keys, table
    new = max(2 * old, needed)
    trans = longer(trans.ravel(), new * trans.shape[1]).reshape((new, trans.shape[1]))
    table = rehashed(table, keys, new)
    return trans, longer(ptr, new), longer(accepting, new), longer(keys, new), table
