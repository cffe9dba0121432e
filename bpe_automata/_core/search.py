"""Is an id live where it leads?

An id r that leads to a configuration c is live there if some id n may come next that leads to an
ALIVE configuration, or is live where it leads: reachability in a graph of pairs (c, r). A search
goes depth first, towards acceptance. Where it succeeds, n may come after many other last ids too:

    memo.met    of c, the ids that are not known to be live there: all but those that may come
                before some n that leads on. A few n nearly always leave nothing, and then c is
                never asked again.

Where it fails, no pair that it visited is live, and that is kept. (So `far`, by which candidates
are put into phases, must not change while a search runs; and one thread at a time may search.)
"""

from __future__ import annotations

import numpy as np

from bpe_automata._core.configurations import (
    is_live,
    learn,
    need_set,
    number_all,
)
from bpe_automata._core.pairs import may_follow
from bpe_automata._core.status import B, know_all, look_ahead
from bpe_automata._core.steps import (
    ALIVE,
    BREAKS,
    COARSE,
    COMPLETE,
    DEAD,
    DETOUR,
    DONE,
    HARMLESS,
    KEY,
    LATER,
    NEED_CONFIGURATIONS,
    NEED_ROOM,
    NEED_ROWS,
    NEED_SET,
    NEED_STEPS,
    NEED_TIME,
    NEED_VISITED,
    NO_TOKEN,
    PARTLY,
    STATUS,
    WITHIN,
    Arrays,
    Int,
    meets,
)
from bpe_automata._core.tokens import added_steps, read_tokens
from bpe_automata._kernels import inlined, inner, jit
from bpe_automata._kernels.geometry import POSITION
from bpe_automata._kernels.numba_hashing import slot_of, spread
from bpe_automata._kernels.links import known_step

SHORT = 3  # bytes of the ids that are looked at first
MANY = 8  # ids that are open at one configuration
MOST_WAITING = 16  # ids whose searches wait for something, in one call
NEARER = 3  # phases: ids of one byte, if they surely lead on; of SHORT; all; those that lead away


@inner
def complete(c: Int, token: Int, memo: Arrays, kit: Arrays, wanted: np.ndarray) -> Int:
    """A token that completes the character begun at a configuration, that may follow an id, and
    behind which a boundary may come or the text end: it shows that the id is live. -1 if there is
    none."""
    base, sets, trie, _, pairs = kit
    steps, text, chars, states = base
    trans, byte_class, behind = steps
    utf8, next_, told = text
    atoms, _, end, after_atom, fragments = chars
    accepting, looks, start, data = states[0], states[3], trie[1], trie[2]
    met, counts, hints = memo[2], memo[3], memo[5]
    key: Int = met[c, KEY]
    q0, a0, H = key >> 40, (key >> 24) & 0xFFFF, key & 0xFFFFFF
    bits, row, one = sets[0][H], np.int64(sets[1][H]), np.uint64(1)
    hint = hints[row]  # what did so last time
    for k in range(-1, len(fragments) if row != 0 else -1):
        t = fragments[k] if k >= 0 else hint
        if t < 0:
            continue
        inside, q, atom = row, q0, np.int64(-1)
        for i in range(start[t], start[t + 1]):
            entry = np.int64(utf8[inside, data[i]]) if atom < 0 else np.int64(-1)
            if entry == -1:
                q = np.int64(0)
                break
            q = known_step(q, byte_class[data[i]], trans, behind)
            if q <= 0:
                break
            if entry < -1:
                atom = -2 - entry
            else:
                inside = entry
        if q <= 0 or atom < 0:
            continue
        a = next_[a0, atom]
        if a < 0 or not told[a, HARMLESS]:
            continue
        if states[2][q] != COMPLETE:
            before, calls = wanted[0], wanted[-1]
            look_ahead(q, base, wanted)
            wanted[0], wanted[-1] = before, calls  # there are other ways to find out
        kind, alive = atoms[atom, COARSE], False
        for b in range(2):
            for w in range(bits.shape[1]):
                left, h = bits[WITHIN + b, w], 64 * w
                while left != 0 and not alive:
                    if left & one:
                        for v in range(len(end)):
                            after = after_atom[b, h, kind, v]
                            if after & looks[q, B, v] or (accepting[q] and after & end[v]):
                                alive = True
                                break
                    left >>= one
                    h += 1
        if alive and may_follow(token, t, pairs):
            hints[row] = t
            met[c, DETOUR] = max(met[c, DETOUR], np.int64(start[t + 1] - start[t]))
            counts[2] = max(counts[2], met[c, DETOUR])
            return np.int64(t)
    return np.int64(-1)


@inner
def length(token: Int, trie: Arrays, added: Arrays) -> Int:
    """Bytes of an id; of the longest added token where it is one."""
    if token >= 0:
        return np.int64(trie[1][token + 1] - trie[1][token])
    longest, texts = np.int64(0), added[4]
    for k in range(len(texts)):
        longest = max(longest, np.int64(texts[k, 2] - texts[k, 1]))
    return longest


@inlined
def candidates(
    c: Int,
    token: Int,
    low: Int,
    high: Int,
    nearer: bool,
    memo: Arrays,
    kit: Arrays,
    scratch: Arrays,
    top: Int,
) -> tuple[Int, Int, Int, Int, Int]:
    """Look at the ids of low < bytes <= high that may come at a configuration after an id (of low =
    0, at added tokens too) until one surely leads on. The others, of which it is not yet asked
    whether they may come after the id, are listed from scratch.listed[top] on, only those that lead
    nearer to acceptance (`nearer`) or only those that do not: (id, configuration, is it free, bytes
    to acceptance).

    Returns (code, top, the id that leads on or -2, is it free, see `memo.detour`)."""
    (steps, text, chars, states), sets, trie, added, pairs = kit
    found, path, wanted, need, listed, numbers = scratch[:6]
    met, rows = memo[2], memo[4]
    ids = pairs[0]
    key = met[c, KEY]
    q0, a0, H0 = key >> 40, (key >> 24) & 0xFFFF, key & 0xFFFFFF
    at, row0 = sets[2][H0], np.int64(sets[1][H0])
    if low == 0 and row0 != 0:
        t = complete(c, token, memo, kit, wanted)
        if t >= 0:
            return DONE, top, t, 0, length(t, trie, added)
    if at < 0:
        need_set(H0, need)
        return NEED_SET, top, np.int64(-2), 0, np.int64(0)
    before, m, far = wanted[-1], 0, states[4]
    n = read_tokens(q0, a0, row0, low, high, steps, text, trie, path, found, wanted)
    if low == 0 and row0 == 0 and meets(sets[0][H0, BREAKS], chars[2]):
        m = added_steps(q0, a0, added, steps, wanted, found[n:])
    binds = token >= 0 and ids[token, POSITION] >= 0
    for side in range(2 if binds else 1):
        total = n + m if side == 0 else n
        after = sets[3][at, side]
        if not number_all(found, total, after, memo, numbers):
            return NEED_CONFIGURATIONS, top, np.int64(-2), 0, np.int64(0)
        know_all(numbers, total, memo, kit, wanted)
        for i in range(total):
            t, child = np.int64(found[i, 0] if i < n else NO_TOKEN), numbers[i]
            if child < 0:
                continue
            s = met[child, STATUS]
            if s == 0 or s == DEAD:
                continue
            if s == ALIVE or is_live(t, child, met, rows, ids):
                if side == 0 or may_follow(token, t, pairs):
                    detour = length(t, trie, added) + met[child, DETOUR]
                    return DONE, top, t, 1 - side, detour
                continue
            if (far[met[child, KEY] >> 40] < far[q0]) != nearer:
                continue
            if top == len(listed):
                return NEED_ROOM, top, np.int64(-2), 0, np.int64(0)
            listed[top, 0], listed[top, 1], listed[top, 2] = t, child, 1 - side
            listed[top, 3] = far[met[child, KEY] >> 40]
            top += 1
    code = NEED_STEPS if wanted[-1] > before else DONE
    return code, top, np.int64(-2), 0, np.int64(0)


@inner
def visit(pair: Int, visited: Arrays) -> Int:
    """Note that a pair is visited by this search. 1: it was before, or is known to be dead; -1:
    there is no room."""
    failed, count, seen, stamps, listed, now = visited
    if failed[slot_of(failed, pair)] == pair:
        return 1
    mask = len(seen) - 1
    at = spread(pair) & mask
    while stamps[at] == now[0] and seen[at] != pair:
        at = (at + 1) & mask
    if stamps[at] == now[0]:
        return 1
    n = now[1]
    if 2 * n >= len(seen) or n >= len(listed) or 2 * (count[0] + n) >= len(failed):
        return -1
    seen[at], stamps[at], listed[n] = pair, now[0], pair
    now[1] = n + 1
    return 0


@jit
def search_each(open_: np.ndarray, calls: Int, work: Arrays) -> tuple[Int, bool]:
    """Find whether ids are live at configurations: `pair`s, int64, sorted. calls: at most so many
    of `candidates` for each id of a slice (0: as many as it takes); a configuration for which
    they are not enough is noted as LATER. Returns (code, True)."""
    memo, kit, _, visited, _, quota = work
    met, rows, failed, count = memo[2], memo[4], visited[0], visited[1]
    ids, code, waiting = kit[4][0], np.int64(DONE), 0
    tried, settled = np.int64(-1), np.int64(-1)
    for i in range(len(open_)):
        pair = open_[i]
        c, token = pair >> 20, (pair & 0xFFFFF) - 1
        if met[c, STATUS] == LATER or is_live(token, c, met, rows, ids):
            continue
        at = slot_of(failed, pair)
        if failed[at] == pair:
            continue
        if c == settled and 2 * count[0] < len(failed):  # not live by now, so dead: see `settle`
            failed[at] = pair
            count[0] += 1
            continue
        if calls > 0:
            quota[0] = calls
        found = search(c, token, work)
        if found == NEED_TIME and calls > 0:
            met[c, STATUS] = LATER
        elif found in (NEED_STEPS, NEED_SET):  # others may need more of them
            code, waiting = found, waiting + 1
            if waiting == MOST_WAITING:
                break
        elif found != DONE:
            return found, False
        elif c != tried and i + MANY < len(open_) and open_[i + MANY] >> 20 == c:
            tried = c
            if not is_live(token, c, met, rows, ids) and settle(c, work):
                settled = c
    return code, True


@inlined
def settle(c: Int, work: Arrays) -> bool:
    """Learn all ids that lead on from a configuration where one id is known to be dead: none leads
    on with a boundary before it, as that would make every id live. Each id that is not known to be
    live afterwards is dead. False if it is not known of some id whether it leads on."""
    memo, kit, scratch, visited, deepest, _ = work
    (steps, text, _, _), sets, trie, added, pairs = kit
    found, path, wanted, _, _, numbers, _, other = scratch[:8]
    met, counts, rows, failed, key = memo[2], memo[3], memo[4], visited[0], memo[2][c, KEY]
    q0, a0, H0, none = key >> 40, (key >> 24) & 0xFFFF, key & 0xFFFFFF, np.int64(0)
    row0, before = np.int64(sets[1][H0]), wanted[-1]
    n = read_tokens(q0, a0, row0, none, deepest, steps, text, trie, path, found, wanted)
    if not number_all(found, n, sets[3][sets[2][H0], 1], memo, numbers):
        return False
    know_all(numbers, n, memo, kit, wanted)
    for i in range(n):
        t, child = np.int64(found[i, 0]), numbers[i]
        s = met[child, STATUS] if child >= 0 else np.int64(DEAD)
        if s == ALIVE or (s == PARTLY and is_live(t, child, met, rows, pairs[0])):
            if counts[1] == len(rows):
                return False
            detour = length(t, trie, added) + met[child, DETOUR]
            learn(c, t, none, detour, memo, pairs, other)
        elif s != DEAD:
            pair = (child << 20) | (t + 1)
            if failed[slot_of(failed, pair)] != pair:
                return False
    return bool(wanted[-1] == before)


@inlined
def search(root: Int, token: Int, work: Arrays) -> Int:  # noqa: PLR0915 - one loop
    """Find whether an id is live at a configuration, by its number: then `is_live` says so. First
    along ids that lead nearer to acceptance alone, then along all. Returns a code: where it is not
    DONE, the same is to be asked again with what is needed. visited: the pairs that are known to be
    dead, and those of a search. quota: int64 [1], calls of `candidates` that are left."""
    memo, kit, scratch, visited, deepest, quota = work
    met, counts, rows = memo[2], memo[3], memo[4]
    trie, added, pairs, now = kit[2], kit[3], kit[4], visited[5]
    listed, frames, other = scratch[4], scratch[6], scratch[7]
    # frames: configuration, id, how it was reached, phases done, next candidate, one behind the
    # last
    phases, n, leads = np.int64(NEARER - 1), 0, np.int64(-2)
    is_free, detour = np.int64(0), np.int64(0)
    while n > 0 or phases <= NEARER:
        if n == 0:
            phases += 1
            now[0] += 1
            now[1] = 0
            first = visit((root << 20) | (token + 1), visited)
            if first != 0:
                return DONE if first == 1 else NEED_VISITED
            frames[0, 0], frames[0, 1], frames[0, 2] = root, token, 0
            frames[0, 3], frames[0, 4], frames[0, 5] = 0, 0, 0
            n = 1
        frame = frames[n - 1]
        if frame[4] == frame[5]:
            if frame[3] == phases:
                n -= 1
                continue
            if quota[0] <= 0:
                return NEED_TIME
            quota[0] -= 1
            phase = frame[3]
            low = np.int64(SHORT if phase == 2 else 0)
            high = np.int64((1, SHORT)[phase]) if phase < 2 else deepest
            code, top, leads, is_free, detour = candidates(
                frame[0], frame[1], low, high, phase < NEARER, memo, kit, scratch, frame[5]
            )
            if code != DONE:
                return code
            if leads != -2:
                break
            frame[3] += 1
            frame[5] = top if phase > 0 else frame[5]
            continue
        nearest = frame[4]
        for k in range(frame[4] + 1, frame[5]):
            if listed[k, 3] < listed[nearest, 3]:
                nearest = k
        t, child, free = listed[nearest, 0], listed[nearest, 1], listed[nearest, 2]
        for k in range(listed.shape[1]):
            listed[nearest, k] = listed[frame[4], k]
        frame[4] += 1
        if free == 0 and not may_follow(frame[1], t, pairs):
            continue
        if is_live(t, child, met, rows, pairs[0]):
            leads, is_free = t, free
            detour = length(t, trie, added) + met[child, DETOUR]
            break
        new = visit((child << 20) | (t + 1), visited)
        if new == 1:
            continue
        if new < 0:
            return NEED_VISITED
        if n == len(frames):
            return NEED_ROOM
        frames[n, 0], frames[n, 1], frames[n, 2] = child, t, free
        frames[n, 3], frames[n, 4], frames[n, 5] = 0, frame[5], frame[5]
        n += 1
    if leads == -2:  # none of all that was visited is live
        failed, count = visited[0], visited[1]
        for k in range(now[1]):
            failed[slot_of(failed, visited[4][k])] = visited[4][k]
        count[0] += now[1]
        return DONE
    if counts[1] + n > len(rows):
        return NEED_ROWS
    learn(frames[n - 1, 0], leads, is_free, detour, memo, pairs, other)
    for k in range(n - 2, -1, -1):
        detour += length(frames[k + 1, 1], trie, added)
        learn(frames[k, 0], frames[k + 1, 1], frames[k + 1, 2], detour, memo, pairs, other)
    return DONE
