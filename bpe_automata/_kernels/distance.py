"""Distance to acceptance: distance(q) = min { |w| : q --w--> accepting }; and the longest ways."""

from __future__ import annotations

import numpy as np

from bpe_automata._kernels import jit
from bpe_automata._kernels.watch import poll

NEVER = -1


@jit
def distances_by_head(ptr: np.ndarray, tail: np.ndarray, accepting: np.ndarray) -> np.ndarray:
    """int32 [n]: edges to the nearest accepting state, NEVER if there is none. ptr: int64 [n + 1],
    tail: int32, the tails of the edges into each state."""
    n = len(accepting)
    found, queue, count, done = np.empty(n, np.int32), np.empty(n, np.int32), 0, 0
    for s in range(n):
        found[s] = NEVER
        if accepting[s]:
            found[s], queue[count] = 0, s
            count += 1
    while done < count:
        head = queue[done]
        done += 1
        for edge in range(ptr[head], ptr[head + 1]):
            if found[tail[edge]] == NEVER:
                found[tail[edge]], queue[count] = found[head] + 1, tail[edge]
                count += 1
    return found


@jit
def distances(trans: np.ndarray, accepting: np.ndarray) -> np.ndarray:
    """int32 [n]: steps from each state to the nearest accepting one, NEVER if there is none.

    trans: int32 [n, k], 0: the dead state; accepting: bool [n]. Breadth-first over the reversed
    edges; neighbouring columns mostly agree, and an edge is kept once of those.
    """
    n, k = trans.shape
    ptr = np.zeros(n + 2, np.int64)
    for s in range(n):
        for a in range(k):
            if trans[s, a] != 0 and (a == 0 or trans[s, a] != trans[s, a - 1]):
                ptr[trans[s, a] + 2] += 1
    for s in range(n + 1):
        ptr[s + 1] += ptr[s]
    tail = np.empty(ptr[n + 1], np.int32)
    for s in range(n):
        for a in range(k):
            if trans[s, a] != 0 and (a == 0 or trans[s, a] != trans[s, a - 1]):
                tail[ptr[trans[s, a] + 1]] = s
                ptr[trans[s, a] + 1] += 1
    return distances_by_head(ptr[: n + 1].copy(), tail, accepting)


@jit
def edges_of(
    trans: np.ndarray, columns: np.ndarray, odd: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(tail, start, head, odd), as `shorten` takes them, of a table, int32 [n, k], where 0 is dead.
    columns: int64, those that count; odd: bool [k]."""
    n, count, many = len(trans), 0, 0
    tail, start = np.empty(n, np.int32), np.empty(n, np.int32)
    head, longer = np.empty(n * len(columns), np.int32), np.empty(n * len(columns), np.bool_)
    edge_to = np.full(n, -1, np.int32)  # the last one to each state
    for s in range(n):
        first, before = count, np.int32(0)
        for c in columns:
            after = trans[s, c]
            if after != 0 and (after != before or not odd[c]):
                if edge_to[after] < first:
                    edge_to[after], head[count], longer[count] = count, after, True
                    count += 1
                longer[edge_to[after]] &= odd[c]
            before = after
        if count > first:
            tail[many], start[many] = s, first
            many += 1
    return tail[:many].copy(), start[:many].copy(), head[:count].copy(), longer[:count].copy()


@jit
def shorten(
    far: np.ndarray,
    tail: np.ndarray,
    start: np.ndarray,
    head: np.ndarray,
    odd: np.ndarray,
    byte: int,
    watch: np.ndarray,
) -> None:
    """Write into `far`, int64 [n], the least of what it says of a state and of ways to others.

    tail int32 [k]: the states with edges; start int32 [k]: the first edge of each; head int32:
    where edges lead; odd bool: is one longer by 1 than `byte`? In turns against the numbers and
    with them: a shortest way of n edges takes n turns at most."""
    changed, n = True, len(tail)
    while changed and not poll(watch):
        changed = False
        for turn in range(2):
            for i in range(n):
                k = i if turn else n - 1 - i
                for edge in range(start[k], start[k + 1] if k + 1 < n else len(head)):
                    nearer = far[head[edge]] + byte + odd[edge]
                    if nearer < far[tail[k]]:
                        far[tail[k]], changed = nearer, True
