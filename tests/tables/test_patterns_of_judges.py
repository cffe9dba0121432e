"""Patterns mean for Python's `re`, which judges walks, what they mean in ECMA 262."""

from __future__ import annotations

import re
import sys

import pytest

from experiments.judge import for_python

pytest.importorskip("jsonschema")


@pytest.mark.parametrize(
    ("pattern", "text", "python", "ecma"),
    [
        (r"^\d$", "\u0663", True, False),
        (r"^[^\D]$", "\u0663", True, False),
        (r"^\w$", "\u00e9", True, False),
        (r"^\W$", "\u00e9", False, True),
        (r"^[\s]$", "\x1c", True, False),
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


def test_every_code_point_is_white_space_or_not():
    space, other = re.compile(for_python(r"\s")), re.compile(for_python(r"\S"))
    for code in range(sys.maxunicode + 1):
        assert (space.match(chr(code)) is None) != (other.match(chr(code)) is None)
