"""Real schemas of YAML files, compiled to block YAML, and the real files that come with them.

Each file is loaded, written again in the pinned style, and offered to the automaton of its schema:
a valid one is accepted, or it is said why it is not. Texts are drawn from each automaton; each must
be loaded by `yaml.safe_load` and be valid for `jsonschema`, with formats. A text that is not, and a
file that is accepted though it is not valid, make the exit code 1.

Data: SchemaStore (schemas with their own positive test files), `--yaml-schemas FILE` for another
one.
"""

from __future__ import annotations

import random
import resource
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.budget import Budget
from bpe_automata.errors import (
    BpeAutomataError,
    BudgetExceededError,
    InvalidSchemaError,
    UnsatisfiableSchemaError,
    UnsupportedSchemaError,
)
from bpe_automata.schemas import compile_yaml_schema
from experiments.run import config
from experiments.run.config import option
from experiments.run.executors import FAILURE, Cell, Row
from experiments.run.measuring import Run
from experiments.run.readme import wrapped
from experiments.run.report import Report
from experiments.run.statistics import quantile
from experiments.run.tables import Column, Table, fixed, frame, table, whole
from experiments.schemas.inputs import SMOKE_YAML, YAML_SCHEMAS, yaml_cases
from experiments.schemas.judge import Judge, Verdicts
from experiments.schemas.yaml_files import (
    ACCEPTED,
    NUMBER,
    ORDER,
    OUTCOMES,
    UNEXPLAINED,
    WRONG,
    Files,
    complaint,
)

VERSION = 1
DEPTH = 3
"""How deep values are nested of which the schema says nothing, and rounds through a $ref: as deep
as `compile_yaml_schema` goes by default."""
BUDGET = Budget(max_states=50_000)
"""Ten times as many states of bytes; half of the default."""
COMPILED = "compiled"
_STATUS = (
    (UnsupportedSchemaError, "refused"),
    (BudgetExceededError, "too large"),
    (UnsatisfiableSchemaError, "unsatisfiable"),
    (InvalidSchemaError, "invalid"),
)
_BYTES = (40, 200, 1000)  # lengths at which a walk turns home, in turn


@dataclass(frozen=True)
class Config(config.Config):
    """Which schemas, and how many texts of each."""

    yaml_schemas: Path = option(YAML_SCHEMAS, "JSON lines of schemas with YAML files")
    n: int | None = option(None, "yaml_schemas: the first so many; none: all")
    texts: int = option(50, "yaml_schemas: drawn from each automaton")


SMOKE = Config(yaml_schemas=SMOKE_YAML, texts=12)


def measure(run: Run[Config]) -> None:
    """A row per schema."""
    chosen = run.config
    given = yaml_cases(chosen.yaml_schemas)[: chosen.n]
    run.note(depth=DEPTH, max_states=BUDGET.max_instructions)
    run.cells([Cell(case["id"], measured, (case, chosen.texts, chosen.seed)) for case in given])


@cache
def warm() -> None:
    """Kernels are loaded, and tables made that are made once: no part of any schema's time."""
    compile_yaml_schema({"type": "object", "properties": {"a": {"type": "integer"}}}, depth=DEPTH)


def measured(case: Row, walks: int, seed: int) -> Row:
    """One schema: `status` COMPILED, or why not; its files and its walks."""
    warm()
    row: Row = {"id": case["id"], "files": [], "walks": 0, "failures": []}
    started = time.process_time()  # of one thread, so that other work on the machine counts less
    try:
        dfa = compile_yaml_schema(case["schema"], depth=DEPTH, budget=BUDGET)
    except BpeAutomataError as error:
        row["seconds"] = time.process_time() - started
        status = next((name for kind, name in _STATUS if isinstance(error, kind)), "failed")
        keyword = getattr(error, "keyword", None)
        return row | {"status": status, "keyword": keyword, "message": str(error)[:300]}
    row |= {"seconds": time.process_time() - started, "status": COMPILED}
    row |= {"states": dfa.n_states, "mb": (dfa.trans.nbytes + dfa.accepting.nbytes) / 1e6}
    row["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    judge = Judge().compile(case)
    checked = Files(case["schema"], dfa, judge)
    row["files"] = [checked.verdict(text) for text in case["yaml"]]
    return row | walked(dfa, judge, random.Random(seed), walks)


def walked(dfa: ByteDFA, judge: Verdicts, rng: random.Random, walks: int) -> Row:
    """`walks` random texts; the failures: what went wrong, and the text."""
    texts = [dfa.sample(rng, _BYTES[k % len(_BYTES)]).decode() for k in range(walks)]
    complaints = [(complaint(text, judge), text) for text in texts]
    failures = [{"why": why, "text": text} for why, text in complaints if why]
    return {"walks": walks, "characters": sum(map(len, texts)), "failures": failures}


# What is said of the rows.

_SHARES = {"median": 0.5, "p90": 0.9, "max": 1.0}
_SHOWN = 20


def render(rows: Sequence[Row], manifest: Row) -> Report:
    """wrong: texts that are accepted and should not be, drawn or from files; files rejected for no
    reason; schemas that could not be measured."""
    done = [row for row in rows if not row.get(FAILURE)]
    outcomes = Counter(outcome for row in done for outcome in row["files"])
    refused = [row for row in done if row["status"] != COMPILED]
    reasons = Counter(f"{row['status']}: {row.get('keyword') or '-'}" for row in refused)
    tables = [
        _statuses(done, manifest),
        _costs(done),
        _counts(
            "The files that come with them",
            ("", "files"),
            [(name, outcomes[name]) for name in OUTCOMES if outcomes[name]],
            ["each was loaded and written again in the pinned style, keys in its own order"],
        ),
        _counts("Not compiled", ("status: keyword", "schemas"), reasons.most_common()),
    ]
    failed = [f"{row['key']}: {row[FAILURE]}" for row in rows if row.get(FAILURE)]
    found = [*wrongs(done), *failed]
    return Report("YAML schemas", tables, facts=facts_of(done), wrong=found[:_SHOWN])


def wrongs(rows: Sequence[Row]) -> list[str]:
    """What is wrong of this package."""
    found = [
        f"{row['id']}: {failure['why']}: {failure['text'][:300]!r}"
        for row in rows
        for failure in row["failures"]
    ]
    return found + [
        f"{row['id']}: file {k}: {outcome}"
        for row in rows
        for k, outcome in enumerate(row["files"])
        if outcome in (WRONG, UNEXPLAINED)
    ]


def facts_of(rows: Sequence[Row]) -> Row:
    """What the README says."""
    outcomes = Counter(outcome for row in rows for outcome in row["files"])
    return {
        "schemas": len(rows),
        "statuses": dict(Counter(row["status"] for row in rows).most_common()),
        "texts": sum(row["walks"] for row in rows),
        "wrong_texts": sum(len(row["failures"]) for row in rows),
        "files": sum(outcomes.values()),
        "accepted": sum(outcomes[outcome] for outcome in (ACCEPTED, ORDER, NUMBER)),
        "wrong_files": outcomes[WRONG] + outcomes[UNEXPLAINED],
    }


def _counts(
    title: str,
    names: tuple[str, str],
    counts: Iterable[tuple[str, int]],
    notes: Sequence[str] = (),
) -> Table:
    """A line for each of what was counted."""
    lines = frame([dict(zip(names, count, strict=True)) for count in counts])
    columns = [Column(names[0], names[0]), Column(names[1], names[1], whole)]
    return table(title, lines, columns, notes)


def _statuses(rows: Sequence[Row], manifest: Row) -> Table:
    """How many schemas were compiled, and what the walks gave."""
    counts = Counter(row["status"] for row in rows).most_common()
    counts += [
        ("random texts", sum(row["walks"] for row in rows)),
        ("their characters", sum(row.get("characters", 0) for row in rows)),
        ("not loaded, or not valid", sum(len(row["failures"]) for row in rows)),
    ]
    notes = ["each text goes through yaml.safe_load and jsonschema"]
    if "depth" in manifest:
        most = f"over {manifest['max_states']:,} states in any one step"
        notes.insert(0, f"depth {manifest['depth']}; too large: {most}")
    notes.append(f"measured in {manifest['wall_seconds']:g} s")
    return _counts("SchemaStore's schemas of YAML files", ("", "number"), counts, notes)


def _costs(rows: Sequence[Row]) -> Table:
    """Seconds of all, sizes of the compiled ones."""
    done = [row for row in rows if row["status"] == COMPILED]
    kinds = (
        ("CPU seconds, compiled", done, "seconds", fixed(2)),
        ("CPU seconds, all", rows, "seconds", fixed(2)),
        ("states", done, "states", whole),
        ("MB", done, "mb", fixed(1)),
    )
    lines = []
    for name, some, field, show in kinds:
        found = [row[field] for row in some]
        cells = {column: show(quantile(found, share)) for column, share in _SHARES.items()}
        lines += [{"name": name} | cells] if found else []
    columns = [Column("", "name"), *(Column(name, name) for name in _SHARES)]
    peak = max((row["peak_mb"] for row in done), default=0)
    note = f"a process compiles many of them; the memory of one rose to {peak:,.0f} MB at most"
    return table("What they cost", frame(lines), columns, [note])


def readme(facts: Row) -> str:
    """One paragraph."""
    compiled = facts["statuses"].get(COMPILED, 0)
    return wrapped(
        f"`python -m experiments yaml_schemas`: of {facts['schemas']} schemas of SchemaStore with "
        f"YAML files {compiled} compile. Of {facts['texts']:,} texts drawn from them "
        f"{facts['wrong_texts']} are not loaded or not valid; of {facts['files']} files "
        f"{facts['accepted']} are accepted, and {facts['wrong_files']} accepted or rejected for no "
        "good reason ([table](paper_figures/yaml_schemas.md))."
    )
