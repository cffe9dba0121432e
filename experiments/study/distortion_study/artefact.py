"""The distortion study: how much constraints distort a model, where it comes from, what removes it.

Several models are asked prompts with constraints of several families (`cases`). A language that can
be enumerated is summed up exactly, on the trie of all tokenizations, at all temperatures
(`study.enumerated`); a larger one is sampled (`study.sampled`). How an error is taken apart:
`answers.distributions`; what the methods are: `answers.methods`.
"""

from __future__ import annotations

from bpe_automata.errors import ArgumentError
from experiments.answers.cases import CASES, StudyCase
from experiments.engines.peers import OutlinesCore
from experiments.run.executors import FAILURE, Cell, Row
from experiments.run.measuring import Run
from experiments.study.distortion_study.asked import Config, model_row
from experiments.study.distortion_study.report import TITLE, facts, figures, readme, tables
from experiments.study.enumerated.rows import enumerated_row
from experiments.study.sampled.rows import sampled_row

VERSION = 3
SMOKE = Config(
    models=("smollm2",),
    cases=("yes_no_nile_space", "yes_no_nile_no_space", "choices_any_several"),
    populations=50,
    samples=4,
    longest=12,
)

__all__ = ["SMOKE", "TITLE", "VERSION", "Config", "facts", "figures", "inputs", "measure"]
__all__ += ["readme", "tables"]


def inputs(chosen: Config) -> Row:
    """The engine beside ours: rows with another version of it, or none, are not gone on with."""
    del chosen
    return {"peers": {OutlinesCore.name: OutlinesCore.version()}}


def measure(run: Run[Config]) -> None:
    """A row for each model, then one for each model and case. A model that is not there is one
    failure, and has no cases."""
    asked, chosen = run.config, chosen_cases(run.config)
    keys = {source: f"model {source}" for source in asked.models}
    models = [Cell(key, model_row, (asked, source)) for source, key in keys.items()]
    run.cells(models, what="loading the models")
    run.note(**inputs(asked))
    there = [source for source, key in keys.items() if not run.store.rows[key].get(FAILURE)]
    run.cells(
        [
            Cell(f"{source}/{case.name}", row, (asked, source, case))
            for source in there
            for case in chosen
            for row in [enumerated_row if case.is_enumerated() else sampled_row]
        ]
    )


def chosen_cases(asked: Config) -> list[StudyCase]:
    """By name or family; of all cases, only the first larger languages of each family. Raises
    ArgumentError for a word that is neither."""
    known = {word for case in CASES for word in (case.name, case.family)}
    unknown = [word for word in asked.cases if word not in known]
    if unknown:
        raise ArgumentError(f"--cases: {unknown[0]!r} is no case and no family of the study")
    if asked.cases:
        return [case for case in CASES if {case.name, case.family} & set(asked.cases)]
    enumerated, larger = [case for case in CASES if case.is_enumerated()], list[StudyCase]()
    for case in CASES:
        before = sum(other.family == case.family for other in larger)
        if not case.is_enumerated() and (asked.large is None or before < asked.large):
            larger.append(case)
    return [*enumerated, *larger]
