"""The effects of a normalizer, found by running it: images of characters, Unicode properties.

Engines differ in their version of Unicode, so decompositions, combining classes and compositions
are taken from the engine itself, not from a table. Many characters go into one call.

A *starter* has combining class 0, as in Unicode Standard Annex 15
(https://www.unicode.org/reports/tr15/); other characters are called *marks* here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from bpe_automata._budget import check
from bpe_automata._storage import checked_load, store_arrays
from bpe_automata.errors import BrokenTokenizerError
from bpe_automata.tokenizer.alphabet import LAST_CODE_POINT
from bpe_automata.tokenizer.description import Normalization

Apply = Callable[[str], str]

SEPARATOR = "\ue000"
"""A private-use character: Unicode promises that no normalization form changes it, composes it or
makes it, and that it is no letter, mark, control or white space."""

_BLOCK = 2048  # the surrogates, which are not text, are exactly one block
_SURROGATES = 0xD800


def apply_to_all(apply: Apply, texts: Sequence[str]) -> list[str]:
    """`apply` of each text, in one call. Raises BrokenTokenizerError if the separators are lost."""
    if not texts:
        return []
    results = apply(SEPARATOR.join(texts)).split(SEPARATOR)
    if len(results) != len(texts):
        raise BrokenTokenizerError(
            f"a normalizer made {len(results)} texts of {len(texts)}, which the private-use "
            f"character U+{ord(SEPARATOR):04X} separated: it changes that character"
        )
    return results


def blocks() -> list[np.ndarray]:
    """int32 arrays: all code points but the surrogates and the separator, in blocks."""
    starts = [first for first in range(0, LAST_CODE_POINT + 1, _BLOCK) if first != _SURROGATES]
    whole = [np.arange(first, first + _BLOCK, dtype=np.int32) for first in starts]
    return [codes[codes != ord(SEPARATOR)] for codes in whole]


def text_of(codes: np.ndarray) -> str:
    """The text of an array of code points, of any shape."""
    return codes.astype("<u4").tobytes().decode("utf-32-le")


@lru_cache(maxsize=16)
def images(apply: Apply, whole_blocks: bool = False) -> dict[str, str]:
    """{c: apply(c)} for every character c that `apply` changes; do not modify the dict.
    `whole_blocks`: a text that `apply` does not change contains no character that it changes, so
    blocks are tried without separators."""
    found: dict[str, str] = {}
    for codes in blocks():
        check()
        parts = codes if whole_blocks else np.insert(codes, slice(1, None), ord(SEPARATOR))
        joined = text_of(parts)
        if apply(joined) != joined:
            characters = list(text_of(codes))
            results = zip(characters, apply_to_all(apply, characters), strict=True)
            found.update((c, result) for c, result in results if c != result)
    return found


def stripped(step: Normalization) -> list[str]:
    """The characters that a "strip" removes, tried one by one (half a second), then stored on
    disk."""
    key = f"{step.library} stripped"
    loaded = checked_load("characters", key, "", lambda arrays: list(map(chr, arrays["points"])))
    if loaded is not None:
        return loaded
    found = [c for block in blocks() for c in text_of(block) if not step.apply(c)]
    points = np.array([ord(c) for c in found], dtype=np.int32)
    store_arrays("characters", key, "", {"points": points})
    return found


# ---------------------------------------------------------------- Unicode properties

# By Unicode's stability policy these keep their classes: 1, and 240 (the highest so far).
_LOW, _HIGH = "\u0334", "\u0345"


@dataclass(frozen=True)
class Composing:
    """unstable: characters that the form changes; decomposed: full canonical decompositions of the
    others that have one; order: mark -> number of its combining class (1, 2, ... ascending);
    composes: a -> {b: the composition of a and b}."""

    unstable: frozenset[str]
    decomposed: dict[str, str]
    order: dict[str, int]
    composes: dict[str, dict[str, str]]


def composing(compose: Apply, decompose: Apply) -> Composing:
    """The properties of a composing form (NFC or NFKC), by that form and NFD of the same engine."""
    unstable = frozenset(images(compose, whole_blocks=True))
    all_decomposed = images(decompose, whole_blocks=True)
    decomposed = {c: d for c, d in all_decomposed.items() if c not in unstable}
    order = combining_order(decompose, frozenset(all_decomposed))
    return Composing(unstable, decomposed, order, _compositions(compose, decomposed))


def _compositions(compose: Apply, decomposed: dict[str, str]) -> dict[str, dict[str, str]]:
    """A stable character c with the decomposition d1...dn is the composition of that of d1...dn-1
    and dn: the algorithm composes in this order, and ends with c."""
    firsts = apply_to_all(compose, [whole[:-1] for whole in decomposed.values()])
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
        raise BrokenTokenizerError(
            "a normalization form changes a sequence of marks of which it changes none alone"
        )
    swapped = [b + a for a, b in pairwise(ordered)]
    order, number = {ordered[0]: 1}, 1
    for pair, result in zip(swapped, apply_to_all(decompose, swapped), strict=True):
        number += pair != result
        order[pair[0]] = number
    return order


def _marks(decompose: Apply, unstable: frozenset[str]) -> list[str]:
    """Characters that change places with marks of the lowest or of the highest class."""
    if decompose(_HIGH + _LOW) != _LOW + _HIGH:
        raise BrokenTokenizerError("a normalization form does not order U+0345 and U+0334")
    found = {_LOW, _HIGH}
    stable = np.ones(LAST_CODE_POINT + 1, dtype=bool)
    stable[[ord(c) for c in unstable]] = False
    for block in blocks():
        check()
        codes = block[stable[block]]
        between = np.full(len(codes), ord(_HIGH)), codes, np.full(len(codes), ord(_LOW))
        joined = text_of(np.column_stack(between))
        if decompose(joined) != joined:
            texts = [_HIGH + c + _LOW for c in text_of(codes)]
            results = zip(texts, apply_to_all(decompose, texts), strict=True)
            found.update(text[1] for text, result in results if text != result)
    return sorted(found)
