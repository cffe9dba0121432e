"""What an engine knows of Unicode, found by asking it: decompositions, combining classes and
compositions. Versions of Unicode differ between engines, so no table of another one will do.

Words as in Unicode Standard Annex 15 (https://www.unicode.org/reports/tr15/): a *starter* has
combining class 0, other characters are called *marks* here.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from bpe_automata.budget import check
from bpe_automata.errors import BrokenTokenizerError
from bpe_automata.tokenizer.asking import Apply, ask, blocks, images, text_of
from bpe_automata.tokenizer.ranges import LAST_CODE_POINT

# By Unicode's stability policy these keep their classes: 1, and 240 (the highest so far).
_LOW, _HIGH = "\u0334", "\u0345"


@dataclass(frozen=True)
class Composing:
    """unstable: characters that the form changes; decomposed: full canonical decompositions of the
    others that have one; order: mark -> number of its combining class (1, 2, ... ascending);
    composes: a -> {b: what a and b, directly after it, are composed to}."""

    unstable: frozenset[str]
    decomposed: dict[str, str]
    order: dict[str, int]
    composes: dict[str, dict[str, str]]


def composing(compose: Apply, decompose: Apply) -> Composing:
    """The facts of a composing form (NFC or NFKC) and of NFD, both of the same engine."""
    unstable = frozenset(images(compose, whole_blocks=True))
    all_decomposed = images(decompose, whole_blocks=True)
    decomposed = {c: d for c, d in all_decomposed.items() if c not in unstable}
    order = combining_order(decompose, frozenset(all_decomposed))
    return Composing(unstable, decomposed, order, _compositions(compose, decomposed))


def _compositions(compose: Apply, decomposed: dict[str, str]) -> dict[str, dict[str, str]]:
    """A stable character c with the decomposition d1...dn is composed of (d1...dn-1, composed) and
    dn: the algorithm takes them in this order, and ends with c."""
    firsts = ask(compose, [whole[:-1] for whole in decomposed.values()])
    found: dict[str, dict[str, str]] = {}
    for first, (c, whole) in zip(firsts, decomposed.items(), strict=True):
        found.setdefault(first, {})[whole[-1]] = c
    return found


def combining_order(decompose: Apply, unstable: frozenset[str]) -> dict[str, int]:
    """{mark: number of its combining class, 1 for the lowest} for all marks that are not in
    `unstable` (the characters that `decompose`, NFD or NFKD, changes)."""
    marks = _marks(decompose, unstable)
    ordered = list(decompose("".join(marks)))  # sorted by class
    if sorted(ordered) != marks:
        raise BrokenTokenizerError("a normalization form changes marks that it leaves alone singly")
    swapped = [b + a for a, b in pairwise(ordered)]
    order, number = {ordered[0]: 1}, 1
    for pair, answer in zip(swapped, ask(decompose, swapped), strict=True):
        number += pair != answer
        order[pair[0]] = number
    return order


def _marks(decompose: Apply, unstable: frozenset[str]) -> list[str]:
    """Characters that change places with marks of the lowest or of the highest class."""
    if decompose(_HIGH + _LOW) != _LOW + _HIGH:
        raise BrokenTokenizerError("a normalization form does not order U+0345 and U+0334")
    found = {_LOW, _HIGH}
    asked = np.ones(LAST_CODE_POINT + 1, dtype=bool)
    asked[[ord(c) for c in unstable]] = False
    for block in blocks():
        check()
        codes = block[asked[block]]
        between = np.full(len(codes), ord(_HIGH)), codes, np.full(len(codes), ord(_LOW))
        joined = text_of(np.column_stack(between))
        if decompose(joined) != joined:
            texts = [_HIGH + c + _LOW for c in text_of(codes)]
            answers = zip(texts, ask(decompose, texts), strict=True)
            found.update(text[1] for text, answer in answers if text != answer)
    return sorted(found)
