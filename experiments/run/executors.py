"""Where cells are measured: in this process, in a pool of processes, or on a Ray cluster.

Each is a function (cells, jobs) -> iterator of rows, in whatever order they are done. Rows that
were given out are kept whatever happens to a worker later: one that dies takes with it only the
cell that it was at, which is tried again once.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.process import BaseProcess
from threading import Thread
from typing import Literal

from experiments.run.cells import Cell, Row, lost, measured

Name = Literal["inline", "processes", "ray"]
Executor = Callable[[Sequence[Cell], int], Iterator[Row]]

ATTEMPTS = 2
"""Of a cell whose process dies."""


def inline(cells: Sequence[Cell], jobs: int = 1) -> Iterator[Row]:
    """One after the other, here."""
    del jobs
    for cell in cells:
        yield measured(cell)


def processes(cells: Sequence[Cell], jobs: int) -> Iterator[Row]:
    """`jobs` processes, started afresh so that they share nothing with this one."""
    waiting = list(cells)
    while waiting:
        done = set[str]()
        for cell, row in _pool(waiting, jobs):
            if row is not None:
                done.add(cell.key)
                yield row
        waiting = [cell for cell in waiting if cell.key not in done]
        # A process died. Cells are begun in order, so the one that it was at is among the first of
        # those that are left; one at a time, whose fault it was is certain.
        suspects, waiting = waiting[: 2 * jobs], waiting[2 * jobs :]
        yield from map(_alone, suspects)


def _alone(cell: Cell) -> Row:
    """A cell in processes of its own."""
    for _ in range(ATTEMPTS):
        ((_, row),) = _pool([cell], 1)
        if row is not None:
            return row
    return lost(cell, f"its process died, {ATTEMPTS} times")


def pool_of(jobs: int) -> ProcessPoolExecutor:
    """Processes that share nothing with this one, and end when it does, however it does."""
    fresh = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(jobs, mp_context=fresh, initializer=end_with_parent)


def end_with_parent() -> None:
    """A worker that waits for work would wait for ever once the parent was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: BaseProcess) -> None:
    parent.join()
    os._exit(1)


def _pool(cells: Sequence[Cell], jobs: int) -> Iterator[tuple[Cell, Row | None]]:
    """None for what a process that died left undone."""
    with pool_of(min(jobs, len(cells))) as pool:
        running: dict[Future[Row], Cell] = {pool.submit(measured, cell): cell for cell in cells}
        try:
            for future in as_completed(running):
                try:
                    yield running[future], future.result()
                except BrokenProcessPool:
                    yield running[future], None
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def executor(name: Name) -> Executor:
    """By its name. Ray is imported only for that one. Raises MissingDependencyError."""
    if name == "ray":
        from experiments.run.ray_executor import on_ray

        return on_ray
    return {"inline": inline, "processes": processes}[name]
