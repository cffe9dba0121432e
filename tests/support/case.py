"""A case: one value of one component, which is read exactly or refused by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Case:
    """section: row of the matrix; name: as Markdown, as the file format spells it; refused: which
    column; check: what must hold, given an empty folder (raises AssertionError, or skips); variant:
    tells cases of one name apart; long: only run with --long."""

    section: str
    name: str
    refused: bool
    check: Callable[[Path], None]
    variant: str = ""
    long: bool = False

    @property
    def id(self) -> str:
        words = (self.section, self.name, self.variant, "refused" if self.refused else "")
        return " - ".join(word.replace("`", "") for word in words if word)
