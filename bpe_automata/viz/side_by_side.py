"""Several pictures in one row, as before and after a step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import accumulate
from typing import Protocol, runtime_checkable

from bpe_automata.viz.drawing import INK, BrokenDrawingError, columns, printable


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


# A text in pieces (tokens, pretokens): a row of boxes, coloured by kind, and a plain form.

# Tints of the colours of Okabe and Ito, told apart by lightness and border too.
_TINTS = ("#cfe6f7", "#fde3b5", "#cdeee2", "#f6d5e6", "#fbfac8", "#f7cfb8", "#d5dcf2", "#e3e3e3")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_WIDEST = 96  # columns of a line of text
_BOX = (
    "display:inline-block;margin:1px 1px;padding:0 3px;border:1px solid #777;border-radius:3px;"
    f"white-space:pre;color:{INK};background:"
)


@dataclass(frozen=True)
class Pieces:
    """pieces: (text, kind) each, the text already visible. A kind gives a colour and a line of the
    legend; the empty kind gives none. caption: stands before. notes: what the mouse shows, one for
    each piece; the kinds where there are none. Raises BrokenDrawingError unless that is so."""

    pieces: tuple[tuple[str, str], ...]
    caption: str = ""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.notes and len(self.notes) != len(self.pieces):
            raise BrokenDrawingError(f"{len(self.pieces)} pieces, but {len(self.notes)} notes")

    def html(self) -> str:
        """Boxes and a legend."""
        colour = {kind: _TINTS[i % len(_TINTS)] for i, kind in enumerate(self._kinds())}
        notes = self.notes or [kind for _, kind in self.pieces]
        boxes = "".join(
            _box(text, colour.get(kind, "#fff"), note)
            for (text, kind), note in zip(self.pieces, notes, strict=True)
        )
        legend = "".join(f"{_box(' ', colour[kind], kind)} {_safe(kind)} &emsp;" for kind in colour)
        head = f"<b>{_safe(self.caption)}</b><br>" if self.caption else ""
        foot = f'<div style="font-size:11px;margin-top:3px">{legend}</div>' if legend else ""
        return (
            f'<div style="font:13px/1.7 sans-serif;background:#fff;color:{INK};padding:2px 4px">'
            f'{head}<span style="font-family:monospace">{boxes}</span>{foot}</div>'
        )

    def text(self) -> str:
        """`␣the│␣cat│s`, under it a letter for the kind of each, and what the letters mean."""
        letter = {kind: _letter(i) for i, kind in enumerate(self._kinds())}
        lines = [printable(self.caption)] if self.caption else []
        for row in self._rows():
            lines.append("│".join(printable(text) for text, _ in row))
            marks = [letter.get(kind, "") for _, kind in row]
            under = "".join(
                mark + " " * (columns(printable(text)) + 1 - len(mark))
                for (text, _), mark in zip(row, marks, strict=True)
            ).rstrip()
            lines += [under] if under else []
        lines += [f"{mark} = {printable(kind)}" for kind, mark in letter.items()]
        return "\n".join(lines)

    def best(self) -> tuple[str, str]:
        """Mime type and text, as of a Picture."""
        return "text/html", self.html()

    def _kinds(self) -> list[str]:
        return list(dict.fromkeys(kind for _, kind in self.pieces if kind))

    def _rows(self) -> list[list[tuple[str, str]]]:
        """Lines that are not too wide for a terminal."""
        ends = accumulate(columns(printable(text)) + 1 for text, _ in self.pieces)
        rows: dict[int, list[tuple[str, str]]] = {}
        for piece, end in zip(self.pieces, ends, strict=True):
            rows.setdefault((end - 1) // _WIDEST, []).append(piece)
        return list(rows.values())

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/plain": self.text(), "text/html": self.html()}

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__


def _box(text: str, colour: str, note: str) -> str:
    return f'<span style="{_BOX}{colour}" title="{_safe(note)}">{_safe(text)}</span>'


def _safe(text: str) -> str:
    return escape(printable(text))


def _letter(place: int) -> str:
    more, place = divmod(place, len(_LETTERS))
    return _LETTERS[place] + (str(more) if more else "")
