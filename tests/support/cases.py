"""All cases, in the order of the matrix, and the matrix of `paper_figures/supported.md`: each value
in it is a case, which is tried as a test. `PYTHONPATH=tests python -m support.cases` writes it."""

from __future__ import annotations

import re
from pathlib import Path

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


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(MATRIX.sub(lambda _: matrix(), text), encoding="utf-8")
