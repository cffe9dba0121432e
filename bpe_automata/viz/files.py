"""Pages, and figures by matplotlib, as files."""

from __future__ import annotations

from html import escape
from pathlib import Path

from bpe_automata.errors import BpeAutomataError, MissingFileError
from bpe_automata.optional import require
from bpe_automata.viz.drawing import Drawing
from bpe_automata.viz.plot import figure


class UnknownFormatError(BpeAutomataError):
    """A picture cannot be saved under this suffix; the message lists those that it can."""


SUFFIXES = (".dot", ".txt", ".html", ".svg", ".png", ".pdf")


def check_target(path: str | Path, others: tuple[str, ...] = ()) -> Path:
    """The path, if a picture can be saved there. others: suffixes that the caller writes itself.

    Raises UnknownFormatError for other suffixes, MissingFileError where the folder is missing or
    something that is no file stands in its place.
    """
    path = Path(path)
    if path.suffix not in (*others, *SUFFIXES):
        also = f"; here also {', '.join(others)}" if others else ""
        raise UnknownFormatError(f"{path.name}: a picture is saved as {', '.join(SUFFIXES)}{also}")
    if not path.parent.is_dir():
        raise MissingFileError(f"{path}: there is no folder {path.parent}; make it first")
    if path.is_dir():
        raise MissingFileError(f"{path} is a folder: give the name of a file")
    return path


def page(title: str, body: str) -> str:
    """A whole HTML page."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{escape(title)}</title></head>\n<body>{body}</body></html>\n"
    )


def with_remark(html: str, remark: str) -> str:
    """Something shown in place of something better, and why."""
    return f'<p style="margin:4px 0;font-size:12px">{escape(remark)}</p>{html}'


def save_figure(drawing: Drawing, path: Path) -> None:
    """Draw by matplotlib, in the format of the suffix; the same drawing gives the same file.

    Raises MissingDependencyError.
    """
    # Dates and random ids would make each file differ.
    dated = {".svg": "Date", ".pdf": "CreationDate"}.get(path.suffix)
    with require("matplotlib").rc_context({"svg.hashsalt": "drawing"}):
        figure(drawing).savefig(path, dpi=150, metadata={dated: None} if dated else None)
