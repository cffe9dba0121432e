"""Mistral's `tekken.json`, as mistral-common reads it and runs it with tiktoken.

`config.pattern` splits the text; the first `default_num_special_tokens` ids are special tokens, and
the vocabulary, whose ranks come after them, is cut off at `default_vocab_size` ids in all.
`Tekkenizer.encode` gives tiktoken no special tokens: they are never read out of text.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import replace
from typing import Any

from bpe_automata.errors import BrokenTokenizerError
from bpe_automata.tokenizer.backend import Source
from bpe_automata.tokenizer.sources.optional import fingerprint
from bpe_automata.tokenizer.sources.tiktoken_ranks import Tiktoken, checked_ranks, describe_ranks

_EOS = "</s>"
_EOS_BEFORE_V8 = 2  # files without a list of special tokens have mistral-common's own list


def is_tekken(data: Any) -> bool:
    """Is this the content of a tekken.json?"""
    config = data.get("config") if isinstance(data, dict) else None
    return isinstance(config, dict) and "pattern" in config and isinstance(data.get("vocab"), list)


def read_tekken(data: dict[str, Any], content: bytes, where: str) -> Source:
    """The tokenizer of a tekken.json; `content`: its bytes, `data`: the same parsed.

    Raises MissingDependencyError, BrokenTokenizerError, UnsupportedTokenizerError."""
    try:
        config = data["config"]
        n_special = int(config["default_num_special_tokens"])
        n_ids = int(config["default_vocab_size"])
        ranks = _ranks(data["vocab"], n_ids - n_special, where)
        eos_ids = _eos(data.get("special_tokens"))
        pattern = str(config["pattern"])
    except (AttributeError, KeyError, TypeError, binascii.Error) as error:
        raise BrokenTokenizerError(
            f"{where} does not have the form of a tekken.json: {type(error).__name__} {error}"
        ) from error
    backend = Tiktoken(ranks, pattern, {}, shift=n_special)
    description = replace(
        describe_ranks(ranks, pattern, shift=n_special), controls=frozenset(range(n_special))
    )
    return Source(description, backend, where, fingerprint(backend.name, content), eos_ids)


def _ranks(vocabulary: list[Any], size: int, where: str) -> dict[bytes, int]:
    if not 256 <= size <= len(vocabulary):
        raise BrokenTokenizerError(
            f"{where} has {len(vocabulary)} tokens, and its config asks for {size} of them"
        )
    ranks: dict[bytes, int] = {}
    for rank, entry in enumerate(vocabulary[:size]):
        token = base64.b64decode(entry["token_bytes"])
        if entry["rank"] != rank or (rank < 256 and token != bytes([rank])) or token in ranks:
            raise BrokenTokenizerError(
                f"{where}: entry {rank} of the vocabulary, {token!r} with rank {entry['rank']}, is "
                "listed before, or is not in its place (the first 256 are the bytes)"
            )
        ranks[token] = rank
    return checked_ranks(ranks, where)


def _eos(special_tokens: list[Any] | None) -> tuple[int, ...]:
    if special_tokens is None:
        return (_EOS_BEFORE_V8,)
    return tuple(entry["rank"] for entry in special_tokens if entry["token_str"] == _EOS)
