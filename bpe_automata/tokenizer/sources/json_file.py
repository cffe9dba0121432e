"""Files that are JSON: a `tokenizer.json` of `tokenizers`, or Mistral's `tekken.json`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bpe_automata.budget import check
from bpe_automata.errors import BrokenTokenizerError
from bpe_automata.tokenizer.backend import Source


def read_json_file(path: Path, content: bytes, name: str, config: bytes | None) -> Source:
    """The tokenizer of a JSON file; `content`: its bytes. End of sequence of a `tokenizer.json` is
    what the `tokenizer_config.json` beside it names; `config`: the content of that, if it is there.

    Raises BrokenTokenizerError, UnsupportedTokenizerError, MissingDependencyError."""
    try:
        text = content.decode("utf-8-sig")
        data = json.loads(text)
        check()
    except (ValueError, RecursionError) as error:
        raise BrokenTokenizerError(f"{path} is not valid JSON: {error}") from error
    if not isinstance(data, dict):
        raise BrokenTokenizerError(f"{path} is not a tokenizer.json: no object at the top")
    from bpe_automata.tokenizer.read_json import read_json
    from bpe_automata.tokenizer.sources.tekken import is_tekken, read_tekken

    if is_tekken(data):
        return read_tekken(data, content, name)
    eos_ids = () if config is None else _eos(config_beside(path), config, data)
    return read_json(data, eos_ids, name, text)


def config_beside(path: Path) -> Path:
    """What names the end of sequence of a `tokenizer.json`."""
    return path.with_name("tokenizer_config.json")


def _eos(path: Path, config: bytes, data: dict[str, Any]) -> tuple[int, ...]:
    try:
        token = json.loads(config.decode("utf-8")).get("eos_token")
    except (AttributeError, ValueError, RecursionError) as error:
        raise BrokenTokenizerError(f"{path} is not a JSON object: {error}") from error
    content = token.get("content") if isinstance(token, dict) else token
    entries = data.get("added_tokens") or []
    return tuple(entry["id"] for entry in entries if entry["content"] == content)
