"""The geometry experiment on a tiny table; that its comparison can fail."""

from __future__ import annotations

import json
from contextlib import nullcontext

import pytest
from test_growth import TABLE

from bpe_automata import Tokenizer
from bpe_automata.constructions import Geometry
from bpe_automata.errors import ArgumentError
from bpe_automata.reference import all_texts, merges_in_order
from bpe_automata.tokenizer.derivation import derive
from experiments.article import geometry
from experiments.article import mistral as article_table
from experiments.article.geometry_report import Found
from experiments.article.geometry_server import compared
from experiments.article.server import Server
from experiments.run.measuring import Run, Settings, read_run

CONFIG = geometry.Config(repeats=2, sampled=50, budget=60)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """One process for all runs: starting it is what takes long."""
    file = tmp_path_factory.mktemp("server") / "tokenizer.json"
    file.write_text(json.dumps(TABLE))
    with Server(geometry.SERVER, file) as made:
        yield made


@pytest.fixture(scope="module")
def measured(server):
    """Gives the rows of a run that had those that are known."""

    def run_of(folder, known=()) -> list[dict]:
        run = Run("geometry", 1, CONFIG, folder, Settings(results=folder))
        for row in known:
            run.add(row["key"], row)
        geometry.measure_on(run, json.dumps(TABLE))
        run.finish()
        return run.rows

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(geometry, "Server", lambda *_: nullcontext(server))
        yield run_of


@pytest.fixture(scope="module")
def whole(tmp_path_factory, measured):
    """(rows, manifest) of a run."""
    folder = tmp_path_factory.mktemp("geometry")
    measured(folder)
    return read_run(folder)


def test_both_ways_are_equal(whole):
    rows, manifest = whole
    assert manifest["complete"]
    found = Found(rows)
    same = found.reference["compared"]
    assert (same["tokens"], same["pairs"], same["differences"], same["sampled"]) == (30, 900, 0, 50)
    assert same["distinct_rows"] == found.reference["fused_states"]
    assert same["forbidden"] > 0
    assert [step["merges"] for step in found.steps] == [1, 2, 4]
    assert {step["counterexample"] is None for step in found.steps} == {True}
    assert found.ratio > 0
    assert len(found.seconds) == 4
    report = geometry.render(rows, manifest)
    assert report.wrong == []
    shown = "".join(table.markdown() for table in report.tables)
    assert "20.9" in shown
    assert "differences in all | 0" in shown


def test_only_what_is_missing_is_measured(tmp_path, measured, whole):
    rows, _ = whole
    again = measured(tmp_path, rows[:3])
    assert again[:3] == rows[:3]
    assert [row["key"] for row in again] == [row["key"] for row in rows]


def test_a_difference_is_counted_and_wrong(whole):
    tokenizer = Tokenizer.from_json(TABLE)
    texts = all_texts(tokenizer.description.base.values(), merges_in_order(tokenizer.description))
    rectangles = Geometry(derive(tokenizer.description))
    assert compared(texts, rectangles, 0, 1000)["differences"] == 0
    texts.forbidden[0].add(5)  # `f` after each token that leads to the first state
    found = compared(texts, rectangles, 0, 1000)
    assert found["by_row"] == found["by_column"] == len(texts.users[0])
    assert found["by_merge"] > 0

    rows, manifest = whole
    changed = [row | {"compared": found} if row["key"] == "reference" else row for row in rows]
    report = geometry.render(changed, manifest)
    assert report.wrong == [
        f"{found['differences']} pairs that Algorithm 3 and the rectangles differ in"
    ]
    assert report.wrong[0] in geometry.readme(report.facts)


def test_a_beginning_that_differs_is_wrong(whole):
    rows, manifest = whole
    step = rows[3]["steps"][1] | {"counterexample": [3, 4]}
    report = geometry.render([*rows[:3], rows[3] | {"steps": [step]}], manifest)
    assert report.wrong == ["the first 2 merges: DirectMerge and Algorithm 3 differ in [3, 4]"]
    assert "NO: [3, 4]" in report.tables[2].markdown()


def test_the_readme_says_what_was_measured(whole):
    rows, manifest = whole
    said = " ".join(geometry.readme(geometry.render(rows, manifest).facts).split())
    assert "| Algorithm 3, published, on another machine | 20.9 | |" in said
    assert f"| {rows[0]['rectangles']:,} rectangles |" in said
    assert "The two agree on all 900 pairs of tokens, and with DirectMerge of `.*`" in said
    assert "to the first 4 merges" in said


@pytest.mark.parametrize("count", range(4))
def test_rows_that_are_missing_are_no_error(whole, count):
    rows, manifest = whole
    report = geometry.render(rows[:count], manifest)
    assert len(report.tables) == 3
    assert report.wrong == []
    assert ("not measured" in geometry.readme(report.facts)) == (count < 2)


def test_a_part_that_fails_is_a_failure(server, whole):
    row = server.ask({"part": "rectangles", "arguments": ["many"]})
    assert row["status"] == "failed"
    assert "TypeError" in row["failure"]
    shown = geometry.render([{"key": "rectangles", "kind": "rectangles"} | row], whole[1])
    assert "rectangles: times faster" not in shown.tables[0].markdown()


def test_bpe_alone_keeps_merges_and_symbols():
    described = Tokenizer.from_json(TABLE).description
    data = article_table.bpe_alone(Tokenizer.from_json(TABLE))
    again = Tokenizer.from_json(data).description
    assert again.tokens == described.tokens
    assert (again.merges == described.merges).all()
    assert again.base == described.base


def test_a_part_of_the_table_is_its_first_merges(monkeypatch):
    monkeypatch.setattr(article_table, "mistral", lambda: Tokenizer.from_json(TABLE))
    merges = TABLE["model"]["merges"]
    assert article_table.bpe_alone_of_mistral(2)["model"]["merges"] == merges[:2]
    assert article_table.bpe_alone_of_mistral()["model"]["merges"] == merges
    assert article_table.name_of(2000).endswith("its first 2,000 merges")
    with pytest.raises(ArgumentError, match="--merges 0"):
        article_table.bpe_alone_of_mistral(0)
