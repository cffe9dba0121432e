"""Squares, as an artefact: small enough to see through what the runner does with it."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from bpe_automata.errors import ArgumentError
from experiments.run import config
from experiments.run.config import option
from experiments.run.executors import Cell
from experiments.run.tables import Column, table

VERSION = 1
CALLS = "DEMO_CALLS"
"""The variable of the environment that names a file, in which calls are counted."""


@dataclass(frozen=True)
class Config(config.Config):
    """n: how many; fails: those that cannot be; fatal: those whose process dies; once: those whose
    process dies the first time (calls must be counted); pause: seconds that each takes; data,
    names: what a real one would read."""

    n: int = option(4, "how many")
    fails: tuple[int, ...] = ()
    fatal: tuple[int, ...] = ()
    once: tuple[int, ...] = ()
    pause: float = 0.0
    data: Path | None = None
    names: tuple[str, ...] = ()


SMOKE = Config(n=1)


def calls() -> list[str]:
    """The squares that were begun so far."""
    return Path(os.environ[CALLS]).read_text().split()


def square(k: int, made: Config) -> dict[str, int]:
    """One row."""
    if CALLS in os.environ:
        with Path(os.environ[CALLS]).open("a") as file:
            file.write(f"{k}\n")
    time.sleep(made.pause)
    if k in made.fails:
        raise ArgumentError(f"{k} has no square today")
    if k in made.fatal or (k in made.once and calls().count(str(k)) == 1):
        time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGKILL)
    return {"square": k * k}


def measure(run) -> None:
    run.note(model="none")
    run.cells([Cell(str(k), square, (k, run.config)) for k in range(run.config.n)])


TITLE = "Squares & co"


def tables(rows, manifest):
    return [table("Squares", rows, [Column("n", "key"), Column("square", "square")])]


def facts(rows, manifest):
    return {"total": int(rows["square"].sum())}


def wrong(rows, manifest):
    return ["thirteen"] if len(rows) == 13 else []


def readme(facts) -> str:
    return f"The squares sum to {facts['total']}."
