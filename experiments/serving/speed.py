"""The speed table: what is paid once, for a tokenizer, a process or a machine.

One process does the work, with warm kernels; what needs a process of its own (start, memory, the
time to compile kernels) gets one. Times are wall time, kept raw; tables show medians. What masks
cost is measured by `masks`.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from bpe_automata import Tokenizer
from bpe_automata._cli import common
from bpe_automata._cli.warm import warm_kernels
from bpe_automata._core.canonical import CanonicalAutomaton, build_parts
from bpe_automata._core.geometry import Geometry
from bpe_automata._core.sets import HypothesisSets
from bpe_automata._core.stored import Parts, cached
from bpe_automata._core.token_actions import classify, find_unmade
from bpe_automata._core.vocabulary import vocabulary_trie
from bpe_automata._tokenizer.derivation import derive
from bpe_automata._tokenizer.pipeline import compile_pipeline
from experiments import models
from experiments.run import config
from experiments.run.config import option
from experiments.run.executors import Cell, Row
from experiments.run.measuring import Run
from experiments.run.tables import Column, Table, frame, markdown, records, table
from experiments.shared.resources import repeated
from experiments.shared.watched import Limits, WatchedProcess
from experiments.show import duration, is_missing, whole
from experiments.statistics import median

TITLE = "Speed: what is paid once"
VERSION = 2
Part = Literal["build", "load", "classes", "memory", "starts"]
PARTS: tuple[Part, ...] = ("build", "load", "classes", "memory", "starts")


@dataclass(frozen=True)
class Config(config.Config):
    """What determines how much is timed."""

    model: str = option(models.SMOLLM2, "name, file, folder or hub id of a tokenizer")
    repeats: int = option(7, "how often a thing is timed")
    once: tuple[Part, ...] = option(PARTS, "what is timed of all that is paid once")


SMOKE = Config(repeats=1, once=("build", "load"))


def measure(run: Run[Config]) -> None:
    """A row for each thing that is paid once."""
    with tempfile.TemporaryDirectory() as folder:
        made = prepare(run.config.model, Path(folder))
        warm_kernels(made.tokenizer)
        digest = models.tokenizer_sha256(made.tokenizer)
        run.note(model=made.name, tokenizer_sha256=digest)
        run.cells([*cells(made, run.config)], alone=True)


@dataclass(frozen=True)
class Inputs:
    """name: for tables; tokenizer; json: its `tokenizer.json`; gguf: the file it was read from, if
    that is one; eos_ids: end of sequence."""

    name: str
    tokenizer: Tokenizer
    json: Path
    gguf: Path | None
    eos_ids: tuple[int, ...]


def load_tokenizer(model: str) -> Tokenizer:
    """That of SmolLM2, or of any other file, folder or hub id. Raises as `Tokenizer.load`."""
    if model == models.SMOLLM2:
        return Tokenizer.load(models.default_gguf())
    return common.load_tokenizer(model)


def prepare(model: str, folder: Path) -> Inputs:
    """Load, and write the `tokenizer.json` into `folder`."""
    tokenizer = load_tokenizer(model)
    path = folder / "tokenizer.json"
    path.write_text(tokenizer.to_json(), encoding="utf-8")
    gguf = models.default_gguf() if model == models.SMOLLM2 else None
    name = models.DEFAULT_NAME if model == models.SMOLLM2 else model
    return Inputs(name, tokenizer, path, gguf, tokenizer.eos_ids)


def cells(given: Inputs, chosen: Config) -> Iterator[Cell]:
    """In order. Nothing of them goes to other processes: all run here, one after the other."""
    n = chosen.repeats
    once = {
        "build": Cell("build", built, (given, n)),
        "load": Cell("load", loaded, (given, n)),
        "classes": Cell("classes", classes, (given,)),
        "memory": Cell("memory", memory, (given,)),
        "starts": Cell("starts", starts, (given, n)),
    }
    yield from (once[part] for part in chosen.once)


# ---------------------------------------------------------------- in this process


def built(inputs: Inputs, n: int) -> Row:
    """The whole, `n` times, and each part, `n` times; out of the disk cache, `n` times. Kernels and
    character classes are warm."""
    CanonicalAutomaton(inputs.tokenizer)
    whole = repeated(lambda: CanonicalAutomaton(inputs.tokenizer), n)
    parts = {name: repeated(part, n) for name, part in parts_of(inputs.tokenizer).items()}
    from_cache(inputs.tokenizer)
    parts["instead, out of the disk cache"] = repeated(lambda: from_cache(inputs.tokenizer), n)
    return {"kind": "build", "whole": whole, "parts": parts}


def from_cache(tokenizer: Tokenizer) -> CanonicalAutomaton:
    """The automaton, from its file in the disk cache if it is there."""
    return CanonicalAutomaton(tokenizer, cached(Parts, tokenizer, lambda: build_parts(tokenizer)))


def parts_of(tokenizer: Tokenizer) -> dict[str, Callable[[], object]]:
    """What `CanonicalAutomaton` does, part by part."""
    made, description = CanonicalAutomaton(tokenizer), tokenizer.description
    usable, whole = np.flatnonzero(made.usable), made.whole
    byte_tokens = np.array(sorted(description.byte_tokens.values()), dtype=np.int64)
    told = whole.told_apart
    return {
        "derive": lambda: derive(description),
        "geometry": lambda: Geometry(made.derivation),
        "pipeline": lambda: compile_pipeline(description, tokenizer.backend.engine),
        "whole pieces": lambda: find_unmade(description, made.derivation),
        "trie": lambda: vocabulary_trie(tokenizer.spellings, usable),
        "classify": lambda: classify(made.trie, made.usable, told, byte_tokens, made.pipeline),
        "hypotheses": lambda: HypothesisSets(made.pipeline, made.actions, whole),
    }


def loaded(inputs: Inputs, n: int) -> Row:
    """Reading the tokenizer from each kind of file."""
    files = {"tokenizer.json": repeated(lambda: load(inputs.json), n)}
    if inputs.gguf is not None:
        files["GGUF"] = repeated(lambda: load(inputs.gguf), max(1, n // 2))
    return {"kind": "load", "files": files}


def load(path: object) -> Tokenizer:
    """Read it, and the bytes of each id, which everything needs."""
    tokenizer = Tokenizer.load(path)
    _ = tokenizer.spellings
    return tokenizer


# ---------------------------------------------------------------- in a fresh process


CHILD = "experiments.serving.speed_child"
LIMITS = Limits(mb=math.inf, starting=3600)


def child(part: str, inputs: Inputs, **environment: str) -> Row:
    """Run one part of `speed_child`; `wall`: seconds until it was ready, its launch included.
    Raises LostError."""
    arguments = [part, str(inputs.json), *map(str, inputs.eos_ids)]
    spawned = time.time()
    with WatchedProcess(CHILD, arguments, LIMITS, environment, one_thread=False) as process:
        row = process.begin()
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


# What is said of the rows.


def goal(name: str, value: float, limit: float, unit: str) -> list[str]:
    """Name, what is asked, what was measured (value, nan: nothing), whether it is met."""
    asked = f"<= {limit:g} {unit}"
    if is_missing(value):
        return [name, asked, "not measured", "-"]
    return [name, asked, f"{value:.3g} {unit}", "yes" if value <= limit else "NO"]


def of_kind(rows: pd.DataFrame, kind: str) -> list[Row]:
    """The rows of a kind, in order."""
    return records(rows[rows["kind"] == kind])


def goals(rows: pd.DataFrame) -> list[list[str]]:
    """All of them. One that is missed is said, and not wrong: that depends on the machine."""
    build = [median(row["whole"]) for row in of_kind(rows, "build")]
    peak = [row["peak"] for row in of_kind(rows, "memory") if row["peak"] is not None]
    wall = [median(row["wall"]) for row in of_kind(rows, "start")]
    return [
        goal("canonical automaton, median", median(build), 0.15, "s"),
        goal("peak resident memory without torch", median(peak), 300, "MB"),
        goal("second start of a process, to its first mask, median", median(wall), 1, "s"),
    ]


def tables(rows: pd.DataFrame, manifest: Row) -> list[Table]:
    """What is paid once, and each goal."""
    load = manifest["load_average"][0]
    notes = [
        f"{manifest.get('model', 'no tokenizer')}; {manifest['cores']} cores, load average "
        f"{load:.1f} to begin with: on a busy machine times are longer"
    ]
    summary = Table("Goals", ["goal", "asked", "measured", "met"], goals(rows), notes)
    columns = [
        Column("what", "what"),
        Column("median", lambda group: median(group["seconds"].iloc[0]), duration, "skipped"),
        Column("least", lambda group: min(group["seconds"].iloc[0], default=None), duration),
        Column("n", lambda group: len(group["seconds"].iloc[0]), whole),
    ]
    timed = frame([{"what": what, "seconds": seconds} for what, seconds in once(rows)])
    memory = [note for row in of_kind(rows, "memory") for note in _memory_notes(row)]
    return [*([table("Once", timed, columns, memory)] if len(timed) else []), summary]


def once(rows: pd.DataFrame) -> Iterator[tuple[str, Sequence[float]]]:
    """(what is timed, its seconds), of all that is paid once per process or machine."""
    for row in of_kind(rows, "build"):
        yield "canonical automaton, from a loaded file", row["whole"]
        yield from ((f"  {name}", seconds) for name, seconds in row["parts"].items())
    for row in of_kind(rows, "load"):
        yield from ((f"reading {kind}", seconds) for kind, seconds in row["files"].items())
    for row in of_kind(rows, "classes"):
        yield "pipeline, character classes asked for the first time", [row["asked"]]
        yield "pipeline, character classes from the disk", [row["disk"]]
    for row in of_kind(rows, "start"):
        yield "second start of a process, to its first mask", row["wall"]
        yield from ((f"  {name}", seconds) for name, seconds in row["parts"].items())


def _memory_notes(row: Row) -> list[str]:
    stages = ", ".join(f"{name} {_mb(value)}" for name, value in row["stages"].items())
    torch = "torch IS imported" if row["torch"] else "torch is not imported"
    return [
        f"resident memory of a process after each stage: {stages}; peak {_mb(row['peak'])}",
        f"in that process {torch}",
    ]


def _mb(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.0f} MB"


def facts(rows: pd.DataFrame, manifest: Row) -> Row:
    """goals: see `goal`; start: median seconds by part. Without what was not measured."""
    starts = [row["parts"] for row in of_kind(rows, "start")]
    return {
        "goals": goals(rows),
        "start": {name: median(raw) for parts in starts for name, raw in parts.items()},
    }


def readme(facts: Row) -> str:
    """The goals, and where time goes."""
    if not facts:
        return ""
    lines = [["**no**" if cell == "NO" else cell for cell in one] for one in facts["goals"]]
    shown = markdown(("goal", "asked", "measured", "met"), lines)
    parts = ", ".join(f"{name} {value:.2g} s" for name, value in facts["start"].items())
    return f"{shown}\n\nOf the second start: {parts}." if parts else shown
