"""Least distances over unit edges from nodes that have a distance of their own."""

from __future__ import annotations

import numpy as np

from bpe_automata.kernels import kernel


@kernel
def nearest(own: np.ndarray, sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """int32 [n], the least solution of  d(x) = min(own(x), 1 + min { d(y) : edge x -> y }).

    own: int32 [n], at most 2**30 (never); sources, targets: int32 [edges]. Breadth-first over the
    reversed edges; nodes come in by their own distance, so none is found twice.
    """
    n = len(own)
    ptr = np.zeros(n + 1, np.int64)
    for y in targets:
        ptr[y + 1] += 1
    ptr = ptr.cumsum()
    at, tails = ptr[:-1].copy(), np.empty(len(sources), np.int32)
    for e in range(len(sources)):
        tails[at[targets[e]]] = sources[e]
        at[targets[e]] += 1
    found, order = own.copy(), np.argsort(own)
    queue, count, done, given = np.empty(n, np.int32), 0, 0, 0
    while done < count or given < n:
        # The nearer of the next one found and the next one given.
        if given >= n or (done < count and found[queue[done]] <= own[order[given]]):
            y = queue[done]
            done += 1
        else:
            y = order[given]
            given += 1
            if found[y] < own[y]:
                continue
        for e in range(ptr[y], ptr[y + 1]):
            if found[tails[e]] > found[y] + 1:
                found[tails[e]], queue[count] = found[y] + 1, tails[e]
                count += 1
    return found
