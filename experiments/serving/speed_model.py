"""The language model of what is served: how it is named, and how it is asked."""

from __future__ import annotations

from typing import Any, Literal

from experiments.run.files import require
from experiments.shared.models import LoadedModel

Device = Literal["auto", "cpu", "cuda"]
Dtype = Literal["float32", "bfloat16", "float64"]
MODEL_HELP = "smollm2, gemma-3-270m, or a folder or hub id of a causal LM"
Named = tuple[str, Device, Dtype]
"""Source, device, dtype, as `load_model` takes them."""


def causal(loaded: LoadedModel) -> Any:
    """A callable ids -> logits over the model, with a cache of its own."""
    return require("bpe_automata.integrations.transformers").CausalModel(loaded.model)
