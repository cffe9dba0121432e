"""How far from acceptance states are, by bytes, and what may follow some ids."""

from __future__ import annotations

import numpy as np

from bpe_automata._core.pairs import may_follow
from bpe_automata._core.steps import Arrays, Int
from bpe_automata._kernels import jit
from bpe_automata._kernels.links import known_step


@jit
def furthest(q: Int, depth: Int, steps: Arrays, far: np.ndarray, seen: np.ndarray) -> Int:
    """The most bytes to acceptance (far, int32 [states]) from the states that at most `depth` bytes
    lead to, as far as they are written down; -1 where these are too many. seen: int32 [states],
    another number than seen[0], which grows, at each of them."""
    trans, _, behind = steps
    most = np.int64(far[q])
    queue = np.empty(4096, np.int64)
    seen[0] += 1
    queue[0], seen[q], k, n = q, seen[0], 0, 1
    for _ in range(depth):
        end = n
        while k < end:
            state = queue[k]
            k += 1
            for column in range(trans.shape[1]):
                after = known_step(state, column, trans, behind)
                if after <= 0 or seen[after] == seen[0]:
                    continue
                if n == len(queue):
                    return np.int64(-1)
                seen[after], queue[n] = seen[0], after
                n += 1
                most = max(most, np.int64(far[after]))
    return most


@jit
def may_follow_any(ids: np.ndarray, tokens: np.ndarray, pairs: Arrays) -> np.ndarray:
    """bool: may each of some tokens follow one of the ids without a boundary?"""
    found = np.zeros(len(tokens), np.bool_)
    for i in range(len(tokens)):
        for last in ids:
            if may_follow(last, tokens[i], pairs):
                found[i] = True
                break
    return found
