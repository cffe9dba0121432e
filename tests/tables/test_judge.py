"""The judge of schemas: drafts, formats, and patterns that Python's `re` reads as ECMA 262 does."""

import re

import pytest

from bpe_automata.errors import ArgumentError
from experiments.judge import for_python, judge_of

DRAFT4 = {"$schema": "http://json-schema.org/draft-04/schema#", "type": "integer"}


def test_the_judge_follows_the_draft_and_the_formats():
    assert not judge_of({"format": "date"}).is_valid("2023-02-29")
    assert judge_of({"format": "date"}).is_valid("2024-02-29")
    assert not judge_of(DRAFT4).is_valid(1.0)
    assert judge_of({"type": "integer"}).is_valid(1.0)
    with pytest.raises(ArgumentError):
        judge_of({"type": "no type"})


@pytest.mark.parametrize(
    ("pattern", "text", "python", "ecma"),
    [
        (r"^[^\D]$", "\u0663", True, False),
        (r"^\w$", "\u00e9", True, False),
        (r"^[\S]$", "\x1c", False, True),
        (r"^[.$]$", "$", True, True),
        (r"^.$", "\r", True, False),
        (r"^a$", "a\n", True, False),
        (r"^\.\$$", ".$", True, True),
    ],
)
def test_patterns_are_translated_for_python(pattern, text, python, ecma):
    assert bool(re.search(pattern, text)) == python
    assert bool(re.search(for_python(pattern), text)) == ecma
