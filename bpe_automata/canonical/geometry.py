"""The automaton of BPE alone: which tokens may stand side by side inside one pretoken.

    allowed(L, R)  iff  BPE(bytes(L) + bytes(R)) = L R,        for reachable L, R

By the pair lemma a sequence of reachable tokens is BPE's output iff every adjacent pair is allowed.
Put the tokens in preorder of the forest "parent = right part", children by decreasing birth, and
again for "parent = left part": then one merge forbids one rectangle (an interval of left tokens
times an interval of right tokens), and the forbidden pairs are the union of those rectangles, and
of single pairs where merges are tied (see `ties`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bpe_automata._budget import check
from bpe_automata._kernels.hashing import build_table
from bpe_automata.canonical.arrays import Pairs
from bpe_automata.canonical.pairs import breaking_merge, clear_after, clear_before
from bpe_automata.errors import ImproperMergeTableError
from bpe_automata.tokenizer.derivation import Derivation, bpe

# Some pairs of tokens are not decided by rectangles. They are tried one by one.
#
# Merges of one *epoch* (see `tokenizer.derivation`) are carried out from left to right, each with
# the late ones that it made possible, before the next. So of two of them neither comes first
# everywhere. Let (u, v) be a merge of epoch e that could cross the joint of L and R, where L
# carries u and R carries v until epoch e at least:
#
# - If a later epoch uses them up, or none, both are still there when epoch e ends. No encoder
#   leaves them so: the pair is broken. That is the merge's rectangle.
# - If epoch e itself uses up u inside L, or v inside R, it depends on which is farther left, and on
#   what they are made of. BPE of both tokens decides (except for the first merge of an epoch, with
#   a v that epoch e uses up: the joint is farther left, so the pair is broken, and in the rectangle
#   too).
#
# Epochs of one merge have no such pairs, and most tables have no other epochs.

_TOO_MANY = (
    "{} merges come before the merges that make their parts, and too many pairs of tokens would "
    "have to be tried to tell which merge comes first in which text. Put each merge after those "
    "that make its parts, or retrain"
)
_MOST_TRIED = 100_000  # pairs of tokens: two seconds
_EACH, _BY_ROW, _BY_COLUMN = 0, 1, 2


class Forest(NamedTuple):
    """The reachable tokens by one of their parts. family: int64, ascending, part * n_ids - birth of
    each token that has a part, and children: int32, these tokens; position, end, order: as in
    `Side`."""

    family: np.ndarray
    children: np.ndarray
    position: np.ndarray
    end: np.ndarray
    order: np.ndarray

    def carriers(
        self, parts: np.ndarray, ranks: np.ndarray, slack: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """For the part parts[i] of a merge of rank ranks[i]: the positions low:high of the tokens
        that carry it alive, int32. These are the part, and what is below its children that are born
        late enough (birth + slack > rank), the first ones of the family. slack: 0 for left parts, 1
        for right parts."""
        n_ids, begin = len(self.position), parts.astype(np.int64) * len(self.position)
        first = np.searchsorted(self.family, begin - n_ids, side="right")
        past = np.searchsorted(self.family, begin + slack - ranks - 1, side="right")
        low, ends = self.position[parts], np.append(self.end[self.children], np.int32(0))
        return low, np.where(past > first, ends[past - 1], low + 1)


class Ties(NamedTuple):
    """pairs: int32 [k, 2], sorted, the broken pairs that are in no rectangle; ordered: would
    carrying out the derivations one after the other, in the order of `proper`, break the same
    pairs?"""

    pairs: np.ndarray
    ordered: bool


def tied_pairs(
    derivation: Derivation,
    rows: Forest,
    columns: Forest,
    table: tuple[np.ndarray, np.ndarray],
) -> Ties:
    """`rows`, `columns`: the forests by the right part and by the left one; `table`: slots and
    values of the derivations. Raises ImproperMergeTableError if too many pairs would have to be
    tried, and BudgetExceededError."""
    d, numbers = derivation, _numbers(derivation)
    tried, found, ordered = 0, set[tuple[int, int]](), True

    def merge(left: int, right: int, birth: np.ndarray) -> int:
        return int(breaking_merge(left, right, d.left, d.right, birth, *table))

    for *spans, end, how in _boxes(d, rows, columns).tolist():
        check()
        lefts, rights = rows.order[slice(*spans[:2])], columns.order[slice(*spans[2:])]
        by_column = how == _BY_COLUMN
        outer, inner = (rights, lefts) if by_column else (lefts, rights)
        for one in outer.tolist():
            for other in inner.tolist():
                left, right = (other, one) if by_column else (one, other)
                tried += 1
                if tried > _MOST_TRIED:
                    raise ImproperMergeTableError(_TOO_MANY.format(int(d.late.sum())))
                certain, by_number = merge(left, right, d.birth), merge(left, right, numbers)
                broken = certain >= 0 or _changes(d, left, right)
                if broken and certain < 0:
                    found.add((left, right))
                ordered &= broken == (by_number >= 0)
                decides = not broken or (0 <= certain < end and (by_number < end or not ordered))
                if decides and how != _EACH and other == inner[0]:
                    break
    return Ties(np.array(sorted(found), np.int32).reshape(-1, 2), ordered)


def _changes(derivation: Derivation, left: int, right: int) -> bool:
    """Does BPE of both tokens' symbols give anything but the two tokens?"""
    symbols = derivation.base_symbols(left) + derivation.base_symbols(right)
    return bpe(derivation, symbols) != [left, right]


def _numbers(derivation: Derivation) -> np.ndarray:
    """int32 [n_ids]: the index of each token's derivation in `proper`, -1 if it has none."""
    numbers = np.full(len(derivation.birth), -1, dtype=np.int32)
    numbers[derivation.proper[:, 2]] = np.arange(len(derivation.proper), dtype=np.int32)
    return numbers


def _boxes(derivation: Derivation, rows: Forest, columns: Forest) -> np.ndarray:
    """int64 [n, 6]: the pairs whose joint a merge may cross while its own epoch uses up one of its
    parts inside: positions (row low, high, column low, high), one past the last merge of the epoch,
    and how they are tried: _EACH pair; _BY_ROW: the first pair of each row, and the others if it
    does not decide them; _BY_COLUMN: likewise.

    The merges up to that epoch are the same for all R that carry v beyond it. The first R of the
    interval is v itself, so (L, v) decides most of these pairs; likewise for u. (Gemma-3's table
    has four million pairs, of which a few thousand are tried.)"""
    first = derivation.birth[derivation.proper[:, 2]]
    size = np.bincount(first, minlength=len(first))[first]
    tied = size > 1
    left, right, _ = derivation.proper[tied].T
    row, row_tie, row_end = _carriers(rows, left, first[tied])
    column, column_tie, column_end = _carriers(columns, right, first[tied])
    end = (first + size)[tied]
    boxes = [
        (row_tie, row_end, column, column_tie, end, np.full_like(end, _BY_ROW)),
        (row, row_tie, column_tie, column_end, end, np.full_like(end, _BY_COLUMN)),
        (row_tie, row_end, column_tie, column_end, end, np.full_like(end, _EACH)),
    ]
    found = np.concatenate([np.stack(box, axis=1) for box in boxes]).astype(np.int64)
    kept: np.ndarray = found[(found[:, 0] < found[:, 1]) & (found[:, 2] < found[:, 3])]
    return kept


def _carriers(
    forest: Forest, parts: np.ndarray, first: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Positions (low, tie, high) for each part and the first merge of an epoch: low:high carry the
    part until that epoch at least, and tie:high of them until that epoch only."""
    low, tie = forest.carriers(parts, first, 0)
    _, high = forest.carriers(parts, first, 1)
    return low, tie, high


@dataclass(frozen=True)
class Side:
    """One forest. part: int32 [n_ids], the parent (-1: none); position, end: int32 [n_ids], the
    preorder interval of a token's subtree; order: int32, position -> token; by_part: int32
    [n_ids + 1] and merges: int32, CSR from a token to the ranks of the merges that it is this part
    of, ascending; low, high: int32 [m], the interval of tokens that carry each merge's part."""

    part: np.ndarray
    position: np.ndarray
    end: np.ndarray
    order: np.ndarray
    by_part: np.ndarray
    merges: np.ndarray
    low: np.ndarray
    high: np.ndarray


@dataclass(frozen=True)
class Tables:
    """The computed attributes of a `Geometry`, under the same names."""

    slots: np.ndarray
    values: np.ndarray
    rows: Side
    columns: Side
    ordered: bool


class Geometry:
    """Rectangles of a merge table.

    `rows`: the forest of left tokens (parent = right part); `columns`: that of right tokens (parent
    = left part); merge m forbids rows.low[m]:rows.high[m] x columns.low[m]:columns.high[m],
    in preorder positions. Merges are the derivations, numbered as in `derivation.proper`. The pairs
    that were proved broken by trying them (`Ties.pairs`) come after these: as merges of two tokens
    that no merge uses up, each with a rectangle of one pair. slots, values: hash table of all
    these, from left * n_ids + right to their number; ordered: see `Ties`. `tables` holds all of
    them. before, after: `Pairs`, of what may not come before an id and of what may not follow it.
    """

    def __init__(self, derivation: Derivation, tables: Tables | None = None) -> None:
        """`tables`: those of this derivation, if they were computed before.

        Raises ImproperMergeTableError."""
        self.derivation = derivation
        self.tables = tables or _tabulated(derivation)
        self.slots, self.values = self.tables.slots, self.tables.values
        self.rows, self.columns = self.tables.rows, self.tables.columns
        self.ordered = self.tables.ordered
        table = self.slots, self.values
        self.before = Pairs(*_pair_arrays(derivation, self.columns, self.rows), *table)
        self.after = Pairs(*_pair_arrays(derivation, self.rows, self.columns), *table)

    @property
    def n_words(self) -> int:
        return (len(self.derivation.birth) + 31) // 32

    def clear_followers(self, token: int, bits: np.ndarray) -> None:
        """Clear in `bits` (int32 [n_words], packed by id) what may not follow `token`."""
        clear_after(token, self.after, bits)

    def clear_predecessors(self, token: int, bits: np.ndarray) -> None:
        """Clear in `bits` (int32 [n_words], packed by id) what may not come before `token`."""
        clear_before(token, self.before, bits)

    def breaking_merge(self, left: int, right: int) -> int:
        """The rank of the first merge that breaks the pair, -1 if it is canonical."""
        d = self.derivation
        table = self.slots, self.values
        return int(breaking_merge(left, right, d.left, d.right, d.birth, *table))

    def forbidden_share(self) -> float:
        """Share of forbidden pairs among all pairs of reachable tokens, exactly."""
        count = len(self.rows.order)
        if not count:
            return 0.0
        rows, columns = self.rows, self.columns
        area = _union_area(rows.low, rows.high, columns.low, columns.high)
        return area / (count * count)


def _tabulated(derivation: Derivation) -> Tables:
    left, right, _ = derivation.proper.T
    rows, columns = _forest(derivation, derivation.right), _forest(derivation, derivation.left)
    ties = tied_pairs(derivation, rows, columns, _table(left, right, derivation))
    first, second = np.concatenate([derivation.proper[:, :2], ties.pairs]).T
    return Tables(
        *_table(first, second, derivation),
        _side(derivation.right, rows, left, ties.pairs[:, 0], slack=0),
        _side(derivation.left, columns, right, ties.pairs[:, 1], slack=1),
        ties.ordered,
    )


def _table(
    left: np.ndarray, right: np.ndarray, derivation: Derivation
) -> tuple[np.ndarray, np.ndarray]:
    return build_table(left.astype(np.int64) * len(derivation.birth) + right)


def _pair_arrays(
    derivation: Derivation, here: Side, there: Side
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """ids, merges and order of `Pairs`."""
    columns = there.position, derivation.birth, derivation.left, derivation.right
    ids = np.stack([*(np.append(column, 0) for column in columns), here.by_part], axis=1)
    merges = here.merges
    intervals = np.stack([merges, there.low[merges], there.high[merges]], axis=1)
    return ids.astype(np.int32), intervals.astype(np.int32), there.order


def _side(
    part: np.ndarray, forest: Forest, parts: np.ndarray, single: np.ndarray, slack: int
) -> Side:
    """The forest by `part`, and for each merge the interval that carries its part `parts[m]`; then
    the `single` tokens of pairs."""
    n_ids, position = len(part), forest.position
    low, high = forest.carriers(parts, np.arange(len(parts)), slack)
    low, high = np.append(low, position[single]), np.append(high, position[single] + 1)
    parts = np.append(parts, single)
    merges = np.argsort(parts, kind="stable").astype(np.int32)
    by_part = np.zeros(n_ids + 1, dtype=np.int32)
    np.cumsum(np.bincount(parts, minlength=n_ids), out=by_part[1:])
    return Side(part, position, forest.end, forest.order, by_part, merges, low, high)


def _forest(derivation: Derivation, part: np.ndarray) -> Forest:
    """The reachable tokens by one part (`derivation.left` or `right`), each family by decreasing
    birth; numbered in preorder, from the numbers of tokens in each subtree."""
    n_ids = len(part)
    child = np.flatnonzero(derivation.reachable & (part >= 0)).astype(np.int32)
    family = part[child].astype(np.int64) * n_ids - derivation.birth[child]
    children, family = child[np.argsort(family)], np.sort(family)
    levels, rest = [np.flatnonzero(derivation.reachable & (part < 0)).astype(np.int32)], children
    while len(levels[-1]):
        above = np.zeros(n_ids, dtype=bool)
        above[levels[-1]] = True
        here = above[part[rest]]
        levels.append(rest[here])
        rest = rest[~here]
    nodes, position = np.concatenate(levels), np.full(n_ids, -1, dtype=np.int32)
    size = np.zeros(n_ids, dtype=np.int32)
    size[nodes] = 1
    for level in reversed(levels[1:]):
        np.add.at(size, part[level], size[level])
    for level in levels:  # families are together there; the roots' parent -1 has the position -1
        parent, before = part[level], np.cumsum(size[level]) - size[level]
        position[level] = position[parent] + 1 + before - before[np.searchsorted(parent, parent)]
    order = nodes[np.argsort(position[nodes])]
    return Forest(family, children, position, position + size, order)


def _union_area(
    row_low: np.ndarray, row_high: np.ndarray, low: np.ndarray, high: np.ndarray
) -> int:
    """Area of a union of rectangles [row_low, row_high) x [low, high), by a sweep over the rows."""
    n_columns = int(high.max(initial=0))
    depth = np.zeros(n_columns, dtype=np.int32)
    covered = area = 0
    events = np.concatenate([row_low, row_high])
    sign = np.repeat([1, -1], len(row_low))
    which = np.tile(np.arange(len(row_low)), 2)
    previous = 0
    for at in np.argsort(events, kind="stable"):
        area += covered * (int(events[at]) - previous)
        previous = int(events[at])
        span = depth[low[which[at]] : high[which[at]]]
        before = np.count_nonzero(span)
        span += sign[at]
        covered += int(np.count_nonzero(span)) - int(before)
    return area
