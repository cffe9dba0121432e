"""Where cells are measured: in this process, in a pool of processes, or on a Ray cluster.

Each is a function (cells, jobs) -> iterator of rows, in whatever order they are done. Rows that
were given out are kept whatever happens to a worker later: one that dies takes with it only the
cell that it was at, which is tried again once.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from threading import Thread
from typing import Any, Literal

from experiments.run.files import ROOT, require

Row = dict[str, Any]


FAILURE = "failure"
"""The key of a row that says why there is no measurement."""


@dataclass(frozen=True)
class Cell:
    """key: unique in its run; function: of a module, so that other processes find it; arguments:
    what it is called with, which can be pickled. It gives a row that JSON can hold."""

    key: str
    function: Callable[..., Row]
    arguments: tuple[Any, ...] = ()


def measured(cell: Cell) -> Row:
    """The row of a cell, with its wall time; whatever the function raises is a failure."""
    started = time.perf_counter()
    try:
        row = cell.function(*cell.arguments)
    except Exception as error:  # one cell that fails must not end the others
        row = {FAILURE: f"{type(error).__name__}: {error}"[:500]}
    return {"key": cell.key, "wall_seconds": round(time.perf_counter() - started, 4)} | row


def lost(cell: Cell, why: str) -> Row:
    """The row of a cell whose process is gone."""
    return {"key": cell.key, FAILURE: why}


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
    """By its name."""
    return {"inline": inline, "processes": processes, "ray": on_ray}[name]


# Cells on a Ray cluster: an actor a job, each with its own process and, where there are GPUs, its
# own GPU. Source: the Ray documentation, "Actors" and "Fault tolerance".

INSTALL_RAY = "pip install -e '.[ray]'"
RAY_ATTEMPTS = 3
"""Of a cell whose actor dies."""
ADDRESS = "RAY_ADDRESS"
"""Ray's own environment variable that names a cluster; without it one is started here."""


class Measurer:
    """What an actor is. A model that a cell loads stays loaded for the next one."""

    def measured(self, cell: Cell) -> Row:
        """One row."""
        return measured(cell)


def on_ray(cells: Sequence[Cell], jobs: int) -> Iterator[Row]:
    """Rows as they are done. An actor that dies, or whose machine goes, takes with it only the cell
    that it was at: a new actor begins that one again. Raises MissingDependencyError."""
    ray = require("ray", INSTALL_RAY)
    begun_here = not ray.is_initialized()
    if begun_here:
        _connect(ray, jobs)
    try:
        yield from _ray_rows(ray, list(cells), jobs)
    finally:
        if begun_here:
            ray.shutdown()


def _connect(ray: Any, jobs: int) -> None:
    """To the cluster that is named, or to one of this machine."""
    address = os.environ.get(ADDRESS, "local")
    own = {"num_cpus": jobs, "include_dashboard": False} if address == "local" else {}
    paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    environment = {"env_vars": {"PYTHONPATH": paths}}
    ray.init(address=address, runtime_env=environment, log_to_driver=False, **own)


def _ray_rows(ray: Any, waiting: list[Cell], jobs: int) -> Iterator[Row]:
    has = ray.cluster_resources()
    gpus = 1 if has.get("GPU", 0) else 0
    # An actor that finds no room would hold the cell that it is handed for ever.
    jobs = max(1, min(jobs, int(has["GPU" if gpus else "CPU"])))
    actor = ray.remote(num_cpus=1, num_gpus=gpus)(Measurer)
    attempts = dict.fromkeys((cell.key for cell in waiting), 0)
    waiting.reverse()
    idle = [actor.remote() for _ in range(min(jobs, len(waiting)))]
    running: dict[Any, tuple[Any, Cell]] = {}
    while waiting or running:
        while idle and waiting:
            measurer, cell = idle.pop(), waiting.pop()
            attempts[cell.key] += 1
            running[measurer.measured.remote(cell)] = (measurer, cell)
        while idle:  # nothing is left for them: an actor that waits for their room may have it
            ray.kill(idle.pop())
        (done,), _ = ray.wait(list(running), num_returns=1)
        measurer, cell = running.pop(done)
        try:
            row = ray.get(done)
        except ray.exceptions.RayError as error:
            idle.append(actor.remote())
            if attempts[cell.key] < RAY_ATTEMPTS:
                waiting.append(cell)
            else:
                yield lost(cell, f"its actor died {RAY_ATTEMPTS} times: {type(error).__name__}")
            continue
        idle.append(measurer)
        yield row
