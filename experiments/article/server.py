"""A process that makes what many measurements share, once, and forks one process for each of them.

It answers each line of its input, a JSON object, with a line. It must have a single thread, as its
forks have but the one that forked.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from bpe_automata.errors import BpeAutomataError
from experiments.run.executors import Row
from experiments.run.files import ROOT
from experiments.shared.resources import give_back


class ServerError(BpeAutomataError):
    """The process that measures ended early; the message says with what code."""


class Server:
    """That process, seen from outside; a context. module: what it runs, as `python -m` is given it;
    file: its one argument."""

    def __init__(self, module: str, file: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, str(file)],
            cwd=ROOT,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def ask(self, question: Row) -> Row:
        """Its answer. Raises ServerError if it died."""
        process = self._process
        answer = ""
        if process.stdin and process.stdout and process.poll() is None:
            process.stdin.write(json.dumps(question) + "\n")
            process.stdin.flush()
            answer = process.stdout.readline()
        if not answer:
            code = process.wait()
            raise ServerError(
                f"the process that measures ended, with code {code}, when it was asked for "
                f"{question}; rows that are done are kept: run again"
            )
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


def serve(answer: Callable[[Row], Row]) -> None:
    """In that process: answer until the input ends."""
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)


def settle() -> None:
    """Give freed memory back, so that forks do not find some that counts as there already; what is
    left is never garbage, so that forks need not look through it."""
    give_back()
    gc.freeze()
