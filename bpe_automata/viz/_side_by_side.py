"""Shows several pictures in a row, and a text in pieces such as tokens as a row of boxes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import accumulate
from typing import Protocol, runtime_checkable

from bpe_automata.viz._drawing import INK, BrokenDrawingError, Shown, columns, printable


@runtime_checkable
class Drawable(Protocol):
    """Something with a picture, for instance an automaton."""

    def picture(self) -> Shown:
        """The picture."""


@dataclass(frozen=True, repr=False)
class SideBySide(Shown):
    """Pictures in a row, each with a title; as text, and on narrow pages, in a column."""

    pictures: tuple[Shown, ...]
    titles: tuple[str, ...]

    def html(self) -> str:
        """One block with each picture in its best form."""
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
        """Each picture below its underlined title."""
        titles = map(printable, self.titles)
        return "\n\n".join(
            f"{title}\n{'-' * columns(title)}\n{picture.text()}"
            for picture, title in zip(self.pictures, titles, strict=True)
        )


def side_by_side(pictures: Sequence[Shown | Drawable], titles: Sequence[str]) -> SideBySide:
    """Pictures, or things that have one, in one row. Raises BrokenDrawingError for anything else,
    and unless each has a title."""
    if len(pictures) != len(titles):
        raise BrokenDrawingError(f"{len(pictures)} pictures, but {len(titles)} titles")
    found = tuple(_picture_of(thing, number) for number, thing in enumerate(pictures))
    return SideBySide(found, tuple(map(str, titles)))


def _picture_of(thing: object, number: int) -> Shown:
    if isinstance(thing, Drawable):
        thing = thing.picture()
    if isinstance(thing, Shown):
        return thing
    raise BrokenDrawingError(
        f"picture {number} is {type(thing).__name__!r}: give a Picture, Pieces, a row of them, or "
        "something with a method picture(), such as an automaton"
    )


# Tints of the colours of Okabe and Ito, which also differ in lightness.
_TINTS = ("#cfe6f7", "#fde3b5", "#cdeee2", "#f6d5e6", "#fbfac8", "#f7cfb8", "#d5dcf2", "#e3e3e3")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_WIDEST = 96  # columns of a line of text
_BOX = (
    "display:inline-block;margin:1px 1px;padding:0 3px;border:1px solid #777;border-radius:3px;"
    f"white-space:pre;color:{INK};background:"
)


@dataclass(frozen=True, repr=False)
class Pieces(Shown):
    """A text in pieces, as a row of boxes coloured by category, or as plain text.

    pieces: (text, category) each, with text in which all characters are visible. A category has a
    colour and a line in the legend; the empty one has none. notes: one for each piece, visible
    under the mouse; by default the categories. Raises BrokenDrawingError for another number of
    notes.
    """

    pieces: tuple[tuple[str, str], ...]
    caption: str = ""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.notes and len(self.notes) != len(self.pieces):
            raise BrokenDrawingError(f"{len(self.pieces)} pieces, but {len(self.notes)} notes")

    def html(self) -> str:
        """The boxes and a legend."""
        colours = {c: _TINTS[i % len(_TINTS)] for i, c in enumerate(self._categories())}
        notes = self.notes or [category for _, category in self.pieces]
        boxes = "".join(
            _box(text, colours.get(category, "#fff"), note)
            for (text, category), note in zip(self.pieces, notes, strict=True)
        )
        legend = "".join(
            f"{_box(' ', colour, category)} {_safe(category)} &emsp;"
            for category, colour in colours.items()
        )
        head = f"<b>{_safe(self.caption)}</b><br>" if self.caption else ""
        foot = f'<div style="font-size:11px;margin-top:3px">{legend}</div>' if legend else ""
        return (
            f'<div style="font:13px/1.7 sans-serif;background:#fff;color:{INK};padding:2px 4px">'
            f'{head}<span style="font-family:monospace">{boxes}</span>{foot}</div>'
        )

    def text(self) -> str:
        """`␣the│␣cat│s`, below it a letter for the category of each piece, and a legend."""
        letters = {category: _letter(i) for i, category in enumerate(self._categories())}
        lines = [printable(self.caption)] if self.caption else []
        for line in self._lines():
            lines.append("│".join(printable(text) for text, _ in line))
            marks = [letters.get(category, "") for _, category in line]
            below = "".join(
                mark + " " * (columns(printable(text)) + 1 - len(mark))
                for (text, _), mark in zip(line, marks, strict=True)
            ).rstrip()
            lines += [below] if below else []
        lines += [f"{mark} = {printable(category)}" for category, mark in letters.items()]
        return "\n".join(lines)

    def _categories(self) -> list[str]:
        return list(dict.fromkeys(category for _, category in self.pieces if category))

    def _lines(self) -> list[list[tuple[str, str]]]:
        """The pieces in lines that fit into a terminal."""
        ends = accumulate(columns(printable(text)) + 1 for text, _ in self.pieces)
        lines: dict[int, list[tuple[str, str]]] = {}
        for piece, end in zip(self.pieces, ends, strict=True):
            lines.setdefault((end - 1) // _WIDEST, []).append(piece)
        return list(lines.values())


def _box(text: str, colour: str, note: str) -> str:
    return f'<span style="{_BOX}{colour}" title="{_safe(note)}">{_safe(text)}</span>'


def _safe(text: str) -> str:
    return escape(printable(text))


def _letter(number: int) -> str:
    more, index = divmod(number, len(_LETTERS))
    return _LETTERS[index] + (str(more) if more else "")
