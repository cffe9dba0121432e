"""The numbers of the README and the pages, and all tables beside them, come from the rows."""

from __future__ import annotations

import re

import pytest

from experiments import lab
from experiments.run import readme, report
from experiments.run.artefact import ARTEFACTS, ROWS
from experiments.run.files import PAPER

PUBLISHED = {name: PAPER / ROWS / f"{name}.jsonl.gz" for name in ARTEFACTS}
MADE = [name for name, path in PUBLISHED.items() if path.exists()]
EVERY = [*MADE, *lab.NAMES]
PARTS = ("table1", "geometry", "segments", "speedup")
"""Places whose artefact has another name."""


@pytest.mark.parametrize("name", MADE)
def test_pages_say_what_the_rows_say(name):
    artefact, (rows, manifest) = ARTEFACTS[name], report.read_published(PUBLISHED[name])
    made = report.labelled(artefact.report(rows, manifest), rows, manifest)
    assert (PAPER / f"{name}.md").read_text(encoding="utf-8") == report.page(made)
    assert all((PAPER / f"{figure.name}.png").exists() for figure in made.figures)
    if not made.complete:
        return  # the README takes nothing of it
    texts = {path: path.read_text(encoding="utf-8") for path in readme.pages()}
    for place, inside in readme.says(name, artefact.load(), made.facts).items():
        assert place.split()[0] == name
        assert any(readme.said(text, place) is not None for text in texts.values()), place
        for path, text in texts.items():
            assert readme.with_said(text, place, readme.seen_from(path, inside)) == text


def test_every_place_is_that_of_an_artefact():
    found = {path: path.read_text(encoding="utf-8") for path in readme.pages()}
    assert readme.README in found
    for text in found.values():
        places = re.findall(r"^<!-- numbers: (.*) -->$", text, re.M)
        assert len(places) == len(set(places))
        for place in places:
            assert place.split()[0] in (*EVERY, *PARTS)
            assert readme.said(text, place) is not None


def test_every_file_is_linked_from_the_readme_or_from_what_it_links():
    found, left = set(), [readme.README]
    while left:
        page = left.pop()
        links = re.findall(r"\]\(([^)\s#]+)", page.read_text(encoding="utf-8"))
        there = {(page.parent / link).resolve() for link in links} - found
        found |= there
        left += [path for path in there if path.suffix == ".md" and path.parent == PAPER]
    assert {path for path in PAPER.iterdir() if path.is_file()} <= found
    rows = {f"{name}.jsonl.gz" for name in EVERY}
    assert {path.name for path in (PAPER / ROWS).iterdir()} == rows
