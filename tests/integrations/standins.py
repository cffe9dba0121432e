"""Stand-in hosts: put in place for one test module, and held against the real files; and the parts
of vLLM 0.33.0 that the integration touches. vLLM itself needs a GPU build.
"""

from __future__ import annotations

import ast
import enum
import importlib
import importlib.util
import inspect
import sys
import types
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


def imported_with(modules: dict[str, ModuleType], names: list[str]) -> Any:
    """The modules `names` of this package, imported anew while `modules` stand in. A generator for
    a fixture: at the end everything is as it was."""
    with pytest.MonkeyPatch.context() as patch:
        for name, module in modules.items():
            module.__spec__ = ModuleSpec(name, None)
            patch.setitem(sys.modules, name, module)
        for name in names:
            patch.delitem(sys.modules, name, raising=False)
        yield [importlib.import_module(name) for name in names]
        for name in names:
            sys.modules.pop(name, None)


def real_source(package: str, path: str) -> ast.Module:
    """A file of an installed host, parsed and not run; the test is skipped without it."""
    spec = importlib.util.find_spec(package)
    folders = list(spec.submodule_search_locations or []) if spec else []
    found = [Path(folder) / path for folder in folders if (Path(folder) / path).exists()]
    if not found:
        pytest.skip(f"{package} is missing: pip install {package}")
    return ast.parse(found[0].read_text(encoding="utf-8"))


def class_of(tree: ast.Module, name: str) -> ast.ClassDef:
    return next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == name)


def parameters(tree: ast.ClassDef | ast.Module, name: str) -> list[str]:
    """The parameters of a method, or of a function of a module."""
    found = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == name)
    given = found.args
    return [arg.arg for arg in (*given.posonlyargs, *given.args, *given.kwonlyargs)]


def fields(tree: ast.ClassDef) -> list[str]:
    return [n.target.id for n in tree.body if isinstance(n, ast.AnnAssign)]


def methods(standin: type) -> dict[str, list[str]]:
    """The methods that a stand-in class defines itself, with their parameters."""
    found = {}
    for name, member in vars(standin).items():
        function = getattr(member, "__func__", member)
        if inspect.isfunction(function) and (name == "__init__" or not name.startswith("_")):
            found[name] = list(inspect.signature(function).parameters)
    return found


# Names and signatures of vllm/v1/sample/logits_processor/interface.py,
# vllm/v1/worker/gpu/sample/logits_processor/interface.py and vllm/tokenizers (a function).


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
