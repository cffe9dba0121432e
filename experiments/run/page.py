"""`index.html`: all artefacts on one page, findings first, from the JSON files beside it. Needs no
network; what it looks like is in `page.html.j2`."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from experiments.run.executors import Row
from experiments.run.files import PAPER, require, write_atomically
from experiments.run.tables import texts

NAME = "index.html"
_TEMPLATE = "page.html.j2"


def write(folder: Path, groups: Mapping[str, Collection[str]]) -> Path:
    """The page of what lies in the folder; returns its path. groups: names of artefacts by
    heading, in order."""
    path = folder / NAME
    write_atomically(path, html(read(folder, groups), groups))
    return path


def read(folder: Path, groups: Mapping[str, Collection[str]]) -> dict[str, Row]:
    """What `report.write` wrote of each artefact that is there."""
    paths = {name: folder / f"{name}.json" for names in groups.values() for name in names}
    return {
        name: json.loads(path.read_text(encoding="utf-8"))
        for name, path in paths.items()
        if path.exists()
    }


def html(found: Mapping[str, Row], groups: Mapping[str, Collection[str]]) -> str:
    """The whole page. The first group opens it, in the words that the README has for it."""
    shown = {heading: [name for name in of if name in found] for heading, of in groups.items()}
    shown = {heading: names for heading, names in shown.items() if names}
    opening = next(iter(groups), "")
    jinja = require("jinja2")
    environment = jinja.Environment(
        loader=jinja.FileSystemLoader(Path(__file__).parent), autoescape=True
    )
    environment.filters |= {
        "code": _with_code,
        "prose": _prose,
        "shown": partial(json.dumps, indent=1, ensure_ascii=False),
    }
    page: str = environment.get_template(_TEMPLATE).render(
        found=found,
        groups=shown,
        texts=texts,
        findings=[
            text
            for name in shown.get(opening, ())
            for text in _in_short(found[name].get("readme", {}))
        ],
    )
    return page + "\n"


def _in_short(said: Mapping[str, str]) -> list[str]:
    """Of the texts for the README, by place, the short ones where there are such."""
    short = [text for place, text in said.items() if " " in place]
    return short or list(said.values())


def _with_code(text: str) -> Any:
    """Text with code between backticks, as in Markdown."""
    markup = require("markupsafe")
    return markup.Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(markup.escape(text))))


def _prose(text: str) -> Any:
    """Markdown as HTML, with links as they are from the folder of the page."""
    markdown = require("markdown_it").MarkdownIt().enable("table")
    inside = markdown.render(text.replace(f"]({PAPER.name}/", "]("))
    return require("markupsafe").Markup(inside)
