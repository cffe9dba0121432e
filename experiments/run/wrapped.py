"""Prose for the README in lines of its width."""

from __future__ import annotations

from textwrap import fill

WIDTH = 100


def wrapped(text: str) -> str:
    """Words are not broken, nor are commands at their hyphens; what belongs to an item of a list is
    indented."""
    indent = "  " if text.startswith("- ") else ""
    return fill(
        text, WIDTH, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False
    )


def wrapped_lines(text: str) -> str:
    """Of Markdown: each line of prose that is too long; tables and code stay as they are."""
    lines, is_code = [], False
    for line in text.splitlines():
        is_code ^= line.startswith("```")
        is_prose = not is_code and not line.startswith("|")
        lines.append(wrapped(line) if is_prose and len(line) > WIDTH else line)
    return "\n".join(lines)
