"""The exactness table: laws that the canonical automaton must obey, and their exceptions.

For one tokenizer, or for all that have a name; beside it what two approximations get wrong. Zero
exceptions are expected; any is shown in full and makes the exit code 1. `--n` is the number of
random strings, and of re-segmentations; walks and sampled masks grow with it. Times are taken with
nothing beside them, laws are tried several at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bpe_automata.tokenizer.sources.named import names
from experiments.laws import exact_readme, exact_report
from experiments.laws.exact_measure import (
    ALL,
    SMOKE_TOKENIZER,
    Work,
    corpus,
    facts_cell,
    kinds_of,
    law_cells,
    loaded,
    shown,
)
from experiments.run import config
from experiments.run.config import option
from experiments.run.measuring import Run

VERSION = 1


@dataclass(frozen=True)
class Config(config.Config):
    """The tokenizers, and how much of everything."""

    tokenizer: str = option(ALL, "exactness: a name, a path, or all that have a name")
    n: int = option(100_000, "exactness: strings, and re-segmentations")
    text: Path | None = option(None, "exactness: folder of further multilingual text")
    most_regexes: int | None = option(None, "exactness: of each sort the first so many; none: all")
    repeats: int = option(3, "how often a time is taken")

    def tokenizers(self) -> tuple[str, ...]:
        """What is to be loaded, in order."""
        return tuple(names()) if self.tokenizer == ALL else (self.tokenizer,)


SMOKE = Config(tokenizer=SMOKE_TOKENIZER, n=30, most_regexes=4, repeats=1)

render, readme = exact_report.render, exact_readme.readme


def measure(run: Run[Config]) -> None:
    """The facts of each tokenizer, alone; then the laws. Raises what loading raises if there is
    only one tokenizer; among several, one that is not there or is refused is a row that says so."""
    chosen = run.config
    if chosen.tokenizer != ALL:
        loaded(chosen.tokenizer)
    texts = corpus(chosen.seed, chosen.text)
    kinds, work = kinds_of(texts), [_work(chosen, source) for source in chosen.tokenizers()]
    laws = {shown(each.source): law_cells(each, kinds) for each in work}
    all_laws = [cell.key for some in laws.values() for cell in some]
    run.expect(all_laws)  # so that the run is not complete once the facts are in
    run.cells([facts_cell(each) for each in work], alone=True, what="facts")
    found = {row["tokenizer"]: row["sha256"] for row in run.rows if "facts" in row}
    run.note(texts=texts.described(), missing=texts.missing, tokenizers=found)
    run.expect_none_of(all_laws)
    run.cells([cell for name in found for cell in laws[name]], what="laws")


def _work(chosen: Config, source: str) -> Work:
    return Work(source, chosen.n, chosen.seed, chosen.text, chosen.most_regexes, chosen.repeats)
