"""The support matrix: every case of tests/support is tried, and a table written of what came out.

A value stands in the table as what its case shows: a case that fails or does not run is marked so,
never shown as support. A case that fails makes the exit code 1.
"""

from __future__ import annotations

import importlib
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from experiments.run import config
from experiments.run.config import option
from experiments.run.executors import FAILURE, Cell, Row
from experiments.run.files import ROOT, require
from experiments.run.measuring import Run
from experiments.run.provenance import contents_sha256, installed
from experiments.run.report import Report
from experiments.run.tables import Group, Table, frame, markdown

VERSION = 1
TESTS = ROOT / "tests"
PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
_MARK = {FAILED: " **(fails)**", SKIPPED: " *(not run)*"}
_LIBRARIES = ("tokenizers", "sentencepiece", "tiktoken", "gguf", "transformers")
_COLUMNS = ("component", "exact", "refused")


@dataclass(frozen=True)
class Config(config.Config):
    """Which cases."""

    sections: tuple[str, ...] = option((), "support: only these rows of the matrix")


SMOKE = Config(sections=("decoder",))


# ---------------------------------------------------------------- measuring


def inputs(config: Config) -> Row:
    """The cases are code too."""
    del config
    return {"cases": contents_sha256(TESTS / "support")}


def measure(run: Run[Config]) -> None:
    """A row for each case."""
    require("pytest", "pip install -e '.[dev]'")
    run.note(libraries=installed(_LIBRARIES))
    sections = run.config.sections
    chosen = [key for key, case in cases().items() if not sections or case.section in sections]
    run.cells([Cell(key, outcome, (key,)) for key in chosen])


@cache
def cases() -> dict[str, Any]:
    """The cases of tests/support by id, in order."""
    if str(TESTS) not in sys.path:
        sys.path.insert(0, str(TESTS))
    return {case.id: case for case in importlib.import_module("support.cases").CASES}


def outcome(key: str) -> Row:
    """What came out for a case, warnings counted as errors, as when it runs as a test."""
    case, skipped = cases()[key], require("pytest").skip.Exception
    result, why = PASSED, ""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            case.check(Path(folder))
        except skipped as error:
            result, why = SKIPPED, str(error)
        except Exception as error:  # whatever goes wrong in a case is its failure
            result, why = FAILED, _why(error)
    return row_of(case, result, why)


def row_of(case: Any, result: str = PASSED, why: str = "") -> Row:
    """section, name, variant, refused: of the case; place: in the list of all; outcome: PASSED,
    FAILED or SKIPPED, the last two with the reason."""
    row: Row = {name: getattr(case, name) for name in ("section", "name", "variant", "refused")}
    row |= {"place": [*cases()].index(case.id), "outcome": result}
    return row if result == PASSED else row | {FAILURE: why}


def _why(error: Exception) -> str:
    """A bare assertion says nothing but where it stands."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(frame.filename).name}:{frame.lineno}: {frame.line}"
    return f"{type(error).__name__} at {where} {error}".strip()[:300]


# ---------------------------------------------------------------- what the rows say


def render(rows: Sequence[Row], manifest: Row) -> Report:
    """The matrix; wrong: the cases that fail."""
    facts = facts_of(rows, manifest.get("libraries", {}))
    table = Table("What is supported", _COLUMNS, facts["matrix"], [counted(facts), used(facts)])
    wrong = [
        f"{row['key']}: {row[FAILURE]}"
        for row in rows
        if row.get(FAILURE) and row.get("outcome") != SKIPPED
    ]
    return Report("Support", [table], facts=facts, wrong=wrong)


def facts_of(rows: Sequence[Row], libraries: dict[str, str]) -> Row:
    """matrix: cells of Markdown, a line for each section; how many cases came out how; of a case
    whose process died there is nothing to show."""
    known = [row | {FAILURE: None} for row in rows if "outcome" in row]
    cases = frame(sorted(known, key=lambda row: row["place"]))
    groups = cases.groupby("section", sort=False) if known else ()
    counts = Counter(row["outcome"] for row in known)
    return {
        "matrix": [
            [section, *(_names(group[group["refused"] == refused]) for refused in (False, True))]
            for section, group in groups
        ],
        **{name: counts[name] for name in (PASSED, FAILED, SKIPPED)},
        "libraries": libraries,
    }


def _names(cases: Group) -> str:
    """Each once; marked unless all its variants passed."""
    return ", ".join(
        name + _MARK.get(max(same["outcome"], key=(PASSED, SKIPPED, FAILED).index), "")
        for name, same in cases.groupby("name", sort=False)
    )


def counted(facts: Row) -> str:
    """How many cases there are, and what came out."""
    total = facts[PASSED] + facts[FAILED] + facts[SKIPPED]
    return (
        f"Written by `python -m experiments support` from {total} cases: {facts[PASSED]} passed, "
        f"{facts[FAILED]} failed, {facts[SKIPPED]} not run."
    )


def used(facts: Row) -> str:
    """The libraries that were the reference."""
    return "With " + ", ".join(f"{name} {v}" for name, v in facts["libraries"].items()) + "."


def readme(facts: Row) -> str:
    """The matrix as Markdown, a row for each section."""
    return "\n".join([markdown(_COLUMNS, facts["matrix"]), "", counted(facts), used(facts)])
