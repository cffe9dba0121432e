"""Real schemas of YAML files, compiled to block YAML, and the real files that come with them.

Each file is loaded, written again in the pinned style, and offered to the automaton of its schema:
a valid one is accepted, or it is said why it is not. Texts are drawn from each automaton; each must
be loaded by `yaml.safe_load` and be valid for `jsonschema`, with formats. A text that is not, and a
file that is accepted though it is not valid, make the exit code 1.

Data: SchemaStore (schemas with their own positive test files), `--schemas FILE` for another one.
`--n`: how many of the schemas (default: all).
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import resource
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bpe_automata.automata.budget import Budget
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.errors import (
    BpeAutomataError,
    BudgetExceededError,
    InvalidSchemaError,
    MissingFileError,
    UnsatisfiableSchemaError,
    UnsupportedSchemaError,
)
from bpe_automata.schemas import compile_yaml_schema
from experiments import yaml_files, yaml_report
from experiments.optional import require
from experiments.runner import ROOT, Options, Run, read_run
from experiments.schemas_ours import Judge, Verdicts

Row = dict[str, Any]

STORE = ROOT.parent / "shared" / "data" / "schemastore_yaml.jsonl.gz"
WALKS = 50
"""Texts drawn from each automaton."""
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
class YamlOptions(Options):
    """store: JSON lines of `id`, `schema`, `yaml` (a list of texts), gzipped or not."""

    store: Path = STORE


def options_of(chosen: argparse.Namespace, common: Options) -> YamlOptions:
    """`--schemas` is an option of other experiments too."""
    return YamlOptions(**vars(common), store=chosen.schemas or STORE)


def run(options: Options) -> None:
    """Measure unless told to render only; then write the tables. Exit code 1 where something is
    wrong."""
    given = options if isinstance(options, YamlOptions) else YamlOptions(**vars(options))
    if not given.render_only:
        measure(given, list(cases(given.store))[: given.n])
    rows, manifest = read_run(given)
    yaml_report.render(rows, manifest, given)
    if yaml_report.wrong(rows):
        raise SystemExit(1)


def cases(store: Path) -> Iterator[Row]:
    """Each line of the data. Raises MissingFileError."""
    if not store.is_file():
        raise MissingFileError(f"{store} is not there; give --schemas FILE")
    opened = gzip.open if store.suffix == ".gz" else open
    with opened(store, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def measure(options: Options, given: Sequence[Row], walks: int = WALKS) -> None:
    """A row per schema."""
    started = time.perf_counter()
    config = {"walks": walks, "depth": DEPTH, "max_states": BUDGET.max_places}
    run_ = Run(options, config, {"load_average": list(os.getloadavg())}, len(given), started)
    console = require("rich.console").Console(stderr=True)
    with console.status("compiling") as status:
        for case in given:
            status.update(case["id"])
            run_.add(measured(case, walks, options.seed))


def measured(case: Row, walks: int, seed: int) -> Row:
    """One schema: `status` "compiled", or why not; its files and its walks."""
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
