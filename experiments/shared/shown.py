"""Headlines in lines."""

from __future__ import annotations

import textwrap

_CHARACTER = 0.103
"""Inches of one of a headline, on average."""


def in_lines(text: str, inches: float) -> str:
    """In lines that are as wide as a figure of so many inches, at most."""
    width = int((inches - 0.2) / _CHARACTER)
    return "\n".join(textwrap.fill(line, width) for line in text.split("\n"))
