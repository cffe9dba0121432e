"""The README's numbers: what stands between two markers comes from the files of an artefact.

<!-- numbers: NAME -->
...
<!-- /numbers: NAME -->
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from bpe_automata.errors import BpeAutomataError
from experiments.run.files import ROOT, write_atomically

README = ROOT / "README.md"


class ReadmeError(BpeAutomataError):
    """A marker without its end."""


def markers(name: str) -> tuple[str, str]:
    """Those around what an artefact says."""
    return f"<!-- numbers: {name} -->", f"<!-- /numbers: {name} -->"


def said(text: str, name: str) -> str | None:
    """What the README says of an artefact; None if it has no place for it. Raises ReadmeError."""
    begin, end = markers(name)
    _, found, rest = text.partition(begin)
    if not found:
        return None
    inside, found, _ = rest.partition(end)
    if not found:
        raise ReadmeError(f"{README.name} has {begin} without {end}")
    return inside


def with_said(text: str, name: str, inside: str) -> str:
    """The README with that in its place; the rest is untouched."""
    begin, end = markers(name)
    earlier = said(text, name)
    if earlier is None:
        return text
    return text.replace(begin + earlier + end, f"{begin}\n{inside.strip()}\n{end}")


def update(name: str, module: Any, facts: dict[str, Any], readme: Path = README) -> bool:
    """Write what the module says of its facts; False if it says nothing, or there is no place."""
    says: Callable[[dict[str, Any]], str] | None = getattr(module, "readme", None)
    if says is None:
        return False
    text = readme.read_text(encoding="utf-8")
    changed = with_said(text, name, says(facts))
    if changed != text:
        write_atomically(readme, changed)
    return said(changed, name) is not None
