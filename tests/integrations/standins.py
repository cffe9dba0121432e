"""Stand-ins for the parts of vLLM 0.33.0 and SGLang 0.5.23 that the integrations touch: both need a
GPU build. `test_real_files` holds the names that are used against the real files where those are
installed. Records are `SimpleNamespace`s with the fields that are read.
"""

from __future__ import annotations

import enum
from concurrent.futures import ThreadPoolExecutor
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


class MoveDirectionality(enum.Enum):
    UNIDIRECTIONAL = enum.auto()
    SWAP = enum.auto()


class LogitsProcessor:
    """Of both runners of vLLM."""

    def __init__(self, vllm_config, req_states):
        return None


# Names of sglang/srt/constrained/base_grammar_backend.py and sglang/srt/arg_groups/choices.py
# (offered by sglang/srt/server_args.py).

GRAMMAR_BACKEND_REGISTRY: dict[str, Any] = {}
GRAMMAR_BACKEND_CHOICES = ["xgrammar", "none"]


class BaseGrammarObject: ...


class InvalidGrammarObject(BaseGrammarObject):
    def __init__(self, error_message="Unknown grammar error"):
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
        kinds = "json", "regex", "ebnf", "structural_tag"
        dispatch = {name: getattr(self, f"dispatch_{name}") for name in kinds}
        return dispatch[kind](text) if kind in dispatch else self.dispatch_fallback(kind, text)

    def get_cached_or_future_value(self, key, require_reasoning):
        if value := self.cache.get(key):
            return value.copy(), True
        return self.executor.submit(self._init_value_dispatch, key, require_reasoning), False

    def set_cache(self, key, value):
        self.cache[key] = value


CONTENT = {
    "vllm.v1.sample.logits_processor": {
        "LogitsProcessor": LogitsProcessor,
        "MoveDirectionality": MoveDirectionality,
    },
    "vllm.v1.worker.gpu.sample.logits_processor": {"LogitsProcessor": LogitsProcessor},
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
            found.setdefault(package, ModuleType(package)).__spec__ = ModuleSpec(package, None)
        vars(found[name]).update(content)
    return found
