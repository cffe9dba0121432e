"""Every component value that is in use: read exactly, or refused with an error that names it.

`python -m experiments support` runs this and writes the matrix of the README from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.case import Case
from support.cases import CASES


def _marks(case: Case) -> list[pytest.MarkDecorator]:
    return [pytest.mark.long] if case.long else []


@pytest.mark.parametrize("case", [pytest.param(c, marks=_marks(c), id=c.id) for c in CASES])
def test_case(case: Case, tmp_path: Path) -> None:
    case.check(tmp_path)
