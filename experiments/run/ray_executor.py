"""Cells on a Ray cluster: an actor a job, each with its own process and, where there are GPUs, its
own GPU. Source: the Ray documentation, "Actors" and "Fault tolerance".
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

from experiments.run.cells import Cell, Row, lost, measured
from experiments.run.files import ROOT
from experiments.run.optional import require

INSTALL = "pip install -e '.[ray]'"
ATTEMPTS = 3
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
    ray = require("ray", INSTALL)
    begun_here = not ray.is_initialized()
    if begun_here:
        _connect(ray, jobs)
    try:
        yield from _rows(ray, list(cells), jobs)
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


def _rows(ray: Any, waiting: list[Cell], jobs: int) -> Iterator[Row]:
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
            if attempts[cell.key] < ATTEMPTS:
                waiting.append(cell)
            else:
                yield lost(cell, f"its actor died {ATTEMPTS} times: {type(error).__name__}")
            continue
        idle.append(measurer)
        yield row
