"""JSON schemas, real ones: what compiles, what is refused, what is wrong, and what it costs.

Every schema of MaskBench, with instances that `jsonschema` calls valid or not, goes to this package
and to others, each in a process of its own that is ended when it takes too long or too much memory.
Of this package a valid instance that is rejected is explained by a text of the same value that is
accepted; what is not explained, or an invalid instance that is accepted, makes the exit code 1.

`--regexes FILE`: ready regexes with texts instead; `--n` cases drawn with the seed. A peer whose
time is up leaves the rest of the cases out.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from experiments.laws.exact_measure import SMOKE_TOKENIZER
from experiments.run import config
from experiments.run.config import option
from experiments.run.executors import Row
from experiments.run.measuring import Run, progress
from experiments.schemas import comparison_readme, comparison_report
from experiments.schemas.comparison_units import Comparison
from experiments.schemas.engines import ENGINES, JUDGE, EngineName, version
from experiments.schemas.inputs import (
    SCHEMAS,
    SMOKE_SCHEMAS,
    Case,
    regex_cases,
    schema_cases,
    shuffled,
)
from experiments.shared.engines import Whitespace
from experiments.shared.watched import Limits

VERSION = 1
TOKENIZERS = ("smollm2", "llama-3")
_QUICK: tuple[EngineName, ...] = ("bpe_automata", "llguidance")


@dataclass(frozen=True)
class Config(config.Config):
    """Which cases go to whom, and when an engine has had enough."""

    schemas: Path = option(SCHEMAS, "folder or file of JSON lines of schemas with instances")
    regexes: Path | None = option(None, "file of JSON lines of regexes with texts, instead")
    n: int | None = option(None, "schemas: how many cases, drawn by lot; none: all")
    tokenizers: tuple[str, ...] = option(TOKENIZERS, "names or paths")
    engines: tuple[EngineName, ...] = option(ENGINES, "schemas: which of them")
    whitespace: Whitespace = option("compact", "schemas: style of the texts")
    peer_seconds: float = option(90.0, "schemas: a peer begins no case after these")
    case_seconds: float = option(30.0, "schemas: an engine may take for a case")
    case_mb: float = option(3000.0, "schemas: an engine may hold, 10^6 bytes")

    def limits(self) -> Limits:
        """Of one process."""
        return Limits(self.case_seconds, self.case_mb)


SMOKE = Config(schemas=SMOKE_SCHEMAS, tokenizers=(SMOKE_TOKENIZER,), engines=_QUICK)

render, readme = comparison_report.render, comparison_readme.readme


def inputs(chosen: Config) -> Row:
    """The versions of the engines: rows of another version are not gone on with."""
    return {"versions": versions(chosen)}


def versions(chosen: Config) -> dict[str, str]:
    """Of each engine, and of the judge."""
    return {name: version(name) for name in (*chosen.engines, JUDGE)}


def measure(run: Run[Config]) -> None:
    """The judge first, then every engine with every tokenizer, several at a time."""
    chosen, cases = run.config, cases_of(run.config)
    run.note(cases=len(cases), engine_versions=versions(chosen), jobs=run.settings.jobs)
    comparison = Comparison(run, shuffled(cases, chosen.n, chosen.seed))
    with progress() as bar:
        comparison.judge(bar)
        with ThreadPoolExecutor(run.settings.jobs) as pool:
            done = [pool.submit(comparison.unit, *unit, bar) for unit in comparison.units]
            try:
                for unit in done:
                    unit.result()
            except BaseException:
                comparison.stop.set()
                raise


def cases_of(chosen: Config) -> list[Case]:
    """All that the data has. Raises MissingFileError."""
    if chosen.regexes:
        return regex_cases(chosen.regexes)
    return schema_cases(chosen.schemas, chosen.whitespace)
