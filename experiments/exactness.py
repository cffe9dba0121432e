"""The exactness table: laws that the canonical automaton must obey, and their exceptions, for one
tokenizer or for all that have a name; beside it what two approximations get wrong.

Zero are expected; any exception is shown in full and makes the exit code 1. `--n` is the number of
random strings, and of re-segmentations; walks and sampled masks grow with it.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import time
import traceback
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from bpe_automata.errors import (
    MissingDependencyError,
    MissingFileError,
    TokenizerError,
)
from experiments import exact_report
from experiments.corpus import open_corpus
from experiments.exact_measure import Progress, Row, Work, measured
from experiments.exact_options import ALL, ExactOptions, options_of, shown
from experiments.optional import require
from experiments.runner import Options, Run, read_run

N = 100_000
SKIPPED, REFUSED, FAILED = "not installed", "refused", "failed"


def run(options: Options) -> None:
    """Measure unless told to render only; print the tables. Exits with 1 if a law has exceptions,
    or could not be tried."""
    chosen = options if isinstance(options, ExactOptions) else _plain(options)
    if not chosen.render_only:
        measure(chosen)
    rows, manifest = read_run(chosen)
    exact_report.render(rows, manifest, chosen)
    if any(row.get("exceptions") or row.get("why_not") == FAILED for row in rows):
        raise SystemExit(1)


def _plain(options: Options) -> ExactOptions:
    return options_of(argparse.Namespace(tokenizer=None, text=None, jobs=None), options)


def measure(options: ExactOptions) -> None:
    """All rows of all tokenizers; each names its own."""
    begun = time.perf_counter()
    with require("rich.console").Console(stderr=True).status("collecting texts"):
        work = Work(options.n or N, options.seed, open_corpus(options.seed, options.text))
    sources = options.tokenizers()
    config = {"n": work.n, "texts": work.corpus.described(), "missing": work.corpus.missing}
    sha256: dict[str, str] = {}
    run_ = Run(options, config, {"tokenizers": sha256}, work.rows * len(sources), begun)
    several = in_processes if options.jobs > 1 and len(sources) > 1 else one_by_one
    for name, row in several(sources, work, options):
        if "why_not" in row:
            run_.expected -= work.rows - 1 - sum(kept["tokenizer"] == name for kept in run_.rows)
        if "sha256" in row:
            sha256[name] = row.pop("sha256")
        run_.add({"tokenizer": name, **row})


def one_by_one(
    sources: Sequence[str], work: Work, options: ExactOptions
) -> Iterator[tuple[str, Row]]:
    """(tokenizer, row) as they come."""
    with progress_bar() as bar:
        for source in sources:
            for row in rows_of(source, work, options, progress_on(bar, shown(source))):
                yield shown(source), row


def in_processes(
    sources: Sequence[str], work: Work, options: ExactOptions
) -> Iterator[tuple[str, Row]]:
    """The same, several tokenizers at a time, each as a whole."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # its threads would compete with the processes
    fresh = multiprocessing.get_context("spawn")
    with progress_bar() as bar, ProcessPoolExecutor(options.jobs, mp_context=fresh) as pool:
        task = bar.add_task("tokenizers", total=len(sources))
        running: dict[Future[list[Row]], str] = {
            pool.submit(all_rows, source, work, options): shown(source) for source in sources
        }
        for done in as_completed(running):
            bar.advance(task)
            for row in result_of(done):
                yield running[done], row


def result_of(done: Future[list[Row]]) -> list[Row]:
    """The rows of a tokenizer; one that says so if its process was killed."""
    try:
        return done.result()
    except BrokenProcessPool as error:
        return [{"law": None, "why_not": FAILED, "error": f"{error} (out of memory?)"}]


def all_rows(source: str, work: Work, options: ExactOptions) -> list[Row]:
    """What a process does."""
    return list(rows_of(source, work, options, lambda what, done, total: None))


def rows_of(source: str, work: Work, options: ExactOptions, progress: Progress) -> Iterator[Row]:
    """The rows of one tokenizer. Among several, one that is not there, is refused or fails is a
    row that says so; alone, it is an error."""
    try:
        yield from measured(source, work, progress)
    except (MissingDependencyError, MissingFileError) as error:
        if options.tokenizer != ALL:
            raise
        yield {"law": None, "why_not": SKIPPED, "error": str(error)}
    except TokenizerError as error:
        if options.tokenizer != ALL:
            raise
        yield {"law": None, "why_not": REFUSED, "error": str(error)}
    except Exception as error:
        if options.tokenizer != ALL:
            raise
        where = "".join(traceback.format_exception(error)[-3:])
        yield {"law": None, "why_not": FAILED, "error": where}


def progress_bar() -> Any:
    """On stderr, gone when done."""
    console = require("rich.console").Console(stderr=True)
    return require("rich.progress").Progress(console=console, transient=True)


def progress_on(bar: Any, name: str) -> Progress:
    """One task of the bar at a time: what is going on now."""
    tasks: dict[str, Any] = {}

    def progress(what: str, done: int, total: int) -> None:
        if what not in tasks:
            for old in tasks.values():
                bar.update(old, visible=False)
            tasks[what] = bar.add_task(f"{name}: {what}", total=total)
        bar.advance(tasks[what], done)

    return progress
