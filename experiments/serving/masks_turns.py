"""One round of the experiment on masks: all engines, in turns."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.laws.exact_measure import shown
from experiments.run.executors import FAILURE, Row
from experiments.run.files import ROOT
from experiments.run.measuring import Run
from experiments.serving.masks_cases import BATCHES
from experiments.serving.peers_exams import Ids
from experiments.serving.peers_process import Process
from experiments.shared.more_engines import missing
from experiments.shared.watched import Limits

if TYPE_CHECKING:
    from experiments.serving.masks import Config

CHILD = "experiments.serving.masks_child"
CACHE = "BPE_AUTOMATA_CACHE"
BATCH = 64
HELD = 100
"""Schemas that are kept alive together, to see what they need."""
SLOW = 1.5e6
"""Microseconds of an answer, beyond which later rounds do without it."""


@dataclass(frozen=True)
class Task:
    """A question: a source and the ids of texts of its language. name: of the constraint or the
    schema."""

    name: str
    is_schema: bool
    source: Row
    ids: list[Ids]


def known(source: str, cache: Path) -> None:
    """Make a cache on disk that knows a tokenizer as `bpe-automata warm` prepares it."""
    cache.mkdir()
    command = [sys.executable, "-m", "bpe_automata", "warm", "--json", source]
    environment = {**os.environ, CACHE: str(cache)}
    subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL)


class Turns:
    """Each engine in a process of its own, with a copy of `cache`, which knows the tokenizer and
    common languages; of others it knows what it finds out. Schemas and batches are of the first
    round."""

    def __init__(
        self, run: Run[Config], source: str, number: int, every: Sequence[Task], cache: Path
    ) -> None:
        self._run, self._source, self._number = run, source, number
        self._tasks = [task for task in every if number == 0 or not task.is_schema]
        if number:
            random.Random(f"{run.config.seed} {number}").shuffle(self._tasks)
        self._known, self._cache = cache, cache.with_name(f"{cache.name}-{number}")
        self._todo = {engine: self._missing(engine) for engine in run.config.engines}
        self._spent = dict.fromkeys(product(run.config.engines, (False, True)), 0.0)
        self._held = dict.fromkeys(run.config.engines, 0)

    def _key(self, engine: str, name: str = "", number: int | None = None) -> str:
        number = self._number if number is None else number
        return f"{shown(self._source)} {number} {engine} {name}".strip()

    def _missing(self, engine: str) -> set[str]:
        """Keys of rows that are to be measured."""
        if missing(engine):
            return set()
        names = ["", *(task.name for task in self._tasks if self._is_worth(engine, task))]
        names += [_batch(name) for name in self._batches()]
        return set(self._run.expect(self._key(engine, name) for name in names))

    def _is_worth(self, engine: str, task: Task) -> bool:
        """Again, if the first time went well and did not take long."""
        if not self._number:
            return True
        first = self._run.store.rows.get(self._key(engine, task.name, 0), {FAILURE: "lost"})
        return not first.get(FAILURE) and _measured(first) <= SLOW

    def play(self) -> None:
        """Ask all that is missing."""
        with ExitStack() as stack:
            processes = dict(self._started(stack))
            for k, task in enumerate(self._tasks):
                question: Row = {"source": task.source, "ids": task.ids}
                self._ask(_rotated(processes, k), task.name, question, task.is_schema)
            for k, (name, places) in enumerate(self._batches().items()):
                self._ask(_rotated(processes, k), _batch(name), {"batch": places}, False)

    def _started(self, stack: ExitStack) -> Iterator[tuple[str, Process]]:
        """The engines that come up, of those that have something to do."""
        limits = Limits(self._run.config.seconds, self._run.config.mb)
        for engine, todo in self._todo.items():
            if not todo:
                continue
            environment = {CACHE: str(self._cache / engine)}
            shutil.copytree(self._known, environment[CACHE])
            process = Process(CHILD, [engine, self._source], limits, environment)
            first = stack.enter_context(process).start()
            if self._key(engine) in todo:
                self._add(engine, "", first)
            if FAILURE in first:
                self._run.expect_none_of(todo - {self._key(engine)})
            else:
                yield engine, process

    def _ask(
        self, processes: Iterable[tuple[str, Process]], name: str, question: Row, is_schema: bool
    ) -> None:
        for engine, process in processes:
            if (key := self._key(engine, name)) not in self._todo[engine]:
                continue
            if self._spent[engine, is_schema] > self._run.config.patience:
                self._run.expect_none_of([key])
                continue
            hold = is_schema and self._held[engine] < HELD
            started = time.perf_counter()
            row = process.ask(question | {"hold": hold})
            wall = time.perf_counter() - started
            self._spent[engine, is_schema] += _measured(row) / 1e6 if "texts" in row else wall
            self._held[engine] += is_schema
            self._add(engine, name, row | {"wall": wall, "is_schema": is_schema})

    def _add(self, engine: str, name: str, row: Row) -> None:
        whose = {"tokenizer": shown(self._source), "round": self._number, "engine": engine}
        self._run.add(self._key(engine, name), whose | {"name": name} | row)

    def _batches(self) -> dict[str, list[Row]]:
        """Places of the constraints of each batch: a source, and ids that have been read."""
        known, found = {task.name: task for task in self._tasks}, {}
        for name, constraints in {} if self._number else BATCHES.items():
            if all(constraint in known for constraint in constraints):
                found[name] = [
                    _place(known[constraints[k % len(constraints)]], k) for k in range(BATCH)
                ]
        return found


def _measured(row: Row) -> float:
    """Microseconds, of all that it holds."""
    masks = sum(sum(text[kind]) for text in row["texts"] for kind in ("cold", "warm", "advance"))
    return float(row["compile"] + row["first"] + masks)


def _batch(name: str) -> str:
    return f"batch: {name}"


def _place(task: Task, k: int) -> Row:
    ids = task.ids[k % len(task.ids)]
    return {"source": task.source, "ids": ids[: k % len(ids)]}


def _rotated(processes: dict[str, Process], k: int) -> list[tuple[str, Process]]:
    """Another engine begins each time."""
    every = list(processes.items())
    first = k % len(every) if every else 0
    return every[first:] + every[:first]
