"""The automaton of all texts, of the Mistral-7B merge table, made in two ways in one run.

The reference is Algorithm 3 of the article in plain Python, with its last step, the fusion of equal
states; the article's own time stands beside it. The rectangles are the package's: every token's
derivation, and one rectangle per merge. Both are then compared on the complete table, row by row.
Last, DirectMerge itself on `.*` is compared with Algorithm 3 for growing beginnings of the table.

`--n`: how often the rectangles are made.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bpe_automata.errors import BpeAutomataError
from experiments import article_table, geometry_report
from experiments.optional import require
from experiments.runner import ROOT, Options, Run, read_run, write_atomically

Row = dict[str, Any]

REPEATS = 7
BUDGET = 200.0
"""Seconds for the growing beginnings of the table; the last of them may take as long again."""


class GeometryError(BpeAutomataError):
    """A process that was to measure something failed; the message is its last line."""


def run(options: Options) -> None:
    """Measure unless told to render only; then print the tables. Exit code 1 where the two ways
    differ."""
    if not options.render_only:
        measure(options, json.dumps(article_table.bpe_alone_of_mistral()), BUDGET)
    rows, manifest = read_run(options)
    geometry_report.render(rows, manifest, options)
    if geometry_report.differences(rows):
        raise SystemExit(1)


def measure(options: Options, table: str, budget: float) -> None:
    """One row per part, each from a process of its own. table: a tokenizer.json, BPE alone."""
    started = time.perf_counter()
    # The rectangles first and last, so that the reference is between them on a busy machine too.
    parts = {
        "rectangles": options.n or REPEATS,
        "reference": options.seed,
        "rectangles again": options.n or REPEATS,
        "beginnings": budget,
    }
    provenance = {"tokenizer": article_table.NAME, "load_average": list(os.getloadavg())}
    run_ = Run(options, {"budget_seconds": budget}, provenance, len(parts), started)
    console = require("rich.console").Console(stderr=True)
    with tempfile.TemporaryDirectory() as scratch, console.status("") as status:
        file = Path(scratch) / "tokenizer.json"
        write_atomically(file, table)
        for part, number in parts.items():
            status.update(f"measuring: {part}")
            run_.add({"kind": part} | child(part.split()[0], file, number))


def child(part: str, file: Path, number: float) -> Row:
    """Run one part of `geometry_child`. Raises GeometryError."""
    command = [sys.executable, "-m", "experiments.geometry_child", part, str(file), str(number)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no message"]
        raise GeometryError(f"the process that measures {part!r} failed: {lines[-1]}")
    row: Row = json.loads(done.stdout.splitlines()[-1])
    return row
