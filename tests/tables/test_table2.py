"""Table 2: its inputs, each engine on a small tokenizer, runs that go on, and the report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bpe_automata.errors import MissingFileError
from bpe_automata.testing import small_tokenizer
from experiments.article import table2, table2_series
from experiments.article.mistral import Reference
from experiments.article.table2_series import (
    Limits,
    Series,
    Source,
    Table2Error,
    Task,
    along,
    eager,
    item_of,
    lazy,
    sources_of,
)
from experiments.run.measuring import Run, Settings, read_run
from experiments.schemas import segments

SCHEMA = {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]}
SOURCES = [
    Source("good", SCHEMA, ()),
    Source("bad", {"type": "nothing"}, ()),
    Source("2", SCHEMA, ()),
]
WARM = {"type": "boolean"}  # the tokenizer has no other characters
CHARACTERS = [*dict.fromkeys('{"a":truefls}')]


@pytest.fixture(scope="module")
def tokenizer():
    merges = [("t", "r"), ("u", "e"), ("tr", "ue"), ('"', "a"), ('"', ":"), ("a", '":')]
    return small_tokenizer([*CHARACTERS, *("".join(m) for m in merges)], merges)


@pytest.fixture(scope="module")
def task(tokenizer):
    item = item_of(Source("one", SCHEMA, ({"a": True},)))
    return Task(tokenizer, item.dfa, tokenizer.encode(item.text))


def test_the_text_is_an_instance_that_the_automaton_accepts():
    item = item_of(Source("one", SCHEMA, ({"a": "no"}, {"a": True})))
    assert item.text == '{"a":true}'
    assert item_of(Source("one", SCHEMA, ())).text in {'{"a":true}', '{"a":false}'}


def test_sources_come_from_a_folder_in_an_order_of_their_own(tmp_path):
    rows = [
        {"id": str(i), "schema": SCHEMA, "tests": [{"valid": True, "data": {"a": True}}]}
        for i in range(9)
    ]
    (tmp_path / "some.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = sources_of(tmp_path, None, 1)
    assert sorted(source.id for source in found) == [row["id"] for row in rows]
    assert sources_of(tmp_path, 3, 1) == found[:3]
    assert found[0].instances == ({"a": True},)
    (tmp_path / "some.jsonl").write_text('{"id": 1}\n')
    with pytest.raises(MissingFileError, match="row 0 of the data has no schema"):
        sources_of(tmp_path, None, 1)


def test_of_the_data_wherever_it_lies_the_function_calls_are_taken(tmp_path, monkeypatch):
    assert table2.Config().schemas == segments.Config().schemas == table2_series.SCHEMAS
    for name in ("Glaiveai2K", "Other"):
        row = {"id": name, "schema": SCHEMA, "tests": []}
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(row))
    assert {source.id for source in sources_of(tmp_path, None, 0)} == {"Glaiveai2K", "Other"}
    monkeypatch.setattr(table2_series, "SCHEMAS", tmp_path)
    assert [source.id for source in sources_of(tmp_path, None, 0)] == ["Glaiveai2K"]


def test_sources_come_from_a_data_set_of_the_hub(monkeypatch):
    class Sets:
        @staticmethod
        def load_dataset(name, split):
            assert (name, split) == ("owner/name", "train")
            return [{"json_schema": json.dumps(SCHEMA), "unique_id": "x"}]

    monkeypatch.setattr(table2_series, "require", lambda *_: Sets)
    assert sources_of(Path("owner/name"), None, 0) == [Source("x", SCHEMA, ())]
    with pytest.raises(MissingFileError, match="give --schemas"):
        sources_of(Path("nowhere"), None, 0)


def test_each_engine_goes_along_the_text(task, tokenizer):
    rows = [eager(task), lazy(task)]
    assert {len(row["masks"]) for row in rows} == {len(task.ids)}
    assert rows[0]["nodes"] >= 10
    with pytest.raises(Table2Error, match="number 0"):
        along(task.engine(), tokenizer.encode("true"))


def test_the_plain_algorithms_have_the_same_first_mask(task, tokenizer):
    reference = Reference(tokenizer)
    row = table2_series.measured(reference, task.dfa, '{"a":true}', 60, 4000)
    assert row["status"] == "done"
    assert row["first"] is True
    assert len(row["masks"]) == len(task.ids)
    over = table2_series.measured(reference, task.dfa, '{"a":true}', 1e-6, 4000)
    assert over == {"status": "over time"}
    failing = table2_series.measured(reference, None, '{"a":true}', 60, 4000)
    assert failing["status"] == "failed"
    assert "AttributeError" in failing["failure"]


def measured(folder, tokenizer, known=()) -> Run:
    config = table2.Config(tokenizer="tiny", n=len(SOURCES))
    run = Run("table2", 1, config, folder, Settings(results=folder))
    for row in known:
        run.add(row["key"], row)
    given = run.config
    limits = Limits(None, given.reference_total, given.reference_mb)
    series = Series(tokenizer, 0, limits)
    table2.measure_on(run, series, SOURCES, WARM)
    run.finish()
    return run


@pytest.fixture(scope="module")
def whole(tmp_path_factory, tokenizer):
    """(rows, manifest) of a run."""
    folder = tmp_path_factory.mktemp("whole")
    measured(folder, tokenizer)
    return read_run(folder)


def test_a_schema_that_is_refused_is_one_failure(whole):
    rows, manifest = whole
    assert manifest["complete"]
    assert manifest["failures"] == 1
    failing = {row["id"]: bool(row["failure"]) for row in rows if row["kind"] == "schema"}
    assert failing == {"good": False, "bad": True, "2": False}


def test_the_time_of_a_run_that_goes_on_is_not_to_be_had_again(tmp_path, tokenizer, whole):
    rows, _ = whole
    again = measured(tmp_path, tokenizer, rows[:3])
    assert again.rows[:3] == rows[:3]
    series = Series(tokenizer, 40, Limits(None, 60, 4000))
    series.go_on_after([row | {"reference_wall": 30.0} for row in rows[1:3]])
    assert series.spent == 60
    assert series.reference is None


def engine_row(**numbers) -> dict:
    return {"kind": "schema", "key": "k", "failure": None, "methods": {"eager": numbers}}


def test_the_published_search_is_held_against_ours_that_finds_the_states_too(whole):
    """Means; not against the step that is given the states."""
    done = engine_row(status="done", lift=2.0, relevance=0.1, rows=0.5, masks=[1.0])
    facts = table2.render([done, done], whole[1]).facts
    assert facts["times_better"] == pytest.approx(27.3 / 0.687 / 0.25)
    assert facts["times_faster"] == pytest.approx(27.3 / 0.5)
    failed = table2.render([engine_row(status="failed", failure="why")], whole[1])
    assert failed.facts["times_better"] is None


def test_a_first_mask_that_differs_is_wrong(whole):
    row = engine_row(status="done", masks=[1.0])
    row["methods"]["reference"] = {"status": "done", "first": False, "masks": []}
    report = table2.render([row], whole[1])
    assert report.wrong == ["k: the first mask is not that of the plain algorithms"]
    row["methods"]["reference"] = {"status": "over time"}
    assert table2.render([row], whole[1]).wrong == []
