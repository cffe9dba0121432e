"""The README's table is the one of the cases, and a case that did not pass is not support."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from experiments.support import (
    BEGIN,
    END,
    FAILED,
    PASSED,
    SKIPPED,
    Outcome,
    SupportError,
    block,
    check,
    expected,
    with_block,
)
from support.cases import CASES

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def test_the_readme_has_the_table_of_the_cases() -> None:
    check(README, expected())


def test_names_are_told_apart() -> None:
    assert len({case.id for case in CASES}) == len(CASES)


@pytest.mark.parametrize(("outcome", "mark"), [(FAILED, "**(fails)**"), (SKIPPED, "*(not run)*")])
def test_a_case_that_does_not_pass_is_marked(outcome: str, mark: str) -> None:
    outcomes = expected()
    at = next(k for k, o in enumerate(outcomes) if o.variant)  # one variant of several
    written = block([*outcomes[:at], replace(outcomes[at], outcome=outcome), *outcomes[at + 1 :]])
    (row,) = (line for line in written.splitlines() if mark in line)
    assert row.startswith(f"| {outcomes[at].section} |")
    with pytest.raises(SupportError, match="write it anew"):
        check(with_block(README, written), outcomes)


def test_columns_and_the_rest_of_the_text() -> None:
    outcomes = [
        Outcome("s", "`a|b`", "", False, PASSED),
        Outcome("s", "c", "1", True, PASSED),
        Outcome("s", "c", "2", True, PASSED),
    ]
    readme = with_block(f"before\n{BEGIN}\nold\n{END}\nafter\n", block(outcomes))
    assert readme.startswith(f"before\n{BEGIN}\n| component | exact | refused |\n")
    assert "| s | `a\\|b` | c |\n" in readme
    assert "3 cases: 3 passed, 0 failed, 0 not run" in readme
    assert readme.endswith(f"{END}\nafter\n")
    check(readme, outcomes)
    with pytest.raises(SupportError, match="has no"):
        check("nothing", outcomes)
