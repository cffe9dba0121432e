"""Several pictures in one row, as before and after a step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Protocol, runtime_checkable

from bpe_automata.viz.drawing import BrokenDrawingError
from bpe_automata.viz.style import INK
from bpe_automata.viz.visible import columns, printable


@runtime_checkable
class Shown(Protocol):
    """What can stand in a row: a Picture, Pieces, a row itself."""

    def best(self) -> tuple[str, str]:
        """A mime type, SVG or HTML, and the text."""

    def text(self) -> str:
        """The form for a terminal."""


@runtime_checkable
class Drawable(Protocol):
    """What has a picture, for instance an automaton."""

    def picture(self) -> Shown:
        """The picture."""


@dataclass(frozen=True)
class SideBySide:
    """Pictures with a title each; under one another where the page is narrow, and as text."""

    pictures: tuple[Shown, ...]
    titles: tuple[str, ...]

    def html(self) -> str:
        """One block, each picture in its best form."""
        blocks = "".join(
            f'<div style="min-width:0"><div style="font-weight:bold">{escape(printable(title))}'
            f"</div>{picture.best()[1]}</div>"
            for picture, title in zip(self.pictures, self.titles, strict=True)
        )
        style = "display:flex;flex-wrap:wrap;gap:8px 32px;align-items:flex-start;padding:4px"
        return (
            f'<div style="{style};background:#fff;color:{INK};font:13px sans-serif">{blocks}</div>'
        )

    def text(self) -> str:
        """Each title, underlined, over its picture."""
        titles = map(printable, self.titles)
        return "\n\n".join(
            f"{title}\n{'-' * columns(title)}\n{picture.text()}"
            for picture, title in zip(self.pictures, titles, strict=True)
        )

    def best(self) -> tuple[str, str]:
        """Mime type and text, as of a Picture."""
        return "text/html", self.html()

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/plain": self.text(), "text/html": self.html()}

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__


def side_by_side(pictures: Sequence[Shown | Drawable], titles: Sequence[str]) -> SideBySide:
    """Show pictures, or things that have one, in one row. Raises BrokenDrawingError unless they are
    that and each has a title."""
    if len(pictures) != len(titles):
        raise BrokenDrawingError(f"{len(pictures)} pictures, but {len(titles)} titles")
    shown = tuple(_shown(thing, place) for place, thing in enumerate(pictures))
    return SideBySide(shown, tuple(map(str, titles)))


def _shown(thing: object, place: int) -> Shown:
    if isinstance(thing, Drawable):
        thing = thing.picture()
    if isinstance(thing, Shown):
        return thing
    raise BrokenDrawingError(
        f"picture {place} is {type(thing).__name__!r}: give a Picture, Pieces, a row of them, or "
        "something with a method picture(), such as an automaton"
    )
