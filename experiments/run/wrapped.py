"""Prose for the README in lines of its width."""

from __future__ import annotations

from textwrap import fill

WIDTH = 100


def wrapped(text: str) -> str:
    """Words are not broken, nor are commands at their hyphens."""
    return fill(text, WIDTH, break_on_hyphens=False, break_long_words=False)
