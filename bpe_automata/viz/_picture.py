"""Turns a drawing into DOT, SVG, an HTML table, text or a file, and shows it in notebooks."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from html import escape
from pathlib import Path

from bpe_automata._optional import require
from bpe_automata._sharing import cached
from bpe_automata.errors import BpeAutomataError, MissingFileError
from bpe_automata.viz._drawing import (
    INK,
    LIT,
    LIT_FILL,
    LIT_WIDTH,
    Drawing,
    Edge,
    Node,
    Shown,
    circles,
    columns,
    printable,
    wrapped,
)
from bpe_automata.viz._figures import figure

# DOT, and SVG by Graphviz's program `dot` if it is installed.

_SECONDS = 20
_INK = f'fontname=Helvetica; color="{INK}"; fontcolor="{INK}"'
_HEAD = f"""digraph {{
  rankdir=LR; bgcolor=white; nodesep=0.3; ranksep=0.35; fontname=Helvetica; fontsize=12
  node [{_INK}; fontsize=12; style=filled; fillcolor=white]
  edge [{_INK}; fontsize=11; arrowsize=0.7]"""
_ROUND = '  node [shape=circle; width=0.42; margin="0.04,0.04"]'
_BOX = '  node [shape=box; style="filled,rounded"; height=0.36; margin="0.11,0.06"]'


class GraphvizError(BpeAutomataError):
    """The program `dot` failed; the message contains its output."""


def to_dot(drawing: Drawing) -> str:
    """The drawing in the DOT language, nodes named n0, n1, ... in their order."""
    lines = [_HEAD, _ROUND if circles(drawing) else _BOX]
    if drawing.caption:
        lines.append(f"  label={quoted(drawing.caption)}; labelloc=t; labeljust=l")
    for index, node in enumerate(drawing.nodes):
        lines.append(f"  n{index} [{_dot_node(node)}]")
        if node.start:
            lines.append(f'  in{index} [shape=point; style=invis; width=0; height=0; label=""]')
            lines.append(f"  in{index} -> n{index} [{_arrow(node.lit)}minlen=1]")
    for edge in drawing.edges:
        lines.append(f"  n{edge.source} -> n{edge.target} [{_dot_edge(edge)}]")
    return "\n".join([*lines, "}", ""])


def quoted(text: str) -> str:
    """A DOT string that Graphviz shows as this text, with unprintable characters escaped.

    The lexer of DOT unescapes only quotes; labels then interpret backslashes and XML entities.
    """
    text = printable(text).replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def to_svg(dot: str) -> str | None:
    """The graph as an `<svg>` element by Graphviz; None if there is no program `dot`.

    Raises GraphvizError if the program fails or takes more than 20 seconds.
    """
    program = shutil.which("dot")
    if program is None:
        return None
    try:
        command = [program, "-Tsvg"]
        done = subprocess.run(command, input=dot.encode(), capture_output=True, timeout=_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise GraphvizError(f"{program} did not draw: {error}") from error
    found = re.search(r"<svg.*</svg>", done.stdout.decode("utf-8", "replace"), re.DOTALL)
    if done.returncode or not found:
        said = done.stderr.decode("utf-8", "replace").strip()[:300] or f"exit {done.returncode}"
        raise GraphvizError(f"{program} did not draw: {said}")
    return _for_pages(found.group())


def _for_pages(svg: str) -> str:
    """The SVG, at most as wide as the page; without ids, as a page may have several pictures, and
    without titles, as n0->n1 would pop up under the mouse."""
    svg = re.sub(r'<title>.*?</title>\n?|<!--.*?-->\n?| id="[a-z]+\d+"', "", svg)
    return svg.replace("<svg ", '<svg style="max-width:100%;height:auto" ', 1)


def _dot_node(node: Node) -> str:
    label = quoted(node.label)
    if node.note:
        label = f"{label[:-1]}\\n{quoted(node.note)[1:]}"
    lit = f'; color="{LIT}"; fillcolor="{LIT_FILL}"; penwidth={LIT_WIDTH}' if node.lit else ""
    return f"label={label}{'; peripheries=2' if node.accepting else ''}{lit}"


def _dot_edge(edge: Edge) -> str:
    label = "\\n".join(quoted(f" {line} ")[1:-1] for line in wrapped(edge.label))
    return f'{_arrow(edge.lit)}label="{label}"'


def _arrow(lit: bool) -> str:
    return f'color="{LIT}"; fontcolor="{LIT}"; penwidth={LIT_WIDTH}; ' if lit else ""


# Text for a terminal, and the HTML table that replaces the SVG if there is no Graphviz.

_WIDEST = 44  # columns of a label; a wider label does not move the arrows of all others
_TABLE = (
    f"border-collapse:collapse;background:#fff;color:{INK};font:13px/1.5 sans-serif;margin:4px 0"
)
_CELL = "padding:2px 14px 2px 6px;text-align:left;vertical-align:top;border-bottom:1px solid #ddd"
_MONO = "font-family:monospace;white-space:pre-wrap"
_BADGE = "margin-left:6px;padding:0 5px;border-radius:8px;font-size:11px;background:"
_BADGES = {"start": "#d9e8f5", "accepting": "#dcefdc"}


def to_text(drawing: Drawing) -> str:
    """A line for each node and, below it, one for each edge with its label and target."""
    names, lines = _names(drawing), [_headline(drawing)]
    width = max((columns(printable(edge.label)) for edge in drawing.edges), default=0)
    for index, node in enumerate(drawing.nodes):
        marks = ("→" if node.start else " ") + ("◎" if node.accepting else " ")
        note = f"  ({printable(node.note)})" if node.note else ""
        lines.append(f"{_star(node)}{marks} {names[index]}{note}")
        for edge in drawing.leaving(index):
            label = printable(edge.label)
            space = " " * (min(width, _WIDEST) - columns(label))
            lines.append(f"{_star(edge)}     {label}{space} → {names[edge.target]}")
    return "\n".join(lines)


def to_html(drawing: Drawing) -> str:
    """A table with a row for each edge, grouped by state; highlighted rows are coloured."""
    names = [escape(name) for name in _names(drawing)]
    rows = "".join(_table_rows(drawing, index, names) for index in range(len(drawing.nodes)))
    head = "".join(f'<th style="{_CELL};border-color:{INK}">{h}</th>' for h in _HEADS)
    caption = f"<b>{escape(printable(drawing.caption))}</b> " if drawing.caption else ""
    return (
        f'<div style="overflow-x:auto"><table style="{_TABLE}">'
        f'<caption style="text-align:left;color:{INK};background:#fff">{caption}'
        f"{escape(drawing.size())}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


_HEADS = ("state", "reads", "goes to")


def _table_rows(drawing: Drawing, index: int, names: list[str]) -> str:
    """The rows of one state, a single row if no edge leaves it."""
    node, edges = drawing.nodes[index], drawing.leaving(index)
    badges = "".join(
        f'<span style="{_BADGE}{_BADGES[word]}">{word}</span>'
        for word, holds in (("start", node.start), ("accepting", node.accepting))
        if holds
    )
    note = f"<br><small>{escape(printable(node.note))}</small>" if node.note else ""
    span = f' rowspan="{len(edges)}"' if len(edges) > 1 else ""
    state = f'<td{span} style="{_CELL}{_lit(node)}"><b>{names[index]}</b>{badges}{note}</td>'
    if not edges:
        return f'<tr>{state}<td style="{_CELL};color:#767676" colspan="2">nothing</td></tr>'
    cells = [
        f'<td style="{_CELL};{_MONO}{_lit(edge)}">{escape(printable(edge.label))}</td>'
        f'<td style="{_CELL}{_lit(edge)}">→ {names[edge.target]}</td>'
        for edge in edges
    ]
    return f"<tr>{state}{'</tr><tr>'.join(cells)}</tr>"


def _names(drawing: Drawing) -> list[str]:
    return [printable(drawing.name(index)) for index in range(len(drawing.nodes))]


def _headline(drawing: Drawing) -> str:
    """The caption, the size, and a legend of the marks that occur."""
    nodes, parts = drawing.nodes, [drawing.size()]
    lit = any(node.lit for node in nodes) or any(edge.lit for edge in drawing.edges)
    used = (any(n.start for n in nodes), any(n.accepting for n in nodes), lit)
    marks = zip(("→ start", "◎ accepting", "* on the path"), used, strict=True)
    parts += [mark for mark, occurs in marks if occurs]
    inside = ", ".join(parts)
    return f"{printable(drawing.caption)}  ({inside})" if drawing.caption else f"({inside})"


def _star(part: Node | Edge) -> str:
    return "*" if part.lit else " "


def _lit(part: Node | Edge) -> str:
    """The CSS of a highlighted part: colour, and weight for readers who do not see it."""
    return f";background:{LIT_FILL};font-weight:bold;color:{LIT}" if part.lit else ""


# Files: HTML pages, and figures by matplotlib.


class UnknownFormatError(BpeAutomataError):
    """A picture cannot be saved under this suffix; the message lists the suffixes that work."""


SUFFIXES = (".dot", ".txt", ".html", ".svg", ".png", ".pdf")


def check_target(path: str | Path, others: tuple[str, ...] = ()) -> Path:
    """The path, if a picture can be saved there. others: suffixes that the caller writes itself.

    Raises UnknownFormatError for other suffixes, MissingFileError if the folder is missing or the
    path is a folder.
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
    """A fallback, with the reason for it."""
    return f'<p style="margin:4px 0;font-size:12px">{escape(remark)}</p>{html}'


def save_figure(drawing: Drawing, path: Path) -> None:
    """Draw by matplotlib, in the format of the suffix. The same drawing gives the same file, as it
    has no date and no random ids. Raises MissingDependencyError."""
    dated = {".svg": "Date", ".pdf": "CreationDate"}.get(path.suffix)
    with require("matplotlib").rc_context({"svg.hashsalt": "drawing"}):
        figure(drawing).savefig(path, dpi=150, metadata={dated: None} if dated else None)


@dataclass(frozen=True, repr=False)
class Picture(Shown):
    """A drawing in every form, each made when it is first needed."""

    drawing: Drawing

    def dot(self) -> str:
        """The graph in the DOT language."""
        return to_dot(self.drawing)

    def svg(self) -> str | None:
        """An `<svg>` element, None if Graphviz is not installed. Raises GraphvizError."""
        return self._svg

    def text(self) -> str:
        """For a terminal: each state and, below it, its labels with their targets."""
        return to_text(self.drawing)

    def html(self) -> str:
        """A table, which needs no Graphviz."""
        return to_html(self.drawing)

    def best(self) -> tuple[str, str]:
        """The mime type and the text of the SVG or, if there is none, the HTML. Never raises."""
        try:
            svg = self.svg()
        except GraphvizError as error:
            return "text/html", with_remark(self.html(), str(error))
        return ("text/html", self.html()) if svg is None else ("image/svg+xml", svg)

    def save(self, path: str | Path) -> Path:
        """Write .dot, .txt, .html, .svg, .png or .pdf, by the suffix; returns the path.

        .png and .pdf are drawn by matplotlib, .svg by Graphviz or, without it, by matplotlib.
        Raises what `check_target` raises (before anything is drawn), GraphvizError,
        MissingDependencyError.
        """
        path = check_target(path)
        text = self._file(path.suffix)
        if text is None:
            save_figure(self.drawing, path)
        else:
            path.write_text(text, encoding="utf-8")
        return path

    def _file(self, suffix: str) -> str | None:
        """The content of a text file; None if matplotlib draws the file."""
        if suffix == ".html":
            return page(self.drawing.caption or "automaton", self.best()[1])
        makers = {".dot": self.dot, ".txt": lambda: f"{self.text()}\n", ".svg": self.svg}
        return makers[suffix]() if suffix in makers else None

    @cached
    def _svg(self) -> str | None:
        return to_svg(self.dot())
