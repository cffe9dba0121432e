"""What every figure has in common: a headline, a note at the foot, and three files."""

from __future__ import annotations

from pathlib import Path
from textwrap import fill
from typing import Any

LETTERS = 16
"""Of a note, in an inch."""


def noted(note: str, inches: float) -> str:
    """A note in the lines that it has below a figure of this width."""
    return "\n".join(fill(line, int(LETTERS * inches)) for line in note.splitlines())


def finish(figure: Any, headline: str, note: str, folder: Path, name: str) -> list[Path]:
    """Write a matplotlib figure as `name.png`, `.pdf` and `.svg` into `folder`, and close it.

    Equal figures make equal files: none carries a date. Returns the paths.
    """
    from matplotlib import pyplot, rc_context

    figure.suptitle(headline, x=0.01, ha="left", fontsize=13, fontweight="bold")
    figure.supxlabel(
        noted(note, figure.get_figwidth()), x=0.01, ha="left", fontsize=8, color="#555555"
    )
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.{suffix}" for suffix in ("png", "pdf", "svg")]
    figure.savefig(paths[0], dpi=160)
    figure.savefig(paths[1], metadata={"CreationDate": None})
    with rc_context({"svg.hashsalt": name}):
        figure.savefig(paths[2], metadata={"Date": None})
    pyplot.close(figure)
    return paths
