"""What is small enough that everything about it can be computed otherwise: a language, a model
and a tokenizer."""

from __future__ import annotations

import math

import support

from bpe_automata.testing import small_tokenizer
from experiments.models import LoadedModel

PIECES = ("a", "b", "c", "ab", "bc", "abc", "ca", "aa")
"""The tokens of a tiny language; an id is an index into this tuple."""


# A random model, and the distributions of a small case under it, with every tokenization and every
# probability by a pass of its own.


def tiny_llama(tokenizer, seed: int = 2, eos_ids: tuple[int, ...] = (2,)) -> LoadedModel:
    """A random llama over a real vocabulary, in float64 so that sums can be compared closely."""
    model = support.tiny_llama(seed, tokenizer.n_ids, initializer_range=0.3)
    return LoadedModel("tiny smollm2", "", model.double(), tokenizer, eos_ids)


class BruteForce:
    """All probabilities after a prompt at one temperature."""

    def __init__(self, loaded: LoadedModel, prompt: str, temperature: float = 1.0) -> None:
        self.model, self.text, self.temperature = loaded.model, prompt, temperature
        self.tokenizer = loaded.tokenizer
        self.prompt = self.tokenizer.encode(prompt)
        self.ids_of = {}
        for token in range(self.tokenizer.n_ids):
            self.ids_of.setdefault(self.tokenizer.token_bytes(token), []).append(token)
        self.known = {}

    def tokenizations(self, text: bytes):
        if not text:
            return [()]
        return [
            (token, *rest)
            for cut in range(1, len(text) + 1)
            for token in self.ids_of.get(text[:cut], [])
            for rest in self.tokenizations(text[cut:])
        ]

    def canonical(self, answer: str):
        return tuple(self.tokenizer.encode(self.text + answer)[len(self.prompt) :])

    def next_distribution(self, ids):
        import torch

        if ids not in self.known:
            with torch.no_grad():
                logits = self.model(torch.tensor([[*self.prompt, *ids]])).logits[0, -1]
            self.known[ids] = (logits / self.temperature).softmax(-1)
        return self.known[ids]

    def free(self, path):
        return math.prod(float(self.next_distribution(path[:i])[t]) for i, t in enumerate(path))

    def masked(self, path, paths):
        """Renormalised at each step over what some path of `paths` allows."""
        result = 1.0
        for i, token in enumerate(path):
            options = {other[i] for other in paths if len(other) > i and other[:i] == path[:i]}
            distribution = self.next_distribution(path[:i])
            result *= float(distribution[token]) / sum(
                float(distribution[option]) for option in options
            )
        return result

    def distribution(self, spelled):
        """The masked distribution over answers; spelled: the paths of each answer."""
        paths = [path for each in spelled for path in each]
        return [sum(self.masked(path, paths) for path in each) for each in spelled]


# A tokenizer of some hundred tokens.

ASCII = [chr(byte) for byte in range(0x20, 0x7F)]
MERGES = [("t", "r"), ("tr", "u"), ("tru", "e"), ('"', ":"), ("a", '":')]
TABLE = small_tokenizer([*ASCII, "\n", "tr", "tru", "true", '":', 'a":'], MERGES, added=["<end>"])
