"""Forced ids in the loop of transformers: where only one id is possible, the model is not asked.

    forced = ForcedDecoding(processor)
    model.generate(**inputs, custom_generate=forced, logits_processor=[processor])
    forced.passes, forced.saved

The loop emits what `GenerationMixin._sample` of transformers 5.23 and 5.24 emits for the same
arguments and seed, with fewer forward passes. Ids that are forced wait, and go through the model in
one pass with the next id that is not: with several rows, a run is what is forced in every
unfinished row.
`torch.multinomial` takes from the generator by the shape of its argument alone, so what it would
have taken for the forced ids is made up for before the next draw.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import torch
from transformers.generation import GenerateDecoderOnlyOutput

from bpe_automata.integrations.transformers.feeding import Feeder
from bpe_automata.integrations.transformers.forced_checks import check_forced
from bpe_automata.integrations.transformers.support import CACHE


class Forcing(Protocol):
    """`ConstraintLogitsProcessor` and `TokenTableProcessor`."""

    def forced(self, input_ids: torch.Tensor) -> np.ndarray:
        """int64[rows]: the one id that each row allows next; -1 if not one."""
        ...


class ForcedDecoding:
    """A `custom_generate` for greedy decoding and sampling, left-padded batches included.

    `processor`: a `ConstraintLogitsProcessor` or `TokenTableProcessor`, also given as
    `logits_processor=[processor]`. `streamer`: give it here, for
    transformers hands none to a `custom_generate`; it gets the prompt and each id as they are
    emitted. `assistant_model`, `tokenizer` and `synced_gpus` are not handed on either.

    After a call: `passes`, forward passes of the model, each chunk of a prompt that is read in
    chunks (`prefill_chunk_size`) a pass; `saved`, how many fewer than without;
    `forced`, per row, the ids that were emitted without asking the model (end of sequence counts).

    Equal up to rounding in the forward pass, which for several ids at once may differ in the last
    bits. The logits at forced positions are not looked at: NaN there goes unseen. Where the cache
    is given back (`return_dict_in_generate`, or one of the caller's), it holds what it would have.

    Raises UnsupportedFeatureError for what may not be equal: beams, assistants, other logits
    processors than the warpers of sampling and repetition penalties, scores or hidden states in the
    result, encoder-decoder and recurrent models, `inputs_embeds`, caches that round.
    """

    def __init__(self, processor: Forcing, *, streamer: Any = None) -> None:
        self.processor, self.streamer = processor, streamer
        self.passes = self.saved = 0
        self.forced: tuple[int, ...] = ()

    def __call__(
        self,
        model: Any,
        input_ids: torch.Tensor,
        logits_processor: Any,
        stopping_criteria: Any,
        generation_config: Any,
        **model_kwargs: Any,
    ) -> Any:
        """What `generate` calls. int64[rows, width] or GenerateDecoderOnlyOutput."""
        check_forced(self.processor, model, logits_processor, generation_config, model_kwargs)
        feeder = Feeder(model, input_ids, generation_config, model_kwargs)
        first = feeder.chunks(input_ids.shape[1])
        run = Run(self.processor, feeder, logits_processor, stopping_criteria, generation_config)
        if self.streamer is not None:
            self.streamer.put(input_ids.cpu())
        ids = run.all(input_ids, self.streamer)
        self.passes = feeder.passes
        # Without, each id takes a pass, the first one as many as the prompt has chunks.
        self.saved = ids.shape[1] - input_ids.shape[1] - 1 + first - feeder.passes
        self.forced = tuple(run.forced.tolist())
        if self.streamer is not None:
            self.streamer.end()
        if generation_config.return_dict_in_generate:
            return GenerateDecoderOnlyOutput(sequences=ids, **{CACHE: feeder.cache})
        return ids


class Run:
    """One call: the rows on their way."""

    def __init__(
        self,
        processor: Forcing,
        feeder: Feeder,
        logits_processor: Any,
        stopping_criteria: Any,
        config: Any,
    ) -> None:
        self.processor, self.feeder = processor, feeder
        self.logits_processor, self.stopping_criteria = logits_processor, stopping_criteria
        self.sampling = bool(config.do_sample)
        self.pad_id = config._pad_token_tensor
        # Only with an end of sequence does transformers pad rows that have ended.
        self.pads = any(hasattr(one, "eos_token_id") for one in stopping_criteria)
        self.owed = 0
        """Draws that the forced positions would have made since the last one."""

    def all(self, input_ids: torch.Tensor, streamer: Any) -> torch.Tensor:
        """The ids with their completion."""
        ids = input_ids
        unfinished = torch.ones(len(ids), dtype=torch.long, device=ids.device)
        self.forced = torch.zeros_like(unfinished)
        while bool(unfinished.max()):
            tokens = self._forced(ids, unfinished)
            if tokens is None:
                tokens = self._drawn(ids)
            else:
                self.forced += unfinished
                self.owed += self.sampling
            if self.pads:
                pad = self.pad_id.to(ids.device)
                tokens = torch.where(unfinished.bool(), tokens, pad)
            ids = torch.cat([ids, tokens[:, None]], dim=1)
            unfinished = unfinished & ~self.stopping_criteria(ids, None)
            if streamer is not None:
                streamer.put(tokens.cpu())
        self._settle(ids)
        return ids

    def _forced(self, ids: torch.Tensor, unfinished: torch.Tensor) -> torch.Tensor | None:
        """int64[rows] if each row that counts has only one id left; else None."""
        found = torch.from_numpy(self.processor.forced(ids)).to(ids.device)
        free = found < 0
        if self.pads:
            free &= unfinished.bool()
        return None if bool(free.any()) else found

    def _drawn(self, ids: torch.Tensor) -> torch.Tensor:
        scores = self.logits_processor(ids, self.feeder.logits(ids))
        if not self.sampling:
            return torch.argmax(scores, dim=-1)
        law = torch.nn.functional.softmax(scores, dim=-1)
        self._pay(law)
        return torch.multinomial(law, num_samples=1).squeeze(1)

    def _pay(self, law: torch.Tensor) -> None:
        """Take from torch's generator what the forced positions would have taken."""
        for _ in range(self.owed):
            torch.multinomial(torch.ones_like(law), num_samples=1)
        self.owed = 0

    def _settle(self, ids: torch.Tensor) -> None:
        """Leave the generator, and a cache that is given back, as the other loop leaves them."""
        read = ids[:, :-1]
        if self.feeder.gives_cache_back or (self.owed and self.feeder.width is None):
            self.feeder.read(read)
        if self.owed:
            shape = (len(ids), self.feeder.width)
            self._pay(torch.empty(shape, dtype=torch.float32, device=ids.device))
