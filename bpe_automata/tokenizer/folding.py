"""Case folding that joins characters: `ß` folds to `ss`, so `(?i:ß)` may match two characters."""

from __future__ import annotations

from functools import cache


@cache
def joined_foldings() -> frozenset[str]:
    """What several characters can spell that one character folds to."""
    foldings = (chr(c).casefold() for c in range(0x80, 0x20000))
    return frozenset(folded for folded in foldings if len(folded) > 1)
