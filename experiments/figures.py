"""What every figure has in common: a headline, a note at the foot, and two files."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def finish(figure: Any, headline: str, note: str, folder: Path, name: str) -> list[Path]:
    """Write a matplotlib figure as `name.png` and `name.pdf` into `folder`, and close it.

    Equal figures make equal files: the PDF carries no date. Returns the paths.
    """
    from matplotlib import pyplot

    figure.suptitle(headline, x=0.01, ha="left", fontsize=13, fontweight="bold")
    figure.supxlabel(note, x=0.01, ha="left", fontsize=8, color="#555555")
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.png", folder / f"{name}.pdf"]
    figure.savefig(paths[0], dpi=160)
    figure.savefig(paths[1], metadata={"CreationDate": None})
    pyplot.close(figure)
    return paths
