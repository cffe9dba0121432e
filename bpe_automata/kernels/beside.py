"""What may not stand beside an id, as a set in the preorder where it is a few ranges.

`kernels.geometry` numbers the ids twice, so that those that a merge forbids on one side of an id
are a range. Sets that are kept in that order, 64 places to a word, are filled and compared by
ranges and words, where sets by id are filled bit by bit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bpe_automata.kernels import kernel
from bpe_automata.kernels.geometry import FOREVER, Half
from bpe_automata.kernels.references import by_reference
from bpe_automata.kernels.watch import poll

_OFTEN = 16  # tokens between two looks at which side has fewer


@by_reference
class Beside(NamedTuple):
    """What may not come before and after an id, as in `kernels.beside`, and how to find it. birth
    int32 [n_ids]; left_at, right_at int32 [n_ids]: the place of an id as the one that comes before,
    or after. Suspects are sets of the former."""

    before: Half
    after: Half
    birth: np.ndarray
    left_at: np.ndarray
    right_at: np.ndarray


@kernel
def places_of(order: np.ndarray, n_ids: int) -> np.ndarray:
    """int32 [n_ids]: the place of each id in an order (int32, ids), -1 for one that has none."""
    found = np.full(n_ids, -1, np.int32)
    for at in range(len(order)):
        found[order[at]] = at
    return found


@kernel
def placed(ids: np.ndarray, at: np.ndarray, n: int) -> np.ndarray:
    """The set of the places of ids (int64), out of n: int64 words. at: as of `places_of`."""
    found = np.zeros((n + 63) >> 6, np.int64)
    for token in ids:
        if at[token] >= 0:
            found[at[token] >> 6] |= np.int64(1) << (at[token] & 63)
    return found


@kernel
def outside(ids: np.ndarray, places: np.ndarray, at: np.ndarray) -> np.ndarray:
    """int64: those of the ids (int64) that are not in a set of places, or have none."""
    found, n = np.empty(len(ids), np.int64), 0
    for token in ids:
        if at[token] < 0 or not (places[at[token] >> 6] >> (at[token] & 63)) & 1:
            found[n] = token
            n += 1
    return found[:n].copy()


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
def take_out_leading(tokens: np.ndarray, suspects: np.ndarray, beside: Beside) -> None:
    """`take_out` by the few ids (int32, -1: none) that are known to lead on from a steady node."""
    forbidden = np.empty(len(suspects), np.int64)
    for token in tokens:
        if token >= 0:
            forbid(token, beside.birth, 1, beside.before, forbidden)
            keep(suspects, forbidden)


@kernel
def narrow(tokens: np.ndarray, suspects: np.ndarray, beside: Beside, watch: np.ndarray) -> int:
    """`take_out`, and how many suspects are left."""
    take_out(tokens, suspects, beside, watch)
    return how_many(suspects)


@kernel
def take_out(
    tokens: np.ndarray, suspects: np.ndarray, beside: Beside, watch: np.ndarray
) -> np.ndarray:
    """Take out of the suspects every id that some of `tokens` (int64) may follow. Returns int64,
    the tokens that took some out, of those that were tried one after the other."""
    forbidden, count = np.empty(len(suspects), np.int64), 0
    helped, n_helped = np.empty(len(tokens), np.int64), 0
    for i in range(len(tokens)):
        if poll(watch):
            break
        if i % _OFTEN == 0:
            count = how_many(suspects)
        if count <= len(tokens) - i:
            _take_out_singly(tokens[i:].copy(), suspects, beside, watch)
            break
        forbid(tokens[i], beside.birth, 1, beside.before, forbidden)
        if exceeds(suspects, forbidden):
            keep(suspects, forbidden)
            helped[n_helped] = tokens[i]
            n_helped += 1
    return helped[:n_helped]


@kernel
def _take_out_singly(
    tokens: np.ndarray, suspects: np.ndarray, beside: Beside, watch: np.ndarray
) -> None:
    """The same where there are fewer suspects than tokens."""
    order = beside.after.order
    forbidden = np.empty((len(order) + 63) >> 6, np.int64)
    followers = np.zeros_like(forbidden)
    for token in tokens:
        at = beside.right_at[token]
        followers[at >> 6] |= np.int64(1) << (at & 63)
    for suspect in listed(suspects):
        if poll(watch):
            return
        forbid(beside.before.order[suspect], beside.birth, 0, beside.after, forbidden)
        if exceeds(followers, forbidden):
            suspects[suspect >> 6] &= ~(np.int64(1) << (suspect & 63))


@kernel
def which_follow(
    tokens: np.ndarray, suspects: np.ndarray, beside: Beside, watch: np.ndarray
) -> np.ndarray:
    """bool: which of `tokens` (int64) may follow some suspect? All, while most ids are suspects."""
    found, count = np.zeros(len(tokens), np.bool_), how_many(suspects)
    if 2 * count > len(beside.before.order):  # nearly all, and not worth the look
        return ~found
    if count > len(tokens):
        forbidden = np.empty(len(suspects), np.int64)
        for i in range(len(tokens)):
            if poll(watch):
                break
            forbid(tokens[i], beside.birth, 1, beside.before, forbidden)
            found[i] = exceeds(suspects, forbidden)
        return found
    forbidden = np.empty((len(beside.after.order) + 63) >> 6, np.int64)
    for suspect in listed(suspects):
        if poll(watch):
            break
        forbid(beside.before.order[suspect], beside.birth, 0, beside.after, forbidden)
        for i in range(len(tokens)):
            at = beside.right_at[tokens[i]]
            found[i] |= (forbidden[at >> 6] >> (at & 63)) & 1 == 0
    return found
