"""A causal language model of transformers as a callable ids -> logits, with its cache kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from transformers.cache_utils import DynamicLayer

from bpe_automata.decoding.drafts import common_length
from bpe_automata.errors import PromptError, TokenOutOfRangeError
from bpe_automata.integrations.transformers.support import (
    CACHE,
    check_decoder,
    check_positions,
    is_recurrent,
    takes,
)


class CausalModel:
    """model(ids) = the logits of a fresh forward pass over ids, at its last position.

    `model`: a decoder of transformers, in evaluation mode. What the cache of the last call and the
    new ids have in common is kept, the rest is cropped from the cache, and all ids that are left go
    through the model in one pass. The result is that of a fresh pass up to rounding.

    A cache that cannot be cropped exactly (sliding window, state space, linear attention, rounded)
    is never cropped, nor is one used: then each call reads all ids afresh. `cached` says which.

    `passes`: forward passes; `fed`: ids that went through them; `cropped`: how often ids were taken
    back from the cache. One sequence at a time: going back and forth between several, as `smc` does
    between particles, is exact, and crops each time; several of these may share `model`. If the
    model raises, the cache is dropped, and the next call starts afresh.

    Raises UnsupportedFeatureError for encoder-decoder models, models in training mode, and lengths
    at which rope scaling changes.
    """

    def __init__(self, model: Any) -> None:
        check_decoder(model)
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
        """How many ids the cache holds, all of them a beginning of `ids`, and not the whole."""
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
    """Every layer holds every position, so that cropping leaves what a shorter text would have."""
    layers = getattr(cache, "layers", ())
    plain = bool(layers) and all(type(layer) is DynamicLayer for layer in layers)
    return plain and not is_recurrent(model, cache)
