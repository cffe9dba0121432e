"""A stand-in for the parts of vLLM 0.33.0 that the integration touches: names and signatures of

vllm/v1/sample/logits_processor/interface.py, vllm/v1/sample/logits_processor/__init__.py,
vllm/v1/worker/gpu/sample/logits_processor/interface.py and vllm/tokenizers (a function).

vLLM itself needs a GPU build. `test_vllm_signatures` holds these against the real files where they
are installed.
"""

from __future__ import annotations

import enum
import types
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

VERSION = "0.33.0"


class MoveDirectionality(enum.Enum):
    UNIDIRECTIONAL = enum.auto()
    SWAP = enum.auto()


@dataclass(frozen=True)
class BatchUpdate:
    batch_size: int
    removed: list[int]
    added: list[tuple[int, Any, list[int] | None, list[int]]]
    moved: list[tuple[int, int, MoveDirectionality]]


class LogitsProcessor(ABC):
    """Of the V1 runner."""

    @classmethod
    def validate_params(cls, sampling_params):
        return None

    @abstractmethod
    def __init__(self, vllm_config, device, is_pin_memory):
        raise NotImplementedError

    @abstractmethod
    def apply(self, logits):
        raise NotImplementedError

    @abstractmethod
    def is_argmax_invariant(self):
        raise NotImplementedError

    @abstractmethod
    def update_state(self, batch_update):
        raise NotImplementedError


@dataclass(frozen=True)
class LogitsProcRequestState:
    device: Any
    max_num_reqs: int
    vocab_size: int
    all_token_ids: Any
    prompt_len: Any
    prefill_len: Any
    total_len: Any


@dataclass(frozen=True)
class LogitsContext:
    expanded_idx_mapping: Any
    idx_mapping: Any
    idx_mapping_np: Any
    expanded_local_pos: Any
    input_ids: Any
    pos: Any
    seq_lens_upper_bound_np: Any


class RunnerLogitsProcessor(ABC):
    """Of the V2 runner, where it is called LogitsProcessor too."""

    def __init__(self, vllm_config, req_states):
        return None

    @classmethod
    def validate_params(cls, sampling_params):
        return None

    def add_request(self, req_idx, sampling_params):
        return True

    def apply_staged_writes(self):
        return None

    @abstractmethod
    def apply(self, logits, ctx):
        raise NotImplementedError


@dataclass
class SamplingParams:
    extra_args: dict[str, Any] | None = None
    structured_outputs: Any = None
    allowed_token_ids: list[int] | None = None
    bad_words: list[str] | None = None
    thinking_token_budget: int | None = None
    min_tokens: int = 0


@dataclass
class ModelConfig:
    """`hosted`: what vLLM's own function makes of this config."""

    hosted: Any
    vocab_size: int
    generation: dict[str, Any] = field(default_factory=dict)
    tokenizer: str = "a name of no folder"

    def get_vocab_size(self):
        return self.vocab_size

    def try_get_generation_config(self):
        return self.generation


@dataclass
class VllmConfig:
    model_config: ModelConfig
    speculative_config: Any = None


def modules() -> dict[str, types.ModuleType]:
    """What `sys.modules` needs to hold."""
    v1 = "vllm.v1.sample.logits_processor"
    v2 = "vllm.v1.worker.gpu.sample.logits_processor"
    names = {
        v1: {
            "LogitsProcessor": LogitsProcessor,
            "BatchUpdate": BatchUpdate,
            "MoveDirectionality": MoveDirectionality,
        },
        v2: {
            "LogitsProcessor": RunnerLogitsProcessor,
            "LogitsContext": LogitsContext,
            "LogitsProcRequestState": LogitsProcRequestState,
        },
        "vllm.tokenizers": {"cached_tokenizer_from_config": lambda config: config.hosted},
    }
    found = {}
    for name, content in names.items():
        parts = name.split(".")
        for end in range(1, len(parts)):
            found.setdefault(".".join(parts[:end]), types.ModuleType(".".join(parts[:end])))
        found[name] = types.ModuleType(name)
        vars(found[name]).update(content)
    return found
