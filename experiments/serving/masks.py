"""Masks: what the first one and each one after it cost, in this package and in other engines.

Every engine has a process of its own for each tokenizer and round. They are asked in turns, about
the same constraints and the same texts: first masks (from the regex or the schema), cold masks
(each prefix of a text for the first time; the constraint is new, the tokenizer prepared by
`bpe-automata warm`), warm masks (a second session of the same constraint along the same texts),
reading an id, batches of 64, memory.
Rounds are in different orders, and of each time the median over rounds counts. Schemas are those of
MaskBench with their valid instances, asked in the first round only; where they are not there the
constraints alone are measured, and the table says so.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from bpe_automata import Tokenizer
from bpe_automata.errors import MissingFileError
from experiments.engines.named import OURS, PEERS, check_known, missing, versions
from experiments.laws.exact_measure import SMOKE_TOKENIZER, shown
from experiments.run import config
from experiments.run.config import option
from experiments.run.executors import FAILURE, Row
from experiments.run.files import ROOT
from experiments.run.measuring import Run, progress
from experiments.run.report import Report
from experiments.run.tables import frame
from experiments.schemas.inputs import SCHEMAS, SMOKE_SCHEMAS, Case, schema_cases, shuffled, spelled
from experiments.serving.masks_child import (
    BATCH,
    BATCHES,
    CONSTRAINT,
    ENGINE,
    KINDS,
    SCHEMA,
    WHITESPACE,
    constraints,
)
from experiments.serving.masks_report import readme, report
from experiments.shared.watched import Limits, WatchedProcess

__all__ = ["readme"]

VERSION = 2
CHILD = "experiments.serving.masks_child"
CACHE = "BPE_AUTOMATA_CACHE"
TOGETHER = 64
"""Prefixes of a batch."""
HELD = 100
"""Schemas that are kept alive together, to see what they need."""
SLOW = 1.5e6
"""Microseconds of an answer, beyond which later rounds do without it."""
ENGINES = ("canonical", "within", "lift", "llguidance", "glrmask", "xgrammar", "outlines_core")


@dataclass(frozen=True)
class Config(config.Config):
    """Which engines are asked what, and when one is asked no more."""

    engines: tuple[str, ...] = option(ENGINES, "which engines")
    tokenizers: tuple[str, ...] = option(("smollm2", "llama-3", "llama-4"), "names or paths")
    constraints: tuple[str, ...] = option((), "names (see masks_child); none: all of them")
    schemas: Path = option(SCHEMAS, "folder or file of JSON lines of schemas with instances")
    n: int = option(100, "how many schemas, drawn by lot")
    rounds: int = option(3, "how often each constraint is measured")
    seconds: float = option(10.0, "an engine may take for an answer")
    patience: float = option(12.0, "seconds of answers after which an engine is asked no more")
    mb: float = option(6000.0, "an engine may hold, 10^6 bytes")


SMOKE = Config(
    engines=("canonical", "within", "lift"),
    tokenizers=(SMOKE_TOKENIZER,),
    constraints=("boolean", "date"),
    schemas=SMOKE_SCHEMAS,
    n=2,
    rounds=1,
)


def inputs(chosen: Config) -> Row:
    """The versions of the peers: rows of another version are not gone on with."""
    return {"versions": versions(chosen.engines)}


def measure(run: Run[Config]) -> None:
    """Rows of constraints (each in every round), schemas and batches (in the first)."""
    chosen = run.config
    check_known("engines", chosen.engines, [*OURS, *PEERS])
    named, schemas = constraints(chosen.constraints), schemas_of(run)
    run.note(peers=versions(chosen.engines), constraints=[case.id for case in named])
    for name in chosen.engines:
        if (why := missing(name)) and run.expect([name]):
            run.add(name, {"engine": name, FAILURE: why})
    with tempfile.TemporaryDirectory() as folder, progress() as bar:
        bar_task = bar.add_task("", total=len(chosen.tokenizers) * chosen.rounds)
        for source in chosen.tokenizers:
            tokenizer = Tokenizer.load(source)
            every = [*tasks(tokenizer, named), *tasks(tokenizer, schemas)]
            cache = Path(folder) / f"{chosen.tokenizers.index(source)}"
            known(source, cache)
            for number in range(chosen.rounds):
                bar.update(bar_task, description=f"{shown(source)}, round {number + 1}")
                Turns(run, source, number, every, cache).play()
                bar.advance(bar_task)


def schemas_of(run: Run[Config]) -> list[Case]:
    """Those with a valid instance, in an order that the seed alone decides; none where there are
    none, which is noted."""
    try:
        found = schema_cases(run.config.schemas, WHITESPACE)
    except MissingFileError as error:
        run.note(no_schemas=f"{error}: schemas were left out")
        return []
    found = [case for case in found if any(case.labels)]
    run.note(no_schemas=None, schemas=len(found))
    return shuffled(found, run.config.n, run.config.seed)


def tasks(tokenizer: Tokenizer, cases: Sequence[Case]) -> Iterator[Task]:
    """With the tokenizer's own ids. Texts that it cannot spell are left out."""
    for case in cases:
        ids = [own for text in case.valid if (own := spelled(tokenizer, text)) is not None]
        if ids:
            yield Task(case.id, case.group != CONSTRAINT, case.source, ids)


# ---------------------------------------------------------------- one round


@dataclass(frozen=True)
class Task:
    """A question: a source and the ids of texts of its language. name: of the constraint or the
    schema."""

    name: str
    is_schema: bool
    source: Row
    ids: list[list[int]]


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
            for k, (name, prefixes) in enumerate(self._batches().items()):
                self._ask(_rotated(processes, k), _batch(name), {"batch": prefixes}, False)

    def _started(self, stack: ExitStack) -> Iterator[tuple[str, WatchedProcess]]:
        """The engines that come up, of those that have something to do."""
        limits = Limits(self._run.config.seconds, self._run.config.mb)
        for engine, todo in self._todo.items():
            if not todo:
                continue
            environment = {CACHE: str(self._cache / engine)}
            shutil.copytree(self._known, environment[CACHE])
            process = WatchedProcess(CHILD, [engine, self._source], limits, environment)
            first = stack.enter_context(process).start()
            if self._key(engine) in todo:
                self._add(engine, "", first)
            if FAILURE in first:
                self._run.expect_none_of(todo - {self._key(engine)})
            else:
                yield engine, process

    def _ask(
        self,
        processes: Iterable[tuple[str, WatchedProcess]],
        name: str,
        question: Row,
        is_schema: bool,
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
        for name, members in {} if self._number else BATCHES.items():
            if all(member in known for member in members):
                found[name] = [
                    _prefix(known[members[k % len(members)]], k) for k in range(TOGETHER)
                ]
        return found


def _measured(row: Row) -> float:
    """Microseconds, of all that it holds."""
    masks = sum(sum(text[kind]) for text in row["texts"] for kind in KINDS)
    return float(row["compile"] + row["first"] + masks)


def _batch(name: str) -> str:
    return f"{BATCH}: {name}"


def _prefix(task: Task, k: int) -> Row:
    ids = task.ids[k % len(task.ids)]
    return {"source": task.source, "ids": ids[: k % len(ids)]}


def _rotated(processes: dict[str, WatchedProcess], k: int) -> list[tuple[str, WatchedProcess]]:
    """Another engine begins each time."""
    every = list(processes.items())
    first = k % len(every) if every else 0
    return every[first:] + every[:first]


# ---------------------------------------------------------------- what the rows say


def render(rows: Sequence[Row], manifest: Row) -> Report:
    """Tables, figure and facts of the rows."""
    return report(answers_of(rows, manifest.get("peers", {})), manifest)


def answers_of(rows: Sequence[Row], versions: Mapping[str, str]) -> pd.DataFrame:
    """One row for each thing that an engine which came up was asked with a tokenizer.

    what: ENGINE (how it came up), CONSTRAINT, SCHEMA or BATCH; label: the engine with its version;
    refused: why there is no answer. Of constraints and schemas, medians over rounds: first,
    microseconds from the source to the first mask; cold, warm, advance: microseconds over all texts
    that could be read to the end; passed, stopped: how many could and could not. Of schemas the
    same fields with `shared_` before them are over texts that every engine which came to the schema
    compiled and read to the end. us: of a batch.
    """
    came_up = [(row["tokenizer"], row["engine"]) for row in rows if "ready" in row]
    order = {unit: k for k, unit in enumerate(dict.fromkeys(came_up))}
    asked: dict[tuple[int, str, str, str], list[Row]] = {}
    for row in rows:
        unit = row.get("tokenizer", ""), row.get("engine", "")
        if unit in order and (row["name"] or not row["round"]):
            asked.setdefault((order[unit], *unit, row["name"]), []).append(row)
    found = []
    for (_, tokenizer, engine, name), of in sorted(asked.items(), key=lambda one: one[0][0]):
        label = " ".join(filter(None, (engine, versions.get(engine))))
        whose = {"tokenizer": tokenizer, "engine": engine, "label": label}
        found.append(whose | {"name": name} | _answer(name, of))
    _add_shared(found)
    return frame(found)


def _answer(name: str, rounds: Sequence[Row]) -> Row:
    if not name:
        return {"what": ENGINE} | {key: rounds[0][key] for key in ("engine_mb", "process_mb")}
    is_batch = name.startswith(f"{BATCH}: ")
    what = BATCH if is_batch else SCHEMA if rounds[0].get("is_schema") else CONSTRAINT
    good = [row for row in rounds if not row.get(FAILURE)]
    if not good:
        return {"what": what, "refused": rounds[0][FAILURE]}
    if is_batch:
        return {"what": what, "us": float(np.median(good[0]["batch"]))}
    ends = {k: text["stopped"] is None for k, text in enumerate(good[0]["texts"])}
    texts = {
        k: {kind: _medians([row["texts"][k][kind] for row in good]) for kind in KINDS}
        for k, is_passed in ends.items()
        if is_passed
    }
    held = {"held": good[0]["held"], "held_mb": good[0]["process_mb"]} if "held" in good[0] else {}
    return {
        "what": what,
        "first": float(np.median([row["compile"] + row["first"] for row in good])),
        "texts": texts,
        "passed": len(texts),
        "stopped": len(ends) - len(texts),
        "peak_mb": max(row["peak_mb"] for row in good),
        **{kind: [us for text in texts.values() for us in text[kind]] for kind in KINDS},
        **held,
    }


def _medians(rounds: Sequence[list[float]]) -> list[float]:
    """Of each prefix; an engine that is stopped elsewhere in another round has its first round."""
    if len({len(one) for one in rounds}) > 1:
        return rounds[0]
    return [float(value) for value in np.median(rounds, axis=0)]


def _add_shared(answers: Sequence[Row]) -> None:
    asked: dict[tuple[str, str], list[Row]] = {}
    for row in answers:
        if row["what"] == SCHEMA:
            asked.setdefault((row["tokenizer"], row["name"]), []).append(row)
    for same in asked.values():
        both = sorted(set.intersection(*(set(row.get("texts", ())) for row in same)))
        for row in same if both else ():
            row |= {"shared_first": row["first"], "shared_texts": len(both)}
            for kind in KINDS:
                row[f"shared_{kind}"] = [us for k in both for us in row["texts"][k][kind]]
