"""Masks: what the first one and each one after it cost, in this package and in other engines.

Every engine has a process of its own for each tokenizer and round. They are asked in turns, about
the same constraints and the same texts: first masks (from the regex or the schema), cold masks
(each place of a text for the first time; the constraint is new, the tokenizer prepared by
`bpe-automata warm`), warm masks (a second session of the same constraint along the same texts),
reading an id, batches of 64, memory.
Rounds are in different orders, and of each time the median over rounds counts. Schemas are those of
MaskBench with their valid instances, asked in the first round only; where they are not there the
constraints alone are measured, and the table says so.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bpe_automata import Tokenizer
from bpe_automata.errors import MissingFileError
from experiments.laws.exact_measure import SMOKE_TOKENIZER, shown
from experiments.run import config
from experiments.run.config import option
from experiments.run.executors import FAILURE, Row
from experiments.run.measuring import Run, progress
from experiments.schemas.inputs import SCHEMAS, SMOKE_SCHEMAS, Case, schema_cases, shuffled
from experiments.serving.masks_cases import CONSTRAINT, constraints
from experiments.serving.masks_child import WHITESPACE
from experiments.serving.masks_report import readme, render
from experiments.serving.masks_turns import Task, Turns, known
from experiments.serving.peers_exams import spelled
from experiments.shared.more_engines import OURS, PEERS, check_known, missing, versions

__all__ = ["SMOKE", "VERSION", "Config", "measure", "readme", "render"]

VERSION = 2
ENGINES = ("canonical", "within", "lift", "llguidance", "glrmask", "xgrammar", "outlines_core")


@dataclass(frozen=True)
class Config(config.Config):
    """Which engines are asked what, and when one has had enough."""

    engines: tuple[str, ...] = option(ENGINES, "which engines")
    tokenizers: tuple[str, ...] = option(("smollm2", "llama-3", "llama-4"), "names or paths")
    constraints: tuple[str, ...] = option((), "names (see masks_cases); none: all of them")
    schemas: Path = option(SCHEMAS, "folder or file of JSON lines of schemas with instances")
    n: int = option(100, "how many schemas, drawn by lot")
    rounds: int = option(3, "how often each constraint is measured")
    seconds: float = option(10.0, "an engine may take for an answer")
    patience: float = option(12.0, "seconds of answers after which an engine is asked no more")
    mb: float = option(6000.0, "an engine may hold, 10^6 bytes")


SMOKE = Config(
    engines=("canonical", "within", "lift"),
    tokenizers=(SMOKE_TOKENIZER,),
    constraints=("boolean", "date"),
    schemas=SMOKE_SCHEMAS,
    n=2,
    rounds=1,
)


def inputs(chosen: Config) -> Row:
    """The versions of the peers: rows of another version are not gone on with."""
    return {"versions": versions(chosen.engines)}


def measure(run: Run[Config]) -> None:
    """Rows of constraints (each in every round), schemas and batches (in the first)."""
    chosen = run.config
    check_known("engines", chosen.engines, [*OURS, *PEERS])
    named, schemas = constraints(chosen.constraints), schemas_of(run)
    run.note(peers=versions(chosen.engines), constraints=[case.id for case in named])
    for name in chosen.engines:
        if (why := missing(name)) and run.expect([name]):
            run.add(name, {"engine": name, FAILURE: why})
    with tempfile.TemporaryDirectory() as folder, progress() as bar:
        bar_task = bar.add_task("", total=len(chosen.tokenizers) * chosen.rounds)
        for source in chosen.tokenizers:
            tokenizer = Tokenizer.load(source)
            every = [*tasks(tokenizer, named), *tasks(tokenizer, schemas)]
            cache = Path(folder) / f"{chosen.tokenizers.index(source)}"
            known(source, cache)
            for number in range(chosen.rounds):
                bar.update(bar_task, description=f"{shown(source)}, round {number + 1}")
                Turns(run, source, number, every, cache).play()
                bar.advance(bar_task)


def schemas_of(run: Run[Config]) -> list[Case]:
    """Those with a valid instance, in an order that the seed alone decides; none where there are
    none, which is noted."""
    try:
        found = schema_cases(run.config.schemas, WHITESPACE)
    except MissingFileError as error:
        run.note(no_schemas=f"{error}: schemas were left out")
        return []
    found = [case for case in found if any(case.labels)]
    run.note(no_schemas=None, schemas=len(found))
    return shuffled(found, run.config.n, run.config.seed)


def tasks(tokenizer: Tokenizer, cases: Sequence[Case]) -> Iterator[Task]:
    """With the tokenizer's own ids. Texts that it cannot spell are left out."""
    for case in cases:
        texts = [text for text, good in zip(case.texts, case.labels, strict=True) if good]
        ids = [own for text in texts if (own := spelled(tokenizer, text)) is not None]
        if ids:
            yield Task(case.id, case.group != CONSTRAINT, case.source, ids)
