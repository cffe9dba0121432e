"""What the word `tokenizer.ggml.pre` of a GGUF file stands for, as in a `tokenizer.json`.

Source: llama.cpp, src/llama-vocab.cpp (the words, and which of them ignore merges). Where it
rewrites the pattern of the model's own tokenizer.json for its own engine, the model's own is taken.
"""

from __future__ import annotations

from typing import Any

from bpe_automata.errors import UnsupportedTokenizerError
from bpe_automata.tokenizer.sources.patterns import DEEPSEEK_V3, LLAMA3, QWEN, TEKKEN

Json = dict[str, Any]

BYTE_LEVEL: Json = {
    "type": "ByteLevel",
    "add_prefix_space": False,
    "trim_offsets": True,
    "use_regex": True,
}
_DIGITS: Json = {"type": "Digits", "individual_digits": True}


def _splits(*patterns: str) -> Json:
    steps: list[Json] = [
        {"type": "Split", "pattern": {"Regex": p}, "behavior": "Isolated", "invert": False}
        for p in patterns
    ]
    return _sequence(*steps, {**BYTE_LEVEL, "use_regex": False})


def _sequence(*steps: Json) -> Json:
    return {"type": "Sequence", "pretokenizers": list(steps)}


_KNOWN: dict[str, tuple[Json, bool]] = {
    "gpt-2": (BYTE_LEVEL, False),
    "smollm": (_sequence(_DIGITS, BYTE_LEVEL), False),
    "llama-bpe": (_splits(LLAMA3), True),
    "qwen2": (_splits(QWEN), False),
    "deepseek-v3": (_splits(*DEEPSEEK_V3), False),
    "tekken": (_splits(TEKKEN), True),
}


def pretokenizer(word: str) -> tuple[Json, bool]:
    """(the pretokenizer, does the model ignore merges). Raises UnsupportedTokenizerError."""
    if word not in _KNOWN:
        known = ", ".join(_KNOWN)
        raise UnsupportedTokenizerError("GGUF pretokenizer", word, f"known are {known}")
    return _KNOWN[word]
