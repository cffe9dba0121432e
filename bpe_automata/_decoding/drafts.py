"""Speculative drafts: which ids of a draft are allowed, and the mask at each of its places.

    masks[0]     = the matcher's own mask
    masks[1 + i] = its mask after the ids on the way to node i, that node's id the last

A chain is the tree in which each id follows the one before. Every function leaves the matcher as
it was, by `rollback`, except `accept_draft`, which moves it, or changes nothing if it raises.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from bpe_automata._decoding.matcher import Matcher
from bpe_automata.errors import ArgumentError, TokenNotAllowedError, TokenOutOfRangeError


@dataclass(frozen=True)
class DraftMasks:
    """masks: int32 [k + 1, words], bit i % 32 of word i // 32 for id i. allowed: bool [k], is the
    id of each node in the mask of its parent, and all ids on the way there in theirs?"""

    masks: np.ndarray
    allowed: np.ndarray


def checked_draft(matcher: Matcher, draft_ids: Sequence[int]) -> int:
    """How many of the first ids of the draft can be read one after the other, end-of-sequence
    included. Ids out of range are not allowed, so they end the count."""
    with _given_back(matcher):
        return _advanced(matcher, draft_ids)


def draft_masks(
    matcher: Matcher, draft_ids: Sequence[int], out: np.ndarray | None = None
) -> np.ndarray:
    """int32 [k + 1, words]: row i is the mask after the first i ids of a chain of k ids.

    After an id that is not allowed there is no mask: these rows hold no id in a new array, and are
    left alone in `out`, which has k + 1 rows of a kind that `Matcher.mask` takes. Raises
    BufferShapeError.
    """
    chain = range(-1, len(draft_ids) - 1)
    return tree_masks(matcher, draft_ids, chain, out).masks


def tree_masks(
    matcher: Matcher,
    draft_ids: Sequence[int],
    parents: Sequence[int],
    out: np.ndarray | None = None,
) -> DraftMasks:
    """The masks of a draft tree: node i holds draft_ids[i] and follows node parents[i] < i, or, at
    -1, the matcher. Depth-first order costs least; any order gives the same.

    Rows below an id that is not allowed are as in `draft_masks`. Raises ArgumentError for parents
    that are no tree, BufferShapeError.
    """
    _check_parents(draft_ids, parents)
    words = (len(matcher.mask()) + 31) // 32
    masks = np.zeros((len(draft_ids) + 1, words), dtype=np.int32) if out is None else out
    allowed = np.zeros(len(draft_ids), dtype=bool)
    with _given_back(matcher):
        here: list[int] = []
        matcher.mask(masks, 0)
        for node in range(len(draft_ids)):
            path = _path(node, parents)
            if _moved(matcher, here, path, draft_ids):
                allowed[node] = True
                matcher.mask(masks, node + 1)
    return DraftMasks(masks, allowed)


def accept_draft(matcher: Matcher, draft_ids: Sequence[int], n: int | None = None) -> None:
    """Read the first n ids of the draft (all, if None); n is how many the model took.

    Raises ArgumentError, TokenNotAllowedError, TokenOutOfRangeError; then nothing changed.
    """
    n = len(draft_ids) if n is None else n
    if not 0 <= n <= len(draft_ids):
        raise ArgumentError(f"cannot accept {n} of {len(draft_ids)} draft ids")
    before = len(matcher.ids)
    try:
        for token in draft_ids[:n]:
            matcher.advance(token)
    except BaseException:
        matcher.rollback(len(matcher.ids) - before)
        raise


@contextmanager
def _given_back(matcher: Matcher) -> Iterator[None]:
    """Whatever was read inside is taken back, also after an error."""
    before = len(matcher.ids)
    try:
        yield
    finally:
        matcher.rollback(len(matcher.ids) - before)


def _advanced(matcher: Matcher, ids: Sequence[int]) -> int:
    for count, token in enumerate(ids):
        try:
            matcher.advance(token)
        except (TokenNotAllowedError, TokenOutOfRangeError):
            return count
    return len(ids)


def _moved(matcher: Matcher, here: list[int], path: list[int], draft_ids: Sequence[int]) -> bool:
    """Take the matcher from the nodes `here` to those of `path`; False if one of them is refused.
    `here` becomes the nodes that were read."""
    kept = common_length(here, path)
    matcher.rollback(len(here) - kept)
    del here[kept:]
    for node in path[kept:]:
        if not _advanced(matcher, [draft_ids[node]]):
            return False
        here.append(node)
    return True


def common_length(one: list[int], other: list[int]) -> int:
    """How many first ids are the same."""
    if other[: len(one)] == one:
        return len(one)
    pairs = zip(one, other, strict=False)
    return next((k for k, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _path(node: int, parents: Sequence[int]) -> list[int]:
    path = []
    while node >= 0:
        path.append(node)
        node = parents[node]
    return path[::-1]


def _check_parents(draft_ids: Sequence[int], parents: Sequence[int]) -> None:
    if len(parents) != len(draft_ids):
        raise ArgumentError(f"{len(parents)} parents for {len(draft_ids)} draft ids")
    for node, parent in enumerate(parents):
        if not -1 <= parent < node:
            raise ArgumentError(f"the parent of node {node} is {parent}, not in -1 .. {node - 1}")
