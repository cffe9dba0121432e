"""The language model of what is served, loaded once a process."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal

from experiments.run.optional import require
from experiments.shared.models import LoadedModel, load_model, use_threads

Device = Literal["auto", "cpu", "cuda"]
Dtype = Literal["float32", "bfloat16", "float64"]
Named = tuple[str, Device, Dtype]
"""Source, device, dtype, as `load_model` takes them."""


@lru_cache(maxsize=1)
def opened(named: Named) -> LoadedModel:
    """The model with its tokenizer. Raises what `load_model` raises."""
    use_threads()
    return load_model(*named)


def causal(loaded: LoadedModel) -> Any:
    """A callable ids -> logits over the model, with a cache of its own."""
    return require("bpe_automata.integrations.transformers").CausalModel(loaded.model)
