"""Where a model runs."""

from __future__ import annotations

from bpe_automata.errors import MissingFileError
from experiments.run.optional import require


def pick_device(device: str) -> str:
    """ "auto" is the GPU if there is one. Raises `MissingFileError` for a GPU that is not there."""
    has_gpu = require("torch").cuda.is_available()
    if device == "auto":
        return "cuda" if has_gpu else "cpu"
    if device == "cuda" and not has_gpu:
        raise MissingFileError("no CUDA device was found by torch; use --device cpu")
    return device
