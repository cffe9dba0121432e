"""Rows of one engine with one tokenizer, a file of JSON lines that a run adds to as it goes.

The first line says what the rows were made by. An interrupted run goes on where it stopped; rows
made by anything else (another version, other data) are dropped.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from experiments.runner import ROOT

Row = dict[str, Any]


class Store:
    """`rows` by id; `add` keeps one at once."""

    def __init__(self, path: Path, made_by: Row) -> None:
        self._path, self.rows = path, dict[str, Row]()
        kept, rows = read(path)
        if kept == made_by:
            self.rows = {row["id"]: row for row in rows}
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(made_by) + "\n", encoding="utf-8")

    def add(self, row: Row) -> None:
        """Append it."""
        self.rows[row["id"]] = row
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


def read(path: Path) -> tuple[Row | None, list[Row]]:
    """(what the rows were made by, the rows); (None, []) where there are none. A line that was cut
    off is left out."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except FileNotFoundError:
        return None, []
    parsed = [json.loads(line) for line in lines[:-1]]
    return (parsed[0], parsed[1:]) if parsed else (None, [])


def code_digest() -> str:
    """Names the package as it is now."""
    made = hashlib.sha256()
    for path in sorted((ROOT / "bpe_automata").rglob("*.py")):
        made.update(path.read_bytes())
    return made.hexdigest()[:16]
