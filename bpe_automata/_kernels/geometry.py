"""The forbidden pairs of a merge table as a union of rectangles, one per merge.

A pair (L, R) of reachable tokens is broken by a merge (u, v) of rank m iff u is on L's right spine
(L, its right part, the right part of that, ...) and alive at m, and v is on R's left spine and
alive at m. A node is alive from its birth to the birth of the spine node above it; ties go left to
right, so v may be merged at exactly that rank and u may not.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bpe_automata._kernels import kernel
from bpe_automata._kernels.hashing import look_up
from bpe_automata._kernels.references import by_reference
from bpe_automata._kernels.watch import poll

FOREVER = 2**31 - 1


@kernel
def preorder(
    child_start: np.ndarray, children: np.ndarray, roots: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Number a forest in preorder, children in the order given.

    child_start: int32 [n+1] and children: int32, in CSR form; roots: int32.
    Returns (position int32 [n], end int32 [n] one past the subtree, order int32: position -> node);
    nodes outside the forest have position -1.
    """
    n = len(child_start) - 1
    position = np.full(n, -1, np.int32)
    end = np.full(n, -1, np.int32)
    order = np.empty(n, np.int32)
    stack = np.empty(n + 1, np.int32)
    count = 0
    for root in roots:
        depth = 0
        stack[0] = root
        while depth >= 0:
            node = stack[depth]
            depth -= 1
            if node < 0:
                end[~node] = count
                continue
            position[node] = count
            order[count] = node
            count += 1
            depth += 1
            stack[depth] = ~node
            for i in range(child_start[node + 1] - 1, child_start[node] - 1, -1):
                depth += 1
                stack[depth] = children[i]
    return position, end, order[:count]


@kernel
def merge_intervals(
    nodes: np.ndarray,
    ranks: np.ndarray,
    slack: int,
    child_start: np.ndarray,
    children: np.ndarray,
    birth: np.ndarray,
    position: np.ndarray,
    end: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """For each merge part nodes[i] of rank ranks[i]: the preorder interval [low, high) of tokens
    that carry it alive. Children come by decreasing birth, so those born late enough
    (birth + slack > rank) are a prefix. slack is 0 for left parts, 1 for right parts.
    """
    low = np.empty(len(nodes), np.int32)
    high = np.empty(len(nodes), np.int32)
    for i in range(len(nodes)):
        node = nodes[i]
        first, last = child_start[node], child_start[node + 1]
        while first < last:
            middle = (first + last) // 2
            if birth[children[middle]] + slack > ranks[i]:
                first = middle + 1
            else:
                last = middle
        low[i] = position[node]
        high[i] = position[node] + 1
        if first > child_start[node]:
            high[i] = end[children[first - 1]]
    return low, high


@kernel
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


@kernel
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


# Narrowing down which ids are dead at a node: see `_constructions.relevance`.

_FEW = 16  # ids: as many pairs are tried as fast as the intervals of a usual token are cleared


@by_reference
class Half(NamedTuple):
    """One side of `_constructions.geometry.Geometry`: see `_kernels.geometry.clear_intervals`.

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
    """What `_kernels.geometry.breaking_merge` needs: left, right, birth int32 [n_ids]; slots int64
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


# The forbidden neighbours of an id, as a set in the preorder in which it is a few ranges.
#
# `Geometry` numbers the ids twice, so that those that a merge forbids on one side of an id are a
# range. Sets kept in that order, 64 numbers to a word, are filled and compared by ranges and
# words, where sets by id are filled bit by bit.

_OFTEN = 16  # tokens between two looks at which side has fewer


@by_reference
class ForbiddenSets(NamedTuple):
    """What may not come before and after an id, as in `_kernels.geometry`, and how to find it.
    birth int32 [n_ids]; left_at, right_at int32 [n_ids]: the position of an id as the one that
    comes before, or after. Candidates are sets of the former."""

    before: Half
    after: Half
    birth: np.ndarray
    left_at: np.ndarray
    right_at: np.ndarray


@kernel
def positions_of(order: np.ndarray, n_ids: int) -> np.ndarray:
    """int32 [n_ids]: the position of each id in an order (int32, ids), -1 for one that has none."""
    found = np.full(n_ids, -1, np.int32)
    for at in range(len(order)):
        found[order[at]] = at
    return found


@kernel
def placed(ids: np.ndarray, at: np.ndarray, n: int) -> np.ndarray:
    """The set of the positions of ids (int64), out of n: int64 words. at: as of `positions_of`."""
    found = np.zeros((n + 63) >> 6, np.int64)
    for token in ids:
        if at[token] >= 0:
            found[at[token] >> 6] |= np.int64(1) << (at[token] & 63)
    return found


@kernel
def holds(positions: np.ndarray, at: int) -> bool:
    """Is a position in a set?"""
    return bool((positions[at >> 6] >> (at & 63)) & 1)


@kernel
def outside(ids: np.ndarray, positions: np.ndarray, at: np.ndarray) -> np.ndarray:
    """int64: those of the ids (int64) that are not in a set of positions, or have none."""
    found, n = np.empty(len(ids), np.int64), 0
    for token in ids:
        if at[token] < 0 or not holds(positions, at[token]):
            found[n] = token
            n += 1
    return found[:n].copy()


@kernel
def all_positions(n: int) -> np.ndarray:
    """The set of the first n positions: int64 words."""
    found = np.zeros((n + 63) >> 6, np.int64)
    _fill(found, 0, n)
    return found


@kernel
def forbid(token: int, birth: np.ndarray, slack: int, half: Half, positions: np.ndarray) -> None:
    """Make `positions` the set of what may not stand beside `token`, by position in `half.order`.

    slack: 0 for what may not follow, 1 for what may not come before, with that half."""
    positions[:] = 0
    node, limit = token, np.int64(FOREVER)
    while node >= 0:
        for i in range(half.by_part[node], half.by_part[node + 1]):
            rank = half.merges[i]
            if rank >= limit:
                break
            _fill(positions, half.low[rank], half.high[rank])
        limit = np.int64(birth[node]) + slack
        node = half.part[node]


@kernel
def forbid_after(token: int, forbidden_sets: ForbiddenSets, positions: np.ndarray) -> None:
    """Make `positions` the set of the ids that may not follow `token`, by `right_at`."""
    forbid(token, forbidden_sets.birth, 0, forbidden_sets.after, positions)


@kernel
def _fill(positions: np.ndarray, low: int, high: int) -> None:
    """Add the positions low .. high - 1."""
    if low >= high:
        return
    first, last = low >> 6, (high - 1) >> 6
    begin = np.int64(-1) << (low & 63)
    end = ~((np.int64(-1) << ((high - 1) & 63)) << 1)
    if first == last:
        positions[first] |= begin & end
        return
    positions[first] |= begin
    for word in range(first + 1, last):
        positions[word] = -1
    positions[last] |= end


@kernel
def keep(positions: np.ndarray, others: np.ndarray) -> bool:
    """Take what is not in `others` out of `positions`: is any left?"""
    some = np.int64(0)
    for word in range(len(positions)):
        positions[word] &= others[word]
        some |= positions[word]
    return some != 0


@kernel
def exceeds(positions: np.ndarray, others: np.ndarray) -> bool:
    """Is some position not in `others`?"""
    some = np.int64(0)
    for word in range(len(positions)):
        some |= positions[word] & ~others[word]
    return some != 0


@kernel
def how_many(positions: np.ndarray) -> int:
    """How many positions are in a set."""
    count = 0
    for word in positions:
        # Sums of 2, 4 and 8 neighbouring bits side by side, then all eight in the highest byte.
        word = word - ((word >> 1) & 0x5555555555555555)
        word = (word & 0x3333333333333333) + ((word >> 2) & 0x3333333333333333)
        word = (word + (word >> 4)) & 0x0F0F0F0F0F0F0F0F
        count += (word * 0x0101010101010101) >> 56
    return count


@kernel
def listed(positions: np.ndarray) -> np.ndarray:
    """int64: the positions of a set, ascending."""
    found, count = np.empty(how_many(positions), np.int64), 0
    for at in range(len(positions)):
        word, position = positions[at], at << 6
        while word != 0:
            if word & 1:
                found[count] = position
                count += 1
            word = (word >> 1) & 0x7FFFFFFFFFFFFFFF
            position += 1
    return found


@kernel
def take_out_leading(
    tokens: np.ndarray, candidates: np.ndarray, forbidden_sets: ForbiddenSets
) -> None:
    """`take_out` by the few ids (int32, 1 + each, 0: none) that are known to lead on from a node of
    the fixed set."""
    forbidden = np.empty(len(candidates), np.int64)
    for token in tokens:
        if token > 0:
            forbid(token - 1, forbidden_sets.birth, 1, forbidden_sets.before, forbidden)
            keep(candidates, forbidden)


@kernel
def narrow(
    tokens: np.ndarray, candidates: np.ndarray, forbidden_sets: ForbiddenSets, watch: np.ndarray
) -> int:
    """`take_out`, and how many candidates are left."""
    take_out(tokens, candidates, forbidden_sets, watch)
    return how_many(candidates)


@kernel
def take_out(
    tokens: np.ndarray, candidates: np.ndarray, forbidden_sets: ForbiddenSets, watch: np.ndarray
) -> np.ndarray:
    """Take out of the candidates every id that some of `tokens` (int64) may follow. Returns int64,
    the tokens that took some out, of those that were tried one after the other."""
    forbidden, count = np.empty(len(candidates), np.int64), 0
    helped, n_helped = np.empty(len(tokens), np.int64), 0
    for i in range(len(tokens)):
        if poll(watch):
            break
        if i % _OFTEN == 0:
            count = how_many(candidates)
        if count <= len(tokens) - i:
            _take_out_singly(tokens[i:].copy(), candidates, forbidden_sets, watch)
            break
        forbid(tokens[i], forbidden_sets.birth, 1, forbidden_sets.before, forbidden)
        if exceeds(candidates, forbidden):
            keep(candidates, forbidden)
            helped[n_helped] = tokens[i]
            n_helped += 1
    return helped[:n_helped]


@kernel
def _take_out_singly(
    tokens: np.ndarray, candidates: np.ndarray, forbidden_sets: ForbiddenSets, watch: np.ndarray
) -> None:
    """The same where there are fewer candidates than tokens."""
    order = forbidden_sets.after.order
    forbidden = np.empty((len(order) + 63) >> 6, np.int64)
    followers = np.zeros_like(forbidden)
    for token in tokens:
        at = forbidden_sets.right_at[token]
        followers[at >> 6] |= np.int64(1) << (at & 63)
    for candidate in listed(candidates):
        if poll(watch):
            return
        forbid_after(forbidden_sets.before.order[candidate], forbidden_sets, forbidden)
        if exceeds(followers, forbidden):
            candidates[candidate >> 6] &= ~(np.int64(1) << (candidate & 63))


@kernel
def which_follow(
    tokens: np.ndarray, candidates: np.ndarray, forbidden_sets: ForbiddenSets, watch: np.ndarray
) -> np.ndarray:
    """bool: which of `tokens` (int64) may follow some candidate? All, while most ids are
    candidates."""
    found, count = np.zeros(len(tokens), np.bool_), how_many(candidates)
    if 2 * count > len(forbidden_sets.before.order):  # nearly all, and not worth the look
        return ~found
    if count > len(tokens):
        forbidden = np.empty(len(candidates), np.int64)
        for i in range(len(tokens)):
            if poll(watch):
                break
            forbid(tokens[i], forbidden_sets.birth, 1, forbidden_sets.before, forbidden)
            found[i] = exceeds(candidates, forbidden)
        return found
    forbidden = np.empty((len(forbidden_sets.after.order) + 63) >> 6, np.int64)
    for candidate in listed(candidates):
        if poll(watch):
            break
        forbid_after(forbidden_sets.before.order[candidate], forbidden_sets, forbidden)
        for i in range(len(tokens)):
            at = forbidden_sets.right_at[tokens[i]]
            found[i] |= not holds(forbidden, at)
    return found
