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
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import pandas as pd

from experiments.laws.exact_measure import SMOKE_TOKENIZER, shown
from experiments.run import config
from experiments.run.config import option
from experiments.run.executors import FAILURE, Cell, Row
from experiments.run.measuring import Run
from experiments.run.readme import wrapped
from experiments.run.report import Report
from experiments.run.tables import Column, Table, frame, table, whole
from experiments.schemas.inputs import (
    SCHEMAS,
    SMOKE_SCHEMAS,
    SMOKE_YAML,
    YAML_SCHEMAS,
    schema_cases,
    yaml_cases,
)
from experiments.schemas.walks_process import EXCUSES, Task, walked

VERSION = 2
YAML_SHARE = 4
"""Every fourth schema is walked as YAML; of these every second is one of SchemaStore."""
SPARE = 4
"""Times as many schemas as are wanted are drawn, for those that are refused."""


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


def measure(run: Run[Config]) -> None:
    """A row per schema, until as many as are wanted were walked: in place of those that are refused
    the next ones are taken."""
    chosen = run.config
    given, to_walk = iter(tasks(chosen)), chosen.wanted()
    run.note(wanted=to_walk)
    while batch := list(islice(given, to_walk)):
        cells = [
            Cell(task.key, walked, (task, chosen.tokenizer, chosen.each(), chosen.seed))
            for task in batch
        ]
        run.cells(cells, what="walking")
        to_walk -= sum(is_walked(run.store.rows[task.key]) for task in batch)


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


# What is said of the rows.

STYLES = {"json": "JSON", "yaml": "YAML"}
_COUNTS = ("walks", "different", "ids", "characters", *EXCUSES)
_SHOWN = 20


def render(rows: Sequence[Row], manifest: Row) -> Report:
    """wrong: every walk that failed, and every schema whose walks could not be made."""
    done = pd.DataFrame(filter(is_walked, rows), columns=["id", "style", *_COUNTS, "failures"])
    facts = {
        "styles": {style: sums_of(done[done["style"] == style]) for style in STYLES},
        "refused": sum("why_not" in row for row in rows),
        "tokenizer": shown(manifest["config"]["tokenizer"]),
    }
    wrong = [
        f"{name}: {failure['why']}: {failure['text'][:300]!r}"
        for name, failures in zip(done["id"], done["failures"], strict=True)
        for failure in failures
    ]
    wrong += [f"{row['key']}: {row[FAILURE]}" for row in rows if row.get(FAILURE)]
    return Report("Walks", [table_of(facts, manifest)], facts=facts, wrong=wrong[:_SHOWN])


def sums_of(done: pd.DataFrame) -> dict[str, int]:
    """Of the schemas of one style."""
    sums = {name: int(done[name].sum()) for name in _COUNTS}
    return {"schemas": len(done), **sums, "failed": sum(map(len, done["failures"]))}


def table_of(facts: Row, manifest: Row) -> Table:
    """A line for each style."""
    lines = frame([{"style": style} | own for style, own in facts["styles"].items()])
    notes = [
        f"{facts['tokenizer']}; others in place of {facts['refused']} that were refused",
        "patterns: valid where ECMA-262 says what \\s, \\d, \\w and $ are, not by Python's re",
        "rounding: valid by exact decimals, but not by the judge's floats (multipleOf)",
        f"measured in {manifest['wall_seconds']:g} s",
    ]
    done, wanted = int(lines["schemas"].sum()), manifest.get("wanted", 0)
    if done < wanted:
        notes.insert(0, f"{wanted} schemas were wanted, {done} were walked")
    called = {"different": "different texts"}
    columns = [Column("", "style")]
    columns += [Column(called.get(name, name), name, whole) for name in lines.columns[1:]]
    return table("Random walks through the masks of schemas", lines, columns, notes)


def readme(facts: Row) -> str:
    """One sentence."""
    styles = facts["styles"]
    texts = " and ".join(
        f"{own['walks']:,} {STYLES[style]} texts of {own['schemas']} schemas"
        for style, own in styles.items()
    )
    failed = sum(own["failed"] for own in styles.values())
    excused = sum(own[excuse] for own in styles.values() for excuse in EXCUSES)
    return wrapped(
        f"`python -m experiments walks` writes at random under the masks: {texts}, each parsed and "
        f"validated. Wrong: {failed}; valid by ECMA-262's patterns or exact decimals only, which "
        f"the validator does not know: {excused} ([table](paper_figures/walks.md))."
    )
