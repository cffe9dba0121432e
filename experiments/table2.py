"""The article's Table 2, published beside measured: what CartesianMerge costs on function calls.

Step 1: the automaton of the tokenizer. Step 2: the lift. Step 3: the relevant states of the
product. Step 4: a mask. The schemas are Glaiveai2K of MaskBench (`--schemas`: another folder of
JSON lines, or the hub id of a data set), with only the properties that they name, written without
white space; the tokenizer is that of Mistral-7B (`--tokenizer`). Masks are those along a valid
instance, or else the shortest text.

Step 2 is the lift: it makes the mask of each state of the automaton, by the lift's own method. Step
3 is what relevance adds to that: for each node of the product that ids lead to from the start, is
any id dead there, and which. It makes no masks and writes down no edges, and it is given the list
of the nodes, which comes from the pass that makes their rows; that pass, which does the work of
steps 2 and 3 and finds the nodes too, is timed apart ("2 and 3 in one pass"). No node is left out,
and the statuses of all of them, not only the searches, are part of step 3.

Engines take turns at each schema: eager (step by step), lazy, eager with an empty cache of segments
and with one that knows the schemas before; the last two on as many schemas as fit in their time.
The published algorithms in plain Python run on as many schemas as fit in theirs, over the merge
table alone, and the eager engine on the same.

`--n`: how many schemas, drawn by lot.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from bpe_automata import Tokenizer
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.constructions.canonical import CanonicalAutomaton
from bpe_automata.errors import BpeAutomataError
from experiments import table2_report
from experiments.article_table import MISTRAL, mistral_table
from experiments.optional import require
from experiments.runner import Options, Run, read_run
from experiments.speed_build import from_cache
from experiments.speed_timing import repeated, timed
from experiments.table2_inputs import Item, Source, item_of, sources_of
from experiments.table2_methods import Task, eager, lazy, segmented
from experiments.table2_options import Table2Options, options_of
from experiments.table2_reference import Reference, measured, prepared
from experiments.table2_segments import Cache

Row = dict[str, Any]

__all__ = ["measure", "options_of", "run"]

REPEATS = 3
"""How often the automaton of the tokenizer is made."""
TOTAL = 80.0
"""Seconds for the plain algorithms, all schemas together."""
SHARED = 40.0
"""Seconds for the engines with a cache of segments, all schemas together."""
MEGABYTES = 4000.0
"""10^6 bytes for one of them."""
_WARM = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}


def run(options: Options) -> None:
    """Measure unless told to render only; then print the tables. Exit code 1 where masks differ."""
    chosen = options if isinstance(options, Table2Options) else Table2Options(**vars(options))
    if not chosen.render_only:
        measure(chosen, Tokenizer.load(chosen.tokenizer))
    rows, manifest = read_run(chosen)
    table2_report.render(rows, manifest, chosen)
    if any(not row["first"] for row in table2_report.done_by(rows, "reference")):
        raise SystemExit(1)


def measure(options: Table2Options, tokenizer: Tokenizer) -> None:
    """A row for the tokenizer, and for each schema and engine."""
    started = time.perf_counter()
    sources = sources_of(options.schemas, options.n, options.seed)
    plain = options.reference if options.tokenizer == MISTRAL else 0.0
    series = Series(tokenizer, plain)
    console = require("rich.console").Console(stderr=True)
    with console.status("step 1") as status:
        series.warm()
        config = {
            "reference_seconds": plain,
            "reference_total": TOTAL,
            "reference_mb": MEGABYTES,
            "segments_total": SHARED,
        }
        provenance = {"tokenizer": options.tokenizer, "load_average": list(os.getloadavg())}
        run_ = Run(options, config, provenance, 1 + len(sources), started)
        run_.add(series.tokenizer_row())
        for number, source in enumerate(sources):
            status.update(f"schema {number + 1} of {len(sources)}")
            run_.add(series.row(source))


class Series:
    """Schema after schema. The warm cache knows those before."""

    def __init__(self, tokenizer: Tokenizer, plain: float) -> None:
        """plain: seconds for the plain algorithms on one schema, 0 to leave them out."""
        self.tokenizer, self.plain = tokenizer, plain
        self.cache, self.spent, self.shared = Cache(), 0.0, 0.0
        self.reference = prepared(mistral_table()) if plain else None

    def warm(self) -> None:
        """Load the kernels, and what an engine makes once for a tokenizer."""
        item = item_of(Source("warm", _WARM, ({"a": "é", "b": 1},)))
        if item.dfa is not None:
            self._package(item, item.dfa, Cache())

    def tokenizer_row(self) -> Row:
        """Step 1."""
        whole = repeated(lambda: CanonicalAutomaton(self.tokenizer), REPEATS)
        from_cache(self.tokenizer)
        stored = repeated(lambda: from_cache(self.tokenizer), REPEATS)
        plain = [self.reference.seconds] if self.reference else []
        return {"kind": "tokenizer", "eager": whole, "stored": stored, "reference": plain}

    def row(self, source: Source) -> Row:
        """The engines that have time left on one schema; `failure`: why there is no automaton."""
        item = item_of(source)
        row: Row = {"kind": "schema", "id": source.id, "failure": item.failure}
        if item.dfa is None:
            return row
        row |= {"states": item.dfa.n_states, "compile": item.seconds}
        methods = self._package(item, item.dfa, self.cache)
        if self.reference and self.spent < TOTAL:
            methods |= self._table_alone(self.reference, item, item.dfa)
        return row | {"methods": methods}

    def _package(self, item: Item, dfa: ByteDFA, cache: Cache) -> dict[str, Row]:
        task = Task(self.tokenizer, dfa, self.tokenizer.encode(item.text))
        found = {"eager": _tried(partial(eager, task)), "lazy": _tried(partial(lazy, task))}
        if self.shared < SHARED:
            for name, known in (("segments, cold", Cache()), ("segments, warm", cache)):
                spent, found[name] = timed(partial(_tried, partial(segmented, task, known)))
                self.shared += spent
        return found

    def _table_alone(self, reference: Reference, item: Item, dfa: ByteDFA) -> dict[str, Row]:
        task = Task(reference.tokenizer, dfa, reference.tokenizer.encode(item.text))
        seconds = min(self.plain, TOTAL - self.spent)
        work = partial(measured, reference, dfa, item.text, seconds, MEGABYTES)
        spent, row = timed(work)
        self.spent += spent
        return {"eager, table alone": _tried(partial(eager, task)), "reference": row}


def _tried(method: Callable[[], Row]) -> Row:
    """Its row, or why it failed."""
    try:
        return {"status": "done"} | method()
    except BpeAutomataError as error:
        return {"status": "failed", "message": f"{type(error).__name__}: {error}"}
