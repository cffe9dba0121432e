"""Table 2: its inputs, each engine on a small tokenizer, and the report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bpe_automata.errors import MissingFileError
from bpe_automata.testing import small_tokenizer
from experiments import table2, table2_inputs, table2_reference, table2_report
from experiments.runner import read_run
from experiments.table2_inputs import Source, item_of, sources_of
from experiments.table2_methods import Table2Error, Task, along, eager, lazy, segmented
from experiments.table2_options import Table2Options
from experiments.table2_segments import Cache

SCHEMA = {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]}
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


def test_a_schema_that_is_refused_is_a_failure():
    item = item_of(Source("one", {"type": "array", "uniqueItems": True}, ()))
    assert item.dfa is None
    assert "uniqueItems" in item.failure


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


def test_sources_come_from_a_data_set_of_the_hub(monkeypatch):
    class Sets:
        @staticmethod
        def load_dataset(name, split):
            assert (name, split) == ("owner/name", "train")
            return [{"json_schema": json.dumps(SCHEMA), "unique_id": "x"}]

    monkeypatch.setattr(table2_inputs, "require", lambda *_: Sets)
    assert sources_of(Path("owner/name"), None, 0) == [Source("x", SCHEMA, ())]
    with pytest.raises(MissingFileError, match="neither a folder"):
        sources_of(Path("nowhere"), None, 0)


def test_each_engine_goes_along_the_text(task):
    rows = [eager(task), lazy(task), segmented(task, Cache())]
    assert {len(row["masks"]) for row in rows} == {len(task.ids)}
    assert rows[2]["nodes"] >= rows[0]["nodes"] > rows[0]["dead"] > 0


def test_a_second_time_what_is_known_is_not_made_again(task):
    cache = Cache()
    first, second = (segmented(task, cache) for _ in range(2))
    assert second["nodes"] == first["nodes"]
    assert first["found"] == 0 < second["found"]
    assert second["found"] + second["not_found"] < first["not_found"]


def test_an_id_that_is_masked_out_is_an_error(task, tokenizer):
    with pytest.raises(Table2Error, match="number 0"):
        along(task.engine(), tokenizer.encode("true"))


def test_the_plain_algorithms_have_the_same_first_mask(task, tokenizer):
    reference = table2_reference.prepared(tokenizer)
    row = table2_reference.measured(reference, task.dfa, '{"a":true}', 60, 4000)
    assert row["status"] == "done"
    assert row["first"] is True
    assert len(row["masks"]) == len(task.ids)
    over = table2_reference.measured(reference, task.dfa, '{"a":true}', 1e-6, 4000)
    assert over == {"status": "over time"}


def test_from_schemas_to_tables(tmp_path, tokenizer, capsys):
    rows = [{"id": "good", "schema": SCHEMA}, {"id": "bad", "schema": {"type": "nothing"}}]
    (tmp_path / "some.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = Table2Options("table2", tokenizer="tiny", schemas=tmp_path, results=tmp_path, n=2)
    warm = {"type": "boolean"}  # the tokenizer has no other characters
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table2, "_WARM", warm)
        table2.measure(options, tokenizer)
    found, manifest = read_run(options)
    assert manifest["complete"]
    assert {row["id"]: bool(row["failure"]) for row in found[1:]} == {"good": False, "bad": True}
    table2_report.render(found, manifest, options)
    shown = capsys.readouterr().out
    markdown = (options.figures / "table2.md").read_text()
    for text in (shown, markdown):
        for number in ("20.9", "0.687", "27.3", "0.00153"):
            assert number in text
    assert (options.figures / "table2.tex").read_text().count(r"\begin{tabular}") == 2


def test_the_goal_is_of_means():
    row = {"status": "done", "lift": 2.0, "relevance": 0.5, "masks": [1.0]}
    rows = [{"kind": "tokenizer"}, {"methods": {"eager": row}}, {"methods": {"eager": row}}]
    better = table2_report.times_better(rows, "eager")
    assert better == pytest.approx(27.3 / 0.687 / 0.25)
    failed = [{"kind": "tokenizer"}, {"methods": {"eager": {"status": "failed"}}}]
    assert table2_report.times_better(failed, "eager") != table2_report.times_better(
        failed, "eager"
    )


def test_a_sample_stays_beside_its_rows():
    assert Table2Options("table2").figures.name == "paper_figures"
    for other in (Table2Options("table2", n=3), Table2Options("table2", tokenizer="llama-3")):
        assert other.figures == other.folder
