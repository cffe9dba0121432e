"""Random walks through the masks of schemas; every text is parsed and validated.

Of real schemas (MaskBench as JSON, and as YAML together with those of SchemaStore that come with
YAML files) each has the same number of walks: a matcher under a budget of ids, so that every walk
ends, choosing with the seed. Each text goes through `json.loads` or `yaml.safe_load`, then through
`jsonschema` with formats; its ids must be what the tokenizer's own `encode` gives. A failure is a
row, and makes the exit code 1.

`--n`: walks in all (default: 10,000 over 200 schemas); `--tokenizer` (default: SmolLM2's).
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments import schemas_options
from experiments.distortion_report import shown_path
from experiments.optional import require
from experiments.runner import ROOT, Options, Run, read_run, write_atomically
from experiments.schema_walks_process import MOST_STATES, walked
from experiments.schemas_inputs import lines_of, schema_cases
from experiments.schemas_options import SchemasOptions
from experiments.tables import Table

Row = dict[str, Any]

WALKS, SCHEMAS = 10_000, 200
YAML_SHARE = 4
"""Every fourth schema is walked as YAML; of these every second is one of SchemaStore."""
STORE = ROOT.parent / "shared" / "data" / "schemastore_yaml.jsonl.gz"
SPARE = 4
"""Times as many schemas as are needed are at hand, for those that are refused."""


@dataclass(frozen=True)
class Task:
    """style: "json" or "yaml"."""

    id: str
    style: str
    schema: Any


def options_of(chosen: argparse.Namespace, common: Options) -> SchemasOptions:
    """Those of `schemas`."""
    return schemas_options.options_of(chosen, common)


def run(options: Options) -> None:
    """Measure unless told to render only. Exit code 1 for any failure."""
    given = options if isinstance(options, SchemasOptions) else SchemasOptions(**vars(options))
    if not given.render_only:
        measure(given, tasks(given.schemas, STORE, given.seed))
    rows, manifest = read_run(given)
    if render(rows, manifest, given):
        raise SystemExit(1)


def tasks(folder: Path, store: Path, seed: int) -> list[Task]:
    """More than are needed, in the order of the seed: every `YAML_SHARE`-th is YAML."""
    rng = random.Random(seed)
    cases = schema_cases(folder, "compact")
    rng.shuffle(cases)
    stored = list(lines_of(store)) if store.exists() else []
    rng.shuffle(stored)
    found = []
    for k, case in enumerate(cases[: SPARE * SCHEMAS]):
        place, odd = divmod(k, 2 * YAML_SHARE)
        if odd == YAML_SHARE and place < len(stored):
            found.append(Task(stored[place]["id"], "yaml", stored[place]["schema"]))
        style = "yaml" if odd % YAML_SHARE == 0 else "json"
        found.append(Task(case.id, style, case.source["schema"]))
    return found


def measure(options: SchemasOptions, given: Sequence[Task]) -> None:
    """A row per schema, until as many as are wanted were walked."""
    started = time.perf_counter()
    walks = options.n or WALKS
    wanted = max(1, min(SCHEMAS, walks // 10))
    tokenizer, each = options.chosen[0], -(-walks // wanted)
    config = {"walks": walks, "schemas": wanted, "each": each, "tokenizer": tokenizer}
    run_ = Run(options, config, {"load_average": list(os.getloadavg())}, wanted, started)
    console = require("rich.console").Console(stderr=True)
    with require("rich.progress").Progress(console=console, transient=True) as bar:
        progress = bar.add_task("walking", total=wanted)
        for row in _rows(options, given, tokenizer, each):
            refused = "why_not" in row
            run_.expected += refused
            run_.add(row)
            bar.advance(progress, not refused)
            if sum("why_not" not in kept for kept in run_.rows) == wanted:
                break


def _rows(
    options: SchemasOptions, given: Sequence[Task], tokenizer: str, each: int
) -> Iterator[Row]:
    """Of each task, in order; `jobs` at a time."""
    if options.jobs == 1:
        for task in given:
            yield walked(task, tokenizer, each, options.seed)
        return
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.jobs, mp_context=fresh) as pool:
        ahead = 8 * options.jobs  # a slow one keeps no process waiting, and little is begun in vain
        running = [pool.submit(walked, t, tokenizer, each, options.seed) for t in given[:ahead]]
        for task in given[ahead:]:
            yield running.pop(0).result()
            running.append(pool.submit(walked, task, tokenizer, each, options.seed))
        for future in running:
            yield future.result()


def render(rows: Sequence[Row], manifest: Row, options: SchemasOptions) -> list[Row]:
    """Print and write the table; returns the failures."""
    done = [row for row in rows if "why_not" not in row]
    failures = [failure | {"id": row["id"]} for row in done for failure in row["failures"]]
    lines = [_line(style, [r for r in done if r["style"] == style]) for style in ("json", "yaml")]
    config = manifest["config"]
    notes = [
        f"{config['tokenizer']}; in place of {len(rows) - len(done)} schemas that were refused, or "
        f"have over {MOST_STATES:,} states, others were taken",
        "rounding: valid by exact decimals, but not by the judge's floats (multipleOf)",
        f"measured in {manifest['wall_seconds']} s",
    ]
    if not manifest["complete"]:
        notes.insert(0, "INCOMPLETE: not as many schemas were walked as were wanted")
    columns = ["", "schemas", "walks", "different texts", "ids", "characters", "rounding", "failed"]
    table = Table("Random walks through the masks of schemas", columns, lines, notes)
    table.print()
    home = options.figures if options.n is None else options.folder
    write_atomically(home / "walks.md", "# Walks\n\n" + table.markdown())
    print(f"table: {shown_path(home / 'walks.md')}")
    for failure in failures[:20]:
        print(f"{failure['id']}: {failure['why']}: {failure['text'][:300]!r}")
    return failures


def _line(style: str, rows: Sequence[Row]) -> list[str]:
    quantities = ("walks", "different", "ids", "characters", "rounding")
    sums = [f"{sum(row[name] for row in rows):,}" for name in quantities]
    return [style, f"{len(rows)}", *sums, f"{sum(len(row['failures']) for row in rows)}"]
