"""The Mistral-7B merge table as a tokenizer of its own, BPE alone, and such a tokenizer as the
published algorithms see it.

No prefix, no splitters, no byte fallback, no added tokens: what the article's algorithms are about.
Then the reference algorithms, which know only base symbols and merges, and the package, which reads
tokenizers, construct the automata of one language.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import Any

from bpe_automata import Tokenizer
from bpe_automata.automata.dfa import ByteDFA
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

MISTRAL = "mistral-v1"
"""The tokenizer of Mistral-7B-v0.1, out of the package mistral-common."""
NAME = "Mistral-7B-v0.1, BPE alone"
_UNUSED = "\ue000"
"""Begins the text of ids that are no text here. No base symbol holds it, so that no merge can."""


@lru_cache(maxsize=1)
def mistral() -> Tokenizer:
    """The complete tokenizer. Raises MissingDependencyError, which says what to install."""
    return Tokenizer.load(MISTRAL)


@lru_cache(maxsize=1)
def mistral_table(merges: int | None = None) -> Tokenizer:
    """BPE alone of the Mistral-7B table, or of its first merges. Raises MissingDependencyError."""
    data = bpe_alone(mistral())
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
    """A tokenizer that is BPE alone, with what the published algorithms make once for all
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
