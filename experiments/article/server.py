"""A process that makes what many measurements share, once, and forks one process for each of them.

It answers each line of its input, a JSON object, with a line. It must have a single thread, as its
forks have but the one that forked.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from bpe_automata.errors import BpeAutomataError
from experiments.run.executors import FAILURE, Row
from experiments.run.files import ROOT, require
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


# Work in a copy of this process: its time and memory are its own, and so are their limits.

DONE, FAILED, TIME, MEMORY = "done", "failed", "over time", "over memory"
"""What a row's `status` may be."""
_UNIT = 1 if sys.platform == "darwin" else 1024  # bytes, of which ru_maxrss is a number
_NO_MEMORY = 3  # an exit code
_OUT_OF_MEMORY = (MemoryError, SystemError)  # the second is what a call of a kernel makes of it


def forked(work: Callable[[], Row]) -> Row:
    """What `work` returns in a copy of this process, which must have a single thread, with `status`
    DONE; or another status, and why as a failure if it is FAILED."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
        _answer(work, write)
    os.close(write)
    with os.fdopen(read, encoding="utf-8") as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    if text:
        row: Row = json.loads(text)
        return row
    killed = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
    if killed == signal.SIGALRM:
        return {"status": TIME}
    if os.waitstatus_to_exitcode(status) == _NO_MEMORY:
        return {"status": MEMORY}
    return failed(f"its process ended by signal {killed}" if killed else "its process gave no row")


def failed(why: str) -> Row:
    """The row of work that failed."""
    return {"status": FAILED, FAILURE: why}


def _answer(work: Callable[[], Row], pipe: int) -> None:
    """In the copy: write the row and end, whatever happens."""
    try:
        with os.fdopen(pipe, "w", encoding="utf-8") as stream:
            stream.write(json.dumps(_tried(work)))
    except _OUT_OF_MEMORY:  # with hardly any left even the row may be too much
        os._exit(_NO_MEMORY)
    finally:
        os._exit(0)


def _tried(work: Callable[[], Row]) -> Row:
    try:
        return {"status": DONE} | work()
    except _OUT_OF_MEMORY:
        raise
    except Exception as error:
        return failed(f"{type(error).__name__}: {error}"[:500])


@contextmanager
def limits(seconds: float, megabytes: float) -> Iterator[None]:
    """Of this process, inside the context: of wall time, by an alarm that ends the process; of
    memory (10^6 bytes) beyond what it has now."""
    now = require("psutil").Process().memory_info().vms
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (now + int(megabytes * 1e6), before[1]))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        resource.setrlimit(resource.RLIMIT_AS, before)


def peak_mb() -> float:
    """The most resident memory of this process so far, in 10^6 bytes; a fork begins with what it
    has."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _UNIT / 1e6
