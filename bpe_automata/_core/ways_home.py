"""Ways home: short texts that lead to acceptance, and the ids that spell them."""

from __future__ import annotations

import numpy as np

from bpe_automata._core.pairs import may_follow
from bpe_automata._core.steps import (
    DONE,
    NEED_SET,
    NEED_STEPS,
    Arrays,
    Int,
    known_step,
    meets,
    text_after,
    want,
)
from bpe_automata._kernels import inner, jit
from bpe_automata._kernels.hashing import spread

_MOST_WAYS = 64


@inner
def byte_home(q: Int, steps: Arrays, far: np.ndarray, rank: np.ndarray, wanted: np.ndarray) -> Int:
    """The byte by which a text goes home from a state that does not accept: one that leads nearest
    to acceptance, of these one of the lowest rank (uint8 [256], below 4), of these the first; -1:
    there is none, or steps are wanted: they are if no step that is written down leads nearer."""
    trans, byte_class, behind = steps
    best, nearest, before = np.int64(-1), np.int64(0), wanted[0]
    for byte in range(256):
        after = known_step(q, byte, trans, byte_class, behind)
        if after < 0:
            want(-1 - after, wanted)
        if after > 0 and far[after] >= 0:
            cost = 4 * np.int64(far[after]) + np.int64(rank[byte])
            if best < 0 or cost < nearest:
                best, nearest = np.int64(byte), cost
    if best >= 0 and nearest < 4 * np.int64(far[q]):
        wanted[0] = before
    return best if wanted[0] == before else np.int64(-1)


@inner
def byte_of(q: Int, steps: Arrays, home: Arrays, wanted: np.ndarray) -> Int:
    """`byte_home`, found once; -1: there is none, or steps are wanted."""
    _, far, rank, chosen, _ = home
    if chosen[q] == 0:
        chosen[q] = 1 + byte_home(q, steps, far, rank, wanted)
    return np.int64(chosen[q]) - 1


@jit
def way_home(
    q: Int, steps: Arrays, home: Arrays, path: np.ndarray, data: np.ndarray, wanted: np.ndarray
) -> Int:
    """A short text that leads from a state to acceptance: its bytes, data uint8, and the states in
    which each is read, path int64. A byte depends on the state alone: so from every state on the
    way the rest is what is found there. home: accepting, far, rank; chosen int16 [states], 1 + what
    is known of `byte_home`; lengths int32 [states], 1 + what is known of the bytes home. Returns
    how many bytes; -1 where they do not fit, or steps are wanted."""
    trans, byte_class, behind = steps
    accepting, lengths = home[0], home[4]
    n, state = 0, np.int64(q)
    while not accepting[state]:
        byte = byte_of(state, steps, home, wanted)
        if byte < 0 or n == len(path):
            return np.int64(-1)
        path[n], data[n] = state, byte
        state = known_step(state, byte, trans, byte_class, behind)
        n += 1
    for k in range(n):
        lengths[path[k]] = 1 + n - k
    return np.int64(n)


@jit
def nearest_character(
    q: Int,
    a: Int,
    H: Int,
    memo: Arrays,
    kit: Arrays,
    scratch: Arrays,
    visited: Arrays,
    deepest: Int,
    quota: np.ndarray,
) -> tuple[Int, Int]:
    """The ASCII character that may come at a configuration with a boundary before it, into a
    hypothesis from which every text can be read, and leads nearest to acceptance; -1 if there is
    none. Returns (code, character)."""
    steps, text, chars, states, sets, wanted = kit[0], kit[1], kit[2], kit[3], kit[4], scratch[2]
    trans, byte_class, behind = steps
    utf8, next_, _, harmless = text
    best, nearest = np.int64(-1), np.int64(0)
    if sets[2][H] != 0:
        return DONE, best
    for byte in range(128):
        entry = np.int64(utf8[0, byte])
        if entry >= -1 or not meets(sets[0][H], chars[2][0, chars[0][-2 - entry]]):
            continue
        then = np.int64(next_[a, -2 - entry])
        if then < 0 or not harmless[then]:
            continue
        after = known_step(q, byte, trans, byte_class, behind)
        if after < 0:
            want(-1 - after, wanted)
        if after > 0 and states[7][after] >= 0 and (best < 0 or states[7][after] < nearest):
            best, nearest = np.int64(byte), np.int64(states[7][after])
    return NEED_STEPS if wanted[0] > 0 else DONE, best


@inner
def find_spelled(one: Int, two: Int, table: Arrays) -> Int:
    """The slot of a pair of keys, or the empty one where it belongs."""
    ones, twos = table[0], table[1]
    mask = len(ones) - 1
    at = spread(one * 31 + two) & mask
    while ones[at] != -1 and (ones[at] != one or twos[at] != two):
        at = (at + 1) & mask
    return at


@inner
def tokens_home(
    q: Int,
    begin: Int,
    steps: Arrays,
    trie: Arrays,
    home: Arrays,
    out: np.ndarray,
    top: Int,
    wanted: np.ndarray,
) -> Int:
    """List the tokens that begin the way home from a state (behind a byte `begin`, unless that is
    -1), the shortest first, from out[top] on: (id, state behind it), int64. Returns one behind the
    last; -1: steps are wanted."""
    trans, byte_class, behind = steps
    label, skip, token, klass = trie[0], trie[2], trie[3], trie[4]
    node, end, state = 0, len(label), np.int64(q)
    while node < end:
        byte = begin
        if begin < 0:
            byte = np.int64(-1) if home[0][state] else byte_of(state, steps, home, wanted)
        begin = np.int64(-1)
        if byte < 0:
            break
        state = known_step(state, byte, trans, byte_class, behind)
        below = end
        while node < end and label[node] <= byte:  # more than one of those that are spelled alike
            if label[node] == byte:
                if klass[node] != 0 and top < len(out):
                    out[top, 0], out[top, 1] = token[node], state
                    top += 1
                if skip[node] > node + 1:
                    below = node
            node = skip[node]
        if below == end:
            break
        node, end = below + 1, skip[below]
    return np.int64(-1) if wanted[0] > 0 else top


@jit
def spellings(  # noqa: PLR0915 - one loop
    q0: Int,
    begin: Int,
    a0: Int,
    H0: Int,
    home: Arrays,
    table: Arrays,
    by_id: Arrays,
    room: Int,
    memo: Arrays,
    kit: Arrays,
    scratch: Arrays,
    visited: Arrays,
    deepest: Int,
    quota: np.ndarray,
) -> tuple[Int, np.ndarray]:
    """How the way home from a state (behind a byte `begin`, unless that is -1) is read in ids: rows
    (how many, the first of them, is there a boundary before it), int64. After each last id the
    tokenizer's own tokenization is one of them, or there is none.

    Depth first over (state, text state, hypotheses, last id), the longest tokens first. table: what
    is known of these, ids to acceptance or -1, by pairs of keys int64 [slots], int64 [slots], int32
    [slots], and how many there are, int64 [1]. room: bytes of the way, at least. Returns (code,
    rows); where the table is full, what was found till then."""
    steps, text, chars, sets, trie, pairs = kit[0], kit[1], kit[2], kit[4], kit[5], kit[7]
    wanted, need = scratch[2], scratch[3]
    ones, _, values, count = table
    klass, text_of, first = by_id
    next_, n_rows, depth = text[1], 0, 1
    rows = np.empty((_MOST_WAYS, 3), np.int64)
    listed = np.empty((8 * room + 256, 2), np.int64)
    # frames: state, last id, text state, set, twice: the first candidate, one behind the next
    frames = np.empty((room + 2, 6), np.int64)
    frames[0, 0], frames[0, 1], frames[0, 2], frames[0, 3], frames[0, 5] = q0, -1, a0, H0, -1
    if sets[3][H0] < 0:
        need[0], need[1] = 1, H0
        return NEED_SET, rows[:0]
    while depth > 0:
        frame = frames[depth - 1]
        q, last, a, H, left = frame[0], frame[1], frame[2], frame[3], np.int64(-2)
        if frame[5] < 0:
            if depth > 1:
                slot = find_spelled((q << 24) | H, (last << 16) | a, table)
                if ones[slot] != -1:
                    left = np.int64(values[slot])
                elif home[0][q]:
                    end = text[2][a] and sets[2][H] == 0 and meets(sets[0][H], chars[4])
                    left = np.int64(0) if end else np.int64(-1)
                elif sets[3][H] < 0:
                    need[0], need[1] = 1, H
                    return NEED_SET, rows[:0]
            if left == -2:
                low = (frames[depth - 2, 5] >> 1) + 1 if depth > 1 else np.int64(0)
                start = begin if depth == 1 else np.int64(-1)
                top = tokens_home(q, start, steps, trie, home, listed, low, wanted)
                if top < 0:
                    return NEED_STEPS, rows[:0]
                if top == len(listed):
                    break
                frame[4], frame[5] = 2 * low, 2 * top
                continue
        elif frame[5] == frame[4]:
            left = np.int64(-1)
        if left != -2:
            if left >= 0 and depth > 1:  # all that led here lead on
                while depth > 1:
                    _keep(frames[depth - 1], left, table)
                    left += 1
                    depth -= 1
                if n_rows < len(rows):
                    chosen = frames[0, 5]
                    rows[n_rows, 0], rows[n_rows, 1] = left, listed[chosen >> 1, 0]
                    rows[n_rows, 2] = chosen & 1
                    n_rows += 1
                continue
            if depth > 1:
                _keep(frame, left, table)
            depth -= 1
            continue
        frame[5] -= 1
        t, is_free = listed[frame[5] >> 1, 0], frame[5] & 1
        row0, k = np.int64(sets[2][H]), sets[3][H]
        then = np.int64(sets[4][k, klass[t]] if is_free else sets[5][k, klass[t]])
        if then < 0 or (depth > 1 and not is_free and not may_follow(last, t, pairs)):
            continue
        if depth == 1 and not is_free and pairs[0][t] < 0:
            continue
        after, f = np.int64(text_of[t]), first[t]
        if (row0 != 0 or a != 0) and (row0 != 0 or f < 0 or next_[a, f] != next_[0, f]):
            spelled = trie[8][trie[7][t] : trie[7][t + 1]]
            after = text_after(a, row0, spelled, text[0], next_)
        if after < 0:
            continue
        if depth == len(frames) or 4 * count[0] > 3 * len(ones):
            break
        new = frames[depth]
        new[0], new[1], new[2], new[3] = listed[frame[5] >> 1, 1], t, after, then
        new[4], new[5] = 0, -1
        depth += 1
    return DONE, rows[:n_rows]


@jit
def put_all(ones: np.ndarray, twos: np.ndarray, values: np.ndarray, table: Arrays) -> None:
    """Put what is known into a larger table."""
    for k in range(len(ones)):
        slot = find_spelled(ones[k], twos[k], table)
        table[0][slot], table[1][slot], table[2][slot] = ones[k], twos[k], values[k]
    table[3][0] = len(ones)


@inner
def _keep(frame: np.ndarray, left: Int, table: Arrays) -> None:
    """Put what is known of a frame into the table."""
    ones, twos, values, count = table
    one, two = (frame[0] << 24) | frame[3], (frame[1] << 16) | frame[2]
    slot = find_spelled(one, two, table)
    if ones[slot] == -1:
        ones[slot], twos[slot], values[slot] = one, two, left
        count[0] += 1
