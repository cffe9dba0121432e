"""The README's numbers: what stands between two markers comes from the files of an artefact.

<!-- numbers: PLACE -->
...
<!-- /numbers: PLACE -->

A place is the name of an artefact, or begins with it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from bpe_automata.errors import BpeAutomataError
from experiments.run.files import ROOT, write_atomically
from experiments.run.wrapped import wrapped_lines

README = ROOT / "README.md"


class ReadmeError(BpeAutomataError):
    """A marker without its end."""


def markers(place: str) -> tuple[str, str]:
    """Those around a place."""
    return f"<!-- numbers: {place} -->", f"<!-- /numbers: {place} -->"


def said(text: str, place: str) -> str | None:
    """What the README says there; None if it has no such place. Raises ReadmeError."""
    begin, end = markers(place)
    _, found, rest = text.partition(begin)
    if not found:
        return None
    inside, found, _ = rest.partition(end)
    if not found:
        raise ReadmeError(f"{README.name} has {begin} without {end}")
    return inside


def with_said(text: str, place: str, inside: str) -> str:
    """The README with that in its place; the rest is untouched."""
    begin, end = markers(place)
    earlier = said(text, place)
    if earlier is None:
        return text
    return text.replace(begin + earlier + end, f"{begin}\n{inside.strip()}\n{end}")


def says(name: str, module: Any, facts: dict[str, Any]) -> dict[str, str]:
    """What an artefact says of its facts, by place; its module's `readme` gives one text, or those
    of several places."""
    own: Callable[[dict[str, Any]], str | dict[str, str]] | None = getattr(module, "readme", None)
    if own is None:
        return {}
    found = own(facts)
    every = found if isinstance(found, dict) else {name: found}
    return {place: wrapped_lines(text) for place, text in every.items()}


def update(name: str, module: Any, facts: dict[str, Any], readme: Path = README) -> bool:
    """Write what the module says of its facts; False if it says nothing, or there is no place."""
    text = changed = readme.read_text(encoding="utf-8")
    every = says(name, module, facts)
    for place, inside in every.items():
        changed = with_said(changed, place, inside)
    if changed != text:
        write_atomically(readme, changed)
    return any(said(changed, place) is not None for place in every)
