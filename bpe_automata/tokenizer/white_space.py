"""What `Strip` takes away."""

from __future__ import annotations

import numpy as np

from bpe_automata.storage import checked_load, store_arrays
from bpe_automata.tokenizer.asking import blocks, text_of
from bpe_automata.tokenizer.description import Normalization


def stripped(step: Normalization) -> list[str]:
    """The characters that a "strip" takes away, asked one by one (half a second), then kept on
    disk."""
    key = f"{step.library} stripped"
    kept = checked_load("characters", key, "", lambda arrays: list(map(chr, arrays["points"])))
    if kept is not None:
        return kept
    found = [c for block in blocks() for c in text_of(block) if not step.apply(c)]
    points = np.array([ord(c) for c in found], dtype=np.int32)
    store_arrays("characters", key, "", {"points": points})
    return found
