"""A run of one artefact while it is measured: what is there already, and what comes in."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic

from bpe_automata.errors import MissingFileError
from experiments.run.cells import FAILURE, Cell, Row
from experiments.run.config import C, plain
from experiments.run.config import inputs as config_inputs
from experiments.run.device import pick_device
from experiments.run.executors import Name, executor
from experiments.run.files import PAPER, RESULTS, write_atomically
from experiments.run.optional import require
from experiments.run.provenance import code_digest, machine, versions
from experiments.run.store import Store, read

MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Settings:
    """What determines no number: where, how many at a time, and what of it.

    results, paper: folders; executor: for cells that do not mind company; jobs: of them at a time;
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
        message = f"{error.filename} is not there; run without --render first"
        raise MissingFileError(message) from error
    return rows, manifest


def _seconds_so_far(folder: Path) -> float:
    try:
        kept = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return 0.0
    return float(kept.get("wall_seconds", 0.0))
