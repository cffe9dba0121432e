"""The numbers of the README and the pages are those of the files in paper_figures, and the page of
everything holds those files."""

from __future__ import annotations

import json
import re

import pytest

from experiments.lab import NAMES
from experiments.run import readme
from experiments.run.artefact import ARTEFACTS
from experiments.run.files import PAPER

MADE = [name for name in ARTEFACTS if (PAPER / f"{name}.json").exists()]


PARTS = ("table1", "geometry", "segments")
"""Places whose artefact has another name."""


def made(name: str) -> dict:
    return json.loads((PAPER / f"{name}.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", MADE)
def test_the_readme_says_what_the_files_say(name):
    module = ARTEFACTS[name].load()
    if not hasattr(module, "readme"):
        pytest.skip(f"the README says nothing of {name}")
    if not made(name)["manifest"]["complete"]:
        pytest.skip(f"the README takes nothing of {name}, of which rows are missing")
    texts = {path: path.read_text(encoding="utf-8") for path in readme.pages()}
    for place, inside in readme.says(name, module, made(name)["facts"]).items():
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
            assert place.split()[0] in (*ARTEFACTS, *NAMES, *PARTS)
            assert readme.said(text, place) is not None


@pytest.mark.parametrize("name", MADE)
def test_what_the_page_shows_is_there(name):
    for figure in made(name)["figures"]:
        for kind in ("png", "pdf", "svg"):
            assert (PAPER / f"{figure['name']}.{kind}").stat().st_size
