"""The judge of schemas, and where wrong verdicts show."""

from __future__ import annotations

import pytest

from bpe_automata.errors import ArgumentError
from experiments.judge import Verdicts

pytest.importorskip("jsonschema")


def test_the_judge_follows_the_draft_and_the_formats():
    assert not Verdicts({"format": "date"}).verdict('"2023-02-29"')
    assert Verdicts({"format": "date"}).verdict('"2024-02-29"')
    draft4 = {"$schema": "http://json-schema.org/draft-04/schema#", "type": "integer"}
    assert not Verdicts(draft4).verdict("1.0")
    assert Verdicts({"type": "integer"}).verdict("1.0")
    with pytest.raises(ArgumentError):
        Verdicts({"type": "no type"})
