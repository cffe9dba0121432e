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
from experiments.run.executors import Cell, Row
from experiments.run.measuring import Run
from experiments.schemas import yaml_files, yaml_report
from experiments.schemas.inputs import SMOKE_YAML, YAML_SCHEMAS, yaml_cases
from experiments.schemas.judge import Judge, Verdicts

VERSION = 1
DEPTH = 3
"""How deep values are nested of which the schema says nothing, and rounds through a $ref: as deep
as `compile_yaml_schema` goes by default."""
BUDGET = Budget(max_states=50_000)
"""Ten times as many states of bytes; half of the default."""
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

render, readme = yaml_report.render, yaml_report.readme


def measure(run: Run[Config]) -> None:
    """A row per schema."""
    chosen = run.config
    given = yaml_cases(chosen.yaml_schemas)[: chosen.n]
    run.note(depth=DEPTH, max_states=BUDGET.max_places)
    run.cells([Cell(case["id"], measured, (case, chosen.texts, chosen.seed)) for case in given])


@cache
def warm() -> None:
    """Kernels are loaded, and tables made that are made once: no part of any schema's time."""
    compile_yaml_schema({"type": "object", "properties": {"a": {"type": "integer"}}}, depth=DEPTH)


def measured(case: Row, walks: int, seed: int) -> Row:
    """One schema: `status` "compiled", or why not; its files and its walks."""
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
    row |= {"seconds": time.process_time() - started, "status": "compiled"}
    row |= {"states": dfa.n_states, "mb": (dfa.trans.nbytes + dfa.accepting.nbytes) / 1e6}
    row["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    judge = Judge().compile(case)
    checked = yaml_files.Files(case["schema"], dfa, judge)
    row["files"] = [checked.verdict(text) for text in case["yaml"]]
    return row | walked(dfa, judge, random.Random(seed), walks)


def walked(dfa: ByteDFA, judge: Verdicts, rng: random.Random, walks: int) -> Row:
    """`walks` random texts; the failures: what went wrong, and the text."""
    failures: list[Row] = []
    sizes: Counter[str] = Counter()
    for number in range(walks):
        text = dfa.sample(rng, _BYTES[number % len(_BYTES)]).decode()
        sizes["characters"] += len(text)
        why = yaml_files.complaint(text, judge)
        if why:
            failures.append({"why": why, "text": text})
    return {"walks": walks, "characters": sizes["characters"], "failures": failures}
