"""Says on stderr what a command is doing, and for how long."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from bpe_automata._optional import require

INSTALL = "pip install 'bpe-automata[progress]'"
Report = Callable[[int, int], None]


def add_progress(parser: argparse.ArgumentParser) -> None:
    """Add --progress and --no-progress."""
    parser.add_argument(
        "--progress",
        action=argparse.BooleanOptionalAction,
        help="say on stderr what is being done (default: where that is a terminal, with rich)",
    )


@contextmanager
def step(arguments: argparse.Namespace, what: str) -> Iterator[Report]:
    """Shows `what` while the body runs: on a terminal (that has rich, or if --progress asks for it)
    with the time, in a line that is removed at the end; elsewhere as a line, if --progress asks for
    it. Gives a function that takes how much is done, and of how much. Raises
    MissingDependencyError if --progress was given on a terminal, and there is no rich."""
    wanted = arguments.progress
    if wanted is None:
        wanted = sys.stderr.isatty() and find_spec("rich") is not None
    if not wanted:
        yield lambda done, total: None
        return
    if not sys.stderr.isatty():
        print(what, file=sys.stderr)
        yield lambda done, total: None
        return
    progress = require("rich.progress", INSTALL)
    columns = (
        progress.TextColumn("{task.description}", markup=False),
        progress.BarColumn(),
        progress.TimeElapsedColumn(),
    )
    console = require("rich.console", INSTALL).Console(stderr=True)
    with progress.Progress(*columns, console=console, transient=True, redirect_stdout=False) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
