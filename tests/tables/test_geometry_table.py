"""The geometry experiment on a tiny table; that its comparison can fail."""

from __future__ import annotations

import json

import pytest
from test_growth import TABLE

from bpe_automata import Tokenizer
from bpe_automata.constructions import Geometry
from bpe_automata.reference import all_texts, merges_in_order
from bpe_automata.tokenizer.derivation import derive
from experiments import article_table, geometry, geometry_report
from experiments.geometry_compare import compared
from experiments.runner import Options, read_run


@pytest.fixture(scope="module")
def options(tmp_path_factory) -> Options:
    made = Options("geometry", model="tiny", n=2, results=tmp_path_factory.mktemp("geometry"))
    geometry.measure(made, json.dumps(TABLE), budget=2)
    return made


def test_both_ways_are_equal(options, capsys):
    rows, manifest = read_run(options)
    assert manifest["complete"]
    reference = next(row for row in rows if row["kind"] == "reference")
    found = reference["compared"]
    assert (found["tokens"], found["pairs"], found["differences"]) == (30, 900, 0)
    assert found["distinct_rows"] == reference["fused_states"]
    assert found["forbidden"] > 0
    steps = next(row for row in rows if row["kind"] == "beginnings")["steps"]
    assert [step["merges"] for step in steps] == [1, 2, 4]
    assert {step["counterexample"] is None for step in steps} == {True}
    assert geometry_report.ratio(rows) > 0
    assert len(geometry_report.rectangle_seconds(rows)) == 4
    geometry.run(Options("geometry", model="tiny", render_only=True, results=options.results))
    shown = capsys.readouterr().out
    assert "20.9" in shown
    assert "differences in all" in shown


def test_a_difference_is_counted_and_is_the_exit_code(options, tmp_path):
    tokenizer = Tokenizer.from_json(TABLE)
    texts = all_texts(tokenizer.description.base.values(), merges_in_order(tokenizer.description))
    rectangles = Geometry(derive(tokenizer.description))
    assert compared(texts, rectangles, 0)["differences"] == 0
    texts.forbidden[0].add(5)  # `f` after each token that leads to the first state
    found = compared(texts, rectangles, 0)
    assert found["by_row"] == found["by_column"] == len(texts.users[0])
    assert found["by_merge"] > 0

    rows, _ = read_run(options)
    rows[1]["compared"] = found
    assert geometry_report.differences(rows) == found["differences"]
    again = Options("geometry", model="tiny", render_only=True, results=tmp_path)
    again.folder.mkdir()
    (again.folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (again.folder / "manifest.json").write_bytes((options.folder / "manifest.json").read_bytes())
    with pytest.raises(SystemExit) as ended:
        geometry.run(again)
    assert ended.value.code == 1


def test_a_failing_process_is_one_line(tmp_path):
    with pytest.raises(geometry.GeometryError, match="tokenizer"):
        geometry.child("rectangles", tmp_path / "none.json", 1)


def test_bpe_alone_keeps_merges_and_symbols():
    described = Tokenizer.from_json(TABLE).description
    data = article_table.bpe_alone(Tokenizer.from_json(TABLE))
    again = Tokenizer.from_json(data).description
    assert again.tokens == described.tokens
    assert (again.merges == described.merges).all()
    assert again.base == described.base
