"""Regions: states in which many bytes do alike, as in strings, lines and counted classes (see
`_core.slices`)."""

from __future__ import annotations

import numpy as np

from bpe_automata._core.status import leads_home
from bpe_automata._core.steps import Arrays, Int, want
from bpe_automata._kernels import inlined, jit
from bpe_automata._kernels.links import known_step


@jit
def loop_bytes(q: Int, base: Arrays, wanted: np.ndarray) -> np.ndarray:
    """bool [128]: the ASCII bytes that lead from q to states which lead on to acceptance and read
    all of these bytes themselves; bytes behind which most of them are not read are left out first.
    None if they are fewer than 8. Steps that are not written down are wanted."""
    (trans, byte_class, behind), text = base[0], base[1]
    utf8, first, weight = text[0], np.full(256, -1, np.int64), np.zeros(256, np.int64)
    some, there, n = np.empty(128, np.int64), np.empty(128, np.int64), 0
    for b in range(128):  # a byte of each column that leads on, and the state there
        if utf8[0, b] >= -1:
            continue
        column = byte_class[b]
        if first[column] < 0:
            first[column] = b
            after = known_step(q, byte_class[b], trans, behind)
            if after < 0:
                want(-1 - after, wanted)
            if after > 0:
                some[n], there[n] = b, after
                n += 1
        weight[column] += 1
    K = np.zeros(128, np.bool_)
    size = 0
    for k in range(n):
        size += weight[byte_class[some[k]]]
    if size < 8:
        return K
    reads = np.zeros((n, n), np.bool_)
    for k in range(n):
        for m in range(n):
            after = known_step(there[k], byte_class[some[m]], trans, behind)
            if after < 0:
                want(-1 - after, wanted)
            reads[k, m] = after > 0
    kept, changed = np.ones(n, np.bool_), True
    while changed:
        changed, size = False, 0
        for k in range(n):
            size += weight[byte_class[some[k]]] * kept[k]
        if size < 8:
            return K
        for k in range(n):
            missing = 0
            for m in range(n):
                if kept[m] and not reads[k, m]:
                    missing += weight[byte_class[some[m]]]
            if kept[k] and (2 * missing > size or not leads_home(there[k], base)):
                kept[k], changed = False, True
        if changed:
            continue
        for k in range(n):
            for m in range(n):
                if kept[k] and kept[m] and not reads[k, m]:
                    kept[m], changed = False, True
    for k in range(n):
        if kept[k]:
            first[byte_class[some[k]]] = -2
    for b in range(128):
        K[b] = utf8[0, b] < -1 and first[byte_class[b]] == -2
    return K


@jit
def reads_all(
    q: Int,
    K: np.ndarray,
    wide: bool,
    kinds: np.ndarray,
    base: Arrays,
    after: np.ndarray,
    wanted: np.ndarray,
) -> Int:
    """Does a state read every byte of K and, where wide, every character beyond ASCII, into good
    states? after: int64, filled with these. Returns how many; -1 if it does not, if there is no
    room for them, or if a step is not written down yet, which is wanted then."""
    (trans, byte_class, behind), utf8, n = base[0], base[1][0], 0
    last, last_kind = np.int64(-1), np.int64(-1)
    for b in range(128):
        if not K[b]:
            continue
        q2 = known_step(q, byte_class[b], trans, behind)
        if q2 < 0:
            want(-1 - q2, wanted)
        if q2 <= 0:
            return -1
        if q2 == last:
            continue
        last = q2
        if not leads_home(q2, base):
            return -1
        n = _with(q2, after, n)
        if n < 0:
            return -1
    if not wide:
        return n
    # The states inside characters, with their rows of UTF-8; first q itself, between characters.
    inner, rows, m, k = np.empty(512, np.int64), np.empty(512, np.int64), 1, 0
    inner[0], rows[0] = q, 0
    while k < m:
        state, row = inner[k], rows[k]
        last, last_kind = np.int64(-1), np.int64(-1)
        for b in range(0x80, 0x100):
            entry = np.int64(utf8[row, b])
            if entry == -1:
                continue
            q2 = known_step(state, byte_class[b], trans, behind)
            kind = np.int64(kinds[entry]) if entry >= 0 else np.int64(-2)
            if q2 < 0:
                want(-1 - q2, wanted)
            if q2 <= 0:
                return -1
            if q2 == last and kind == last_kind:
                continue
            last, last_kind = q2, kind
            if entry >= 0:
                m = _with_pair(q2, entry, inner, rows, m, kinds)
                if m < 0:
                    return -1
            elif not leads_home(q2, base):
                return -1
            else:
                n = _with(q2, after, n)
                if n < 0:
                    return -1
        k += 1
    return n


@inlined
def _with(q: Int, after: np.ndarray, n: Int) -> Int:
    for i in range(n):
        if after[i] == q:
            return n
    if n == len(after):
        return -1
    after[n] = q
    return n + 1


@inlined
def _with_pair(
    q: Int, row: Int, inner: np.ndarray, rows: np.ndarray, m: Int, kinds: np.ndarray
) -> Int:
    for i in range(m):
        if inner[i] == q and kinds[rows[i]] == kinds[row]:
            return m
    if m == len(inner):
        return -1
    inner[m], rows[m] = q, row
    return m + 1


@jit
def proved_depth(
    q: Int,
    K: np.ndarray,
    wide: bool,
    kinds: np.ndarray,
    most_depth: Int,
    proved: np.ndarray,
    base: Arrays,
    queue: np.ndarray,
    at: np.ndarray,
    wanted: np.ndarray,
) -> Int:
    """How many characters of K, at least, can be read in any way from a state, all states on the
    way reading K: looked for as far as `most_depth`. proved: int32 [states], 1 + the characters
    that are known to be read from each. queue: int64 [n, 2], the visited states and how far they
    are away; at: int64 [2], zeros at first. Where a step is wanted it returns 0, and the next call
    goes on from these two."""
    if proved[q] - 1 >= most_depth:
        return most_depth
    most, after, reached = len(queue), np.empty(64, np.int64), most_depth
    seen, n, k = {np.int64(q)}, max(np.int64(1), at[0]), at[1]
    queue[0, 0], queue[0, 1] = q, 0
    for i in range(n):
        seen.add(queue[i, 0])
    while k < n:
        state, d = queue[k, 0], queue[k, 1]
        if d < reached and proved[state] - 1 < reached - d:
            m = reads_all(state, K, wide, kinds, base, after, wanted)
            if wanted[0] > 0:
                at[0], at[1] = n, k
                return 0
            if m < 0 or n + m > most:
                reached = d
                break
            for i in range(m):
                if after[i] not in seen:
                    seen.add(after[i])
                    queue[n, 0], queue[n, 1] = after[i], d + 1
                    n += 1
        k += 1
    for i in range(n):
        if reached - queue[i, 1] > proved[queue[i, 0]] - 1:
            proved[queue[i, 0]] = 1 + reached - queue[i, 1]
    return reached


@jit
def region(
    q: Int,
    K: np.ndarray,
    wide: bool,
    kinds: np.ndarray,
    most_depth: Int,
    base: Arrays,
    wanted: np.ndarray,
) -> np.ndarray:
    """int64: the states that at most so many characters of K lead to; none if they are too many, if
    one of them does not read K, or where a step is wanted."""
    most = 1024
    queue, depth, after = np.empty(most, np.int64), np.empty(most, np.int32), np.empty(64, np.int64)
    seen = {np.int64(q)}
    queue[0], depth[0], n, k = q, 0, 1, 0
    while k < n:
        state, d = queue[k], depth[k]
        k += 1
        if d == most_depth:
            continue
        m = reads_all(state, K, wide, kinds, base, after, wanted)
        if m < 0 or n + m > most:
            return queue[:0].copy()
        for i in range(m):
            if after[i] not in seen:
                seen.add(after[i])
                queue[n], depth[n] = after[i], d + 1
                n += 1
    return queue[:n].copy()
