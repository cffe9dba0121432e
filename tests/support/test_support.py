"""Every component value that is in use: read exactly, or refused with an error that names it.

`python -m experiments support` runs this and writes the matrix of the README from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.laws import support
from experiments.laws.support import FAILED, PASSED, SKIPPED, facts_of, outcome, readme, row_of
from experiments.run.executors import FAILURE
from experiments.run.readme import said
from support.cases import CASES
from support.making import Case


def _marks(case: Case) -> list[pytest.MarkDecorator]:
    return [pytest.mark.long] if case.long else []


@pytest.mark.parametrize("case", [pytest.param(c, marks=_marks(c), id=c.id) for c in CASES])
def test_case(case: Case, tmp_path: Path) -> None:
    case.check(tmp_path)


# ---------------------------------------------------------------- the table of the matrix

PAGE = Path(__file__).parents[2] / "paper_figures" / "supported.md"


@pytest.fixture
def rows():
    """All cases, as if each had passed."""
    return [{"key": case.id} | row_of(case) for case in CASES]


def lines(text: str) -> list[str]:
    """Without the line of versions."""
    return [line for line in text.splitlines() if line and not line.startswith("With ")]


def test_the_page_has_the_table_of_the_cases(rows) -> None:
    written = said(PAGE.read_text(encoding="utf-8"), "support")
    assert written is not None
    assert lines(written) == lines(readme(facts_of(rows, {})))


def test_names_are_told_apart() -> None:
    assert len({case.id for case in CASES}) == len(CASES) == len(support.cases())


@pytest.mark.parametrize(("result", "mark"), [(FAILED, "**(fails)**"), (SKIPPED, "*(not run)*")])
def test_a_case_that_does_not_pass_is_marked(rows, result: str, mark: str) -> None:
    at = next(k for k, row in enumerate(rows) if row["variant"])  # one variant of several
    rows[at] |= {"outcome": result, FAILURE: "the reason"}
    made = support.render(rows, {})
    written = readme(made.facts)
    (row,) = (line for line in written.splitlines() if mark in line)
    assert row.startswith(f"| {rows[at]['section']} |")
    assert f"{len(rows) - 1} passed" in written
    wanted = [f"{rows[at]['key']}: the reason"] if result == FAILED else []
    assert made.wrong == wanted


def test_the_order_is_that_of_the_cases_however_they_came_in(rows) -> None:
    assert facts_of(rows[::-1], {}) == facts_of(rows, {})


def test_what_has_no_outcome_is_not_shown(rows) -> None:
    """A case whose process died is wrong, and no support."""
    lost = {"key": rows[0]["key"], FAILURE: "its process died"}
    made = support.render([lost, *rows[1:]], {})
    assert made.wrong == [f"{lost['key']}: its process died"]
    assert made.facts[PASSED] == len(rows) - 1
    assert support.render([], {}).facts[PASSED] == 0


def test_what_comes_out_of_a_case(monkeypatch) -> None:
    def passes(folder: Path) -> None:
        (folder / "new").write_text("there is a folder of its own")

    def fails(folder: Path) -> None:
        assert not folder.is_dir()

    def skips(folder: Path) -> None:
        pytest.importorskip("a_package_that_is_not_there")

    made = {f.__name__: Case("s", f.__name__, False, f) for f in (passes, fails, skips)}
    monkeypatch.setattr(support, "cases", lambda: {case.id: case for case in made.values()})
    found = {name: outcome(case.id) for name, case in made.items()}
    assert [row["outcome"] for row in found.values()] == [PASSED, FAILED, SKIPPED]
    assert FAILURE not in found["passes"]
    assert "assert not folder.is_dir()" in found["fails"][FAILURE]
    assert "a_package_that_is_not_there" in found["skips"][FAILURE]
    assert [row["place"] for row in found.values()] == [0, 1, 2]
