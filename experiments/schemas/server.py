"""A worker seen from outside: what crashes, takes too long or too much memory is an answer too."""

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
from typing import Any

from bpe_automata.errors import BpeAutomataError
from experiments.run.files import ROOT
from experiments.run.optional import require

Row = dict[str, Any]

_LOOK = 0.02  # seconds between two looks at the memory


@dataclass(frozen=True)
class Limits:
    """seconds: of one question; mb: 10^6 bytes resident; starting: seconds until
    it is ready, kernels compiled."""

    seconds: float = 30
    mb: float = 3000
    starting: float = 600


class MissingEngineError(BpeAutomataError):
    """An engine is not installed, or does not take the tokenizer; the message says why."""


class WorkerServer:
    """A context; the process is started when it is first needed, and again after it was ended."""

    def __init__(self, arguments: Sequence[str], limits: Limits) -> None:
        self._arguments, self._limits = list(arguments), limits
        self._process: subprocess.Popen[bytes] | None = None
        self._unread = b""
        self._started_again = False
        self.began_mb: float | None = None

    def ask(self, question: Row) -> Row:
        """Its answer, or {"status": "over time" | "over memory" | "crashed", ...}. Raises
        MissingEngineError."""
        self.start()
        process = self._process
        if process is None or process.stdin is None:
            return {"status": "crashed", "message": "the process did not start"}
        try:
            process.stdin.write(json.dumps(question).encode() + b"\n")
            process.stdin.flush()
        except OSError:
            return self._ended("crashed", None)
        return self._answer(self._limits.seconds)

    def start(self) -> None:
        """Have a process ready. One that had to compile kernels is ended: the memory that this
        takes is no part of any case, and the next one finds them compiled. Raises
        MissingEngineError."""
        if self._process is not None:
            return
        ready = self._begun()
        if ready.get("compiled") and not self._started_again:
            self.close()
            self._started_again, ready = True, self._begun()
        if not ready.get("ready"):
            self.close()
            raise MissingEngineError(str(ready.get("message", ready.get("status"))))
        self.began_mb = ready["peak_mb"] if self.began_mb is None else self.began_mb

    def _begun(self) -> Row:
        """What a new process says first."""
        command = [sys.executable, "-m", "experiments.schemas.worker", *self._arguments]
        one = {"OMP_NUM_THREADS": "1", "RAYON_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
        self._process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, **one},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._unread = b""
        return self._answer(self._limits.starting)

    def _answer(self, seconds: float) -> Row:
        """Read a line, with an eye on clock and memory."""
        process = self._process
        if process is None or process.stdout is None:
            return {"status": "crashed", "message": "no process"}
        end, file = time.perf_counter() + seconds, process.stdout.fileno()
        watched = require("psutil").Process(process.pid)
        while b"\n" not in self._unread:
            if select.select([file], [], [], _LOOK)[0]:
                read = os.read(file, 1 << 20)
                if not read:
                    return self._ended("crashed", None)
                self._unread += read
                continue
            resident = _resident(watched)
            if time.perf_counter() > end:
                return self._ended("over time", resident)
            if resident > self._limits.mb:
                return self._ended("over memory", resident)
        line, _, self._unread = self._unread.partition(b"\n")
        row: Row = json.loads(line)
        return row

    def _ended(self, status: str, resident: float | None) -> Row:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()
        code = process.returncode if process else None
        message = f"exit code {code}" if status == "crashed" else ""
        return {"status": status, "message": message, "keyword": None, "peak_mb": resident}

    def close(self) -> None:
        """End the process, if there is one."""
        if self._process is not None:
            self._ended("closed", None)

    def __enter__(self) -> WorkerServer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _resident(process: Any) -> float:
    """MB (10^6 bytes); 0 of one that has just ended."""
    try:
        return float(process.memory_info().rss) / 1e6
    except require("psutil").Error:
        return 0.0
