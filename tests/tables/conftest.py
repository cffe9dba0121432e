"""Random models so small that their sums can be computed otherwise."""

from __future__ import annotations

import numpy as np
import pytest
from tiny import loaded_model


@pytest.fixture(scope="session")
def loaded(smollm2_tokenizer):
    """A random model over a real vocabulary."""
    return loaded_model(smollm2_tokenizer)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)
