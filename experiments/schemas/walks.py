"""Random walks through the masks of schemas; every text is parsed and validated.

Of real schemas (MaskBench as JSON, and as YAML together with those of SchemaStore that come with
YAML files) each has the same number of walks: some ids that the masks allow, up to 80, chosen with
the seed, then under the same masks the way to the end. Each text goes through `json.loads` or
`yaml.safe_load`, then through `jsonschema` with formats; its ids must be what the tokenizer's own
`encode` gives. A walk that is wrong makes the exit code 1.

`--n`: walks in all, over `--most-schemas` or a tenth of them, whichever is less.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bpe_automata import ByteDFA, Constraint, Tokenizer, constrain
from bpe_automata.errors import BpeAutomataError
from experiments.engines.interface import RefusedError
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
from experiments.schemas.judge import Verdicts, with_patterns_for_python
from experiments.shared.walks import CannotFinishError, ends, finish, readable

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


# The walks of one schema, in whatever process, and the checks of each text.

MOST_IDS = 80
"""Ids of a walk that are chosen at random at most; then it is completed."""
CANDIDATES = 48
"""Ids of a mask that are drawn at random, to choose from by the states that they lead to."""
_FAILURES = 5  # of one schema that are kept in full


@dataclass(frozen=True)
class Task:
    """style: "json" or "yaml"."""

    id: str
    style: str
    schema: Any

    @property
    def key(self) -> str:
        """Of its row."""
        return f"{self.style} {self.id}"


def walked(task: Task, tokenizer: str, walks: int, seed: int) -> Row:
    """One row: counts and failures, or `why_not`."""
    row: Row = {"id": task.id, "style": task.style}
    try:
        dfa = compiled(task)
        check = checker(task)
        loaded = _tokenizer(tokenizer)
        constraint = constrain(loaded, dfa, added_tokens=False)
        constraint.matcher()
    except (BpeAutomataError, RefusedError) as error:
        return row | {"why_not": f"{type(error).__name__}: {error}"[:300]}
    rng = random.Random(f"{seed} {task.id} {task.style}")
    texts, failures, ids = [], [], 0
    excused = dict.fromkeys(EXCUSES, 0)
    for _ in range(walks):
        try:
            walk = random_ids(constraint, rng)
        except CannotFinishError as error:
            failures.append({"why": "no way to the end", "text": "", "ids": error.args[0]})
            continue
        ids += len(walk)
        text = loaded.decode(walk)
        texts.append(text)
        why = check(text)
        if why in EXCUSES:
            excused[why] += 1
            why = None
        if why is None and loaded.encode(text) != walk:
            why = "its ids are not what encode gives"
        if why is not None:
            failures.append({"why": why, "text": text, "ids": walk})
    counts = {"walks": walks, "different": len(set(texts)), "ids": ids}
    counts["characters"] = sum(map(len, texts))
    return row | counts | excused | {"failures": failures[:_FAILURES]}


def compiled(task: Task) -> ByteDFA:
    """The automaton of a schema in its style. Raises BpeAutomataError."""
    from bpe_automata.schemas import json_schema, yaml_schema

    made = (yaml_schema if task.style == "yaml" else json_schema)(task.schema, order="schema")
    return made.to_dfa(depth=3)


def random_ids(constraint: Constraint, rng: random.Random) -> list[int]:
    """A walk that ends. Where the masks leave a choice, each state of the automaton that can be
    reached is alike likely, so that strings end and members come; after a random number of ids it
    takes those that come nearest to the end. Raises CannotFinishError."""
    engine = constraint.engine
    ids: list[int] = []
    state, q = engine.initial(), constraint.dfa.start
    for _ in range(rng.randrange(1, MOST_IDS + 1)):
        allowed = readable(constraint, state)
        if not len(allowed) or (engine.accepting(state) and rng.random() < 1 / 4):
            break
        token, q = _chosen(constraint, allowed, ids, q, rng)
        state = engine.step(state, token)
        ids.append(token)
    return finish(constraint, ids, state, rng)


def _chosen(
    constraint: Constraint, allowed: np.ndarray, ids: list[int], state: int, rng: random.Random
) -> tuple[int, int]:
    """(an id, the state of the automaton after it)."""
    if len(allowed) > CANDIDATES:
        drawn = [rng.randrange(len(allowed)) for _ in range(CANDIDATES)]
        short = _single_bytes(constraint.tokenizer)
        allowed = np.union1d(allowed[drawn], allowed[np.isin(allowed, short)])
    after = ends(constraint, allowed, ids, state)
    to = rng.choice(np.unique(after).tolist())
    token = int(rng.choice(allowed[after == to].tolist()))
    return token, int(to)


def _single_bytes(tokenizer: Tokenizer) -> np.ndarray:
    return tokenizer.derived(
        "ids of one byte",
        lambda made: np.flatnonzero([len(spelled) == 1 for spelled in made.spellings]),
    )


PATTERNS, ROUNDING = "patterns", "rounding"
EXCUSES = (PATTERNS, ROUNDING)
"""Where `jsonschema` on Python is wrong: it reads patterns as `re` does, or divides floats."""


def checker(task: Task) -> Callable[[str], str | None]:
    """What is wrong with a text, one of `EXCUSES`, or None. Raises RefusedError for what is no
    schema."""
    judge = Verdicts(task.schema)
    translated = with_patterns_for_python(task.schema)
    as_ecma = Verdicts(translated)
    exact = Verdicts(exactly(json.loads(json.dumps(translated), **_EXACT)))

    def check(text: str) -> str | None:
        try:
            value = parsed(text, task.style)
        except Exception as error:  # whatever a parser raises
            return f"it cannot be read: {type(error).__name__}: {error}"[:200]
        if as_ecma.is_valid(value):
            return None if judge.is_valid(value) else PATTERNS
        if task.style == "json" and exact.is_valid(exactly(json.loads(text, **_EXACT))):
            return ROUNDING
        return f"not valid: {as_ecma.complaint(value)}"[:300]

    return check


_EXACT: dict[str, Any] = {"parse_float": Decimal}


def exactly(value: Any) -> Any:
    """With decimals that are integers as int: `jsonschema` does not know that they are."""
    if isinstance(value, dict):
        return {name: exactly(inside) for name, inside in value.items()}
    if isinstance(value, list):
        return [exactly(inside) for inside in value]
    if isinstance(value, Decimal) and value == value.to_integral_value():
        return int(value)
    return value


def parsed(text: str, style: str) -> Any:
    """As its readers read it."""
    if style == "json":
        return json.loads(text)
    import yaml

    return yaml.safe_load(text)


@lru_cache(maxsize=1)
def _tokenizer(name: str) -> Tokenizer:
    return Tokenizer.load(name)


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
