"""The process of an engine seen from outside: one that crashes, or takes too long or too much
memory, is a failure, and the next question starts it anew."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import IO, Any

from experiments.run.cells import FAILURE, Row
from experiments.run.files import ROOT
from experiments.run.optional import require

LOOK = 0.05
"""Seconds between two looks at the memory."""
ONE_THREAD = {"OMP_NUM_THREADS": "1", "RAYON_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}


@dataclass(frozen=True)
class Limits:
    """seconds: of one answer; starting: until there is a first line; mb: 10^6 bytes resident."""

    seconds: float = 60
    starting: float = 300
    mb: float = 6000


class Process:
    """`python -m MODULE ARGUMENT...`, which writes a line of JSON once it is ready, and then one
    for each line that it reads; a context."""

    def __init__(self, module: str, arguments: Sequence[str], limits: Limits) -> None:
        self._command = [sys.executable, "-m", module, *arguments]
        self._limits, self._unread = limits, b""
        self._process: subprocess.Popen[bytes] | None = None
        self.first: Row = {}

    def start(self) -> Row:
        """Its first line; it is started if it is not there."""
        if self._process is None:
            pipe, none = subprocess.PIPE, subprocess.DEVNULL
            environment = {**os.environ, **ONE_THREAD}
            self._process = subprocess.Popen(
                self._command, cwd=ROOT, env=environment, stdin=pipe, stdout=pipe, stderr=none
            )
            self._unread = b""
            self.first = self._line(self._limits.starting)
            if FAILURE in self.first:
                self.close()
        return self.first

    def ask(self, question: Any) -> Row:
        """Its answer, or a failure."""
        first = self.start()
        if self._process is None or self._process.stdin is None:
            return first
        try:
            self._process.stdin.write(json.dumps(question).encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            return self._lost("crashed")
        return self._line(self._limits.seconds)

    def _line(self, seconds: float) -> Row:
        """Read a line, with an eye on clock and memory."""
        process, end = self._process, time.perf_counter() + seconds
        if process is None or process.stdout is None:
            return self._lost("crashed")
        while b"\n" not in self._unread:
            if self._reads(process.stdout):
                continue
            if process.poll() is not None:
                return self._lost(f"crashed with exit code {process.returncode}")
            if time.perf_counter() > end:
                return self._lost(f"over time: more than {seconds:g} s")
            if _resident(process.pid) > self._limits.mb:
                return self._lost(f"over memory: more than {self._limits.mb:g} MB")
        line, _, self._unread = self._unread.partition(b"\n")
        row: Row = json.loads(line)
        return row

    def _reads(self, pipe: IO[bytes]) -> bool:
        """Is there more? Waits a moment for it."""
        if not select.select([pipe], [], [], LOOK)[0]:
            return False
        read = os.read(pipe.fileno(), 1 << 20)
        self._unread += read
        return bool(read)

    def _lost(self, why: str) -> Row:
        self.close()
        return {FAILURE: why}

    def close(self) -> None:
        """End the process, if there is one."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    def __enter__(self) -> Process:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _resident(pid: int) -> float:
    """MB (10^6 bytes); 0 of a process that has just ended."""
    psutil = require("psutil")
    try:
        return float(psutil.Process(pid).memory_info().rss) / 1e6
    except psutil.Error:
        return 0.0
