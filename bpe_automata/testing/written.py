"""Small tokenizers that are written down."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bpe_automata.tokenizer import Tokenizer
from bpe_automata.tokenizer.byte_level import byte_to_char

Json = dict[str, Any]


def byte_spelling(data: bytes) -> str:
    """How a ByteLevel tokenizer writes a token."""
    return "".join(byte_to_char()[byte] for byte in data)


def byte_level(use_regex: bool = False) -> Json:
    """The ByteLevel pretokenizer, with or without the pattern of GPT-2."""
    options = {"add_prefix_space": False, "trim_offsets": True, "use_regex": use_regex}
    return {"type": "ByteLevel", **options}


def split(pattern: Json, behavior: str = "Isolated", invert: bool = False) -> Json:
    """A Split pretokenizer; `pattern`: {"Regex": ...} or {"String": ...}."""
    return {"type": "Split", "pattern": pattern, "behavior": behavior, "invert": invert}


def sequence(*steps: Json) -> Json | None:
    """Several pretokenizers in order; None for no step at all."""
    return {"type": "Sequence", "pretokenizers": list(steps)} if steps else None


def added_token(content: str, **flags: bool) -> Json:
    """An added token without its id; `flags`: those that are set."""
    unset = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False)
    return {"content": content, **unset, **flags}


def small_tokenizer(
    vocabulary: Sequence[str],
    merges: Sequence[tuple[str, str]] = (),
    pretokenizer: Json | None = None,
    added: Sequence[str | Json] = (),
    normalizer: Json | None = None,
    decoder: Json | None = None,
    **model: Any,
) -> Tokenizer:
    """`vocabulary`: tokens in order of their ids, `merges` by rank, both as the file spells them;
    `added`: added tokens, or only their contents; `model`: fields such as `ignore_merges`."""
    entries = [added_token(entry) if isinstance(entry, str) else entry for entry in added]
    contents = [entry["content"] for entry in entries]
    ids = {token: number for number, token in enumerate(dict.fromkeys([*vocabulary, *contents]))}
    numbered = [{"id": ids[entry["content"]], **entry} for entry in entries]
    return Tokenizer.from_json(
        {
            "version": "1.0",
            "added_tokens": sorted(numbered, key=lambda entry: int(entry["id"])),
            "normalizer": normalizer,
            "pre_tokenizer": pretokenizer,
            "post_processor": None,
            "decoder": decoder,
            "model": {
                "type": "BPE",
                "vocab": {token: ids[token] for token in vocabulary},
                "merges": [list(pair) for pair in merges],
                **model,
            },
        }
    )
