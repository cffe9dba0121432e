"""A page of Markdown as a PDF, drawn by matplotlib: headings, paragraphs, lists, tables and
those pictures that are there, on A4. Equal pages make equal files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from experiments.run.files import require

WIDTH, HEIGHT = 8.27, 11.69
MARGIN = 0.85
"""Inches, as all lengths here."""
BODY, TABLE, SPACING = 9.5, 7.5, 1.35
"""Sizes of text in points, and how far lines are apart, in their height."""
HEADINGS = {"h1": 17.0, "h2": 12.5, "h3": 10.5}
FAMILY, CODE = "DejaVu Serif", "DejaVu Sans Mono"
GAP = 0.09
NARROWEST = 0.2
"""Of a column."""
POINT = 1 / 72


@dataclass
class Pages:
    """What is drawn on, from the top of each page down."""

    file: Any
    figure: Any = None
    at: float = field(default=MARGIN)

    def room(self, height: float) -> None:
        """Begin a page where that does not fit on this one."""
        if self.figure is None or self.at + height > HEIGHT - MARGIN:
            self.close()
            pyplot = require("matplotlib.pyplot")
            self.figure, self.at = pyplot.figure(figsize=(WIDTH, HEIGHT)), MARGIN

    def close(self) -> None:
        """Write the page."""
        if self.figure is not None:
            self.file.savefig(self.figure)
            require("matplotlib.pyplot").close(self.figure)
            self.figure = None

    def line(
        self, x: float, text: str, size: float, bold: bool = False, family: str = FAMILY
    ) -> None:
        """One line of text, `x` from the left margin, at the present height."""
        self.figure.text(
            (MARGIN + x) / WIDTH,
            1 - self.at / HEIGHT,
            text,
            va="top",
            parse_math=False,
            fontsize=size,
            family=family,
            fontweight="bold" if bold else "normal",
        )


def write(source: Path, target: Path) -> Path:
    """Draw a page of Markdown; pictures are looked for beside it. Returns the target."""
    require("matplotlib").use("Agg")
    pages_of = require("matplotlib.backends.backend_pdf").PdfPages
    tokens = require("markdown_it").MarkdownIt().enable("table").parse(source.read_text("utf-8"))
    with pages_of(target, metadata={"CreationDate": None}) as file:
        pages = Pages(file)
        for draw in _blocks(tokens, source.parent):
            draw(pages)
        pages.close()
    return target


def _blocks(tokens: Sequence[Any], folder: Path) -> Iterator[Callable[[Pages], None]]:
    """What draws each block; HTML, which is for markers here, is left out."""
    k, items = 0, list[int]()
    while k < len(tokens):
        token = tokens[k]
        if token.type in ("bullet_list_open", "ordered_list_open"):
            items.append(0)
        elif token.type in ("bullet_list_close", "ordered_list_close"):
            items.pop()
        elif token.type == "heading_open":
            yield _heading(_plain(tokens[k + 1]), HEADINGS.get(token.tag, BODY))
        elif token.type == "paragraph_open":
            yield from _paragraph(tokens[k + 1], folder, depth=len(items))
        elif token.type in ("fence", "code_block"):
            yield _code(token.content.splitlines())
        elif token.type == "table_open":
            end = next(j for j in range(k, len(tokens)) if tokens[j].type == "table_close")
            yield _table(tokens[k:end])
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


def _heading(text: str, size: float) -> Callable[[Pages], None]:
    def draw(pages: Pages) -> None:
        pages.room(5 * size * POINT * SPACING)
        pages.at += GAP
        for line in wrapped(text, WIDTH - 2 * MARGIN, size, bold=True):
            pages.line(0, line, size, bold=True)
            pages.at += size * POINT * SPACING
        pages.at += GAP / 2

    return draw


def _paragraph(inline: Any, folder: Path, depth: int) -> Iterator[Callable[[Pages], None]]:
    pictures = [child for child in inline.children if child.type == "image"]
    if pictures:
        paths = [folder / child.attrs["src"] for child in pictures]
        yield from (_picture(path) for path in paths if path.exists())
    text, indent = _plain(inline), 0.2 * depth
    if not text:
        return

    def draw(pages: Pages) -> None:
        lines = wrapped(text, WIDTH - 2 * MARGIN - indent, BODY)
        for number, line in enumerate(lines):
            pages.room(BODY * POINT * SPACING)
            if depth and not number:
                pages.line(indent - 0.15, "\N{BULLET}", BODY)
            pages.line(indent, line, BODY)
            pages.at += BODY * POINT * SPACING
        pages.at += GAP

    yield draw


def _picture(path: Path) -> Callable[[Pages], None]:
    def draw(pages: Pages) -> None:
        image = require("matplotlib.pyplot").imread(path)
        width = WIDTH - 2 * MARGIN
        height = width * image.shape[0] / image.shape[1]
        pages.room(height)
        box = (MARGIN / WIDTH, 1 - (pages.at + height) / HEIGHT, width / WIDTH, height / HEIGHT)
        axes = pages.figure.add_axes(box)
        axes.imshow(image, interpolation="lanczos", aspect="auto")
        axes.axis("off")
        pages.at += height + 2 * GAP

    return draw


def _code(lines: Sequence[str]) -> Callable[[Pages], None]:
    """In a font of one width, as small as the longest line needs."""

    def draw(pages: Pages) -> None:
        longest = max(map(len, lines), default=1)
        size = min(TABLE, (WIDTH - 2 * MARGIN) / POINT / (0.61 * longest))
        for line in lines:
            pages.room(size * POINT * SPACING)
            pages.line(0, line, size, family=CODE)
            pages.at += size * POINT * SPACING
        pages.at += GAP

    return draw


def _table(tokens: Sequence[Any]) -> Callable[[Pages], None]:
    rows: list[list[str]] = []
    for token in tokens:
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline":
            rows[-1].append(_plain(token))

    def draw(pages: Pages) -> None:
        size, height = TABLE, TABLE * POINT * SPACING
        columns = list(zip(*rows, strict=True))
        wide = [max(width_of(cell, size, True) for cell in column) for column in columns]
        left = WIDTH - 2 * MARGIN
        # The widest columns give way until the table fits; one of very many columns does not.
        while sum(wide) + 0.15 * len(wide) > left and max(wide) > NARROWEST:
            wide[wide.index(max(wide))] *= 0.95
        for number, row in enumerate(rows):
            cells = [wrapped(c, w, size, not number) for c, w in zip(row, wide, strict=True)]
            pages.room(max(map(len, cells)) * height)
            top, x = pages.at, 0.0
            for lines, width in zip(cells, wide, strict=True):
                for k, line in enumerate(lines):
                    pages.at = top + k * height
                    pages.line(x, line, size, bold=not number)
                x += width + 0.15
            pages.at = top + max(map(len, cells)) * height + 0.02
        pages.at += 2 * GAP

    return draw


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
