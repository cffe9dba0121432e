"""`index.html`: all artefacts on one page, from the JSON files beside it. Needs no network."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path

from experiments.run.executors import Row
from experiments.run.files import write_atomically
from experiments.run.tables import texts

NAME = "index.html"

_STYLE = """
:root { color-scheme: light dark; --ink: #1c1e21; --soft: #63686e; --line: #d9dce0; --back: #fff;
  --band: #f5f6f8; --mark: #1f6feb; --warn: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8ea; --soft: #9aa0a6; --line: #3a3e44;
  --back: #16181b; --band: #1f2226; --mark: #79b0ff; --warn: #ff8a80; } }
* { box-sizing: border-box; }
body { margin: 0; font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--back);
  display: grid; grid-template-columns: 15rem minmax(0, 1fr); }
nav { position: sticky; top: 0; height: 100vh; overflow: auto; padding: 1.5rem 1rem;
  border-right: 1px solid var(--line); background: var(--band); }
nav a { display: block; padding: .15rem 0; color: inherit; text-decoration: none; }
nav a:hover, nav a:focus { color: var(--mark); }
nav small { color: var(--warn); }
main { padding: 1.5rem 2rem 6rem; max-width: 75rem; }
h1 { font-size: 1.5rem; margin: 0 0 .5rem; } h2 { margin: 3rem 0 .25rem; font-size: 1.3rem; }
h3 { margin: 1.5rem 0 .5rem; font-size: 1rem; }
section { border-top: 1px solid var(--line); }
p.command, .notes, summary, .lead { color: var(--soft); }
p.incomplete { color: var(--warn); font-weight: 600; }
figure { margin: 1rem 0; } figure img { max-width: 100%; background: #fff; border-radius: 4px; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .7rem; text-align: right; border-bottom: 1px solid var(--line);
  white-space: pre-line; vertical-align: top; }
.text { text-align: left; }
tbody tr:hover { background: var(--band); }
.notes { font-size: 13px; margin: .5rem 0; padding-left: 1.2rem; }
pre { overflow-x: auto; font-size: 12px; background: var(--band); padding: 1rem; }
@media (max-width: 50rem) { body { display: block; } main { padding: 1rem; }
  nav { height: auto; padding: .5rem 1rem; border-right: 0; border-bottom: 1px solid var(--line);
    display: flex; gap: 1rem; overflow-x: auto; white-space: nowrap; z-index: 1; }
  section { scroll-margin-top: 3rem; } figure { overflow-x: auto; }
  figure img { max-width: none; width: 45rem; } }
"""


def write(folder: Path, order: Sequence[str]) -> Path:
    """The page of what lies in the folder, in that order; returns its path."""
    found = {name: made for name in order if (made := _read(folder / f"{name}.json")) is not None}
    path = folder / NAME
    write_atomically(path, html(found))
    return path


def _read(path: Path) -> Row | None:
    try:
        made: Row = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return made


def html(found: dict[str, Row]) -> str:
    """The whole page."""
    links = "\n".join(
        f'<a href="#{name}">{escape(name)}{_mark(made["manifest"])}</a>'
        for name, made in found.items()
    )
    sections = "\n".join(_section(name, made) for name, made in found.items())
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>bpe_automata: tables and figures</title>\n<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n<nav>\n<strong>bpe_automata</strong>\n{links}\n</nav>\n<main>\n"
        "<h1>Tables and figures</h1>\n"
        '<p class="lead">Each is made by one command from rows that are kept; what it was made '
        "with stands below it.</p>\n"
        f"{sections}\n</main>\n</body>\n</html>\n"
    )


def _mark(manifest: Row) -> str:
    return "" if manifest["complete"] else " <small>incomplete</small>"


def _section(name: str, made: Row) -> str:
    parts = [f'<section id="{name}">', f"<h2>{escape(made['title'])}</h2>"]
    parts.append(f'<p class="command"><code>python -m experiments run {name}</code></p>')
    manifest = made["manifest"]
    minutes = manifest["wall_seconds"] / 60
    parts.append(f'<p class="lead">Measured in {minutes:.1f} min.</p>')
    if not manifest["complete"]:
        rows, expected = manifest["rows"], manifest["rows_expected"]
        parts.append(f'<p class="incomplete">Incomplete: {rows} of {expected} rows.</p>')
    parts += map(_figure, made["figures"])
    parts += map(_table, made["tables"])
    shown = escape(json.dumps(manifest, indent=1, ensure_ascii=False))
    parts.append(f"<details><summary>Manifest</summary><pre>{shown}</pre></details>")
    return "\n".join([*parts, "</section>"])


def _figure(figure: Row) -> str:
    name, headline = escape(figure["name"]), escape(figure["headline"], quote=True)
    formats = " ".join(f'<a href="{name}.{kind}">{kind}</a>' for kind in ("pdf", "png", "svg"))
    return (
        f'<figure><img src="{name}.svg" alt="{headline}" loading="lazy">'
        f"<figcaption>{formats}</figcaption></figure>"
    )


def _table(table: Row) -> str:
    left = texts(table["columns"], table["rows"])
    head = _cells("th", table["columns"], left)
    body = "\n".join(f"<tr>{_cells('td', row, left)}</tr>" for row in table["rows"])
    notes = "".join(f"<li>{_marked(note)}</li>" for note in table["notes"])
    return (
        f"<h3>{_marked(table['title'])}</h3>\n"
        f'<div class="wide"><table><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table>'
        f'</div>\n<ul class="notes">{notes}</ul>'
    )


def _cells(tag: str, row: Sequence[str], left: Sequence[bool]) -> str:
    kinds = [f"{tag} class=text" if is_text else tag for is_text in left]
    cells = zip(kinds, map(_marked, row), strict=True)
    return "".join(f"<{kind}>{cell}</{tag}>" for kind, cell in cells)


def _marked(text: str) -> str:
    """Text with code between backticks, as in Markdown."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(text))
