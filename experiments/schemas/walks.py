"""Random walks through the masks of schemas; every text is parsed and validated.

Of real schemas (MaskBench as JSON, and as YAML together with those of SchemaStore that come with
YAML files) each has the same number of walks: some ids that the masks allow, up to 80, chosen with
the seed, then under the same masks the way to the end. Each text goes through `json.loads` or
`yaml.safe_load`, then through `jsonschema` with formats; its ids must be what the tokenizer's own
`encode` gives. A walk that is wrong makes the exit code 1.

`--n`: walks in all, over `--most-schemas` or a tenth of them, whichever is less.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

from experiments.laws.exact_measure import SMOKE_TOKENIZER
from experiments.run import config
from experiments.run.config import option
from experiments.run.executors import FAILURE, Cell, Row, measured, pool_of
from experiments.run.measuring import Run, progress
from experiments.schemas import walks_report
from experiments.schemas.inputs import (
    SCHEMAS,
    SMOKE_SCHEMAS,
    SMOKE_YAML,
    YAML_SCHEMAS,
    schema_cases,
    yaml_cases,
)
from experiments.schemas.walks_process import Task, walked

VERSION = 2
YAML_SHARE = 4
"""Every fourth schema is walked as YAML; of these every second is one of SchemaStore."""
SPARE = 4
"""Times as many schemas as are needed are at hand, for those that are refused."""
AHEAD = 8
"""Schemas for each process that are begun before their turn: a slow one keeps no process waiting,
and little is begun in vain."""


@dataclass(frozen=True)
class Config(config.Config):
    """Which schemas, and how many walks."""

    schemas: Path = option(SCHEMAS, "folder or file of JSON lines of schemas with instances")
    yaml_schemas: Path | None = option(YAML_SCHEMAS, "JSON lines of schemas with YAML files")
    tokenizer: str = option("smollm2", "a name or a path")
    n: int = option(10_000, "walks: how many in all")
    most_schemas: int = option(200, "walks: of how many schemas at most")

    def wanted(self) -> int:
        """How many schemas are to be walked."""
        return max(1, min(self.most_schemas, self.n // 10))

    def each(self) -> int:
        """Walks of each."""
        return -(-self.n // self.wanted())


SMOKE = Config(
    schemas=SMOKE_SCHEMAS,
    yaml_schemas=SMOKE_YAML,
    tokenizer=SMOKE_TOKENIZER,
    n=50,
    most_schemas=5,
)

render, readme = walks_report.render, walks_report.readme


def measure(run: Run[Config]) -> None:
    """A row per schema, until as many as are wanted were walked: in place of one that is refused
    the next one is taken."""
    chosen = run.config
    given, left = tasks(chosen), chosen.wanted()
    run.note(wanted=left)
    spare = iter(given[left:])
    run.expect(task.key for task in given[:left])
    with progress() as bar:
        shown = bar.add_task("walking", total=left)
        for task, row in rows_of(run, given):
            if not is_walked(row) and (other := next(spare, None)):
                run.expect([other.key])
            if run.store.rows.get(task.key) is not row:
                run.add(task.key, row)
            bar.advance(shown, is_walked(row))
            left -= is_walked(row)
            if not left:
                break


def is_walked(row: Row) -> bool:
    """Neither refused nor a failure."""
    return "why_not" not in row and not row.get(FAILURE)


def tasks(chosen: Config) -> list[Task]:
    """More than are needed, in the order of the seed: every `YAML_SHARE`-th is YAML. Raises
    MissingFileError."""
    rng = random.Random(chosen.seed)
    cases = schema_cases(chosen.schemas, "compact")
    rng.shuffle(cases)
    stored = yaml_cases(chosen.yaml_schemas) if chosen.yaml_schemas else []
    rng.shuffle(stored)
    found = []
    for k, case in enumerate(cases[: SPARE * chosen.most_schemas]):
        place, odd = divmod(k, 2 * YAML_SHARE)
        if odd == YAML_SHARE and place < len(stored):
            found.append(Task(stored[place]["id"], "yaml", stored[place]["schema"]))
        style = "yaml" if odd % YAML_SHARE == 0 else "json"
        found.append(Task(case.id, style, case.source["schema"]))
    return found


def rows_of(run: Run[Config], given: Sequence[Task]) -> Iterator[tuple[Task, Row]]:
    """Each task with its row, in order: one that is kept, or a new one. Several processes work on
    the next ones meanwhile."""
    chosen, settings = run.config, run.settings
    cells = {
        task.key: Cell(task.key, walked, (task, chosen.tokenizer, chosen.each(), chosen.seed))
        for task in given
    }
    if settings.executor == "inline" or settings.jobs == 1:
        for task in given:
            yield task, _kept(run, task) or measured(cells[task.key])
        return
    waiting: deque[tuple[Task, Row | Future[Row]]] = deque()
    pool, most = pool_of(settings.jobs), AHEAD * settings.jobs
    try:
        for task in given:
            waiting.append((task, _kept(run, task) or pool.submit(measured, cells[task.key])))
            while waiting and (len(waiting) > most or not isinstance(waiting[0][1], Future)):
                yield _done(*waiting.popleft())
        while waiting:
            yield _done(*waiting.popleft())
    finally:
        pool.shutdown(cancel_futures=True)


def _kept(run: Run[Config], task: Task) -> Row | None:
    row = run.store.rows.get(task.key)
    return None if row and row.get(FAILURE) and run.settings.retry else row


def _done(task: Task, row: Row | Future[Row]) -> tuple[Task, Row]:
    return task, row.result() if isinstance(row, Future) else row
