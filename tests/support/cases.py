"""All cases, in the order of the matrix."""

from __future__ import annotations

from support import (
    added,
    decoders,
    models,
    normalizers,
    patterns,
    pretokenizers,
    prompts,
    regexes,
    sources,
)
from support.case import Case

CASES: list[Case] = [
    *sources.CASES,
    *models.CASES,
    *normalizers.CASES,
    *pretokenizers.CASES,
    *patterns.CASES,
    *added.CASES,
    *decoders.CASES,
    *prompts.CASES,
    *regexes.CASES,
]
