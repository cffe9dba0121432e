"""Measurements that need a fresh process: its start, its memory, an empty cache."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time

from bpe_automata.errors import BpeAutomataError
from experiments.run.executors import Row
from experiments.run.files import ROOT
from experiments.serving.speed_inputs import Inputs


class ChildError(BpeAutomataError):
    """A process that was to measure something failed; the message is its last line."""


def child(part: str, inputs: Inputs, **environment: str) -> Row:
    """Run one part of `speed_child`; `wall`: seconds until it was ready, its launch included."""
    ids = map(str, inputs.eos_ids)
    command = [
        sys.executable,
        "-m",
        "experiments.serving.speed_child",
        part,
        str(inputs.json),
        *ids,
    ]
    spawned = time.time()
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no message"]
        raise ChildError(f"the process that measures {part!r} failed: {lines[-1]}")
    row: Row = json.loads(done.stdout.splitlines()[-1])
    return row | {"wall": row.pop("ready_at", time.time()) - spawned}


def starts(inputs: Inputs, n: int) -> Row:
    """Seconds of `n` starts, all caches warm (one start before them is not counted)."""
    child("start", inputs)
    rows = [child("start", inputs) for _ in range(n)]
    parts = {name: [row["parts"][name] for row in rows] for name in rows[0]["parts"]}
    return {"kind": "start", "parts": parts, "wall": [row["wall"] for row in rows]}


def memory(inputs: Inputs) -> Row:
    """Megabytes of a process without torch."""
    return {"kind": "memory", **child("memory", inputs)}


def classes(inputs: Inputs) -> Row:
    """Seconds of asking the tokenizer's engine for its character classes, the very first time."""
    return {"kind": "classes", **child("classes", inputs)}


def kernels(inputs: Inputs, compile_too: bool) -> Row:
    """Seconds to load the kernels from disk and, `compile_too`, to compile them all."""
    loaded = child("kernels", inputs)
    row: Row = {"kind": "kernels", "load": loaded["first"] - loaded["second"], "compile": None}
    if compile_too:
        with tempfile.TemporaryDirectory() as empty:
            made = child("kernels", inputs, NUMBA_CACHE_DIR=empty)
        row["compile"] = made["first"] - made["second"]
    return row
