"""Forced tokens: how many ids of a JSON text are certain before the model is asked.

Along the ids of real instances of real schemas: what is certain by the canonical automaton, by the
lift, and what the published heuristic appends (`chop`, giving back up to 0, 1, 2 or 4 ids), with
how often its ids are ones that `encode` would not give. Then the same model writes under some of
the schemas with and without forced ids, and is counted and timed in one run.

`--schemas FOLDER`, or `--regexes FILE` for ready regexes with texts; `--tokenizer` one, or all;
`--n` schemas drawn with the seed, 0 for all of them. Each measured thing is a row, failures too.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Mapping, Sequence
from typing import Any

from bpe_automata import Tokenizer
from bpe_automata.errors import BpeAutomataError
from experiments import forced_generation, forced_report
from experiments.forced_inputs import (
    BUDGET,
    LONGEST,
    Item,
    Source,
    item_of,
    regexes_of,
    sampled,
    schemas_of,
)
from experiments.forced_options import SAMPLED, ForcedOptions
from experiments.forced_options import options_of as options_of_forced
from experiments.forced_walks import walked
from experiments.optional import require
from experiments.runner import Options, Run, read_run

Row = dict[str, Any]


def options_of(chosen: argparse.Namespace, common: Options) -> ForcedOptions:
    """With what this experiment alone has."""
    return options_of_forced(chosen, common)


def run(options: Options) -> None:
    """Measure unless told to render only; then print the tables and write them for the paper."""
    given = options if isinstance(options, ForcedOptions) else ForcedOptions(**vars(options))
    if not given.render_only:
        sources = regexes_of(given.regexes) if given.regexes else schemas_of(given.schemas)
        measure(given, sources, {name: Tokenizer.load(name) for name in given.tokenizers()})
    rows, manifest = read_run(given)
    forced_report.render(rows, manifest, given)


def measure(
    options: ForcedOptions, sources: Sequence[Source], tokenizers: Mapping[str, Tokenizer]
) -> None:
    """A row per schema and style, then one per text that a model writes."""
    started = time.perf_counter()
    chosen = sampled(sources, SAMPLED if options.n is None else options.n, options.seed)
    items = [item_of(source, style) for source in chosen for style in source.styles]
    writing = forced_generation.chosen(items, options.seed) if options.generate else []
    jobs = forced_generation.jobs(options, writing)
    config = {
        "data": (options.regexes or options.schemas).name,
        "schemas": len(sources),
        "sampled": len(chosen),
        "styles": list(dict.fromkeys(item.style for item in items)),
        "tokenizers": list(tokenizers),
        "longest_regex": LONGEST,
        "most_states": BUDGET.max_states,
        "generation": forced_generation.CONFIG if jobs else None,
    }
    provenance = {"load_average": list(os.getloadavg())}
    run_ = Run(options, config, provenance, len(items) + len(jobs), started)
    console = require("rich.console").Console(stderr=True)
    with require("rich.progress").Progress(console=console, transient=True) as bar:
        for item in bar.track(items, description="walking"):
            run_.add(measured(item, tokenizers))
        for job in bar.track(jobs, description="writing"):
            run_.add(job())


def measured(item: Item, tokenizers: Mapping[str, Tokenizer]) -> Row:
    """All about one schema in one style."""
    row: Row = {"kind": "schema", "id": item.source.id, "group": item.source.group}
    row["style"] = item.style
    row |= {"failure": item.failure, "characters": len(item.regex)}
    if item.dfa is None:
        return row
    row |= {"states": item.dfa.n_states, "texts": len(item.texts), "other": item.other}
    row["tokenizers"] = {name: _walked(found, item) for name, found in tokenizers.items()}
    return row


def _walked(tokenizer: Tokenizer, item: Item) -> Row:
    if item.dfa is None or not item.texts:
        return {"texts": 0, "not_canonical": 0, "methods": {}}
    try:
        return walked(tokenizer, item.dfa, item.texts)
    except BpeAutomataError as error:
        return {"failure": f"{type(error).__name__}: {error}"}
