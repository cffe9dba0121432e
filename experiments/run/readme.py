"""Numbers in prose: what stands between two markers comes from the rows of an artefact.

<!-- numbers: PLACE -->
...
<!-- /numbers: PLACE -->

A place is the name of an artefact, or begins with it. It is in the README, or in pages beside the
tables.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

from bpe_automata.errors import BpeAutomataError
from experiments.run.files import PAPER, ROOT, write_atomically

# Prose for the README in lines of its width.

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


README = ROOT / "README.md"
_BEGIN = "<!-- numbers: "


def pages() -> list[Path]:
    """The files with places."""
    found = [README, *sorted(PAPER.glob("*.md"))]
    return [path for path in found if _BEGIN in path.read_text(encoding="utf-8")]


class ReadmeError(BpeAutomataError):
    """A marker without its end."""


def markers(place: str) -> tuple[str, str]:
    """Those around a place."""
    return f"{_BEGIN}{place} -->", f"<!-- /numbers: {place} -->"


def said(text: str, place: str) -> str | None:
    """What a page says there; None if it has no such place. Raises ReadmeError."""
    begin, end = markers(place)
    _, found, rest = text.partition(begin)
    if not found:
        return None
    inside, found, _ = rest.partition(end)
    if not found:
        raise ReadmeError(f"there is {begin} without {end}")
    return inside


def with_said(text: str, place: str, inside: str) -> str:
    """A page with that in its place; the rest is untouched."""
    begin, end = markers(place)
    earlier = said(text, place)
    if earlier is None:
        return text
    return text.replace(begin + earlier + end, f"{begin}\n{inside.strip()}\n{end}")


def seen_from(page: Path, text: str) -> str:
    """With links as they are from the folder of a page; they are given as the README has them."""
    if page.parent == ROOT:
        return text
    return re.sub(r"(?<=\]\()(?!\w+:)", "../", text).replace(f"](../{PAPER.name}/", "](")


def says(name: str, module: Any, facts: dict[str, Any]) -> dict[str, str]:
    """What an artefact says of its facts, by place; its module's `readme` gives one text, or those
    of several places."""
    own: Callable[[dict[str, Any]], str | dict[str, str]] | None = getattr(module, "readme", None)
    if own is None:
        return {}
    found = own(facts)
    every = found if isinstance(found, dict) else {name: found}
    return {place: wrapped_lines(text) for place, text in every.items()}


def update(name: str, module: Any, facts: dict[str, Any], paths: Sequence[Path] = ()) -> bool:
    """Write what the module says of its facts into `paths`, by default all pages; False if it says
    nothing, or there is no place."""
    every, found = says(name, module, facts), False
    for path in paths or pages():
        text = changed = path.read_text(encoding="utf-8")
        for place, inside in every.items():
            changed = with_said(changed, place, seen_from(path, inside))
        if changed != text:
            write_atomically(path, changed)
        found |= any(said(changed, place) is not None for place in every)
    return found
