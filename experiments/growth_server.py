"""The process that makes what all cells share, once, and forks one process for each cell.

`python -m experiments.growth_server TOKENIZER.JSON` answers each line of input, a JSON object, with
a line. {"prepare": METHOD} is to be asked before the cells of a method; see `growth_cell` for them.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from bpe_automata.errors import BpeAutomataError
from experiments.runner import ROOT

Row = dict[str, Any]


class GrowthError(BpeAutomataError):
    """The process that measures ended early; the message says with what code."""


class Server:
    """That process, seen from outside; a context."""

    def __init__(self, file: Path) -> None:
        command = [sys.executable, "-m", "experiments.growth_server", str(file)]
        self._process = subprocess.Popen(
            command, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def ask(self, question: Row) -> Row:
        """Its answer. Raises GrowthError if it died."""
        process = self._process
        answer = ""
        if process.stdin and process.stdout and process.poll() is None:
            process.stdin.write(json.dumps(question) + "\n")
            process.stdin.flush()
            answer = process.stdout.readline()
        if not answer:
            raise GrowthError(f"the process that measures ended, with code {process.wait()}")
        row: Row = json.loads(answer)
        return row

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """After an error the process may be busy for long."""
        if kind is not None:
            self._process.kill()
        self._process.communicate()


def main(file: str) -> None:
    """Answer until the input ends."""
    from bpe_automata import Tokenizer
    from experiments.growth_cell import measured
    from experiments.growth_methods import Bench

    bench = Bench(Tokenizer.load(file))
    for line in sys.stdin:
        question = json.loads(line)
        if "prepare" in question:
            started = time.perf_counter()
            bench.prepare(question["prepare"])
            answer: Row = {"seconds": time.perf_counter() - started, "cores": os.cpu_count()}
            settle()
        else:
            answer = measured(bench, question)
        print(json.dumps(answer), flush=True)


def settle() -> None:
    """Give freed memory back, so that forks do not find some that counts as there already; what is
    left is never garbage, so that forks need not look through it."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc only
    if trim is not None:
        trim(0)
    gc.freeze()


if __name__ == "__main__":
    main(sys.argv[1])
