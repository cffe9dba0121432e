"""Every component value that is in use: read exactly, or refused with an error that names it."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.cases import CASES, MATRIX, PAGE, matrix
from support.making import Case


def _marks(case: Case) -> list[pytest.MarkDecorator]:
    return [pytest.mark.long] if case.long else []


@pytest.mark.parametrize("case", [pytest.param(c, marks=_marks(c), id=c.id) for c in CASES])
def test_case(case: Case, tmp_path: Path) -> None:
    case.check(tmp_path)


def test_the_page_has_a_value_for_each_case() -> None:
    assert len({case.id for case in CASES}) == len(CASES)
    (written,) = MATRIX.findall(PAGE.read_text(encoding="utf-8"))
    assert written == matrix()
