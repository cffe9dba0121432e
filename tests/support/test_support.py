"""Every component value that is in use: read exactly, or refused with an error that names it. The
matrix of `paper_figures/supported.md` has them in the same order:
`PYTHONPATH=tests python -m support.test_support` writes it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support import model_parts, prompts, sources, steps
from support.making import Case

CASES: list[Case] = [
    *sources.CASES,
    *model_parts.MODEL_CASES,
    *steps.NORMALIZER_CASES,
    *steps.PRETOKENIZER_CASES,
    *steps.PATTERN_CASES,
    *model_parts.ADDED_CASES,
    *model_parts.DECODER_CASES,
    *prompts.CASES,
    *prompts.REGEX_CASES,
]
PAGE = Path(__file__).parents[2] / "paper_figures" / "supported.md"
MATRIX = re.compile(r"(?<=<!-- cases -->\n).*(?=\n<!-- /cases -->)", re.DOTALL)


def matrix() -> str:
    """A line for each section: what is exact, and what is refused."""
    lines = ["| component | exact | refused |", "| :-- | :-- | :-- |"]
    for section in dict.fromkeys(case.section for case in CASES):
        cells = (
            dict.fromkeys(c.name for c in CASES if (c.section, c.refused) == (section, refused))
            for refused in (False, True)
        )
        shown = (", ".join(names).replace("|", "\\|") for names in cells)
        lines.append(f"| {section} | {' | '.join(shown)} |")
    return "\n".join([*lines, "", f"Each of the {len(CASES)} cases is a test."])


def _marks(case: Case) -> list[pytest.MarkDecorator]:
    return [pytest.mark.long] if case.long else []


@pytest.mark.parametrize("case", [pytest.param(c, marks=_marks(c), id=c.id) for c in CASES])
def test_case(case: Case, tmp_path: Path) -> None:
    case.check(tmp_path)


def test_the_page_has_a_value_for_each_case() -> None:
    assert len({case.id for case in CASES}) == len(CASES)
    (written,) = MATRIX.findall(PAGE.read_text(encoding="utf-8"))
    assert written == matrix()


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(MATRIX.sub(lambda _: matrix(), text), encoding="utf-8")
