"""Forced tokens: how many ids of a JSON text are certain before the model is asked.

Along the ids of real instances of real schemas: what is certain by the canonical automaton, by the
lift, and what the published heuristic appends (`chop`, giving back up to 0, 1, 2 or 4 ids), with
how often its ids are ones that `encode` would not give. Then the same model writes under some of
the schemas with and without forced ids, and is counted and timed in one run. What cannot be had of
a schema is said in its row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from bpe_automata import Tokenizer
from bpe_automata.errors import BpeAutomataError
from bpe_automata.tokenizer.sources.named import names
from experiments.engines.peers import OutlinesCore
from experiments.run import config
from experiments.run.config import option
from experiments.run.executors import FAILURE, Cell, Row
from experiments.run.files import ROOT
from experiments.run.measuring import Run
from experiments.run.report import Report
from experiments.serving import forced_generation, forced_report
from experiments.serving.forced_inputs import (
    SCHEMAS,
    Item,
    Source,
    item_of,
    regexes_of,
    sampled,
    schemas_of,
)
from experiments.serving.forced_walks import walked
from experiments.shared import models
from experiments.shared.models import MODEL_HELP, Device, Dtype, Named

VERSION = 2
TOKENIZERS = ("smollm2", "mistral-v1", "llama-3")
ALL = "all"


@dataclass(frozen=True)
class Config(config.Config):
    """What determines the counts and the texts."""

    schemas: Path = option(SCHEMAS, "folder of JSON lines of schemas and instances")
    regexes: Path | None = option(None, "file of JSON lines of regexes and texts, instead")
    sampled: int = option(60, "so many schemas, drawn with the seed; 0: all")
    tokenizers: tuple[str, ...] = option(TOKENIZERS, "names or paths; all: every one with a name")
    texts: int = option(10, "schemas under which a model writes; 0: none")
    most_ids: int = option(48, "of each of its texts, end of sequence included")
    model: str = option(models.SMOLLM2, MODEL_HELP)
    device: Device = option("auto", "where the model runs")
    dtype: Dtype = option("float32", "the model's numbers, as torch names them")

    def sources(self) -> list[Source]:
        """All that there are."""
        return regexes_of(self.regexes) if self.regexes else schemas_of(self.schemas)

    def named(self) -> Named:
        """The model."""
        return self.model, self.device, self.dtype


SMOKE = Config(
    regexes=ROOT / "experiments" / "serving" / "forced_small.jsonl",
    sampled=4,
    tokenizers=("smollm2",),
    texts=1,
    most_ids=6,
)


def inputs(chosen: Config) -> Row:
    """The version of what makes regexes of schemas, where it is there and has to."""
    version = None if chosen.regexes else OutlinesCore.version()
    return {"versions": {OutlinesCore.name: version} if version else {}}


def measure(run: Run[Config]) -> None:
    """A row per schema and style, then one per text that a model writes, which is timed."""
    made = run.config
    given = made.tokenizers
    tokenizers = names() if given == (ALL,) else given
    sources = made.sources()
    chosen = sampled(sources, made.sampled, made.seed)
    styles = list(dict.fromkeys(style for source in chosen for style in source.styles))
    run.note(available=len(sources), sampled=len(chosen), styles=styles, tokenizers=[*tokenizers])
    pairs = [(f"{k} {s}", one, s) for k, one in enumerate(chosen) for s in one.styles]
    cells = [Cell(key, measured, (one, style, tokenizers)) for key, one, style in pairs]
    run.cells(cells, what="walking")
    if made.texts:
        run.note(**models.opened(*made.named()).provenance())
        fit = forced_generation.fit(run.rows, [pair for pair in pairs if pair[2] == styles[0]])
        jobs = forced_generation.cells(fit, made.named(), made.texts, made.most_ids, made.seed)
        run.cells(jobs, alone=True, what="writing")


def measured(source: Source, style: str, tokenizers: Sequence[str]) -> Row:
    """All about one schema in one style; `refused`: why it has no automaton."""
    item = item_of(source, style)
    row: Row = {"kind": "schema", "id": source.id, "group": source.group, "style": style}
    row |= {"refused": item.refused, "characters": len(item.regex)}
    if item.dfa is None:
        return row
    row |= {"states": item.dfa.n_states, "texts": len(item.texts), "other": item.other}
    return row | {"tokenizers": {name: _walked(name, item) for name in tokenizers}}


@lru_cache(maxsize=16)
def tokenizer_of(name: str) -> Tokenizer:
    """Once a process."""
    return Tokenizer.load(name)


def _walked(name: str, item: Item) -> Row:
    if item.dfa is None or not item.texts:
        return {"texts": 0, "not_canonical": 0, "methods": {}}
    try:
        return walked(tokenizer_of(name), item.dfa, item.texts)
    except BpeAutomataError as error:
        return {FAILURE: f"{type(error).__name__}: {error}"}


def render(rows: Sequence[Row], manifest: Row) -> Report:
    """A table per style, and one of what the model wrote."""
    done = [row for row in rows if not row.get(FAILURE)]
    schemas = [row for row in done if row["kind"] == "schema"]
    texts = [row for row in done if row["kind"] == "generation"]
    tables = [forced_report.shares(s, schemas, manifest) for s in manifest.get("styles", [])]
    if texts:
        tables.append(forced_report.passes(texts, manifest))
    return Report("Forced tokens", tables, facts=forced_report.facts(schemas, texts, manifest))


def readme(facts: Row) -> str:
    """What is certain by each automaton, and what a model is saved by it."""
    return forced_report.sentence(facts)
