"""The exactness table: complete and without exceptions; an exception is shown and is an error."""

from __future__ import annotations

import json

import pytest

from experiments import exact_sequences, exactness
from experiments.runner import Options


@pytest.fixture
def options(tmp_path, monkeypatch):
    pytest.importorskip("rich")
    monkeypatch.setattr(exactness, "VARIED", {"numbers": r"-?[0-9]+(\.[0-9]+)?"})
    monkeypatch.setattr(exactness, "FINITE", {"contractions": r"it'(s|ll|re)? ?a?"})
    return Options("exactness", n=50, results=tmp_path)


def rows(options):
    lines = (options.folder / "rows.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_every_law_is_tried_without_exceptions(options, smollm2_gguf, capsys):
    exactness.run(options)
    assert [row["exceptions"] for row in rows(options)] == [0] * 5
    assert all(row["counts"]["tried"] for row in rows(options))
    assert json.loads((options.folder / "manifest.json").read_text())["complete"]
    printed = capsys.readouterr().out
    assert "EXCEPTION" not in printed
    assert "INCOMPLETE" not in printed


def test_an_exception_is_shown_in_full_and_ends_with_1(options, smollm2_gguf, monkeypatch, capsys):
    """An automaton that accepts everything."""
    monkeypatch.setattr(exact_sequences, "accepts", lambda automaton, ids: True)
    with pytest.raises(SystemExit) as caught:
        exactness.run(options)
    assert caught.value.code == 1
    found = rows(options)[1]
    assert found["counts"]["false accept"] == found["exceptions"] > 0
    case = found["first"][0]
    assert case["encode"] != case["ids"]
    assert str(case["ids"]) in capsys.readouterr().out
