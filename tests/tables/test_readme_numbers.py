"""Numbers on the pages have an artefact, and every page is linked."""

from __future__ import annotations

import re

from experiments.lab import NAMES, PAPER, ROOT

README = ROOT / "README.md"
PAGES = (README, *sorted(PAPER.glob("*.md")))
PARTS = ("table1", "geometry", "segments", "speedup")
"""Places whose artefact has another name."""


def test_every_place_is_that_of_an_artefact():
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        places = re.findall(r"^<!-- numbers: (.*) -->$", text, re.M)
        assert len(places) == len(set(places))
        for place in places:
            assert place.split()[0] in (*NAMES, *PARTS)
            assert text.count(f"<!-- /numbers: {place} -->") == 1


def test_every_file_is_linked_from_the_readme_or_from_what_it_links():
    found, left = set(), [README]
    while left:
        page = left.pop()
        links = re.findall(r"\]\(([^)\s#]+)", page.read_text(encoding="utf-8"))
        there = {(page.parent / link).resolve() for link in links} - found
        found |= there
        left += [path for path in there if path.suffix == ".md" and path.parent == PAPER]
    assert {path for path in PAPER.iterdir() if path.is_file()} <= found
    rows = {f"{name}.jsonl.gz" for name in NAMES}
    assert {path.name for path in (PAPER / "rows").iterdir()} == rows
