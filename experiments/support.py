"""The support matrix: every case of tests/support is run, and the README's table written from what
came out.

A value stands in the table as what its case shows: a case that fails or does not run is marked so,
never shown as support. `--check` runs nothing: it compares the README with the list of cases.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from typing import Any

from bpe_automata.errors import BpeAutomataError
from experiments.optional import require
from experiments.runner import ROOT, Options, Run, read_run, write_atomically

README = ROOT / "README.md"
TESTS = ROOT / "tests"
BEGIN, END = "<!-- support: begin -->", "<!-- support: end -->"
PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
_MARK = {FAILED: " **(fails)**", SKIPPED: " *(not run)*"}
_LIBRARIES = ("tokenizers", "sentencepiece", "tiktoken", "gguf", "transformers")
_COLUMNS = ("component", "exact", "refused")


class SupportError(BpeAutomataError):
    """The README does not say what the cases show."""


@dataclass(frozen=True)
class SupportOptions(Options):
    """check: compare the README with the cases, and run nothing."""

    check: bool = False


def options_of(chosen: argparse.Namespace, common: Options) -> SupportOptions:
    """What the command line chose, `--check` included."""
    return SupportOptions(common.name, render_only=common.render_only, check=chosen.check)


@dataclass(frozen=True)
class Outcome:
    """section, name, variant, refused: of the case; outcome: PASSED, FAILED or SKIPPED; why: the
    first line of what pytest says about one that did not pass."""

    section: str
    name: str
    variant: str
    refused: bool
    outcome: str = PASSED
    why: str = ""


# ---------------------------------------------------------------- running


def run(options: Options) -> None:
    """Run the cases and write the table. Raises SupportError if some fail, or if `check` finds a
    difference."""
    if isinstance(options, SupportOptions) and options.check:
        check(README.read_text(encoding="utf-8"), expected())
        return
    outcomes = _kept(options) if options.render_only else _measured(options)
    text = README.read_text(encoding="utf-8")
    write_atomically(README, with_block(text, block(outcomes)))
    failed = [o for o in outcomes if o.outcome == FAILED]
    print(counted(outcomes))
    if failed:
        names = "; ".join(f"{o.section} {o.name} {o.variant}: {o.why}" for o in failed)
        raise SupportError(f"{len(failed)} cases fail, and the README says so: {names}")


def cases() -> Sequence[Any]:
    """The cases of tests/support, in order."""
    if str(TESTS) not in sys.path:
        sys.path.insert(0, str(TESTS))
    found: Sequence[Any] = importlib.import_module("support.cases").CASES
    return found


def expected() -> list[Outcome]:
    """All cases, as if each had passed."""
    return [_outcome(case) for case in cases()]


def _outcome(case: Any, outcome: str = PASSED, why: str = "") -> Outcome:
    return Outcome(case.section, case.name, case.variant, case.refused, outcome, why)


class _Recorder:
    """A plugin of pytest: what came out for each case."""

    def __init__(self) -> None:
        self.case_of: dict[str, Any] = {}
        self.outcomes: dict[str, Outcome] = {}

    def pytest_collection_finish(self, session: Any) -> None:
        self.case_of = {item.nodeid: item.callspec.params["case"] for item in session.items}

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when != "call" and report.passed:
            return
        why = "" if report.passed else str(report.longreprtext).strip().splitlines()[-1]
        found = _outcome(self.case_of[report.nodeid], report.outcome, why)
        known = self.outcomes.get(report.nodeid)
        if known is None or known.outcome == PASSED:
            self.outcomes[report.nodeid] = found


def _measured(options: Options) -> list[Outcome]:
    started, recorder = time.perf_counter(), _Recorder()
    arguments = ["-c", str(ROOT / "pyproject.toml"), "--long", "-p", "no:cacheprovider"]
    require("pytest", "pip install -e '.[dev]'").main(
        [*arguments, str(TESTS / "support" / "test_support.py")], plugins=[recorder]
    )
    outcomes = list(recorder.outcomes.values())
    if not outcomes or len(outcomes) != len(recorder.case_of):
        total = len(recorder.case_of)
        raise SupportError(f"{total} cases, but pytest ran {len(outcomes)} of them")
    kept = Run(options, {}, {}, len(outcomes), started)
    for outcome in outcomes:
        kept.add(asdict(outcome))
    return outcomes


def _kept(options: Options) -> list[Outcome]:
    rows, _ = read_run(options)
    return [Outcome(**row) for row in rows]


# ---------------------------------------------------------------- the README


def check(readme: str, outcomes: Sequence[Outcome]) -> None:
    """Raises SupportError unless the README's table is the one of these outcomes, whatever the
    versions of the libraries."""
    written, wanted = (_lines(text) for text in (block_of(readme), block(outcomes)))
    differ = [line for line in written if line not in wanted] + [
        line for line in wanted if line not in written
    ]
    if differ or written != wanted:
        first = (differ or written)[0]
        raise SupportError(
            f"the support table of {README.name} is not that of the {len(outcomes)} cases, all "
            f"passed: {first!r}; write it anew with `python -m experiments support`"
        )


def _lines(text: str) -> list[str]:
    """Without the line of versions."""
    return [line for line in text.splitlines() if line and not line.startswith("With ")]


def block_of(readme: str) -> str:
    """What stands between the markers. Raises SupportError where they are missing."""
    _, begin, rest = readme.partition(BEGIN)
    inside, end, _ = rest.partition(END)
    if not begin or not end:
        raise SupportError(f"{README.name} has no {BEGIN} and {END} for the table")
    return inside


def with_block(readme: str, inside: str) -> str:
    """The README with that between the markers; the rest is untouched."""
    return readme.replace(BEGIN + block_of(readme) + END, f"{BEGIN}\n{inside}{END}")


def block(outcomes: Sequence[Outcome]) -> str:
    """The table as Markdown, a row for each section."""
    ruler = ("---",) * len(_COLUMNS)
    lines = [_line(_COLUMNS), _line(ruler)]
    for section in dict.fromkeys(o.section for o in outcomes):
        mine = [o for o in outcomes if o.section == section]
        cells = (_cell(o for o in mine if o.refused == refused) for refused in (False, True))
        lines.append(_line((section, *cells)))
    return "\n".join([*lines, "", counted(outcomes), _versions(), ""])


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _cell(outcomes: Iterable[Outcome]) -> str:
    """The names, each once; marked unless all its variants passed."""
    found: dict[str, list[str]] = {}
    for o in outcomes:
        found.setdefault(o.name, []).append(o.outcome)
    worst = {name: max(some, key=(PASSED, SKIPPED, FAILED).index) for name, some in found.items()}
    return ", ".join(name + _MARK.get(outcome, "") for name, outcome in worst.items())


def counted(outcomes: Sequence[Outcome]) -> str:
    """How many cases there are, and what came out."""
    counts = Counter(o.outcome for o in outcomes)
    return (
        f"Written by `python -m experiments support` from {len(outcomes)} cases: {counts[PASSED]} "
        f"passed, {counts[FAILED]} failed, {counts[SKIPPED]} not run."
    )


def _versions() -> str:
    """Of the libraries that were the reference."""
    known = []
    for name in _LIBRARIES:
        try:
            known.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            continue
    return f"With {', '.join(known)}."
