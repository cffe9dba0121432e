"""Narrowing down which ids are dead at a node: see `constructions.relevance`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bpe_automata.kernels import kernel
from bpe_automata.kernels.geometry import FOREVER, breaking_merge, clear_intervals
from bpe_automata.kernels.references import by_reference

_FEW = 16  # ids: as many pairs are tried as fast as the intervals of a usual token are cleared


@by_reference
class Half(NamedTuple):
    """One side of `constructions.geometry.Geometry`: see `kernels.geometry.clear_intervals`.

    part int32 [n_ids]: the spine; by_part, merges int32: CSR from a part to ranks; low, high,
    order int32: the intervals on the other side."""

    part: np.ndarray
    by_part: np.ndarray
    merges: np.ndarray
    low: np.ndarray
    high: np.ndarray
    order: np.ndarray


@by_reference
class Pairs(NamedTuple):
    """What `kernels.geometry.breaking_merge` needs: left, right, birth int32 [n_ids]; slots int64
    and values int32, the hash table of merges. before: what may not come before an id."""

    left: np.ndarray
    right: np.ndarray
    birth: np.ndarray
    slots: np.ndarray
    values: np.ndarray
    before: Half


@kernel
def breaks(left: int, right: int, p: Pairs) -> bool:
    """Is the pair broken by a merge?"""
    return breaking_merge(left, right, p.left, p.right, p.birth, p.slots, p.values) >= 0


@kernel
def clear_followers(token: int, bits: np.ndarray, pairs: Pairs, after: Half) -> None:
    """Clear, in the packed int32 `bits`, every id that may not follow a token. after: the half that
    says which these are. Few ids are tried one by one: a token may forbid thousands."""
    few, n = np.empty(_FEW, np.int64), 0
    for w in range(len(bits)):
        for bit in range(32 if bits[w] != 0 and n <= _FEW else 0):
            if (bits[w] >> bit) & 1:
                if n < _FEW:
                    few[n] = 32 * w + bit
                n += 1
    if n > _FEW:
        intervals = after.low, after.high, after.order
        clear_intervals(
            token, after.part, pairs.birth, 0, after.by_part, after.merges, *intervals, bits
        )
        return
    for other in few[:n]:
        if breaks(token, other, pairs):
            bits[other >> 5] &= ~(np.int32(1) << np.int32(other & 31))


@kernel
def weights(tokens: np.ndarray, birth: np.ndarray, half: Half) -> np.ndarray:
    """int64: about how many ids may not stand on the other side of each of `tokens` (int64), never
    too few; 0 for none."""
    found = np.empty(len(tokens), np.int64)
    for i in range(len(tokens)):
        found[i] = _weight(tokens[i], birth, half)
    return found


@kernel
def _weight(token: int, birth: np.ndarray, half: Half) -> int:
    """See `weights`; overlaps are counted twice."""
    node, limit, weight = token, FOREVER, 0
    while node >= 0:
        for i in range(half.by_part[node], half.by_part[node + 1]):
            rank = half.merges[i]
            if rank >= limit:
                break
            weight += half.high[rank] - half.low[rank]
        limit = birth[node] + 1
        node = half.part[node]
    return weight
