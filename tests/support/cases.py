"""All cases, in the order of the matrix."""

from __future__ import annotations

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
