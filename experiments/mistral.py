"""The Mistral-7B merge table as a tokenizer that is BPE alone, and such a tokenizer in the form
that the published algorithms use.

It has no prefix, splitters, byte fallback or added tokens, as in the article. So the reference
algorithms, which use only base symbols and merges, and the package, which reads whole tokenizers,
construct automata of the same language. For all pairs of tokens it is compared whether one may
follow the other.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from bpe_automata import Tokenizer
from bpe_automata._kernels.bits import clear_bits, packed
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.canonical.geometry import Geometry
from bpe_automata.reference import (
    AllTexts,
    Merge,
    TokenDFA,
    all_texts,
    lift,
    merges_in_order,
    spelled_in_symbols,
    symbol_dfa,
)
from bpe_automata.reference._token_dfa import Token
from bpe_automata.tokenizer.derivation import derive
from experiments.inputs import tokenizer_of
from experiments.lab import Row
from experiments.resources import repeated, timed

MISTRAL = "mistral-v1"
"""The tokenizer of Mistral-7B-v0.1, out of the package mistral-common."""
NAME = "Mistral-7B-v0.1, BPE alone"
_UNUSED = "\ue000"
"""Begins the text of ids that spell none here. No base symbol holds it, so no merge makes it."""


@lru_cache(maxsize=1)
def mistral_table(merges: int | None = None) -> Tokenizer:
    """The Mistral-7B table, or its first merges, as BPE alone. Raises MissingDependencyError."""
    data = bpe_alone(tokenizer_of(MISTRAL))
    data["model"]["merges"] = data["model"]["merges"][:merges]
    return Tokenizer.from_json(data, name=NAME)


def bpe_alone(tokenizer: Tokenizer) -> dict[str, Any]:
    """A `tokenizer.json` with the vocabulary and the merges of a tokenizer over characters (not one
    over bytes). Ids of byte tokens and of tokens without text get a text that nothing makes."""
    description = tokenizer.description
    bytes_ = set(description.byte_tokens.values())
    texts = [
        f"{_UNUSED}{number}" if spelled is None or number in bytes_ else spelled.decode("utf-8")
        for number, spelled in enumerate(description.tokens)
    ]
    merges = [[texts[left], texts[right]] for left, right, _ in description.merges.tolist()]
    vocabulary = {text: number for number, text in enumerate(texts)}
    model = {"type": "BPE", "vocab": vocabulary, "merges": merges}
    return {"version": "1.0", "model": model, "decoder": {"type": "Fuse"}}


class Reference:
    """A tokenizer that is BPE alone, with the parts that the published algorithms make once for all
    regexes."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.merges: list[Merge] = merges_in_order(tokenizer.description)
        self._base: list[Token] = [*tokenizer.description.base.values()]

    @cached_property
    def texts(self) -> AllTexts:
        """The automaton of all texts: Algorithm 3, fused."""
        return all_texts(self._base, self.merges).fused()

    @cached_property
    def spelled(self) -> dict[Token, tuple[Token, ...]]:
        """The base symbols of each token."""
        return spelled_in_symbols(self._base, self.merges)

    def symbols(self, dfa: ByteDFA) -> TokenDFA:
        """The language of a DFA over bytes, over base symbols."""
        return symbol_dfa(self.tokenizer.description, dfa)

    def lifted(self, dfa: ByteDFA) -> TokenDFA:
        """All tokenizations of it."""
        return lift(self.symbols(dfa), self.spelled)


# The pairs of tokens that may follow each other: Algorithm 3, and rectangles.


def rectangles(table: Tokenizer) -> Row:
    """Time and counts of the package's derivations and rectangles."""
    Geometry(derive(table.description))  # loads the kernels
    spent = repeated(lambda: Geometry(derive(table.description)), 7)
    return {"spent": spent, "rectangles": len(derive(table.description).proper)}


def algorithm_3(table: Tokenizer) -> Row:
    """Algorithm 3 in plain Python; then each pair of tokens is compared with the rectangles."""
    merges = merges_in_order(table.description)
    spent, texts = timed(lambda: all_texts(table.description.base.values(), merges))
    row = {"spent": spent, "states": len(texts.forbidden)}
    row["forbidden"] = sum(map(len, texts.forbidden))
    return row | compared(texts.fused(), Geometry(derive(table.description)))


def compared(texts: AllTexts, geometry: Geometry) -> Row:
    """Counts of the pairs of tokens, and of those on which the two differ."""
    every = packed(texts.delta, geometry.n_words * 32)
    allowed = [every.copy() for _ in texts.forbidden]
    for row, forbidden in zip(allowed, texts.forbidden, strict=True):
        clear_bits(row, np.array([*forbidden], dtype=np.int64))
    counts: Row = {"tokens": len(texts.delta), "pairs": len(texts.delta) ** 2}
    counts |= {"forbidden pairs": counts["pairs"], "differences by row": 0}
    for token, state in texts.delta.items():
        row, bits = allowed[state], every.copy()
        geometry.clear_followers(token, bits)
        counts["forbidden pairs"] -= int(np.bitwise_count(row.view(np.uint32)).sum())
        counts["differences by row"] += int(np.bitwise_count((bits ^ row).view(np.uint32)).sum())
    return counts
