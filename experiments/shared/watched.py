"""A process seen from outside: one that crashes, or takes too long or too much memory, is ended,
and can be begun anew; one that had to compile kernels before it was ready is begun anew here."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import IO, Any, Self

from bpe_automata.errors import BpeAutomataError
from experiments.run.executors import Row
from experiments.run.files import ROOT, require

LOOK = 0.02
"""Seconds between two looks at the memory."""
ONE_THREAD = {"OMP_NUM_THREADS": "1", "RAYON_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}


@dataclass(frozen=True)
class Limits:
    """seconds: of one answer; mb: 10^6 bytes resident; starting: seconds until there is a first
    line."""

    seconds: float = 30
    mb: float = 3000
    starting: float = 600


class LostError(BpeAutomataError):
    """The process is no more. status: "crashed", "over time" or "over memory"; mb: what it had, if
    that is known."""

    def __init__(self, status: str, message: str, mb: float | None = None) -> None:
        super().__init__(f"{status}: {message}")
        self.status, self.message, self.mb = status, message, mb


class WatchedProcess:
    """`python -m MODULE ARGUMENT...`, which writes a line of JSON once it is ready ("compiled": how
    many kernels it had to compile for that, if it counts them), and then one for each line that it
    reads; a context."""

    def __init__(
        self,
        module: str,
        arguments: Sequence[str],
        limits: Limits,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """environment: variables that it has besides those of this process."""
        self._command = [sys.executable, "-m", module, *arguments]
        self._environment = {**os.environ, **ONE_THREAD, **(environment or {})}
        self._limits, self._unread, self._compiled = limits, b"", False
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        """Was it started, and not ended since?"""
        return self._process is not None

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
        pipe, none = subprocess.PIPE, subprocess.DEVNULL
        self._process = subprocess.Popen(
            self._command, cwd=ROOT, env=self._environment, stdin=pipe, stdout=pipe, stderr=none
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
            if (_resident(process.pid) or 0.0) > self._limits.mb:
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

    def _lost(self, status: str, process: subprocess.Popen[bytes]) -> LostError:
        had = _resident(process.pid)
        self.close()
        limits = self._limits
        message = {
            "crashed": f"exit code {process.returncode}",
            "over time": f"more than {limits.seconds:g} s",
            "over memory": f"more than {limits.mb:g} MB",
        }
        return LostError(status, message[status], None if status == "crashed" else had)

    def close(self) -> None:
        """End the process, if there is one."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

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
