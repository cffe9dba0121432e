"""The comparison on schemas: reasons, the judge and the worker; rows that are judged."""

from __future__ import annotations

import json
from contextlib import nullcontext
from decimal import Decimal

import pytest
from tiny import CLOSED, PAIR, REFUSED, TABLE, case, measured, write_lines, write_tokenizer

from bpe_automata import constrain
from bpe_automata.errors import BudgetExceededError, MissingFileError
from bpe_automata.schemas import json_schema
from experiments.engines.interface import Engine, RefusedError
from experiments.engines.named import Ours
from experiments.run.measuring import read_run
from experiments.run.tables import frame
from experiments.schemas import comparison
from experiments.schemas.comparison import Config
from experiments.schemas.comparison_report import (
    cases_of,
    compared,
    disagreements,
    facts,
    faster,
    headline,
    same_cases,
    seconds,
    wrong,
)
from experiments.schemas.comparison_worker import OURS, STATES, Histogram, Worker, of_rows
from experiments.schemas.inputs import schema_cases, shuffled, yaml_cases
from experiments.schemas.judge import (
    BOTH,
    JUDGE,
    NUMBERS,
    ORDER,
    SURROGATES,
    UNEXPLAINED,
    Number,
    Verdicts,
    reason,
    spellings,
)

pytest.importorskip("jsonschema")


COMPACT = (",", ":")


def reason_of(schema, text):
    return reason(json_schema(schema, order="schema"), text, COMPACT)


def test_a_reason_is_another_text_of_the_same_value():
    assert reason_of(PAIR, '{"b":true,"a":1}') == ORDER
    assert reason_of(PAIR, '{"x":[{}],"b":true,"a":1}') == ORDER
    assert reason_of({"type": "integer"}, "1e2") == NUMBERS
    assert reason_of(PAIR, '{"b":true,"a":3.0}') == BOTH
    assert reason_of({"items": PAIR}, '[{"a":1},{"b":true,"a":1}]') == ORDER
    assert reason_of(PAIR, '{"b":true,"a":"\ud800"}') == SURROGATES


def test_there_is_no_reason_for_what_is_not_valid():
    for text in ('{"b":1,"a":1}', '{"b":true,"a":1.5}', '{"b":true}'):
        assert reason_of(CLOSED, text) is None


def test_spellings_are_of_the_same_number():
    for text in ("1e3", "1.50", "-0.0", "0.00", "12", "1E-3", "-2.5e0"):
        found = spellings(Number(text))
        assert {Decimal(other) for other in found} == {Decimal(text)}
        assert found[0] == text
    assert spellings(Number("1e99999")) == ["1e99999"]


def test_a_histogram_keeps_quantiles_to_a_bucket():
    seconds = [k * 1e-6 for k in range(1, 1001)]
    one, other = Histogram(), Histogram()
    for k, value in enumerate(seconds):
        (one if k % 2 else other).add(value)
    both = of_rows(json.loads(json.dumps([one.row(), other.row()])))
    assert both.n == 1000
    assert both.largest == seconds[-1] == both.quantile(1)
    for q in (0, 0.5, 0.9, 0.99):
        exact = seconds[int(q * 1000)]
        assert exact <= both.quantile(q) <= 1.012 * exact


def test_the_judge_follows_the_draft_and_the_formats():
    assert not Verdicts({"format": "date"}).verdict('"2023-02-29"')
    assert Verdicts({"format": "date"}).verdict('"2024-02-29"')
    draft4 = {"$schema": "http://json-schema.org/draft-04/schema#", "type": "integer"}
    assert not Verdicts(draft4).verdict("1.0")
    assert Verdicts({"type": "integer"}).verdict("1.0")
    with pytest.raises(RefusedError):
        Verdicts({"type": "no type"})


class Strange(Engine):
    """Stands for a peer: refuses the schema "refuse"."""

    def prepare(self, regex):
        return constrain(TABLE, "(true|a)", eos_ids=(TABLE.n_ids - 1,)).matcher

    def prepare_schema(self, schema, whitespace):
        if json.loads(schema) == "refuse":
            raise ValueError("no\nnever")
        return self.prepare("")


def test_a_worker_reads_the_ids_of_a_text():
    TABLE.eos_ids = (TABLE.n_ids - 1,)
    worker = Worker(Strange(), TABLE, "compact")
    refused = worker.answer({"compile": {"schema": "refuse"}})
    assert (refused["status"], refused["message"]) == ("refused", "ValueError: no")
    assert worker.answer({"compile": {"schema": ""}})["status"] == "compiled"
    row = worker.answer({"texts": ["true", "tru", "a", "b", "é"], "valid": [True] + [False] * 4})
    assert row["accepted"] == [True, False, True, False, False]
    assert sum(row["masks"]["counts"].values()) == 1  # `true` is one id


# ---------------------------------------------------------------- runs


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
    (own,) = facts(rows, manifest)["engines"]
    assert (own["compiled"], own["valid"], own["valid_rejected"], own["invalid"]) == (2, 2, 0, 4)
    ours = ours.set_index("id").loc[["pair", "label", "refused", "empty"]]
    assert ours["status"].tolist() == ["compiled", "compiled", "refused", "unsatisfiable"]
    assert ours["rejected"].map(len).sum() == 0  # the second text has its members in another order
    assert not ours["let_through"].map(bool).any()
    assert ours.loc["refused", "refusal"] == "uniqueItems"
    assert disagreements(rows) == [("label", 0, True, False)]
    assert ours.loc["pair", "accepted"] == [True, True, False, False]
    # Of the valid texts that are accepted: each id but the end, which is checked, not timed.
    texts = ('{"a":1,"b":true}', '{"b":true,"a":2}')
    assert seconds(ours, "masks").n == sum(len(TABLE.encode(text)) for text in texts)
    assert ours.loc["pair", "wrong_masks"] == []
    assert [*manifest["missing"]] == [f"nothing, {config.tokenizers[0].rpartition('/')[2]}"]
    judged = {row["id"]: row.get("accepted") for row in finished[0] if row["engine"] == JUDGE}
    assert judged["label"] == [False, False]
    assert judged["pair"] == [True, True, False, False]


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


class FakeServer(nullcontext):
    """Compiles everything and accepts what is asked first."""

    began_mb = 1.0

    def __init__(self, *_):
        super().__init__(self)

    def start(self):
        return {}

    def ask(self, question):
        if "compile" in question:
            return {"status": "compiled", "compile": 0.01, "first": 0.01}
        return {"accepted": [True] + [False] * (len(question.get("texts", "x")) - 1)}


def test_a_peer_whose_time_is_up_leaves_the_rest_out(monkeypatch, tmp_path):
    monkeypatch.setattr(comparison, "Server", FakeServer)
    rows = [case(f"c{k}", {"minimum": k}, [k], [-1]) for k in range(6)]
    file = write_lines(tmp_path / "Fake.jsonl", rows)
    engines = (OURS, "xgrammar")
    chosen = Config(schemas=file, tokenizers=("x",), engines=engines, peer_seconds=0.0)
    for _ in range(2):
        measured(comparison, chosen, tmp_path / "results")
        rows, manifest = read_run(tmp_path / "results")
        cases = cases_of(frame(rows), manifest)
        assert manifest["complete"]
        assert cases["engine"].value_counts().to_dict() == {OURS: 6, "xgrammar": 1}
    first = cases[cases["engine"] == "xgrammar"]["id"].item()
    assert first == shuffled(schema_cases(file, "compact"), None, 0)[0].id


def timed_row(engine, name, mask_seconds, compiling=0.01, status="compiled"):
    masks = Histogram()
    for value in mask_seconds:
        masks.add(value)
    shared = {"engine": engine, "tokenizer": "x", "id": name, "status": status, "message": ""}
    return shared | {"compile": compiling, "first": 0.0, "masks": masks.row()}


@pytest.mark.parametrize(("theirs", "faster_masks"), [(1e-6, ["quick"]), (1e-3, [])])
def test_engines_are_compared_on_the_cases_that_all_finished(theirs, faster_masks):
    """Of three cases a peer refuses one and has no masks of one; another came to the first only."""
    rows = [
        *(timed_row(OURS, name, [1e-5]) for name in "abc"),
        timed_row("quick", "a", [theirs], compiling=0.02),
        timed_row("quick", "b", [theirs], status="refused"),
        timed_row("quick", "c", []),
        timed_row("late", "a", [1e-5]),
    ]
    engines = [OURS, "quick", "late"]
    cases = cases_of(frame(rows), {"config": {"engines": engines, "tokenizers": ["x"]}})
    assert compared(cases) == [(OURS, "quick", "late"), (OURS, "quick")]
    lines = [line[:3] for line in same_cases(cases).rows]
    assert lines == [
        *([f"{engine}, x", "3", "1"] for engine in engines),
        *([f"{engine}, x", "2", "1"] for engine in engines[:2]),
    ]
    assert faster(cases, "masks") == faster_masks
    assert faster(cases, "to_first") == []
    said = f"{faster_masks[0] if faster_masks else 'no other engine'} masked faster; none compiled"
    assert said in headline(cases)


def test_data_that_is_not_there_is_named_with_its_source(tmp_path):
    with pytest.raises(MissingFileError, match=r"--schemas .*BPE_AUTOMATA_DATA.*jsonschemabench"):
        measured(comparison, Config(schemas=tmp_path / "none"), tmp_path / "results")
    with pytest.raises(MissingFileError, match=r"--yaml-schemas .*schemastore"):
        yaml_cases(tmp_path / "none")


def test_a_text_for_which_there_is_no_room_is_rejected_for_that(monkeypatch):
    """Its masks need more states than it does."""
    worker = Worker(Ours(TABLE, order="any"), TABLE, "compact")
    assert worker.answer({"compile": {"schema": CLOSED}})["status"] == "compiled"
    text = '{"a":1,"b":true}'

    def full(_self, _text, _masks):
        raise BudgetExceededError("states", 1, "full")

    monkeypatch.setattr(Worker, "_follows", full)
    row = worker.answer({"texts": [text], "valid": [True]})
    assert (row["accepted"], row["wrong_masks"]) == ([False], [])
    assert worker.answer({"explain": [text]})["reasons"] == [STATES]
