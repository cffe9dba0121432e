"""A tokenizer of some hundred tokens, and schemas of which everything is known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bpe_automata.testing import small_tokenizer
from experiments.run.measuring import Run, Settings

ASCII = [chr(byte) for byte in range(0x20, 0x7F)]
MERGES = [("t", "r"), ("tr", "u"), ("tru", "e"), ('"', ":"), ("a", '":')]
TABLE = small_tokenizer([*ASCII, "\n", "tr", "tru", "true", '":', 'a":'], MERGES, added=["<end>"])
PAIR = {"properties": {"a": {"type": "integer"}, "b": {"type": "boolean"}}, "type": "object"}
CLOSED = {**PAIR, "additionalProperties": False, "required": ["a"]}
REFUSED = {"type": "array", "uniqueItems": True}


def write_tokenizer(folder: Path) -> str:
    """A folder that `Tokenizer.load` takes."""
    (folder / "tokenizer.json").write_text(TABLE.to_json())
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<end>"}))
    return str(folder)


def write_lines(path: Path, rows: list[Any]) -> Path:
    """JSON lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def case(name: str, schema: Any, good: list[Any] = (), bad: list[Any] = ()) -> dict[str, Any]:
    """A line as MaskBench has it."""
    tests = [{"valid": True, "data": x} for x in good] + [{"valid": False, "data": x} for x in bad]
    return {"id": name, "schema": schema, "tests": tests}


def measured(artefact: Any, config: Any, folder: Path, **settings: Any) -> Run:
    """A run of a module, in this process."""
    chosen = Settings(**{"executor": "inline", "jobs": 1} | settings)
    run = Run("tested", artefact.VERSION, config, folder, chosen)
    artefact.measure(run)
    run.finish()
    return run
