"""Narrowing down which ids are dead at a node: see `constructions.relevance`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bpe_automata.kernels import kernel
from bpe_automata.kernels.geometry import FOREVER, clear_intervals

_SAMPLE = 64  # tokens tried against all suspects at once; those left are tried one by one


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


@kernel
def narrow(
    tokens: np.ndarray,
    suspects: np.ndarray,
    reachable: np.ndarray,
    birth: np.ndarray,
    before: Half,
    after: Half,
) -> int:
    """Take out of the packed `suspects`, in place, every id that some of `tokens` may follow.

    tokens: int64, reachable ids; `before` gives what may not come before a token, `after` what may
    not follow one. Returns how many suspects are left.
    """
    count = _count(suspects)
    if len(tokens) == 0:
        return count
    pairs = np.empty(len(suspects), np.int32)
    sample = tokens[:: (len(tokens) - 1) // _SAMPLE + 1]
    weights = np.empty(len(sample), np.int64)
    for i in range(len(sample)):
        weights[i] = _weight(sample[i], birth, before)
    # Those that the fewest ids forbid clear the most suspects.
    for i in np.argsort(weights):
        if count == 0:
            return 0
        pairs[:] = -1
        _clear(sample[i], birth, 1, before, pairs)
        for w in range(len(suspects)):
            suspects[w] &= ~pairs[w]
        count = _count(suspects)
    if len(sample) == len(tokens):
        return count
    for word in range(len(suspects)):
        for bit in range(32 if suspects[word] != 0 else 0):
            suspect = 32 * word + bit
            if not (suspects[word] >> bit) & 1 or not reachable[suspect]:
                continue
            pairs[:] = -1
            _clear(suspect, birth, 0, after, pairs)
            for token in tokens:
                if (pairs[token >> 5] >> (token & 31)) & 1:
                    suspects[word] &= ~(np.int32(1) << np.int32(bit))
                    count -= 1
                    break
    return count


@kernel
def _weight(token: int, birth: np.ndarray, half: Half) -> int:
    """About how many ids may not come before `token` (overlaps counted twice)."""
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


@kernel
def _clear(token: int, birth: np.ndarray, slack: int, half: Half, bits: np.ndarray) -> None:
    clear_intervals(
        token,
        half.part,
        birth,
        slack,
        half.by_part,
        half.merges,
        half.low,
        half.high,
        half.order,
        bits,
    )


@kernel
def _count(bits: np.ndarray) -> int:
    count = 0
    for w in range(len(bits)):
        if bits[w] != 0:
            for bit in range(32):
                count += (bits[w] >> bit) & 1
    return count
