"""Random models so small that their sums can be computed otherwise."""

from __future__ import annotations

import numpy as np
import pytest
from support import tiny_llama
from tiny import loaded_model


@pytest.fixture(scope="session")
def tiny_model():
    """A random llama with 8 ids, in float64 so that sums can be compared closely."""
    heads = {"num_attention_heads": 4, "initializer_range": 0.5}
    return tiny_llama(0, 8, size=32, layers=2, **heads).double()


@pytest.fixture(scope="session")
def loaded(smollm2_tokenizer):
    """A random model over a real vocabulary."""
    return loaded_model(smollm2_tokenizer)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)
