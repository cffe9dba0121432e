"""What a model of transformers can do: asked of the model, never guessed from its name."""

from __future__ import annotations

import inspect
from dataclasses import fields
from typing import Any

from transformers.generation import GenerateDecoderOnlyOutput

from bpe_automata.errors import UnsupportedFeatureError

CACHE = next(
    field.name
    for field in fields(GenerateDecoderOnlyOutput)
    if field.name in ("cache", "past_key_values")
)
"""The key and value cache in transformers: `cache` from 5.24 on, `past_key_values` before."""


def check_decoder(model: Any) -> None:
    """Raises UnsupportedFeatureError for encoder-decoder models and for models that train."""
    if model.config.is_encoder_decoder:
        raise UnsupportedFeatureError("an encoder-decoder model", "only decoders are read here")
    if model.training:
        raise UnsupportedFeatureError("a model in training mode", "call model.eval() first")


def check_positions(config: Any, length: int) -> None:
    """Raises UnsupportedFeatureError if reading `length` ids at once and in parts may differ.

    With rope types "dynamic" and "longrope" all frequencies change once a sequence is long enough
    (`modeling_rope_utils.dynamic_rope_update`), while the keys in the cache stay as they were.
    """
    limit = _steady_positions(config.get_text_config(decoder=True))
    if limit is not None and length > limit:
        raise UnsupportedFeatureError(
            f"rope scaling that changes with the length, at {length} ids",
            f"a cache is exact up to {limit} ids; give a shorter prompt or fewer new tokens",
        )


def _steady_positions(config: Any) -> int | None:
    """How many positions the first frequencies hold for; None if they never change."""
    given = getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None) or {}
    each = [given] if "rope_type" in given else [one for one in given.values() if one]
    limits = []
    for rope in each:
        kind = rope.get("rope_type", "") if isinstance(rope, dict) else ""
        if "dynamic" in kind:
            limits.append(config.max_position_embeddings)
        elif kind == "longrope":
            original = rope.get("original_max_position_embeddings")
            limits.append(original or config.max_position_embeddings)
    return min(limits, default=None)


def is_recurrent(model: Any, cache: Any) -> bool:
    """Does the model keep a state that reading one id at a time may leave different from reading
    many (state-space models, linear attention)?"""
    return bool(
        getattr(model, "_is_stateful", False) or any(getattr(cache, "is_linear", None) or ())
    )


def takes(model: Any, argument: str) -> bool:
    """Does the forward method take an argument of this name?"""
    return argument in inspect.signature(model.forward).parameters
