"""The speed table: what the canonical automaton, a regex and a mask cost, beside other engines.

One process does the work, with warm kernels; what needs a process of its own (start, memory, the
time to compile kernels) gets one. Times are wall time, kept raw; tables show medians. Engines take
turns, so that slow drift of a busy machine hits all alike; short times still vary between runs.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bpe_automata.cli.warm import METHODS, warm_kernels
from experiments.run import config
from experiments.run.cells import FAILURE, Cell, Row
from experiments.run.config import option
from experiments.run.measuring import Run
from experiments.run.report import Report
from experiments.serving import (
    speed_build,
    speed_compile,
    speed_facts,
    speed_figure,
    speed_masks,
    speed_processes,
    speed_report,
)
from experiments.serving.speed_cases import chosen as regexes_of
from experiments.serving.speed_inputs import Inputs, prepare
from experiments.shared import models
from experiments.shared.engines import Engine, Ours, open_peers, peer_versions

VERSION = 1
Part = Literal["build", "load", "classes", "memory", "starts", "kernels"]
PARTS: tuple[Part, ...] = ("build", "load", "classes", "memory", "starts", "kernels")


@dataclass(frozen=True)
class Config(config.Config):
    """What determines how much is timed."""

    model: str = option(models.SMOLLM2, "name, file, folder or hub id of a tokenizer")
    repeats: int = option(7, "how often a thing is timed; with 1 the kernels are not compiled anew")
    cases: tuple[str, ...] = option((), "names of regexes (see speed_cases); none: all of them")
    once: tuple[Part, ...] = option(PARTS, "what is timed of all that is paid once")


SMOKE = Config(repeats=1, cases=("boolean", "date"), once=("build", "load"))


def inputs(chosen: Config) -> Row:
    """The versions of the peers: rows of another version are not gone on with."""
    return {"versions": peer_versions()}


def measure(run: Run[Config]) -> None:
    """A row for each thing that is paid once, then two for each regex."""
    with tempfile.TemporaryDirectory() as folder:
        made = prepare(run.config.model, Path(folder))
        warm_kernels(made.tokenizer)
        peers, missing = open_peers(made.tokenizer, made.eos_ids)
        run.note(
            model=made.name,
            tokenizer_sha256=models.tokenizer_sha256(made.tokenizer),
            peers=peer_versions(),
            missing_peers=missing,
        )
        run.cells([*cells(made, run.config, peers)], alone=True)


def cells(given: Inputs, chosen: Config, peers: Sequence[Engine]) -> Iterator[Cell]:
    """In order. Nothing of them goes to other processes: all run here, one after the other."""
    n, regexes = chosen.repeats, regexes_of(chosen.cases)
    once = {
        "build": Cell("build", speed_build.built, (given, n)),
        "load": Cell("load", speed_build.loaded, (given, n)),
        "classes": Cell("classes", speed_processes.classes, (given,)),
        "memory": Cell("memory", speed_processes.memory, (given,)),
        "starts": Cell("starts", speed_processes.starts, (given, n)),
        "kernels": Cell("kernels", speed_processes.kernels, (given, n > 1)),
    }
    yield from (once[part] for part in chosen.once)
    ours = [Ours(given.tokenizer, method, given.eos_ids) for method in METHODS]
    ordinary = given.ordinary()
    for name, regex in regexes.items():
        engines = (name, regex, [*ours, *peers], ordinary, n)
        yield Cell(f"to first mask: {name}", speed_compile.compiled, engines)
    # outlines_core makes all its masks with the index, so they are timed there.
    lazy = [peer for peer in peers if peer.name != "outlines_core"]
    tokenizers = (given.tokenizer, speed_build.load(given.json))
    for name, regex in regexes.items():
        asked = (name, regex, tokenizers, given.eos_ids, lazy, chosen.seed)
        yield Cell(f"masks: {name}", speed_masks.masks, asked)


def render(rows: Sequence[Row], manifest: Row) -> Report:
    """Tables, the goals among them, and the figure. A goal that is missed is said, and not wrong:
    that depends on the machine."""
    done = [row for row in rows if not row.get(FAILURE)]
    return Report(
        f"Speed: {manifest.get('model', 'no tokenizer')}",
        speed_report.tables(done, manifest),
        speed_figure.figures(done, manifest),
        speed_facts.facts(done),
    )


def readme(facts: Row) -> str:
    """The goals, and where the time goes."""
    return speed_facts.said(facts)
