"""A causal language model of transformers as a callable ids -> logits, with its cache kept."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import torch
from transformers.cache_utils import DynamicLayer
from transformers.generation import GenerateDecoderOnlyOutput

from bpe_automata.decoding.drafts import common_length
from bpe_automata.errors import PromptError, TokenOutOfRangeError, UnsupportedFeatureError


class CausalModel:
    """model(ids) = the logits of a fresh forward pass over ids, at its last position.

    `model`: a decoder of transformers, in evaluation mode. The ids that the last call and the new
    ids have in common are kept in the cache, the rest is cropped from it, and the remaining ids go
    through the model in one pass. The result is that of a fresh pass up to rounding.

    A cache that cannot be cropped exactly (sliding window, state space, linear attention, rounded)
    is not used: each call then reads all ids afresh. `cached` says whether a cache is used.

    `passes`: forward passes; `fed`: ids that went through them; `cropped`: how often ids were taken
    back from the cache. One sequence at a time: going back and forth between several, as `smc` does
    between particles, is exact, and crops each time; several of these may share `model`. If the
    model raises, the cache is dropped, and the next call starts afresh.

    Raises UnsupportedFeatureError for encoder-decoder models, models in training mode, and lengths
    at which rope scaling changes.
    """

    def __init__(self, model: Any) -> None:
        check_evaluated(model)
        self.model = model
        self.passes = self.cropped = self.fed = 0
        self.cached = True
        self._cache: Any = None
        self._ids: list[int] = []
        self._embedded = int(model.get_input_embeddings().weight.shape[0])
        self._last_only = {"logits_to_keep": 1} if takes(model, "logits_to_keep") else {}
        self._masked = takes(model, "attention_mask")

    def __call__(self, ids: Sequence[int]) -> np.ndarray:
        """ids: at least one -> float32 [V].

        Raises PromptError (no ids), TokenOutOfRangeError, and what the model raises."""
        ids = [int(token) for token in ids]
        self._check(ids)
        kept = self._crop(ids)
        try:
            logits = self._forward(ids, kept)
        except BaseException:
            self._cache, self._ids = None, []  # some layers may have read the ids, others not
            raise
        self._ids = ids if self._cache is not None else []
        return logits

    def _check(self, ids: list[int]) -> None:
        if not ids:
            raise PromptError("no ids: the model needs at least one")
        if not 0 <= min(ids) <= max(ids) < self._embedded:
            wrong = next(token for token in ids if not 0 <= token < self._embedded)
            raise TokenOutOfRangeError(f"id {wrong} is not in 0 .. {self._embedded - 1}")
        check_positions(self.model.config, len(ids))

    def _crop(self, ids: list[int]) -> int:
        """Crop the cache to a beginning of `ids` that is not the whole. Returns its length."""
        kept = min(common_length(self._ids, ids), len(ids) - 1)
        if kept < len(self._ids):
            self.cropped += 1
            self._cache.crop(kept - len(self._ids))
        return kept

    @torch.no_grad()
    def _forward(self, ids: list[int], kept: int) -> np.ndarray:
        read = torch.tensor([ids[kept:]], device=self.model.device)
        inputs: dict[str, Any] = {"input_ids": read, "use_cache": self.cached, **self._last_only}
        if self._masked:  # without a mask, some models take the padding id for padding
            inputs["attention_mask"] = torch.ones(1, len(ids), dtype=torch.long, device=read.device)
        if kept:
            inputs[CACHE] = self._cache
        output = self.model(**inputs, return_dict=True)
        self.passes += 1
        self.fed += len(ids) - kept
        cache = getattr(output, CACHE, None)
        self.cached = self.cached and _croppable(self.model, cache)
        self._cache = cache if self.cached else None
        found: np.ndarray = output.logits[0, -1].to(torch.float32).cpu().numpy()
        return found


def _croppable(model: Any, cache: Any) -> bool:
    """Does each layer hold every position, so that cropping leaves the cache of a shorter text?"""
    layers = getattr(cache, "layers", ())
    plain = bool(layers) and all(type(layer) is DynamicLayer for layer in layers)
    return plain and not is_recurrent(model, cache)


# What a model of transformers can do is asked of the model, never guessed from its name.

CACHE = next(
    field.name
    for field in fields(GenerateDecoderOnlyOutput)
    if field.name in ("cache", "past_key_values")
)
"""The key and value cache in transformers: `cache` from 5.24 on, `past_key_values` before."""


def check_decoder(model: Any) -> None:
    """Raises UnsupportedFeatureError for encoder-decoder models."""
    if model.config.is_encoder_decoder:
        raise UnsupportedFeatureError(
            f"{type(model).__name__}, an encoder-decoder model",
            "its answer does not go on with the ids of the prompt; use a decoder-only model",
        )


def check_evaluated(model: Any) -> None:
    """Raises UnsupportedFeatureError for encoder-decoder models and for models that train."""
    check_decoder(model)
    if model.training:
        raise UnsupportedFeatureError("a model in training mode", "call model.eval() first")


def check_positions(config: Any, length: int) -> None:
    """Raises UnsupportedFeatureError if reading `length` ids at once and in parts may differ.

    With rope types "dynamic" and "longrope" all frequencies change once a sequence is long enough
    (`modeling_rope_utils.dynamic_rope_update`), while the keys in the cache stay as they were.
    """
    limit = _fixed_positions(config.get_text_config(decoder=True))
    if limit is not None and length > limit:
        raise UnsupportedFeatureError(
            f"rope scaling that changes with the length, at {length} ids",
            f"a cache is exact up to {limit} ids; give a shorter prompt or fewer new tokens",
        )


def _fixed_positions(config: Any) -> int | None:
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
