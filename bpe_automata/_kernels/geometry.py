"""The forbidden pairs of a merge table as a union of rectangles, one per merge.

A pair (L, R) of reachable tokens is broken by a merge (u, v) of rank m iff u is on L's right spine
(L, its right part, the right part of that, ...) and alive at m, and v is on R's left spine and
alive at m. A node is alive from its birth to the birth of the spine node above it; ties go left to
right, so v may be merged at exactly that rank and u may not.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bpe_automata._kernels import jit
from bpe_automata._kernels.numba_hashing import look_up

FOREVER = 2**31 - 1


# Columns of what kernels know of each id, int32 [ids + 1, 5]: its position in the preorder of the
# other side, its birth, its left and its right part, and where the merges begin that it is the part
# of on this side. Of each of these, by part and by rank, int32 [m, 3]: the rank and the interval of
# positions low:high on the other side.
POSITION, BIRTH, LEFT, RIGHT, MERGES = 0, 1, 2, 3, 4
RANK, LOW, HIGH = 0, 1, 2


@jit
def clear_intervals(
    token: Any,
    spine: Any,
    slack: Any,
    ids: np.ndarray,
    merges: np.ndarray,
    order: np.ndarray,
    bits: np.ndarray,
) -> None:
    """Clear, in the packed int32 `bits`, every id that cannot stand beside `token`.

    `spine` is the column of the parts to walk (RIGHT to find what may not follow, with slack 0;
    LEFT for what may not precede, with slack 1), order the ids of the other side by position. A
    spine has fewer nodes than the token has symbols, as parts are shorter than what they make.
    """
    node, limit, one = np.int64(token), np.int64(FOREVER), np.int32(1)
    while node >= 0:
        for i in range(ids[node, MERGES], ids[node + 1, MERGES]):
            if merges[i, RANK] >= limit:
                break
            for at in range(merges[i, LOW], merges[i, HIGH]):
                other = order[at]
                bits[other >> 5] &= ~(one << np.int32(other & 31))
        limit = np.int64(ids[node, BIRTH]) + slack
        node = np.int64(ids[node, spine])


@jit
def breaking_merge(
    left_token: int,
    right_token: int,
    left: np.ndarray,
    right: np.ndarray,
    birth: np.ndarray,
    slots: np.ndarray,
    values: np.ndarray,
) -> int:
    """The least rank of a merge that breaks the pair, -1 if the pair is canonical: one look for
    each pair of nodes of the two spines."""
    n_ids = len(birth)
    best = FOREVER
    u, u_limit = left_token, FOREVER
    while u >= 0:
        v, v_limit = right_token, FOREVER
        while v >= 0:
            rank = look_up(slots, values, u * n_ids + v)
            if 0 <= rank < u_limit and rank <= v_limit and rank < best:
                best = rank
            v_limit = birth[v]
            v = left[v]
        u_limit = birth[u]
        u = right[u]
    return -1 if best == FOREVER else best
