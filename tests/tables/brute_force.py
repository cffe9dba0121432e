"""The distributions of a small case, with every tokenization and every probability by a pass of its
own."""

from __future__ import annotations

import math

import pytest

from experiments.shared.models import LoadedModel


def tiny_llama(tokenizer, seed: int = 2, eos_ids: tuple[int, ...] = (2,)) -> LoadedModel:
    """A random llama over a real vocabulary, in float64 so that sums can be compared closely."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(seed)
    config = transformers.LlamaConfig(
        vocab_size=tokenizer.n_ids,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        initializer_range=0.3,
    )
    model = transformers.LlamaForCausalLM(config).double().eval()
    return LoadedModel("tiny smollm2", "", model, tokenizer, eos_ids, "cpu", 0.0)


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
