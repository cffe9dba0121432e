"""Narrowing down which ids are dead at a node: see `constructions.relevance`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bpe_automata.kernels import kernel
from bpe_automata.kernels.geometry import FOREVER, breaking_merge, clear_intervals
from bpe_automata.kernels.references import by_reference
from bpe_automata.kernels.watch import poll

_SAMPLE = 64  # tokens tried against all suspects at once; those left are tried one by one


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
def narrow(
    tokens: np.ndarray,
    suspects: np.ndarray,
    reachable: np.ndarray,
    birth: np.ndarray,
    before: Half,
    after: Half,
    watch: np.ndarray,
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
    # Those that the fewest ids forbid clear the most suspects.
    for i in np.argsort(weights(sample, birth, before)):
        if count == 0 or poll(watch):
            return 0
        pairs[:] = -1
        clear(sample[i], birth, 1, before, pairs)
        for w in range(len(suspects)):
            suspects[w] &= ~pairs[w]
        count = _count(suspects)
    if len(sample) == len(tokens):
        return count
    for word in range(len(suspects)):
        for bit in range(32 if suspects[word] != 0 else 0):
            suspect = 32 * word + bit
            if not (suspects[word] >> bit) & 1 or not reachable[suspect] or poll(watch):
                continue
            pairs[:] = -1
            clear(suspect, birth, 0, after, pairs)
            for token in tokens:
                if (pairs[token >> 5] >> (token & 31)) & 1:
                    suspects[word] &= ~(np.int32(1) << np.int32(bit))
                    count -= 1
                    break
    return count


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


@kernel
def clear(token: int, birth: np.ndarray, slack: int, half: Half, bits: np.ndarray) -> None:
    """`kernels.geometry.clear_intervals`, with the arrays of one side."""
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
        word = np.int64(bits[w]) & 0xFFFFFFFF
        # Sums of 2, 4 and 8 neighbouring bits side by side, then all four in the highest byte.
        word -= (word >> 1) & 0x55555555
        word = (word & 0x33333333) + ((word >> 2) & 0x33333333)
        word = (word + (word >> 4)) & 0x0F0F0F0F
        count += int(((word * 0x01010101) >> 24) & 0xFF)
    return count
