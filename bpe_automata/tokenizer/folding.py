"""Case folding that joins characters: `ß` folds to `ss`, so Oniguruma's `(?i:ß)` matches `ss`, and
its `(?i:ss)` matches `ß`."""

from __future__ import annotations

from functools import cache

from bpe_automata.budget import check


@cache
def joined_foldings() -> frozenset[str]:
    """What several characters can spell that one character folds to."""
    foldings = (chr(c).casefold() for c in range(0x80, 0x20000))
    return frozenset(folded for folded in foldings if len(folded) > 1)


def joined(letters: list[str | None]) -> str | None:
    """A run of `letters` that, read without regard to case, is not matched letter by letter; None
    if there is none. A None among the letters is anything that is not a single letter."""
    for index, letter in enumerate(letters):
        check()
        if letter and len(letter.casefold()) > 1:
            return letter
        for size in (2, 3):
            run = [c for c in letters[index : index + size] if c]
            if len(run) == size and "".join(run).casefold() in joined_foldings():
                return "".join(run)
    return None
