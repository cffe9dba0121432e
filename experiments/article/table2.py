"""The article's Table 2, published beside measured: what CartesianMerge costs on function calls.

Step 1: the automaton of the tokenizer. Step 2: the lift. Step 3: the relevant states of the
product. Step 4: a mask. The schemas are Glaiveai2K of MaskBench (or `--schemas`), with only the
properties that they name, written without white space; the tokenizer is that of Mistral-7B
(`--tokenizer`). Masks are those along a valid instance, or else the shortest text.

Step 2 is the lift: it makes the mask of each state of the automaton, by the lift's own method. Step
3 is what relevance adds to that: for each node of the product that ids lead to from the start, is
any id dead there, and which. It makes no masks and writes down no edges, and it is given the list
of the nodes, which comes from the pass that makes their rows; that pass, which does the work of
steps 2 and 3 and finds the nodes too, is timed apart ("2 and 3 in one pass"). No node is left out,
and the statuses of all of them, not only the searches, are part of step 3.

Engines take turns at each schema: eager (step by step), lazy, eager with an empty cache of segments
and with one that knows the schemas before; the last two on as many schemas as fit in their time.
The published algorithms in plain Python run on as many schemas as fit in theirs, over the merge
table alone, and the eager engine on the same. A first mask of theirs that differs is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bpe_automata import Tokenizer
from experiments.article import table2_report
from experiments.article.costs import SCHEMAS as FUNCTIONS
from experiments.article.mistral import MERGES_HELP, MISTRAL, mistral
from experiments.article.table2_methods import SCHEMAS, Source, sources_of
from experiments.article.table2_series import Series
from experiments.run import config
from experiments.run.config import option
from experiments.run.executors import Cell, Row, measured
from experiments.run.measuring import Run, progress
from experiments.run.report import Report

VERSION = 2
TOKENIZER = "tokenizer"
WARM = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}


@dataclass(frozen=True)
class Config(config.Config):
    """Which schemas, which tokenizer, and what the plain algorithms and the cache may take."""

    tokenizer: str = option(MISTRAL, "a name or a path")
    schemas: Path = option(SCHEMAS, "folder or file of JSON lines, or hub id of a data set")
    n: int | None = option(None, "how many of the schemas, drawn by lot (none: all)")
    merges: int | None = option(None, f"for the plain algorithms: {MERGES_HELP}")
    reference_seconds: float = option(40, "of the plain algorithms for one schema; 0: without them")
    reference_total: float = option(80, "the same in seconds for all schemas together")
    reference_mb: float = option(4000, "memory of the plain algorithms, 10^6 bytes")
    segments_total: float = option(40, "seconds with a cache of segments, all schemas together")


SMOKE = Config(schemas=FUNCTIONS, n=2, merges=20, reference_seconds=5, reference_total=5)


def measure(run: Run[Config]) -> None:
    """A row for the tokenizer, and one for each schema with all engines."""
    chosen = run.config
    sources = sources_of(chosen.schemas, chosen.n, chosen.seed)
    is_default = chosen.tokenizer == MISTRAL
    tokenizer = mistral() if is_default else Tokenizer.load(chosen.tokenizer)
    seconds = chosen.reference_seconds if is_default else 0.0
    measure_on(run, Series(tokenizer, seconds, chosen), sources)


def measure_on(
    run: Run[Config], series: Series, sources: Sequence[Source], warm: Any = WARM
) -> None:
    """warm: a schema that loads the kernels."""
    keyed = {f"schema {place}: {source.id}": source for place, source in enumerate(sources)}
    todo = run.expect([TOKENIZER, *keyed])
    if not todo:
        return
    series.warm(Source("warm", warm, ({"a": "é", "b": 1},)))
    if TOKENIZER in todo:
        run.add(TOKENIZER, series.tokenizer_row())
    known = {row["key"]: row for row in run.rows}
    series.go_on_after([(keyed[key], known[key]) for key in keyed if key not in todo])
    with progress() as bar:
        for key in bar.track([key for key in todo if key in keyed], description="table2"):
            run.add(key, measured(Cell(key, series.row, (keyed[key],))))


def render(rows: Sequence[Row], manifest: Row) -> Report:
    """Three tables."""
    return table2_report.report(rows, manifest)
