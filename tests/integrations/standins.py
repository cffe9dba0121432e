"""Stand-ins for the parts of vLLM 0.33.0 and SGLang 0.5.23 that the integrations touch: both need a
GPU build. `test_real_files` holds them, and the methods that the integrations override, against
the real files where those are installed.
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, NamedTuple

# ---------------------------------------------------------------- vLLM
# Names of vllm/v1/sample/logits_processor/interface.py and
# vllm/v1/worker/gpu/sample/logits_processor/interface.py.


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

    @abstractmethod
    def __init__(self, vllm_config, device, is_pin_memory): ...

    @abstractmethod
    def apply(self, logits): ...

    @abstractmethod
    def is_argmax_invariant(self): ...

    @abstractmethod
    def update_state(self, batch_update): ...


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

    @abstractmethod
    def apply(self, logits, ctx): ...


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


# ---------------------------------------------------------------- SGLang
# Names of sglang/srt/constrained/base_grammar_backend.py and sglang/srt/arg_groups/choices.py
# (offered by sglang/srt/server_args.py).

GRAMMAR_BACKEND_REGISTRY: dict[str, Any] = {}
GRAMMAR_BACKEND_CHOICES = ["xgrammar", "none"]


class GrammarRow(NamedTuple):
    row: int
    grammar: Any


class BaseGrammarObject:
    def __init__(self):
        self.current_token = None

    def maybe_init_reasoning(self, reasoning):
        return None

    @staticmethod
    def fill_vocab_mask_batched(entries, vocab_mask):
        for entry in entries:
            entry.grammar.fill_vocab_mask(vocab_mask, entry.row)


class InvalidGrammarObject(BaseGrammarObject):
    def __init__(self, error_message="Unknown grammar error"):
        super().__init__()
        self.error_message = error_message

    def copy(self):
        return self


class BaseGrammarBackend:
    def __init__(self):
        self.executor = ThreadPoolExecutor()
        self.cache = {}

    def dispatch_fallback(self, key_type, key_string):
        raise ValueError(key_type)

    def dispatch_ebnf(self, key_string):
        return InvalidGrammarObject()

    def _init_value_dispatch(self, key, require_reasoning):
        kind, text = key
        dispatch = {name: getattr(self, f"dispatch_{name}") for name in ("json", "regex", "ebnf")}
        return dispatch[kind](text) if kind in dispatch else self.dispatch_fallback(kind, text)

    def get_cached_or_future_value(self, key, require_reasoning):
        if value := self.cache.get(key):
            found = value.copy()
            found.maybe_init_reasoning(require_reasoning)
            return found, True
        return self.executor.submit(self._init_value_dispatch, key, require_reasoning), False

    def set_cache(self, key, value):
        self.cache[key] = value


CONTENT = {
    "vllm.v1.sample.logits_processor": {
        "LogitsProcessor": LogitsProcessor,
        "BatchUpdate": BatchUpdate,
        "MoveDirectionality": MoveDirectionality,
    },
    "vllm.v1.worker.gpu.sample.logits_processor": {"LogitsProcessor": RunnerLogitsProcessor},
    "vllm.tokenizers": {"cached_tokenizer_from_config": lambda config: config.hosted},
    "sglang.srt.constrained.base_grammar_backend": {
        "BaseGrammarBackend": BaseGrammarBackend,
        "BaseGrammarObject": BaseGrammarObject,
        "InvalidGrammarObject": InvalidGrammarObject,
        "register_grammar_backend": GRAMMAR_BACKEND_REGISTRY.__setitem__,
    },
    "sglang.srt.server_args": {
        "GRAMMAR_BACKEND_CHOICES": GRAMMAR_BACKEND_CHOICES,
        "add_grammar_backend_choices": GRAMMAR_BACKEND_CHOICES.extend,
    },
}


def modules() -> dict[str, ModuleType]:
    """What `sys.modules` needs to hold."""
    found: dict[str, ModuleType] = {}
    for name, content in CONTENT.items():
        parts = name.split(".")
        for end in range(1, len(parts) + 1):
            package = ".".join(parts[:end])
            found.setdefault(package, ModuleType(package))
        vars(found[name]).update(content)
    return found
