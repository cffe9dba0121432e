"""When is decoding with forced ids the same as without? What is not known to be is refused."""

from __future__ import annotations

from typing import Any

import transformers
from transformers import GenerationMixin
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer, StaticLayer
from transformers.generation import logits_process

from bpe_automata.errors import ArgumentError, UnsupportedFeatureError
from bpe_automata.integrations.transformers.support import (
    CACHE,
    check_decoder,
    check_positions,
    is_recurrent,
)

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
"""Logits processors that keep no state, forbid no id that is alone, and allow none that is not."""
HARMLESS = tuple(getattr(logits_process, name) for name in NAMES if hasattr(logits_process, name))
LAYERS = (DynamicLayer, DynamicSlidingWindowLayer, StaticLayer)
OUTPUTS = ("output_scores", "output_logits", "output_attentions", "output_hidden_states")


def check_forced(
    processor: Any, model: Any, processors: Any, config: Any, kwargs: dict[str, Any]
) -> None:
    """Raises UnsupportedFeatureError, or ArgumentError if `processor` is not among `processors`."""
    check_decoder(model)
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
            "it cannot say what is forced; use ConstraintLogitsProcessor or TokenTableProcessor",
        )
    if sum(one is processor for one in processors) != 1:
        raise ArgumentError("give the processor of the forced ids as logits_processor=[...] too")
    for one in processors:
        if one is not processor and type(one) not in HARMLESS:
            raise UnsupportedFeatureError(
                f"{type(one).__name__} with forced ids",
                "it might count steps, or forbid the only id that is left",
            )


def _check_inputs(config: Any, kwargs: dict[str, Any]) -> None:
    if kwargs.get("inputs_embeds") is not None:
        raise UnsupportedFeatureError("inputs_embeds with forced ids", "give input_ids")
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
