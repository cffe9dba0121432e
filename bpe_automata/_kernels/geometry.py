"""The forbidden pairs of a merge table as a union of rectangles, one per merge.

A pair (L, R) of reachable tokens is broken by a merge (u, v) of rank m iff u is on L's right spine
(L, its right part, the right part of that, ...) and alive at m, and v is on R's left spine and
alive at m. A node is alive from its birth to the birth of the spine node above it; ties go left to
right, so v may be merged at exactly that rank and u may not.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bpe_automata._kernels import jit
from bpe_automata._kernels.hashing import look_up

FOREVER = 2**31 - 1


@jit
def clear_intervals(
    token: int,
    part: np.ndarray,
    birth: np.ndarray,
    slack: int,
    by_part: np.ndarray,
    merges: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    order: np.ndarray,
    bits: np.ndarray,
) -> None:
    """Clear, in the packed int32 `bits`, every id that cannot stand beside `token`.

    `part` is the spine to walk (right parts to find what may not follow, left parts for what may
    not precede); merges[by_part[x]:by_part[x+1]] are the ranks, ascending, of merges whose part on
    that side is x; low/high/order give the interval of ids on the other side. A spine has fewer
    nodes than the token has symbols, as parts are shorter than what they make.
    """
    node, limit = token, FOREVER
    while node >= 0:
        for i in range(by_part[node], by_part[node + 1]):
            rank = merges[i]
            if rank >= limit:
                break
            for at in range(low[rank], high[rank]):
                other = order[at]
                bits[other >> 5] &= ~(np.int32(1) << np.int32(other & 31))
        limit = birth[node] + slack
        node = part[node]


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


class Half(NamedTuple):
    """One side of `_core.geometry.Geometry`: see `_kernels.geometry.clear_intervals`.

    part int32 [n_ids]: the spine; by_part, merges int32: CSR from a part to ranks; low, high,
    order int32: the intervals on the other side."""

    part: np.ndarray
    by_part: np.ndarray
    merges: np.ndarray
    low: np.ndarray
    high: np.ndarray
    order: np.ndarray


class Pairs(NamedTuple):
    """What `_kernels.geometry.breaking_merge` needs: left, right, birth int32 [n_ids]; slots int64
    and values int32, the hash table of merges. before: what may not come before an id."""

    left: np.ndarray
    right: np.ndarray
    birth: np.ndarray
    slots: np.ndarray
    values: np.ndarray
    before: Half
