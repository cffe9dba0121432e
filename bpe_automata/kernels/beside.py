"""What may not stand beside an id, as a set in the preorder where it is a few ranges.

`kernels.geometry` numbers the ids twice, so that those that a merge forbids on one side of an id
are a range. Sets that are kept in that order, 64 places to a word, are filled and compared by
ranges and words, where sets by id are filled bit by bit.
"""

from __future__ import annotations

import numpy as np

from bpe_automata.kernels import kernel
from bpe_automata.kernels.geometry import FOREVER
from bpe_automata.kernels.suspects import Half


@kernel
def places_of(order: np.ndarray, n_ids: int) -> np.ndarray:
    """int32 [n_ids]: the place of each id in an order (int32, ids), -1 for one that has none."""
    found = np.full(n_ids, -1, np.int32)
    for at in range(len(order)):
        found[order[at]] = at
    return found


@kernel
def all_places(n: int) -> np.ndarray:
    """The set of the first n places: int64 words."""
    found = np.zeros((n + 63) >> 6, np.int64)
    _fill(found, 0, n)
    return found


@kernel
def forbid(token: int, birth: np.ndarray, slack: int, half: Half, places: np.ndarray) -> None:
    """Make `places` the set of what may not stand beside `token`, by place in `half.order`.

    slack: 0 for what may not follow, 1 for what may not come before, with that half."""
    places[:] = 0
    node, limit = token, np.int64(FOREVER)
    while node >= 0:
        for i in range(half.by_part[node], half.by_part[node + 1]):
            rank = half.merges[i]
            if rank >= limit:
                break
            _fill(places, half.low[rank], half.high[rank])
        limit = np.int64(birth[node]) + slack
        node = half.part[node]


@kernel
def _fill(places: np.ndarray, low: int, high: int) -> None:
    """Add the places low .. high - 1."""
    if low >= high:
        return
    first, last = low >> 6, (high - 1) >> 6
    begin = np.int64(-1) << (low & 63)
    end = ~((np.int64(-1) << ((high - 1) & 63)) << 1)
    if first == last:
        places[first] |= begin & end
        return
    places[first] |= begin
    for word in range(first + 1, last):
        places[word] = -1
    places[last] |= end


@kernel
def keep(places: np.ndarray, others: np.ndarray) -> bool:
    """Take what is not in `others` out of `places`: is any left?"""
    some = np.int64(0)
    for word in range(len(places)):
        places[word] &= others[word]
        some |= places[word]
    return some != 0


@kernel
def exceeds(places: np.ndarray, others: np.ndarray) -> bool:
    """Is some place not in `others`?"""
    some = np.int64(0)
    for word in range(len(places)):
        some |= places[word] & ~others[word]
    return some != 0


@kernel
def how_many(places: np.ndarray) -> int:
    """How many places are in a set."""
    count = 0
    for word in places:
        # Sums of 2, 4 and 8 neighbouring bits side by side, then all eight in the highest byte.
        word = word - ((word >> 1) & 0x5555555555555555)
        word = (word & 0x3333333333333333) + ((word >> 2) & 0x3333333333333333)
        word = (word + (word >> 4)) & 0x0F0F0F0F0F0F0F0F
        count += (word * 0x0101010101010101) >> 56
    return count


@kernel
def listed(places: np.ndarray) -> np.ndarray:
    """int64: the places of a set, ascending."""
    found, count = np.empty(how_many(places), np.int64), 0
    for at in range(len(places)):
        word, place = places[at], at << 6
        while word != 0:
            if word & 1:
                found[count] = place
                count += 1
            word = (word >> 1) & 0x7FFFFFFFFFFFFFFF
            place += 1
    return found


@kernel
def unpacked(places: np.ndarray, order: np.ndarray, n_ids: int) -> np.ndarray:
    """int32 [ceil(n_ids / 32)]: the ids of a set of places, packed by id."""
    bits = np.zeros((n_ids + 31) >> 5, np.int32)
    for at in range(len(places)):
        word, place = places[at], at << 6
        while word != 0:
            if word & 1:
                bits[order[place] >> 5] |= np.int32(1) << np.int32(order[place] & 31)
            word = (word >> 1) & 0x7FFFFFFFFFFFFFFF
            place += 1
    return bits
