"""The rows of one run, a file of JSON lines that grows as the run goes on.

The first line says what the rows are made by. A row is written whole or not at all: one that was
cut off is dropped when the file is opened again. Rows made by anything else (another config, other
code) are put aside beside the new ones, not deleted.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bpe_automata.errors import BpeAutomataError, MissingFileError
from experiments.run.cells import Row

NAME = "rows.jsonl"


class BusyError(BpeAutomataError):
    """Another process writes the same rows."""


class Store:
    """`rows`: by key, in the order in which they came; `aside`: where earlier ones went, if any
    did. anew: put all earlier ones aside."""

    def __init__(self, folder: Path, made_by: Row, anew: bool = False) -> None:
        self.path, self.rows = folder / NAME, dict[str, Row]()
        folder.mkdir(parents=True, exist_ok=True)
        kept, rows, whole = _read(self.path)
        self.aside: Path | None = None
        if kept == made_by and not anew:
            self.rows = {row["key"]: row for row in rows}
            with self.path.open("r+b") as file:
                file.truncate(whole)
            return
        if rows:
            self.aside = _put_aside(self.path)
        self.path.write_text(_line(made_by), encoding="utf-8")

    def add(self, row: Row) -> None:
        """Keep a row, under its "key", on disk when this returns; it replaces an earlier one."""
        self.rows.pop(row["key"], None)
        self.rows[row["key"]] = row
        with self.path.open("a", encoding="utf-8") as file:
            file.write(_line(row))
            file.flush()
            os.fsync(file.fileno())


def read(folder: Path) -> list[Row]:
    """The rows of an earlier run. Raises MissingFileError where there is none."""
    kept, rows, _ = _read(folder / NAME)
    if kept is None:
        raise MissingFileError(f"{folder / NAME} is not there; run without --render first")
    return list({row["key"]: row for row in rows}.values())


def _read(path: Path) -> tuple[Row | None, list[Row], int]:
    """(what the rows were made by, the rows, bytes of whole lines); (None, [], 0) for no file."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None, [], 0
    whole = data.rfind(b"\n") + 1
    parsed = [json.loads(line) for line in data[:whole].split(b"\n") if line]
    return (parsed[0], parsed[1:], whole) if parsed else (None, [], 0)


def _line(row: Row) -> str:
    return json.dumps(row, ensure_ascii=False) + "\n"


def _put_aside(path: Path) -> Path:
    number = 1
    while (other := path.with_name(f"rows-{number}.jsonl")).exists():
        number += 1
    return path.rename(other)


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Nobody else writes there meanwhile. Raises BusyError if somebody does."""
    import fcntl

    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            message = f"another process measures into {folder}; wait for it, or end it"
            raise BusyError(message) from error
        yield
