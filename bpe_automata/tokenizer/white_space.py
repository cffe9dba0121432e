"""What `Strip` takes away."""

from __future__ import annotations

import numpy as np

from bpe_automata.storage import load_array, store_array
from bpe_automata.tokenizer.asking import blocks, text_of
from bpe_automata.tokenizer.description import Normalization


def stripped(step: Normalization) -> list[str]:
    """The characters that a "strip" takes away, asked one by one (half a second), then kept on
    disk."""
    key = f"{step.library} stripped"
    stored = load_array("characters", key)
    if stored is not None and stored.dtype == np.int32 and stored.ndim == 1:
        return [chr(c) for c in stored.tolist()]
    found = [c for block in blocks() for c in text_of(block) if not step.apply(c)]
    store_array("characters", key, np.array([ord(c) for c in found], dtype=np.int32))
    return found
