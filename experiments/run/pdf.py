"""A page of Markdown as a PDF, drawn by matplotlib on A4: its title across the page, headings,
paragraphs, lists and tables in two columns, and those pictures that are there across the head of
the next page, as journals have them. Equal pages make equal files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from experiments.run.files import require

WIDTH, HEIGHT = 8.27, 11.69
MARGIN, BETWEEN, COLUMNS = 0.7, 0.27, 2
"""Inches, as all lengths here; between columns."""
FULL = WIDTH - 2 * MARGIN
COLUMN = (FULL - (COLUMNS - 1) * BETWEEN) / COLUMNS
BODY, TABLE, SPACING = 9.0, 7.5, 1.25
"""Sizes of text in points, and how far lines are apart, in their height."""
HEADINGS = {"h1": 16.0, "h2": 11.5, "h3": 10.0}
FAMILY, CODE = "STIXGeneral", "DejaVu Sans Mono"
GAP = 0.07
NARROWEST = 0.2
"""Of a column of a table."""
POINT = 1 / 72


class Text(NamedTuple):
    """x: from the left of the column; y: from the top of its piece."""

    x: float
    y: float
    text: str
    size: float
    bold: bool = False
    family: str = FAMILY


class Piece(NamedTuple):
    """What is not broken: a line, or a row of a table. with_next: may it not be the last of a
    column? is_wide: does it stand across all columns?"""

    height: float
    texts: Sequence[Text] = ()
    with_next: bool = False
    is_wide: bool = False


class Picture(NamedTuple):
    """Pixels, and what is said below them."""

    pixels: Any
    caption: Sequence[Piece]

    @property
    def said(self) -> float:
        """The height of the caption."""
        return sum(piece.height for piece in self.caption)

    @property
    def size(self) -> tuple[float, float]:
        """(width, height): as wide as the page, or else as high."""
        tall = self.pixels.shape[0] / self.pixels.shape[1]
        width = min(FULL, (HEIGHT - 2 * MARGIN - self.said) / tall)
        return width, width * tall

    @property
    def height(self) -> float:
        """With the caption."""
        return self.size[1] + self.said


Item: TypeAlias = Piece | Picture


class Pages:
    """What is drawn on: `column` is written from `at` down; columns begin at `top`, and all but the
    last end at `bottom`; pictures wait for the next page."""

    def __init__(self, file: Any) -> None:
        self.file = file
        self.figure: Any = None
        self.waiting: list[Picture] = []
        self.column, self.top, self.at, self.bottom = COLUMNS - 1, 0.0, HEIGHT, HEIGHT

    def room(self, height: float, left: float) -> None:
        """Go on in the next column, or on the next page, where that does not fit into this one.
        left: the height of all that is to come."""
        while self.at > self.top and self.at + height > (
            self.bottom if self.column + 1 < COLUMNS else HEIGHT - MARGIN
        ):
            if self.column + 1 < COLUMNS:
                self.column, self.at = self.column + 1, self.top
            else:
                self.begin(left)

    def begin(self, left: float = 0.0) -> None:
        """A page, with as many of the pictures that wait as there is room for. Where what is left
        does not fill it, its columns are of one height."""
        self.close()
        self.figure = require("matplotlib.pyplot").figure(figsize=(WIDTH, HEIGHT))
        self.column, self.at = 0, MARGIN
        while self.waiting and self.at + self.waiting[0].height <= HEIGHT - MARGIN + GAP:
            self._picture(self.waiting.pop(0))
        self.top = self.at
        self.bottom = min(HEIGHT - MARGIN, self.top + left / COLUMNS + BODY * POINT * SPACING)

    def close(self) -> None:
        """Write the page."""
        if self.figure is not None:
            self.file.savefig(self.figure)
            require("matplotlib.pyplot").close(self.figure)
            self.figure = None

    def piece(self, piece: Piece) -> None:
        """At the present height; what is wide moves the top of all columns."""
        for text in piece.texts:
            self.text(text)
        self.at += piece.height
        if piece.is_wide:
            self.top = self.at

    def text(self, text: Text) -> None:
        """One line."""
        left = MARGIN + self.column * (COLUMN + BETWEEN)
        self.figure.text(
            (left + text.x) / WIDTH,
            1 - (self.at + text.y) / HEIGHT,
            text.text,
            va="top",
            parse_math=False,
            fontsize=text.size,
            family=text.family,
            fontweight="bold" if text.bold else "normal",
        )

    def _picture(self, picture: Picture) -> None:
        width, height = picture.size
        bottom = 1 - (self.at + height) / HEIGHT
        axes = self.figure.add_axes((MARGIN / WIDTH, bottom, width / WIDTH, height / HEIGHT))
        axes.imshow(picture.pixels, interpolation="lanczos", aspect="auto")
        axes.axis("off")
        self.at += height
        for piece in picture.caption:
            self.piece(piece)


def write(source: Path, target: Path) -> Path:
    """Draw a page of Markdown; pictures are looked for beside it. Returns the target."""
    require("matplotlib").use("Agg")
    pages_of = require("matplotlib.backends.backend_pdf").PdfPages
    tokens = require("markdown_it").MarkdownIt().enable("table").parse(source.read_text("utf-8"))
    items = list(_items(tokens, source.parent))
    with pages_of(target, metadata={"CreationDate": None}) as file:
        pages = Pages(file)
        for k, item in enumerate(items):
            if isinstance(item, Picture):
                pages.waiting.append(item)
            else:
                left = sum(one.height for one in items[k:] if isinstance(one, Piece))
                pages.room(_kept_together(items[k:]), left)
                if item.texts or pages.at > pages.top:
                    pages.piece(item)
        while pages.waiting:
            pages.begin()
        pages.close()
    return target


def _kept_together(items: Sequence[Item]) -> float:
    """The height of the first piece, with those that it must not be parted from."""
    height = 0.0
    for item in items:
        if isinstance(item, Piece):
            height += item.height
            if not item.with_next:
                break
    return height


def _items(tokens: Sequence[Any], folder: Path) -> Iterator[Item]:
    """HTML, which is for markers here, is left out."""
    k, depth, number = 0, 0, 0
    while k < len(tokens):
        token = tokens[k]
        if token.type in ("bullet_list_open", "ordered_list_open"):
            depth += 1
        elif token.type in ("bullet_list_close", "ordered_list_close"):
            depth -= 1
        elif token.type == "heading_open":
            yield from _heading(_plain(tokens[k + 1]), token.tag)
        elif token.type == "paragraph_open":
            for child in tokens[k + 1].children:
                if child.type == "image" and (path := folder / child.attrs["src"]).exists():
                    number += 1
                    yield _picture(path, f"Figure {number}. {child.content}.")
            yield from _paragraph(_plain(tokens[k + 1]), 0.15 * depth)
        elif token.type in ("fence", "code_block"):
            yield from _code(token.content.splitlines())
        elif token.type == "table_open":
            end = next(j for j in range(k, len(tokens)) if tokens[j].type == "table_close")
            yield from _table(tokens[k:end])
            k = end
        k += 1


def _plain(inline: Any) -> str:
    """Text without marks of emphasis and targets of links."""
    said = (
        " " if c.type in ("softbreak", "hardbreak") else c.content
        for c in inline.children
        if c.type not in ("html_inline", "image")
    )
    return "".join(said).strip()


def _heading(text: str, tag: str) -> Iterator[Piece]:
    size, is_title = HEADINGS.get(tag, BODY), tag == "h1"
    yield Piece(GAP / 2, with_next=True)
    for line in wrapped(text, FULL if is_title else COLUMN, size, bold=True):
        yield Piece(size * POINT * SPACING, [Text(0, 0, line, size, True)], True, is_title)
    yield Piece(GAP if is_title else GAP / 2, with_next=True, is_wide=is_title)


def _paragraph(text: str, indent: float, width: float = COLUMN) -> Iterator[Piece]:
    """indent: of an item of a list, which has a bullet."""
    if not text:
        return
    lines = wrapped(text, width - indent, BODY)
    for number, line in enumerate(lines):
        bullet = [Text(indent - 0.12, 0, "\N{BULLET}", BODY)] if indent and not number else []
        # No first line is left behind alone, and no last one stands alone.
        stays = len(lines) > 1 and number in (0, len(lines) - 2)
        yield Piece(BODY * POINT * SPACING, [*bullet, Text(indent, 0, line, BODY)], stays)
    yield Piece(GAP)


def _picture(path: Path, caption: str) -> Picture:
    pixels = require("matplotlib.pyplot").imread(path)
    return Picture(pixels, [Piece(GAP), *_paragraph(caption, 0, FULL), Piece(GAP)])


def _code(lines: Sequence[str]) -> Iterator[Piece]:
    """In a font of one width, as small as the longest line needs."""
    longest = max(map(len, lines), default=1)
    size = min(TABLE, COLUMN / POINT / (0.61 * longest))
    for line in lines:
        yield Piece(size * POINT * SPACING, [Text(0, 0, line, size, family=CODE)])
    yield Piece(GAP)


def _table(tokens: Sequence[Any]) -> Iterator[Piece]:
    rows: list[list[str]] = []
    for token in tokens:
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline":
            rows[-1].append(_plain(token))
    height, between = TABLE * POINT * SPACING, 0.1
    columns = list(zip(*rows, strict=True))
    wide = [max(width_of(cell, TABLE, True) for cell in column) for column in columns]
    # The widest columns give way until the table fits; one of very many columns does not.
    while sum(wide) + between * (len(wide) - 1) > COLUMN and max(wide) > NARROWEST:
        wide[wide.index(max(wide))] *= 0.95
    for number, row in enumerate(rows):
        cells = [wrapped(c, w, TABLE, not number) for c, w in zip(row, wide, strict=True)]
        texts = [
            Text(sum(wide[:column]) + between * column, k * height, line, TABLE, not number)
            for column, lines in enumerate(cells)
            for k, line in enumerate(lines)
        ]
        yield Piece(max(map(len, cells)) * height + 0.02, texts, with_next=number < len(rows) - 1)
    yield Piece(GAP)


@lru_cache(maxsize=10_000)
def width_of(text: str, size: float, bold: bool = False) -> float:
    """Of one line, in inches."""
    properties = require("matplotlib.font_manager").FontProperties(
        family=FAMILY, size=size, weight="bold" if bold else "normal"
    )
    measure = require("matplotlib.textpath").text_to_path.get_text_width_height_descent
    return float(measure(text, properties, ismath=False)[0]) * POINT


def wrapped(text: str, width: float, size: float, bold: bool = False) -> list[str]:
    """Lines that are no wider; a word that is stands alone."""
    lines, space = [""], width_of("a a", size, bold) - width_of("aa", size, bold)
    left = width
    for word in text.split():
        needed = width_of(word, size, bold)
        if lines[-1] and needed + space > left:
            lines.append("")
            left = width
        left -= needed + (space if lines[-1] else 0)
        lines[-1] += f" {word}" if lines[-1] else word
    return lines
