"""The exactness table: laws that the canonical automaton must obey, and their exceptions.

Zero are expected; any exception is shown in full and makes the exit code 1. `--n` is the number of
random strings, and of re-segmentations; walks and sampled masks grow with it.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from bpe_automata import Constraint, Tokenizer, constrain
from bpe_automata.constructions import canonical_automaton
from experiments import exact_masks, exact_sequences, models
from experiments.exact_sequences import Found
from experiments.optional import require
from experiments.regexes import FINITE, VARIED
from experiments.runner import Options, Run, read_run, write_atomically
from experiments.tables import Table

N = 100_000
SHOWN = 5
Row = dict[str, Any]
Law = tuple[str, int, Callable[[Callable[[], None]], Found]]
"""(name, steps of its progress bar, what runs it)."""


def run(options: Options) -> None:
    """Measure unless told to render only; print the table. Exits with 1 if a law has exceptions."""
    if not options.render_only:
        measure(options)
    rows, manifest = read_run(options)
    render(rows, manifest, options)
    if any(row["exceptions"] for row in rows):
        raise SystemExit(1)


def measure(options: Options) -> None:
    """One row for each law."""
    begun = time.perf_counter()
    source = options.model or str(models.default_gguf())
    with require("rich.console").Console(stderr=True).status("reading the tokenizer"):
        tokenizer = Tokenizer.load(source)
        canonical_automaton(tokenizer)
    n = options.n or N
    provenance = {
        "tokenizer": options.model or Path(source).name,
        "tokenizer_sha256": models.tokenizer_sha256(tokenizer),
    }
    todo = list(laws(tokenizer, n, options.seed))
    run_ = Run(options, {"n": n}, provenance, len(todo), begun)
    with progress_bar() as bar:
        for name, steps, law in todo:
            task = bar.add_task(name, total=steps)
            started = time.perf_counter()
            counts, wrong = law(partial(bar.advance, task))
            run_.add(row_of(name, counts, wrong, time.perf_counter() - started))
            bar.remove_task(task)


def laws(tokenizer: Tokenizer, n: int, seed: int) -> Iterator[Law]:
    """All laws in the order of the table."""
    n_walks, n_masks = max(2, n // 2000), max(2, n // 50_000)
    constraints = {name: constrain(tokenizer, regex) for name, regex in VARIED.items()}
    finite = {name: constrain(tokenizer, regex) for name, regex in FINITE.items()}

    def over(
        each: Callable[..., Found], of: dict[str, Constraint], *more: Any
    ) -> Callable[..., Found]:
        return lambda advance: together(each(c, name, *more, advance) for name, c in of.items())

    rng = partial(random.Random, seed)
    yield "encode(s) is accepted", n, partial(exact_sequences.strings, tokenizer, n, rng())
    yield (
        "re-segmentations: accepted iff encode gives them back",
        n,
        partial(exact_sequences.resegmentations, tokenizer, n, rng()),
    )
    yield (
        f"walks of {len(VARIED)} regexes: canonical, matching, finished",
        n_walks * len(VARIED),
        over(exact_sequences.walks, constraints, n_walks, rng()),
    )
    yield (
        f"masks of {len(VARIED)} regexes: every id tried",
        n_masks * len(VARIED),
        over(exact_masks.every_id, constraints, n_masks, rng()),
    )
    yield (
        f"masks of {len(FINITE)} finite regexes: the trie of encode",
        len(FINITE),
        over(exact_masks.finite, finite),
    )


def together(parts: Iterator[Found]) -> Found:
    """Counts and exceptions of several regexes."""
    counts, wrong = Counter[str](), []
    for some, cases in parts:
        counts.update(some)
        wrong += cases
    return counts, wrong


def row_of(name: str, counts: Counter[str], wrong: list[Row], seconds: float) -> Row:
    """The row of one law; of the exceptions the first few in full."""
    return {
        "law": name,
        "counts": dict(counts),
        "exceptions": len(wrong),
        "first": wrong[:SHOWN],
        "seconds": round(seconds, 2),
    }


def render(rows: list[Row], manifest: Row, options: Options) -> None:
    """Print the table and every exception that was kept; write the table beside the rows."""
    found = table(rows, manifest)
    found.print()
    for row in rows:
        for case in row["first"]:
            print(f"EXCEPTION to {row['law']!r}: {case}")
    write_atomically(options.folder / "table.md", found.markdown())


def table(rows: list[Row], manifest: Row) -> Table:
    """One line for each law."""
    columns = ["law", "tried", "exceptions", "counted besides", "seconds"]
    lines = [
        [
            row["law"],
            f"{row['counts'].get('tried', 0):,}",
            f"{row['exceptions']:,}",
            ", ".join(f"{v:,} {k}" for k, v in row["counts"].items() if k != "tried"),
            f"{row['seconds']:.0f}",
        ]
        for row in rows
    ]
    seed, n = manifest["seed"], manifest["config"]["n"]
    notes = [f"seed {seed}, n {n:,}; tried: sequences, masks or ids"]
    if not manifest["complete"]:
        notes.insert(0, f"INCOMPLETE: {len(rows)} of {manifest['rows_expected']} laws")
    return Table(f"Exactness: {manifest['tokenizer']}", columns, lines, notes)


def progress_bar() -> Any:
    """On stderr, gone when done."""
    console = require("rich.console").Console(stderr=True)
    return require("rich.progress").Progress(console=console, transient=True)
