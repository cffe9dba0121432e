"""A drawing in words: the text of a terminal, and the HTML table where there is no Graphviz."""

from __future__ import annotations

from html import escape

from bpe_automata.viz.drawing import Drawing, Edge, Node
from bpe_automata.viz.style import INK, LIT, LIT_FILL
from bpe_automata.viz.visible import columns, printable

_WIDEST = 44  # characters: a longer label does not push the arrows of all others to the right
_TABLE = (
    f"border-collapse:collapse;background:#fff;color:{INK};font:13px/1.5 sans-serif;margin:4px 0"
)
_CELL = "padding:2px 14px 2px 6px;text-align:left;vertical-align:top;border-bottom:1px solid #ddd"
_MONO = "font-family:monospace;white-space:pre-wrap"
_BADGE = "margin-left:6px;padding:0 5px;border-radius:8px;font-size:11px;background:"
_BADGES = {"start": "#d9e8f5", "accepting": "#dcefdc"}


def to_text(drawing: Drawing) -> str:
    """A line for each node and, under it, one for each label and where it leads."""
    names, lines = _names(drawing), [_headline(drawing)]
    width = max((columns(printable(edge.label)) for edge in drawing.edges), default=0)
    for place, node in enumerate(drawing.nodes):
        marks = ("→" if node.start else " ") + ("◎" if node.accepting else " ")
        note = f"  ({printable(node.note)})" if node.note else ""
        lines.append(f"{_star(node)}{marks} {names[place]}{note}")
        for edge in drawing.leaving(place):
            label = printable(edge.label)
            space = " " * (min(width, _WIDEST) - columns(label))
            lines.append(f"{_star(edge)}     {label}{space} → {names[edge.target]}")
    return "\n".join(lines)


def to_html(drawing: Drawing) -> str:
    """A table with a row for each edge, under its state; lit ones are bold on a coloured ground."""
    names = [escape(name) for name in _names(drawing)]
    rows = "".join(_rows(drawing, place, names) for place in range(len(drawing.nodes)))
    head = "".join(f'<th style="{_CELL};border-color:{INK}">{h}</th>' for h in _HEADS)
    caption = f"<b>{escape(printable(drawing.caption))}</b> " if drawing.caption else ""
    return (
        f'<div style="overflow-x:auto"><table style="{_TABLE}">'
        f'<caption style="text-align:left;color:{INK};background:#fff">{caption}'
        f"{escape(drawing.size())}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


_HEADS = ("state", "reads", "goes to")


def _rows(drawing: Drawing, place: int, names: list[str]) -> str:
    """The rows of one state; one row also where no edge leaves it."""
    node, edges = drawing.nodes[place], drawing.leaving(place)
    badges = "".join(
        f'<span style="{_BADGE}{_BADGES[word]}">{word}</span>'
        for word, holds in (("start", node.start), ("accepting", node.accepting))
        if holds
    )
    note = f"<br><small>{escape(printable(node.note))}</small>" if node.note else ""
    span = f' rowspan="{len(edges)}"' if len(edges) > 1 else ""
    state = f'<td{span} style="{_CELL}{_lit(node)}"><b>{names[place]}</b>{badges}{note}</td>'
    if not edges:
        return f'<tr>{state}<td style="{_CELL};color:#767676" colspan="2">nothing</td></tr>'
    cells = [
        f'<td style="{_CELL};{_MONO}{_lit(edge)}">{escape(printable(edge.label))}</td>'
        f'<td style="{_CELL}{_lit(edge)}">→ {names[edge.target]}</td>'
        for edge in edges
    ]
    return f"<tr>{state}{'</tr><tr>'.join(cells)}</tr>"


def _names(drawing: Drawing) -> list[str]:
    return [printable(drawing.name(place)) for place in range(len(drawing.nodes))]


def _headline(drawing: Drawing) -> str:
    """Caption, size, and what the marks mean, as far as they occur."""
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
    """Colour, and weight for those who do not see it."""
    return f";background:{LIT_FILL};font-weight:bold;color:{LIT}" if part.lit else ""
