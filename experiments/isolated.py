"""Rows made in a separate process, which may crash or be ended without harm to this one."""

from __future__ import annotations

import json
import os
import pickle
import sys
from collections.abc import Callable, Iterator
from subprocess import PIPE, Popen
from threading import Timer
from typing import Any

from experiments.files import ROOT
from experiments.lab import Row

ONE_THREAD = {"OMP_NUM_THREADS": "1", "RAYON_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
STARTING = 300.0
"""The most seconds until the first row."""


def isolated(seconds: float, rows_of: Callable[..., Iterator[Row]], *given: Any) -> Iterator[Row]:
    """The rows that a module's function yields from these arguments in a separate process, with one
    thread for each library. They end early if the process crashes, or is ended because one row took
    more than so many seconds."""
    command = [sys.executable, "-c", f"from {__name__} import serve; serve()"]
    with Popen(command, cwd=ROOT, env=os.environ | ONE_THREAD, stdin=PIPE, stdout=PIPE) as child:
        timer = Timer(STARTING, child.kill)
        timer.start()
        pipe: Any = child.stdin
        pipe.write(pickle.dumps((rows_of, given)))
        pipe.close()
        for line in child.stdout or ():
            timer.cancel()
            timer = Timer(seconds, child.kill)
            timer.start()
            yield json.loads(line)
        timer.cancel()


def serve() -> None:
    """The other end of `isolated`. Rows go to stdout, anything else that is printed to stderr."""
    out, sys.stdout = sys.stdout, sys.stderr
    rows_of, given = pickle.load(sys.stdin.buffer)
    for row in rows_of(*given):
        print(json.dumps(row), file=out, flush=True)
