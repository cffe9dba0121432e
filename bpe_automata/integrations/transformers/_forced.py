"""Forced ids in the loop of transformers: where only one id is possible, the model is not asked.

    forced = ForcedDecoding(processor)
    model.generate(**inputs, custom_generate=forced, logits_processor=[processor])
    forced.passes, forced.saved

The loop emits what `GenerationMixin._sample` of transformers 5.23 and 5.24 emits for the same
arguments and seed, with fewer forward passes. Forced ids wait, and go through the model in one pass
with the next id that is not forced; with several rows, a position counts as forced if it is so in
every unfinished row. How much randomness `torch.multinomial` consumes depends on the shape of its
argument alone, so what it would have consumed for forced ids is consumed before the next draw.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import torch
import transformers
from transformers import GenerationMixin
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer, StaticLayer
from transformers.generation import GenerateDecoderOnlyOutput, logits_process
from transformers.utils import ModelOutput

from bpe_automata.errors import ArgumentError, UnsupportedFeatureError
from bpe_automata.integrations.transformers._model import (
    CACHE,
    check_evaluated,
    check_positions,
    is_recurrent,
)


class Forcing(Protocol):
    """What is needed of a `ConstraintLogitsProcessor`, or of another processor like it."""

    def forced(self, input_ids: torch.Tensor) -> np.ndarray:
        """int64[rows]: the only id that each row allows next; -1 if not just one."""
        ...


class ForcedDecoding:
    """A `custom_generate` for greedy decoding and sampling, left-padded batches included.

    `processor`: a `ConstraintLogitsProcessor`, also given as `logits_processor=[processor]`.
    `streamer`: must be given here, as transformers hands none to a `custom_generate`; it gets the
    prompt and each id as they are emitted. transformers does not hand on `assistant_model`,
    `tokenizer` and `synced_gpus` either.

    After a call: `passes`, forward passes of the model; `saved`, how many fewer than without this;
    `forced`, per row, how many ids were emitted without asking the model (end of sequence counts).

    The result is equal up to rounding in the forward pass, which for several ids at once may differ
    in the last bits. The logits at forced positions are never read, so NaN there is not noticed. A
    cache that is given back (`return_dict_in_generate`) holds what it would hold anyway.

    Raises UnsupportedFeatureError for what may not be equal: beams, assistants, other logits
    processors than the warpers of sampling and repetition penalties, scores or hidden states in the
    result, encoder-decoder and recurrent models, `inputs_embeds`, caches that round or are the
    caller's, prompts that are read in chunks (`prefill_chunk_size`).
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
        run = Run(self.processor, feeder, logits_processor, stopping_criteria, generation_config)
        if self.streamer is not None:
            self.streamer.put(input_ids.cpu())
        ids = run.all(input_ids, self.streamer)
        self.passes = feeder.passes
        # Without forced ids, each id takes a pass.
        self.saved = ids.shape[1] - input_ids.shape[1] - feeder.passes
        self.forced = tuple(run.forced.tolist())
        if self.streamer is not None:
            self.streamer.end()
        if generation_config.return_dict_in_generate:
            return GenerateDecoderOnlyOutput(sequences=ids, **{CACHE: feeder.cache})
        return ids


class Run:
    """One call of the loop, and the state of its rows."""

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
        """int64[rows], the next ids, if each row that counts allows only one; else None."""
        found = torch.from_numpy(self.processor.forced(ids)).to(ids.device)
        free = found < 0
        if self.pads:
            free &= unfinished.bool()
        return None if bool(free.any()) else found

    def _drawn(self, ids: torch.Tensor) -> torch.Tensor:
        scores = self.logits_processor(ids, self.feeder.logits(ids))
        if not self.sampling:
            return torch.argmax(scores, dim=-1)
        distribution = torch.nn.functional.softmax(scores, dim=-1)
        self._pay(distribution)
        return torch.multinomial(distribution, num_samples=1).squeeze(1)

    def _pay(self, distribution: torch.Tensor) -> None:
        """Consume of torch's generator what the forced positions would have consumed."""
        for _ in range(self.owed):
            torch.multinomial(torch.ones_like(distribution), num_samples=1)
        self.owed = 0

    def _settle(self, ids: torch.Tensor) -> None:
        """Leave the generator, and a cache that is given back, as transformers' loop does."""
        read = ids[:, :-1]
        if self.feeder.gives_cache_back or (self.owed and self.feeder.width is None):
            self.feeder.read(read)
        if self.owed:
            shape = (len(ids), self.feeder.width)
            self._pay(torch.empty(shape, dtype=torch.float32, device=ids.device))


# Several new ids in one forward pass, with the bookkeeping of caches and masks that transformers
# has.


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
        self._covered = int(prompts.shape[1])
        self._read = 0

    @property
    def cache(self) -> Any:
        """The key and value cache; None without."""
        return self.kwargs.get(CACHE)

    @property
    def gives_cache_back(self) -> bool:
        """Does the caller see the cache after the end?"""
        return self.cache is not None and bool(self.config.return_dict_in_generate)

    def read(self, ids: torch.Tensor) -> None:
        """Make sure that the model has read all of `ids`, int64[rows, length]."""
        if self._read < ids.shape[1]:
            self.logits(ids)

    def logits(self, ids: torch.Tensor) -> torch.Tensor:
        """float32[rows, V] after `ids`, of which at least the last is new."""
        output = self._pass(ids)
        # As transformers does: a copy, so that the logits of a long prompt can be freed.
        last = output.logits[:, -1].to(copy=True, dtype=torch.float32, device=ids.device)
        self.width = int(last.shape[1])
        return last

    def _pass(self, ids: torch.Tensor) -> Any:
        """One forward pass over the ids that are new."""
        self._cover(ids.shape[1])
        if not self._read:
            first = not self.config.is_assistant
            output = self.model._prefill(ids, self.config, self.kwargs, is_first_iteration=first)
        else:
            new = ids.shape[1] - self._read if self.kwargs["use_cache"] else None
            inputs = self.model.prepare_inputs_for_generation(
                ids, next_sequence_length=new, **self.kwargs
            )
            output = self.model(**inputs, return_dict=True)
        self.passes += 1
        self._read = int(ids.shape[1])
        if CACHE in output:
            self.kwargs[CACHE] = output[CACHE]
        return output

    def _cover(self, length: int) -> None:
        """Extend mask and position ids to `length` ids, one by one, as transformers' loop does."""
        for _ in range(length - self._covered):
            self.kwargs = self.model._update_model_kwargs_for_generation(ModelOutput(), self.kwargs)
        self._covered = max(self._covered, length)


# Is decoding with forced ids the same as without? What may differ is refused.

MODES = ("greedy_search", "sample")
NAMES = (
    "TemperatureLogitsWarper",
    "TopHLogitsWarper",
    "TopKLogitsWarper",
    "TopPLogitsWarper",
    "MinPLogitsWarper",
    "TypicalLogitsWarper",
    "EpsilonLogitsWarper",
    "EtaLogitsWarper",
    "LogitNormalization",
    "InfNanRemoveLogitsProcessor",
    "RepetitionPenaltyLogitsProcessor",
    "EncoderRepetitionPenaltyLogitsProcessor",
)
"""Stateless logits processors that never forbid the only allowed id or allow a forbidden one."""
HARMLESS = tuple(getattr(logits_process, name) for name in NAMES if hasattr(logits_process, name))
LAYERS = (DynamicLayer, DynamicSlidingWindowLayer, StaticLayer)
OUTPUTS = ("output_scores", "output_logits", "output_attentions", "output_hidden_states")


def check_forced(
    processor: Any, model: Any, processors: Any, config: Any, kwargs: dict[str, Any]
) -> None:
    """Raises UnsupportedFeatureError, or ArgumentError if `processor` is not among `processors`."""
    check_evaluated(model)
    _check_mode(config)
    _check_processors(processor, processors)
    _check_inputs(config, kwargs)
    _check_model(model, config, kwargs)


def _check_mode(config: Any) -> None:
    mode = str(config.get_generation_mode().value)
    if mode not in MODES:
        raise UnsupportedFeatureError(
            f"generation mode {mode} with forced ids", f"only {' and '.join(MODES)} are the same"
        )


def _check_processors(processor: Any, processors: Any) -> None:
    if not callable(getattr(processor, "forced", None)):
        raise UnsupportedFeatureError(
            f"{type(processor).__name__} with forced ids",
            "it cannot say what is forced; use ConstraintLogitsProcessor",
        )
    if sum(one is processor for one in processors) != 1:
        raise ArgumentError("give the processor of the forced ids as logits_processor=[...] too")
    for one in processors:
        if one is not processor and type(one) not in HARMLESS:
            raise UnsupportedFeatureError(
                f"{type(one).__name__} with forced ids",
                "it might count steps, or forbid the only id that is allowed",
            )


def _check_inputs(config: Any, kwargs: dict[str, Any]) -> None:
    if kwargs.get("inputs_embeds") is not None:
        raise UnsupportedFeatureError("inputs_embeds with forced ids", "give input_ids")
    if config.prefill_chunk_size is not None:
        raise UnsupportedFeatureError("prefill_chunk_size with forced ids", "leave it out")
    if getattr(kwargs.get(CACHE), "_is_user_defined", False):
        raise UnsupportedFeatureError("a cache of one's own with forced ids", "leave it out")
    asked = [name for name in OUTPUTS if getattr(config, name, False)]
    if asked and config.return_dict_in_generate:
        raise UnsupportedFeatureError(
            f"{asked[0]} with forced ids", "the model is not asked where only one id is possible"
        )


def _check_model(model: Any, config: Any, kwargs: dict[str, Any]) -> None:
    name, cache = type(model).__name__, kwargs.get(CACHE)
    if is_recurrent(model, cache):
        raise UnsupportedFeatureError(
            f"{name} with forced ids", "its state may depend on how many ids are read at once"
        )
    for layer in getattr(cache, "layers", ()):
        if type(layer) not in LAYERS:
            raise UnsupportedFeatureError(
                f"a cache of {type(layer).__name__} with forced ids",
                "it may depend on how many ids are read at once",
            )
    own = type(model)._update_model_kwargs_for_generation
    if own is not GenerationMixin._update_model_kwargs_for_generation:
        raise UnsupportedFeatureError(
            f"{name} with forced ids", "it keeps books of its own on the ids that are read"
        )
    if not hasattr(model, "_prefill"):
        raise UnsupportedFeatureError(
            f"transformers {transformers.__version__} with forced ids",
            "5.23 and 5.24 are known to work",
        )
    check_positions(model.config, config.max_length)
