"""Drawing -> DOT, and DOT -> SVG by Graphviz's program `dot`, where it is installed."""

from __future__ import annotations

import re
import shutil
import subprocess

from bpe_automata.errors import BpeAutomataError
from bpe_automata.viz.drawing import INK, LIT, LIT_FILL, LIT_WIDTH, Drawing, Edge, Node, circles
from bpe_automata.viz.visible import printable, wrapped

_SECONDS = 20
_INK = f'fontname=Helvetica; color="{INK}"; fontcolor="{INK}"'
_HEAD = f"""digraph {{
  rankdir=LR; bgcolor=white; nodesep=0.3; ranksep=0.35; fontname=Helvetica; fontsize=12
  node [{_INK}; fontsize=12; style=filled; fillcolor=white]
  edge [{_INK}; fontsize=11; arrowsize=0.7]"""
_ROUND = '  node [shape=circle; width=0.42; margin="0.04,0.04"]'
_BOX = '  node [shape=box; style="filled,rounded"; height=0.36; margin="0.11,0.06"]'


class GraphvizError(BpeAutomataError):
    """`dot` is there but drew nothing; the message holds what it said."""


def to_dot(drawing: Drawing) -> str:
    """The drawing in the DOT language, nodes named n0, n1, ... in their order."""
    lines = [_HEAD, _ROUND if circles(drawing) else _BOX]
    if drawing.caption:
        lines.append(f"  label={quoted(drawing.caption)}; labelloc=t; labeljust=l")
    for place, node in enumerate(drawing.nodes):
        lines.append(f"  n{place} [{_node(node)}]")
        if node.start:
            lines.append(f'  in{place} [shape=point; style=invis; width=0; height=0; label=""]')
            lines.append(f"  in{place} -> n{place} [{_arrow(node.lit)}minlen=1]")
    for edge in drawing.edges:
        lines.append(f"  n{edge.source} -> n{edge.target} [{_edge(edge)}]")
    return "\n".join([*lines, "}", ""])


def quoted(text: str) -> str:
    """A DOT string that Graphviz shows as exactly this text, unprintable characters escaped.

    The lexer unescapes quotes only; labels then read backslashes and XML's entities.
    """
    text = printable(text).replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def to_svg(dot: str) -> str | None:
    """The graph as an `<svg>` element by Graphviz; None where there is no program `dot`.

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
    """At most as wide as the page; no ids, as a page may hold several pictures; no titles, as
    n0->n1 would pop up under the mouse."""
    svg = re.sub(r'<title>.*?</title>\n?|<!--.*?-->\n?| id="[a-z]+\d+"', "", svg)
    return svg.replace("<svg ", '<svg style="max-width:100%;height:auto" ', 1)


def _node(node: Node) -> str:
    label = quoted(node.label)
    if node.note:
        label = f"{label[:-1]}\\n{quoted(node.note)[1:]}"
    lit = f'; color="{LIT}"; fillcolor="{LIT_FILL}"; penwidth={LIT_WIDTH}' if node.lit else ""
    return f"label={label}{'; peripheries=2' if node.accepting else ''}{lit}"


def _edge(edge: Edge) -> str:
    label = "\\n".join(quoted(f" {line} ")[1:-1] for line in wrapped(edge.label))
    return f'{_arrow(edge.lit)}label="{label}"'


def _arrow(lit: bool) -> str:
    return f'color="{LIT}"; fontcolor="{LIT}"; penwidth={LIT_WIDTH}; ' if lit else ""
