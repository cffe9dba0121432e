"""The experiment on schemas: rows that are resumed, limits, and what is said of them."""

from __future__ import annotations

import json
import threading
from dataclasses import replace

import pytest
from tiny_schemas import CLOSED, REFUSED, TABLE, case, measured, write_lines, write_tokenizer

from bpe_automata.errors import MissingFileError
from experiments.run.files import ROOT
from experiments.run.measuring import read_run
from experiments.run.tables import frame
from experiments.schemas import comparison
from experiments.schemas.comparison import Config, MissingEngineError
from experiments.schemas.comparison_report import (
    cases_of,
    disagreements,
    facts,
    seconds,
    tables,
    wrong,
)
from experiments.schemas.comparison_worker import OURS
from experiments.schemas.inputs import data_folder, schema_cases, shuffled, yaml_cases
from experiments.schemas.judge import JUDGE
from experiments.schemas.reasons import ORDER, UNEXPLAINED

pytest.importorskip("jsonschema")


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory) -> str:
    return write_tokenizer(tmp_path_factory.mktemp("tokenizer"))


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Schemas as MaskBench has them; one label is wrong, one schema is refused."""
    folder = tmp_path_factory.mktemp("data")
    rows = [
        case("pair", CLOSED, [{"a": 1, "b": True}, {"b": True, "a": 2}], [{"b": True}, {"a": "x"}]),
        case("label", {"type": "integer", "minimum": 3}, [2], [1]),
        case("refused", REFUSED, [[]]),
        case("empty", {"type": "string", "enum": [1]}),
    ]
    write_lines(folder / "Tiny.jsonl", rows)
    return folder


@pytest.fixture(scope="module")
def config(tokenizer, data) -> Config:
    engines = (OURS, "nothing")
    return Config(schemas=data, tokenizers=(tokenizer,), engines=engines, case_seconds=300)


# ---------------------------------------------------------------- with real processes


@pytest.fixture(scope="module")
def finished(config, tmp_path_factory):
    """(rows, manifest) of a run of this package, and of a peer that is not there."""
    folder = tmp_path_factory.mktemp("results")
    measured(comparison, config, folder)
    return read_run(folder)


def test_every_case_is_a_row_that_is_judged_and_explained(finished, config):
    rows, manifest = frame(finished[0]), finished[1]
    assert manifest["complete"]
    ours = cases_of(rows, manifest)
    assert dict(zip(ours["id"], ours["status"], strict=True)) == {
        "pair": "compiled",
        "label": "compiled",
        "refused": "refused",
        "empty": "unsatisfiable",
    }
    ours = ours.set_index("id")
    assert ours["rejected"].to_dict() == {"pair": [1], "label": [], "refused": [], "empty": []}
    assert not ours["let_through"].map(bool).any()
    assert ours.loc["pair", "why"] == [ORDER]
    assert ours.loc["refused", "refusal"] == "uniqueItems"
    assert disagreements(rows) == [("label", 0, True, False)]
    assert ours.loc["pair", "accepted"] == [True, False, False, False]
    # Of the one valid text that is accepted: each id but the end, which is checked, not timed.
    assert seconds(ours, "masks").n == len(TABLE.encode('{"a":1,"b":true}'))
    assert ours.loc["pair", "wrong_masks"] == []
    assert [*manifest["missing"]] == [f"nothing, {config.tokenizers[0].rpartition('/')[2]}"]
    judged = {row["id"]: row.get("accepted") for row in finished[0] if row["engine"] == JUDGE}
    assert judged["label"] == [False, False]
    assert judged["pair"] == [True, True, False, False]


def test_the_numbers_of_the_readme(finished):
    rows, manifest = frame(finished[0]), finished[1]
    assert wrong(rows, manifest) == []
    (own,) = facts(rows, manifest)["engines"]
    assert (own["compiled"], own["valid"], own["valid_rejected"], own["invalid"]) == (2, 2, 1, 4)
    said = comparison.readme(facts(rows, manifest))
    assert "the 4 schemas of MaskBench with 7 instances" in " ".join(said.split())
    assert "| 4 | 50.0% | 0 of 4 | 1 of 2: order 1 |" in said


def test_what_is_wrong_is_found(finished):
    rows, manifest = json.loads(json.dumps(finished))
    own = {row["id"]: row for row in rows if row.get("engine") == OURS}
    own["pair"]["accepted"] = [True, False, True, False]
    own["pair"]["reasons"] = {"1": UNEXPLAINED}
    own["label"]["wrong_masks"] = ["3"]
    own["empty"]["status"] = "failed"
    own["empty"]["message"] = "KeyError"
    cases = cases_of(frame(rows), manifest)
    assert cases.set_index("id").loc["pair", "let_through"] == [2]
    assert len(wrong(frame(rows), manifest)) == 4


def test_regexes_are_cases_too(tmp_path, tokenizer):
    rows = [{"id": "r", "group": "g", "regex": "(true|[ab]+)", "valid": ["true", "abba", "c"]}]
    file = write_lines(tmp_path / "some.jsonl", rows)
    chosen = Config(regexes=file, tokenizers=(tokenizer,), engines=(OURS,), case_seconds=300)
    measured(comparison, chosen, tmp_path / "results")
    found, manifest = read_run(tmp_path / "results")
    assert cases_of(frame(found), manifest)["accepted"].tolist() == [[True, True, False]]
    # A valid text is rejected, and there is no reason.
    assert len(wrong(frame(found), manifest)) == 1


# ---------------------------------------------------------------- rows, without processes


class FakeServer:
    """Compiles everything and accepts what is asked first; counts what it is asked to compile.
    "nothing" is not there; a case whose schema is "stop" is interrupted once."""

    asked: list[tuple[str, object]] = []  # noqa: RUF012
    interrupts = False
    began_mb = 1.0

    def __init__(self, arguments, limits) -> None:
        self.engine = arguments[0]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def start(self) -> None:
        if self.engine == "nothing":
            raise MissingEngineError("install it")

    def ask(self, question):
        if "compile" in question:
            if FakeServer.interrupts and len(self.asked) == 11:
                raise KeyboardInterrupt
            self.asked.append((self.engine, question["compile"]["schema"].get("minimum")))
            return {"status": "compiled", "compile": 0.01, "first": 0.01}
        return {"accepted": [True] + [False] * (len(question.get("texts", "x")) - 1)}


@pytest.fixture
def faked(monkeypatch, tmp_path):
    """A config of six cases, three engines and two tokenizers, without processes."""
    monkeypatch.setattr(comparison, "Server", FakeServer)
    monkeypatch.setattr(FakeServer, "asked", [])
    rows = [case(f"c{k}", {"minimum": k}, [k], [-1]) for k in range(6)]
    file = write_lines(tmp_path / "Fake.jsonl", rows)
    return Config(schemas=file, tokenizers=("x", "y"), engines=(OURS, "xgrammar", "nothing"))


def test_a_run_goes_on_where_it_stopped(faked, tmp_path, monkeypatch):
    monkeypatch.setattr(FakeServer, "interrupts", True)
    with pytest.raises(KeyboardInterrupt):
        measured(comparison, faked, tmp_path / "results")
    _, manifest = read_run(tmp_path / "results")
    assert not manifest["complete"]
    assert manifest["rows"] == 11
    monkeypatch.setattr(FakeServer, "interrupts", False)
    measured(comparison, faked, tmp_path / "results")
    _, manifest = read_run(tmp_path / "results")
    assert manifest["complete"]
    assert manifest["rows"] == manifest["rows_expected"] == 6 + 2 * 2 * 6
    assert sorted(manifest["missing"]) == ["nothing, x", "nothing, y"]
    assert len(FakeServer.asked) == 6 + 2 * 2 * 6, "nothing is asked twice"
    measured(comparison, faked, tmp_path / "results")
    assert len(FakeServer.asked) == 6 + 2 * 2 * 6
    assert read_run(tmp_path / "results")[1]["complete"]


def test_a_peer_whose_time_is_up_leaves_the_rest_out(faked, tmp_path):
    chosen = replace(faked, peer_seconds=0.0, tokenizers=("x",))
    for _ in range(2):
        measured(comparison, chosen, tmp_path / "results")
        rows, manifest = read_run(tmp_path / "results")
        cases = cases_of(frame(rows), manifest)
        assert manifest["complete"]
        assert cases["engine"].value_counts().to_dict() == {OURS: 6, "xgrammar": 1}
    first = cases[cases["engine"] == "xgrammar"]["id"].item()
    assert first == shuffled(schema_cases(chosen.schemas, "compact"), None, 0)[0].id
    made = tables(frame(rows), manifest)
    assert "did the first: xgrammar, x 1" in "".join(made[0].notes)


def test_several_at_a_time_give_the_same_rows(faked, tmp_path):
    found, before = [], threading.active_count()
    for jobs in (1, 4):
        measured(comparison, faked, tmp_path / f"{jobs}", jobs=jobs)
        rows, manifest = read_run(tmp_path / f"{jobs}")
        assert manifest["complete"]
        found.append({row["key"]: row.get("accepted") for row in rows})
    assert found[0] == found[1]
    assert threading.active_count() <= before


def test_rows_of_another_peer_are_not_gone_on_with(faked, monkeypatch):
    before = comparison.inputs(faked)
    monkeypatch.setattr(comparison, "version", lambda name: "9.9")
    assert comparison.inputs(faked) != before


def test_data_that_is_not_there_is_named_with_its_source(tmp_path):
    with pytest.raises(MissingFileError, match=r"--schemas .*BPE_AUTOMATA_DATA.*jsonschemabench"):
        measured(comparison, Config(schemas=tmp_path / "none"), tmp_path / "results")
    with pytest.raises(MissingFileError, match=r"--yaml-schemas .*schemastore"):
        yaml_cases(tmp_path / "none")


def test_the_folder_of_the_data_is_what_the_environment_says(tmp_path):
    assert data_folder({"BPE_AUTOMATA_DATA": str(tmp_path)}) == tmp_path
    assert data_folder({}) == ROOT.parent / "shared" / "data"


def test_cases_are_shuffled_alike_for_all(data):
    cases = schema_cases(data, "compact")
    assert [case.id for case in cases] == ["pair", "label", "refused", "empty"]
    assert cases[0].texts[1] == '{"b":true,"a":2}'
    assert schema_cases(data, "spaced")[0].texts[1] == '{"b": true, "a": 2}'
    assert schema_cases(data / "Tiny.jsonl", "compact") == cases
    assert shuffled(cases, 2, 0) == shuffled(cases, None, 0)[:2]
