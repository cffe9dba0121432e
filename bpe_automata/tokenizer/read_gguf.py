"""The tokenizer inside a GGUF file, as the content of a `tokenizer.json`.

GGUF names the pretokenizer only by a word (`tokenizer.ggml.pre`), so each word that is accepted is
written out here with what it stands for; other words are refused.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bpe_automata.errors import (
    BrokenTokenizerError,
    MissingDependencyError,
    UnsupportedTokenizerError,
)

Json = dict[str, Any]

_CONTROL = 3  # GGUF token type of special tokens
_BYTE_LEVEL: Json = {
    "type": "ByteLevel",
    "add_prefix_space": False,
    "trim_offsets": True,
    "use_regex": True,
}
PRETOKENIZERS: dict[str, Json] = {
    "gpt-2": _BYTE_LEVEL,
    "smollm": {
        "type": "Sequence",
        "pretokenizers": [{"type": "Digits", "individual_digits": True}, _BYTE_LEVEL],
    },
}


def read_gguf(path: Path) -> tuple[Json, tuple[int, ...]]:
    """(the content of the equivalent tokenizer.json, the end-of-sequence ids).

    Raises MissingDependencyError without the `gguf` package, BrokenTokenizerError for a file that
    is not GGUF or holds no tokenizer, UnsupportedTokenizerError for other kinds of tokenizer.
    """
    fields = _fields(path)
    model, kind = fields("tokenizer.ggml.model"), fields("tokenizer.ggml.pre")
    if model != "gpt2":
        raise UnsupportedTokenizerError("GGUF tokenizer model", model, "only gpt2 is read yet")
    if kind not in PRETOKENIZERS:
        known = ", ".join(PRETOKENIZERS)
        raise UnsupportedTokenizerError("GGUF pretokenizer", kind, f"known are {known}")
    tokens: list[str] = fields("tokenizer.ggml.tokens")
    types: list[int] = fields("tokenizer.ggml.token_type")
    data = {
        "version": "1.0",
        "added_tokens": [_added(i, tokens[i]) for i, t in enumerate(types) if t == _CONTROL],
        "normalizer": None,
        "pre_tokenizer": PRETOKENIZERS[kind],
        "post_processor": None,
        "decoder": _BYTE_LEVEL,
        "model": {
            "type": "BPE",
            "vocab": {token: number for number, token in enumerate(tokens)},
            "merges": [merge.split(" ") for merge in fields("tokenizer.ggml.merges")],
        },
    }
    return data, (int(fields("tokenizer.ggml.eos_token_id")),)


def _fields(path: Path) -> Any:
    try:
        from gguf import GGUFReader
    except ImportError as error:
        raise MissingDependencyError(
            "reading GGUF files needs the gguf package: pip install 'bpe-automata[gguf]'"
        ) from error
    try:
        reader = GGUFReader(path)
    except (ValueError, IndexError) as error:
        raise BrokenTokenizerError(f"{path} is not a readable GGUF file: {error}") from error

    def field(name: str) -> Any:
        found = reader.get_field(name)
        if found is None:
            raise BrokenTokenizerError(f"{path} has no field {name!r}")
        return found.contents()

    return field


def _added(number: int, content: str) -> Json:
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": number, "content": content, **flags, "special": True}
