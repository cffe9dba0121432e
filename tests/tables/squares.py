"""Squares, as an artefact: small enough to see through what the laboratory does with it."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass

from experiments.show import Table, whole

TITLE = "Squares"


@dataclass(frozen=True)
class Config:
    """n: how many; of some the measurement raises, of others the process dies, or it never ends."""

    n: int = 4
    raises: tuple[int, ...] = ()
    dies: tuple[int, ...] = ()
    hangs: tuple[int, ...] = ()


def cells(config):
    return [{"k": k} for k in range(config.n)]


def measure(config, k):
    if k in config.raises:
        raise ValueError(f"{k} has no square, see /home/me/squares")
    if k in config.dies:
        os.kill(os.getpid(), signal.SIGKILL)
    if k in config.hangs:
        time.sleep(600)
    return {"square": k * k, "of": os.getpid()}


def tables(rows):
    return [Table("All", rows[["k", "square"]], {"square": whole}, "n: all of them")]


def numbers(rows):
    return {"squares": f"Their sum is {rows['square'].sum()}."}
