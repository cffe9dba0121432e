"""The speed table: what is paid once, for a tokenizer, a process or a machine.

One process does the work, with warm kernels; what needs a process of its own (start, memory, the
time to compile kernels) gets one. Times are wall time, kept raw; tables show medians. What masks
cost is measured by `masks`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bpe_automata.cli.warm import warm_kernels
from experiments.run import config
from experiments.run.config import option
from experiments.run.executors import Cell
from experiments.run.measuring import Run
from experiments.serving import speed_build, speed_processes
from experiments.serving.speed_inputs import Inputs, prepare
from experiments.serving.speed_report import readme, render
from experiments.shared import models

__all__ = ["SMOKE", "VERSION", "Config", "measure", "readme", "render"]

VERSION = 2
Part = Literal["build", "load", "classes", "memory", "starts", "kernels"]
PARTS: tuple[Part, ...] = ("build", "load", "classes", "memory", "starts", "kernels")


@dataclass(frozen=True)
class Config(config.Config):
    """What determines how much is timed."""

    model: str = option(models.SMOLLM2, "name, file, folder or hub id of a tokenizer")
    repeats: int = option(7, "how often a thing is timed; with 1 the kernels are not compiled anew")
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


def cells(given: Inputs, chosen: Config) -> Iterator[Cell]:
    """In order. Nothing of them goes to other processes: all run here, one after the other."""
    n = chosen.repeats
    once = {
        "build": Cell("build", speed_build.built, (given, n)),
        "load": Cell("load", speed_build.loaded, (given, n)),
        "classes": Cell("classes", speed_processes.classes, (given,)),
        "memory": Cell("memory", speed_processes.memory, (given,)),
        "starts": Cell("starts", speed_processes.starts, (given, n)),
        "kernels": Cell("kernels", speed_processes.kernels, (given, n > 1)),
    }
    yield from (once[part] for part in chosen.once)
