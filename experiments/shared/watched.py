"""Both ends of a process that answers questions: one that crashes, or takes too long or too much
memory, is ended, says why, and is begun anew for the next question.

Questions and answers are JSON, one a line. The process writes its first line once it is ready;
"compiled" in it counts the kernels that it had to compile for that. In the process, `serve` does
all of this. From outside it is a `WatchedProcess`.
"""

from __future__ import annotations

import json
import math
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import IO, Any, Self

from bpe_automata.errors import BpeAutomataError
from experiments.run.executors import FAILURE, Row
from experiments.run.files import ROOT, require

LOOK = 0.02
"""Seconds between two looks at the memory."""
ONE_THREAD = {"OMP_NUM_THREADS": "1", "RAYON_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
LEAVING = 5.0
"""Seconds that a process which has closed its output gets to end by itself."""
LONGEST = 160
"""Characters of a failure."""


# ---------------------------------------------------------------- in the process


Answer = Callable[[Any], Row]


def failure_of(error: BaseException) -> Row:
    """The row of what could not be measured."""
    return {FAILURE: f"{type(error).__name__}: {error}"[:LONGEST]}


def serve(open_: Callable[[], tuple[Row, Answer]]) -> None:
    """Come up, say so, and answer until the input ends. open_: gives the first line and what
    answers; if it raises a BpeAutomataError, that is the first and only line, as a failure.

    Whatever else is printed goes to stderr.
    """
    from bpe_automata._kernels import compiled

    out, sys.stdout = sys.stdout, sys.stderr

    def say(row: Row) -> None:
        print(json.dumps(row), file=out, flush=True)

    try:
        before = compiled()
        first, answer = open_()
    except BpeAutomataError as error:
        say(failure_of(error))
        return
    say(first | {"compiled": compiled() - before})
    for line in sys.stdin:
        say(answer(json.loads(line)))


# ---------------------------------------------------------------- from outside


@dataclass(frozen=True)
class Limits:
    """seconds: of one answer; mb: 10^6 bytes resident; starting: seconds until there is a first
    line."""

    seconds: float = 30
    mb: float = 3000
    starting: float = 600


class LostError(BpeAutomataError):
    """The process is no more. status: "crashed", "over time" or "over memory"; message: the exit
    code and the last line of its error output, or the limit; mb: what it had, if that is known."""

    def __init__(self, status: str, message: str, mb: float | None = None) -> None:
        super().__init__(f"{status}: {message}")
        self.status, self.message, self.mb = status, message, mb


class WatchedProcess:
    """`python -m MODULE ARGUMENT...`; a context, which ends it.

    environment: variables that it has besides those of this process; one_thread: do its libraries
    get one thread each?
    """

    def __init__(
        self,
        module: str,
        arguments: Sequence[str],
        limits: Limits,
        environment: Mapping[str, str] | None = None,
        one_thread: bool = True,
    ) -> None:
        self._command = [sys.executable, "-m", module, *arguments]
        threads = ONE_THREAD if one_thread else {}
        self._environment = {**os.environ, **threads, **(environment or {})}
        self._limits, self._unread, self._compiled = limits, b"", False
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] | None = None
        self._first: Row = {}

    @property
    def running(self) -> bool:
        """Was it started, and not ended since?"""
        return self._process is not None

    def start(self) -> Row:
        """Its first line, or a failure; it is started if it does not run."""
        if not self.running:
            try:
                self._first = self.begin()
            except LostError as lost:
                self._first = {FAILURE: str(lost)}
            if FAILURE in self._first:
                self.close()
        return self._first

    def ask(self, question: Any) -> Row:
        """Its answer, or a failure; it is started if it does not run."""
        first = self.start()
        if FAILURE in first:
            return first
        try:
            return self.answer(question)
        except LostError as lost:
            return {FAILURE: str(lost)}

    def begin(self) -> Row:
        """Start it; its first line. One that had to compile kernels is ended, once: what compiling
        takes is no part of what is measured, and the next process finds them compiled. Raises
        LostError."""
        first = self._started()
        if first.get("compiled") and not self._compiled:
            self.close()
            self._compiled, first = True, self._started()
        return first

    def _started(self) -> Row:
        pipe = subprocess.PIPE
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        self._process = subprocess.Popen(
            self._command,
            cwd=ROOT,
            env=self._environment,
            stdin=pipe,
            stdout=pipe,
            stderr=self._errors,
        )
        self._unread = b""
        return self._line(self._process, self._limits.starting)

    def answer(self, question: Any) -> Row:
        """Of a process that runs. Raises LostError."""
        process = self._process
        if process is None or process.stdin is None:
            raise LostError("crashed", "it does not run")
        try:
            process.stdin.write(json.dumps(question).encode() + b"\n")
            process.stdin.flush()
        except OSError:
            raise self._lost("crashed", process) from None
        return self._line(process, self._limits.seconds)

    def _line(self, process: subprocess.Popen[bytes], seconds: float) -> Row:
        """Read one, with an eye on clock and memory."""
        end = time.perf_counter() + seconds
        while b"\n" not in self._unread:
            if process.stdout is None or self._ends(process.stdout):
                raise self._lost("crashed", process)
            if time.perf_counter() > end:
                raise self._lost("over time", process)
            if self._is_too_large(process.pid):
                raise self._lost("over memory", process)
        line, _, self._unread = self._unread.partition(b"\n")
        row: Row = json.loads(line)
        return row

    def _ends(self, pipe: IO[bytes]) -> bool:
        """Reads all that is there, and waits a moment for it."""
        while select.select([pipe], [], [], LOOK)[0]:
            read = os.read(pipe.fileno(), 1 << 20)
            if not read:
                return True
            self._unread += read
            if b"\n" in read:
                return False
        return False

    def _is_too_large(self, pid: int) -> bool:
        return self._limits.mb < math.inf and (_resident(pid) or 0.0) > self._limits.mb

    def _lost(self, status: str, process: subprocess.Popen[bytes]) -> LostError:
        limits = self._limits
        if status == "crashed":
            with suppress(subprocess.TimeoutExpired):
                process.wait(LEAVING)
            said = self._last_words()
            self.close()
            code = process.returncode
            said = said if code > 0 else ""  # a signal comes without a traceback
            return LostError(status, f"exit code {code}" + (f": {said}" if said else ""))
        had = _resident(process.pid)
        self.close()
        most = {"over time": f"{limits.seconds:g} s", "over memory": f"{limits.mb:g} MB"}
        return LostError(status, f"more than {most[status]}", had)

    def _last_words(self) -> str:
        """The last line that it wrote to stderr."""
        if self._errors is None:
            return ""
        self._errors.seek(0)
        lines = self._errors.read().decode("utf-8", "replace").split("\n")
        return next((line.strip()[:LONGEST] for line in reversed(lines) if line.strip()), "")

    def close(self) -> None:
        """End the process, if there is one."""
        process, self._process = self._process, None
        errors, self._errors = self._errors, None
        if process is not None:
            process.kill()
            process.communicate()
        if errors is not None:
            errors.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _resident(pid: int) -> float | None:
    """MB (10^6 bytes); None of one that has ended."""
    psutil = require("psutil")
    try:
        return float(psutil.Process(pid).memory_info().rss) / 1e6
    except psutil.Error:
        return None
