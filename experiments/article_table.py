"""The Mistral-7B merge table as a tokenizer of its own: BPE alone.

No prefix, no splitters, no byte fallback, no added tokens: what the article's algorithms are about.
Then the reference algorithms, which know only base symbols and merges, and the package, which reads
tokenizers, construct the automata of one language.
"""

from __future__ import annotations

from typing import Any

from bpe_automata import Tokenizer

MISTRAL = "mistral-v1"
"""The tokenizer of Mistral-7B-v0.1, out of the package mistral-common."""
NAME = "Mistral-7B-v0.1, BPE alone"
_UNUSED = "\ue000"
"""Begins the text of ids that are no text here. No base symbol holds it, so that no merge can."""


def mistral_table() -> Tokenizer:
    """BPE alone of the Mistral-7B table. Raises MissingDependencyError, which says what to
    install."""
    return Tokenizer.from_json(bpe_alone_of_mistral(), name=NAME)


def bpe_alone_of_mistral() -> dict[str, Any]:
    """Its `tokenizer.json`."""
    return bpe_alone(Tokenizer.load(MISTRAL))


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
    return {"version": "1.0", "model": {"type": "BPE", "vocab": vocabulary, "merges": merges}}
