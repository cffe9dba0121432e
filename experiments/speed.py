"""The speed table: what the canonical automaton, a regex and a mask cost, beside other engines.

One process does the work, with warm kernels; what needs a process of its own (start, memory, the
time to compile kernels) gets one. Times are wall time, kept raw; tables show medians. Engines take
turns, so that slow drift of a busy machine hits all alike; short times still vary between runs.

`--n`: how many times things are repeated; with `--n 1` the kernels are not compiled anew.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from experiments import (
    models,
    speed_build,
    speed_compile,
    speed_masks,
    speed_processes,
    speed_report,
)
from experiments.optional import require
from experiments.peers import Engine, Ours, open_peers, peer_versions
from experiments.runner import Options, Run, read_run
from experiments.speed_cases import REGEXES
from experiments.speed_inputs import Inputs, prepare
from experiments.warm import METHODS, warm_kernels

REPEATS = 7
SKIPPED = "the time to compile kernels is skipped with --n 1"

Row = dict[str, Any]
Job = tuple[str, Callable[[], Row]]


def run(options: Options) -> None:
    """Measure unless told to render only; then print the tables and draw the figure."""
    if not options.render_only:
        measure(options, REGEXES)
    rows, manifest = read_run(options)
    speed_report.render(rows, manifest, options)


def measure(options: Options, regexes: Mapping[str, str]) -> None:
    """One row per job; see `jobs`."""
    started = time.perf_counter()
    console = require("rich.console").Console(stderr=True)
    with tempfile.TemporaryDirectory() as folder:
        with console.status("loading the tokenizer and the kernels"):
            inputs = prepare(options.model, Path(folder))
            warm_kernels(inputs.tokenizer)
            peers, missing = open_peers(inputs.tokenizer, inputs.eos_ids)
        todo = list(jobs(inputs, regexes, peers, options))
        config = {"repeats": options.n or REPEATS, "missing_peers": missing}
        run_ = Run(options, config, provenance(inputs), len(todo), started)
        with require("rich.progress").Progress(console=console, transient=True) as bar:
            task = bar.add_task("", total=len(todo))
            for description, job in todo:
                bar.update(task, description=description)
                run_.add(job())
                bar.advance(task)
    if options.n == 1:
        console.print(SKIPPED)


def provenance(inputs: Inputs) -> Row:
    """Which tokenizer, which engines, and how busy the machine was to begin with."""
    return {
        "model": inputs.name,
        "tokenizer_sha256": models.tokenizer_sha256(inputs.tokenizer),
        "peers": peer_versions(),
        "cores": os.cpu_count(),
        "load_average": list(os.getloadavg()),
    }


def jobs(
    inputs: Inputs, regexes: Mapping[str, str], peers: list[Engine], options: Options
) -> Iterator[Job]:
    """(description, job) in order; each job makes one row."""
    n = options.n or REPEATS
    yield "canonical automaton", lambda: speed_build.built(inputs, n)
    yield "reading tokenizer files", lambda: speed_build.loaded(inputs, n)
    yield "asking for character classes", lambda: speed_processes.classes(inputs)
    yield "memory of a process", lambda: speed_processes.memory(inputs)
    yield "starts of a process", lambda: speed_processes.starts(inputs, n)
    yield "compiling every kernel (1 to 3 min)", lambda: speed_processes.kernels(inputs, n > 1)
    yield from regex_jobs(inputs, regexes, peers, n)
    yield from mask_jobs(inputs, regexes, peers, options.seed)


def regex_jobs(
    inputs: Inputs, regexes: Mapping[str, str], peers: list[Engine], n: int
) -> Iterator[Job]:
    """Regex to first mask, ours and theirs."""
    ours = [Ours(inputs.tokenizer, method, inputs.eos_ids) for method in METHODS]
    ordinary = inputs.ordinary()
    for name, regex in regexes.items():
        yield (
            f"regex to first mask: {name}",
            partial(speed_compile.compiled, name, regex, [*ours, *peers], ordinary, n),
        )


def mask_jobs(
    inputs: Inputs, regexes: Mapping[str, str], peers: list[Engine], seed: int
) -> Iterator[Job]:
    """Masks along walks. outlines_core is left out: all its masks are made with the index."""
    lazy = [peer for peer in peers if peer.name != "outlines_core"]
    tokenizers = (inputs.tokenizer, speed_build.load(inputs.json))
    for name, regex in regexes.items():
        yield (
            f"masks: {name}",
            partial(speed_masks.masks, name, regex, tokenizers, inputs.eos_ids, lazy, seed),
        )
