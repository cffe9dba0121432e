"""A run of one artefact while it is measured: what is there already, and what comes in."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic

from bpe_automata.errors import BpeAutomataError, MissingFileError
from experiments.run.config import C, plain
from experiments.run.config import inputs as config_inputs
from experiments.run.executors import FAILURE, Cell, Name, Row, executor
from experiments.run.files import PAPER, RESULTS, require, write_atomically
from experiments.run.provenance import code_digest, machine, pick_device, versions

# The rows of one run, a file of JSON lines that grows as the run goes on.
#
# The first line says what the rows are made by. A row is written whole or not at all: one that was
# cut off is dropped when the file is opened again. Rows made by anything else (another config,
# other code) are put aside beside the new ones, not deleted.

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
        raise MissingFileError(f"{folder / NAME} is not there: measure first, without --render")
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
    filelock = require("filelock")
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with filelock.FileLock(folder / ".lock", timeout=0):
            yield
    except filelock.Timeout as error:
        message = f"another process measures into {folder}; wait for it, or end it"
        raise BusyError(message) from error


# A cell: one measurement that stands for itself, and becomes one row.


MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Settings:
    """What determines no number: where, how many at a time, and what of it.

    results, paper: folders; executor: of cells that measure no time; jobs: cells at a time;
    retry: measure failures again; again: put all rows aside first.
    """

    results: Path = RESULTS
    paper: Path = PAPER
    executor: Name = "processes"
    jobs: int = 2
    retry: bool = False
    again: bool = False


class Run(Generic[C]):
    """Handed to an artefact's `measure`, which says what it expects and adds the rows.

    version: the artefact's own; it goes up when rows mean something else. inputs: whatever else
    rows must not be mixed of, such as the versions of peers. Files that the config names, versions
    of packages and the device are not mixed either.
    """

    def __init__(
        self,
        name: str,
        version: int,
        config: C,
        folder: Path,
        settings: Settings,
        inputs: Row | None = None,
    ) -> None:
        self.name, self.config, self.folder, self.settings = name, config, folder, settings
        made_by: Row = {"artefact": name, "version": version, "config": plain(config)}
        made_by |= {"code": code_digest(), "inputs": config_inputs(config) | (inputs or {})}
        made_by |= {"versions": versions()}
        if (device := getattr(config, "device", None)) is not None:
            made_by["device"] = pick_device(device)
        self.store = Store(folder, made_by, anew=settings.again)
        self._earlier = _seconds_so_far(folder) if self.store.rows else 0.0
        self._started = time.perf_counter()
        self._facts: Row = {"made_by": made_by, **machine()}
        self._expected: dict[str, None] = {}
        self._finished = False
        self._write()

    @property
    def rows(self) -> list[Row]:
        """All rows so far."""
        return list(self.store.rows.values())

    def note(self, **facts: Any) -> None:
        """Keep facts in the manifest: the model, hashes, versions of peers."""
        self._facts |= facts
        self._write()

    def expect(self, keys: Iterable[str]) -> list[str]:
        """Say which rows there will be; returns those that are still to be measured. May be called
        several times."""
        wanted = list(keys)
        self._expected |= dict.fromkeys(wanted)
        self._write()
        return [key for key in wanted if self._is_missing(key)]

    def _is_missing(self, key: str) -> bool:
        row = self.store.rows.get(key)
        return row is None or (self.settings.retry and bool(row.get(FAILURE)))

    def expect_none_of(self, keys: Iterable[str]) -> None:
        """Rows that were expected and turned out to be not wanted."""
        for key in keys:
            self._expected.pop(key, None)
        self._write()

    def add(self, key: str, row: Row) -> None:
        """Keep a row, at once."""
        self.store.add({"key": key} | row)
        self._write()

    def finish(self) -> None:
        """All that was to be expected has been."""
        self._finished = True
        self._write()

    def cells(self, cells: Sequence[Cell], *, alone: bool = False, what: str = "") -> None:
        """Measure the cells that have no row yet. alone: nothing else may run beside them, as where
        time is measured. what: stands beside the bar."""
        todo = set(self.expect(cell.key for cell in cells))
        left = [cell for cell in cells if cell.key in todo]
        each = executor("inline" if alone else self.settings.executor)
        with progress() as bar:
            done = len(cells) - len(left)
            task = bar.add_task(what or self.name, total=len(cells), completed=done)
            for row in each(left, self.settings.jobs) if left else ():
                self.add(row["key"], row)
                bar.advance(task)

    def _write(self) -> None:
        text = json.dumps(self.manifest(), indent=2, ensure_ascii=False) + "\n"
        write_atomically(self.folder / MANIFEST, text)

    def manifest(self) -> Row:
        """Where the rows come from; `complete` is false until the last one is in, and nothing more
        is expected."""
        rows = self.store.rows.values()
        missing = [key for key in self._expected if key not in self.store.rows]
        config = plain(self.config)
        return {
            "experiment": self.name,
            "complete": self._finished and bool(self._expected) and not missing,
            "rows": len(rows),
            "rows_expected": len(rows) + len(missing),
            "failures": sum(bool(row.get(FAILURE)) for row in rows),
            "seed": self.config.seed,
            "config": config,
            **self._facts,
            "wall_seconds": round(self._earlier + time.perf_counter() - self._started, 2),
        }


def progress() -> Any:
    """A bar on stderr, gone when done. It is drawn when something happens: a thread that draws it
    ten times a second would be in the way of what is timed."""
    rich = require("rich.progress")

    class Bar(rich.Progress):  # type: ignore[misc, name-defined, unused-ignore]
        def update(self, *given: Any, **named: Any) -> None:
            super().update(*given, **{"refresh": True} | named)

        def advance(self, *given: Any) -> None:
            super().advance(*given)
            self.refresh()

    console = require("rich.console").Console(stderr=True)
    return Bar(console=console, transient=True, auto_refresh=False)


def read_run(folder: Path) -> tuple[list[Row], Row]:
    """The rows and the manifest of an earlier run. Raises MissingFileError."""
    rows = read(folder)
    try:
        manifest: Row = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        message = f"{error.filename} is not there: measure first, without --render"
        raise MissingFileError(message) from error
    return rows, manifest


def _seconds_so_far(folder: Path) -> float:
    try:
        kept = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return 0.0
    return float(kept.get("wall_seconds", 0.0))
