"""How the command line names tokenizers, and how tables do."""

from __future__ import annotations

from pathlib import Path

from bpe_automata.tokenizer.sources.named import names

ALL = "all"
"""Every tokenizer that has a name."""
SMOKE_TOKENIZER = str(Path(__file__).with_name("smoke_tokenizer"))
"""One of 400 tokens, part of the repository."""


def shown(source: str) -> str:
    """What a table and a row call a tokenizer: its name, or of a path the last part."""
    return source if source in names() else Path(source).name
