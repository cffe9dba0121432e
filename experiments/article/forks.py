"""A worker loads what many measurements share, and forks a process for each of them.

Time and memory of a fork are its own. The worker, `python -m MODULE FILE`, answers questions line
by line (see `shared.watched`); it must have a single thread, since a fork has only the one that
forked.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from experiments.run.executors import FAILURE, Row
from experiments.run.files import require, write_atomically
from experiments.shared.resources import give_back
from experiments.shared.watched import Limits, WatchedProcess

DONE, FAILED, TIME, MEMORY = "done", "failed", "over time", "over memory"
SKIPPED = "skipped"
"""What a row's `status` may be."""
UNLIMITED = Limits(seconds=float("inf"), mb=float("inf"), starting=float("inf"))
"""Of the worker: its forks have limits of their own."""
_UNIT = 1 if sys.platform == "darwin" else 1024  # bytes, of which ru_maxrss is a number
_NO_MEMORY = 3  # an exit code
_OUT_OF_MEMORY = (MemoryError, SystemError)  # a kernel turns the first into the second


@contextmanager
def worker(module: str, tokenizer: str) -> Iterator[WatchedProcess]:
    """The worker, ready; tokenizer: the text of its FILE, a tokenizer.json. Its `answer` raises
    LostError if it died; rows that are done are kept."""
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "tokenizer.json"
        write_atomically(file, tokenizer)
        with WatchedProcess(module, [str(file)], UNLIMITED) as process:
            process.begin()
            yield process


def serve(answer: Callable[[Row], Row]) -> None:
    """In the worker: say that it is ready, then answer until the input ends."""
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)


def settle() -> None:
    """Return freed memory to the system, so that no fork begins with it, and exempt what is left
    from garbage collection."""
    give_back()
    gc.freeze()


def forked(work: Callable[[], Row]) -> Row:
    """What `work` returns in a fork of this process, with `status` DONE; or another status, and why
    as a failure if it is FAILED."""
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
    """In the fork: write the row and end, whatever happens."""
    try:
        with os.fdopen(pipe, "w", encoding="utf-8") as stream:
            stream.write(json.dumps(_tried(work)))
    except _OUT_OF_MEMORY:  # hardly any is left, so even the row may be too much
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
    """The most resident memory of this process so far, in 10^6 bytes; a fork begins with that of
    its parent."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _UNIT / 1e6
