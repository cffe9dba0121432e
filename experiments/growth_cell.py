"""One cell in a process of its own: its time and memory are its own, and so are their limits."""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bpe_automata import TokenAutomaton, compile_regex
from bpe_automata.errors import BpeAutomataError
from experiments.growth_methods import METHODS, Bench, Built
from experiments.optional import require

Row = dict[str, Any]

_UNIT = 1 if sys.platform == "darwin" else 1024  # bytes, of which ru_maxrss is a number
_TIME, _MEMORY = "over time", "over memory"
_NO_MEMORY = 3  # an exit code
_OUT_OF_MEMORY = (MemoryError, SystemError)  # the second is what a call of a kernel makes of it


def measured(bench: Bench, cell: Row) -> Row:
    """What a forked process found out about a cell; if it died, of what.

    cell: method, regex, limit_seconds, limit_mb (10^6 bytes; both for the construction alone),
    file (.npz to which the automaton goes, or None), most_kept (its transitions at most).
    """
    return forked(lambda: _row(bench, cell))


def forked(work: Callable[[], Row]) -> Row:
    """What `work` returns in a copy of this process, which must have a single thread."""
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
        return {"status": _TIME}
    if os.waitstatus_to_exitcode(status) == _NO_MEMORY:
        return {"status": _MEMORY}
    return {"status": "failed", "message": f"signal {killed}" if killed else "no answer"}


def _answer(work: Callable[[], Row], pipe: int) -> None:
    """In the copy: write the row and end, whatever happens."""
    try:
        text = json.dumps(work())
        with os.fdopen(pipe, "w", encoding="utf-8") as stream:
            stream.write(text)
    except _OUT_OF_MEMORY:  # with hardly any left even the row may be too much
        os._exit(_NO_MEMORY)
    finally:
        os._exit(0)


def _row(bench: Bench, cell: Row) -> Row:
    """Construct within the limits; then, without limits, count, and keep the automaton."""
    dfa = compile_regex(cell["regex"])
    method = METHODS[cell["method"]]
    before, limits = _peak(), _Limits(cell["limit_seconds"], cell["limit_mb"])
    try:
        started = time.perf_counter()
        built = method(bench, dfa)
        seconds = time.perf_counter() - started
    except _OUT_OF_MEMORY:
        return {"status": _MEMORY}
    except BpeAutomataError as error:
        return {"status": "failed", "message": str(error)}
    finally:
        limits.lift()
    peak = max(0, _peak() - before) * _UNIT / 1e6
    return {"status": "done", "seconds": seconds, "peak_mb": peak, **_sizes(built, cell)}


def _sizes(built: Built, cell: Row) -> Row:
    sizes = built.sizes()
    row: Row = {
        "states": sizes.states,
        "transitions": sizes.transitions,
        "integers": sizes.integers,
        "first_ids": len(sizes.first),
        "first_crc32": zlib.crc32(repr(sizes.first).encode()),
        "kept": False,
    }
    small = sizes.transitions is not None and sizes.transitions <= cell["most_kept"]
    if built.automaton and cell["file"] and small:
        automaton = built.automaton()
        # Without the spellings, which are the same for all.
        parts = (automaton.start, automaton.accepting, automaton.offsets, automaton.symbols)
        TokenAutomaton(*parts, automaton.targets).save(Path(cell["file"]))
        row["kept"] = True
    return row


def _peak() -> int:
    """The most resident memory of this process so far; a fork begins with what it has."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


class _Limits:
    """Of wall time, by an alarm that ends the process; of memory beyond what it has now."""

    def __init__(self, seconds: float, megabytes: float) -> None:
        now = require("psutil").Process().memory_info().vms
        self.before = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (now + int(megabytes * 1e6), self.before[1]))
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, seconds)

    def lift(self) -> None:
        """No limits any more."""
        signal.setitimer(signal.ITIMER_REAL, 0)
        resource.setrlimit(resource.RLIMIT_AS, self.before)
