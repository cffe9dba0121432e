"""What the speed experiment measures on: a tokenizer, as a file that other processes can read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bpe_automata import Tokenizer
from bpe_automata.cli import common
from experiments.shared import models


@dataclass(frozen=True)
class Inputs:
    """name: for tables; tokenizer; json: its `tokenizer.json`; gguf: the file it was read from, if
    that is one; eos_ids: end of sequence."""

    name: str
    tokenizer: Tokenizer
    json: Path
    gguf: Path | None
    eos_ids: tuple[int, ...]


def load_tokenizer(model: str) -> Tokenizer:
    """That of SmolLM2, or of any other file, folder or hub id. Raises as `Tokenizer.load`."""
    if model == models.SMOLLM2:
        return Tokenizer.load(models.default_gguf())
    return common.load_tokenizer(model)


def prepare(model: str, folder: Path) -> Inputs:
    """Load, and write the `tokenizer.json` into `folder`."""
    tokenizer = load_tokenizer(model)
    path = folder / "tokenizer.json"
    path.write_text(tokenizer.to_json(), encoding="utf-8")
    gguf = models.default_gguf() if model == models.SMOLLM2 else None
    name = models.DEFAULT_NAME if model == models.SMOLLM2 else model
    return Inputs(name, tokenizer, path, gguf, tokenizer.eos_ids)
