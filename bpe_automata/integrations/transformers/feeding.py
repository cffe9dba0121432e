"""Several new ids in one forward pass, with transformers' own bookkeeping of caches and masks."""

from __future__ import annotations

from typing import Any

import torch
from transformers.utils import ModelOutput

from bpe_automata.integrations.transformers.support import CACHE


class Feeder:
    """Gives the model the ids that it has not read yet.

    `prompts`: int64[rows, width]; `kwargs`: what `generate` prepared for them (cache, attention
    mask, position ids, ...). `passes`: forward passes; `width`: how many logits the model gives,
    None until it was asked.
    """

    def __init__(self, model: Any, prompts: torch.Tensor, config: Any, kwargs: Any) -> None:
        self.model, self.config, self.kwargs = model, config, kwargs
        self.passes = 0
        self.width: int | None = None
        self._prompt = self._covered = int(prompts.shape[1])
        self._read = 0
        # `_prefill` tells ids that are in a filled cache from new ones by the length of the prompt
        # alone, and cuts chunks of it: then nothing else may come with it.
        filled = self.cache is not None and self.cache.get_seq_length() > 0
        self._alone = filled or config.prefill_chunk_size is not None

    @property
    def cache(self) -> Any:
        """The key and value cache; None without."""
        return self.kwargs.get(CACHE)

    @property
    def gives_cache_back(self) -> bool:
        """Does the caller see the cache after the end?"""
        theirs = getattr(self.cache, "_is_user_defined", False)
        return self.cache is not None and bool(theirs or self.config.return_dict_in_generate)

    def read(self, ids: torch.Tensor) -> None:
        """See to it that the model has read all of `ids`, int64[rows, length]."""
        if self._read < ids.shape[1]:
            self.logits(ids)

    def logits(self, ids: torch.Tensor) -> torch.Tensor:
        """float32[rows, V] after `ids`, of which at least the last is new."""
        if not self._read and self._alone and ids.shape[1] > self._prompt:
            self._pass(ids[:, : self._prompt])
        output = self._pass(ids)
        # As transformers does: a copy, so that the logits of a long prompt can be freed.
        last = output.logits[:, -1].to(copy=True, dtype=torch.float32, device=ids.device)
        self.width = int(last.shape[1])
        return last

    def chunks(self, length: int) -> int:
        """How many passes the first `length` ids take, before any was read: `_prefill` cuts what is
        not in the cache into chunks, if it is told to."""
        size = self.config.prefill_chunk_size
        if size is None:
            return 1
        past = 0 if self.cache is None else int(self.cache.get_seq_length())
        return -(-((length - past) or length) // size)

    def _pass(self, ids: torch.Tensor) -> Any:
        """One forward pass over what is new."""
        self._cover(ids.shape[1])
        if not self._read:
            self.passes += self.chunks(ids.shape[1])
            first = not self.config.is_assistant
            output = self.model._prefill(ids, self.config, self.kwargs, is_first_iteration=first)
        else:
            new = ids.shape[1] - self._read if self.kwargs["use_cache"] else None
            inputs = self.model.prepare_inputs_for_generation(
                ids, next_sequence_length=new, **self.kwargs
            )
            self.passes += 1
            output = self.model(**inputs, return_dict=True)
        self._read = int(ids.shape[1])
        if CACHE in output:
            self.kwargs[CACHE] = output[CACHE]
        return output

    def _cover(self, length: int) -> None:
        """Let mask and position ids reach `length` ids, one by one, as the other loop does."""
        for _ in range(length - self._covered):
            self.kwargs = self.model._update_model_kwargs_for_generation(ModelOutput(), self.kwargs)
        self._covered = max(self._covered, length)
