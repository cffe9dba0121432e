"""A tiny model over the tiny language, so that the sums of the tables can be checked by hand."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np
import pytest
from tiny import PIECES


@pytest.fixture(scope="session")
def tiny_model():
    """A random llama with 8 ids, 2 layers, in float64 so that sums can be compared closely."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=len(PIECES),
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        initializer_range=0.5,
    )
    return transformers.LlamaForCausalLM(config).double().eval()


@pytest.fixture(scope="session")
def naive_log_prob(tiny_model):
    """log P(ids | prompt) of the tiny model, one forward pass for each id."""
    import torch

    def log_prob(prompt: list[int], ids: Sequence[int]) -> float:
        total = 0.0
        for i, token in enumerate(ids):
            inputs = torch.tensor([[*prompt, *ids[:i]]])
            with torch.no_grad():
                logits = tiny_model(inputs).logits[0, -1]
            total += float(torch.log_softmax(logits, -1)[token])
        return total

    return log_prob


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


@pytest.fixture(autouse=True)
def _no_figures_left():
    """Reports that a test does not write keep their figures open."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
