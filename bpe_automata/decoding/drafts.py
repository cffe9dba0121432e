"""Speculative drafts: how many ids of a draft are allowed, and the mask at each position.

    masks[i] = the matcher's mask after the first i ids

Both functions leave the matcher as it was.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bpe_automata.decoding.matcher import Matcher
from bpe_automata.errors import TokenNotAllowedError, TokenOutOfRangeError


def checked_draft(matcher: Matcher, draft_ids: Sequence[int]) -> int:
    """How many of the first ids of the draft can be read one after the other, end-of-sequence
    included. Ids out of range are not allowed, so they end the count."""
    twin = matcher.copy()
    return next((k for k, token in enumerate(draft_ids) if not _read(twin, token)), len(draft_ids))


def draft_masks(matcher: Matcher, draft_ids: Sequence[int]) -> np.ndarray:
    """int32 [k + 1, words]: row i is the mask after the first i of k ids, bit n % 32 of word
    n // 32 for id n.

    After an id that is not allowed there is no mask: these rows hold no id.
    """
    twin = matcher.copy()
    words = (len(twin.mask()) + 31) // 32
    masks = np.zeros((len(draft_ids) + 1, words), dtype=np.int32)
    twin.mask(masks, 0)
    for row, token in enumerate(draft_ids, start=1):
        if not _read(twin, token):
            break
        twin.mask(masks, row)
    return masks


def _read(matcher: Matcher, token: int) -> bool:
    try:
        matcher.advance(token)
    except (TokenNotAllowedError, TokenOutOfRangeError):
        return False
    return True


def common_length(one: list[int], other: list[int]) -> int:
    """The length of the longest common prefix."""
    if other[: len(one)] == one:
        return len(one)
    pairs = zip(one, other, strict=False)
    return next((k for k, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
