"""The experiments on schemas: reasons, limits, rows that are resumed, tables, and random walks."""

from __future__ import annotations

import json
import random
import sys
import time
from decimal import Decimal

import pytest

from bpe_automata import compile_regex, constrain
from bpe_automata.schemas import compile_json_schema
from bpe_automata.testing import small_tokenizer
from experiments import schema_walks, schemas, schemas_report, schemas_rows
from experiments.schema_walks_process import ROUNDING, checker, exactly, random_ids, walked
from experiments.schemas_engines import RefusedError
from experiments.schemas_histogram import Histogram, of_rows
from experiments.schemas_inputs import Case, schema_cases, shuffled
from experiments.schemas_options import JUDGE, OURS, SchemasOptions
from experiments.schemas_ours import Judge
from experiments.schemas_reasons import (
    BOTH,
    DEPTH,
    GAVE_UP,
    NUMBERS,
    ORDER,
    SURROGATES,
    UNEXPLAINED,
    Number,
    nesting,
    reason,
    spellings,
)
from experiments.schemas_server import Limits, MissingEngineError, WorkerServer
from experiments.schemas_store import Store, read
from experiments.schemas_worker import Worker

pytest.importorskip("jsonschema")

COMPACT = (",", ":")
ASCII = [chr(byte) for byte in range(0x20, 0x7F)]
MERGES = [("t", "r"), ("tr", "u"), ("tru", "e"), ('"', ":"), ("a", '":')]
TABLE = small_tokenizer([*ASCII, "\n", "tr", "tru", "true", '":', 'a":'], MERGES, added=["<end>"])
PAIR = {"properties": {"a": {"type": "integer"}, "b": {"type": "boolean"}}, "type": "object"}
CLOSED = {**PAIR, "additionalProperties": False, "required": ["a"]}


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory) -> str:
    """A folder that `Tokenizer.load` takes."""
    folder = tmp_path_factory.mktemp("tokenizer")
    (folder / "tokenizer.json").write_text(TABLE.to_json())
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<end>"}))
    return str(folder)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Schemas as MaskBench has them; one label is wrong, one schema is refused."""
    folder = tmp_path_factory.mktemp("data")
    rows = [
        ("pair", CLOSED, [{"a": 1, "b": True}, {"b": True, "a": 2}], [{"b": True}, {"a": "x"}]),
        ("label", {"type": "integer", "minimum": 3}, [2], [1]),
        ("refused", {"type": "array", "uniqueItems": True}, [[]], []),
        ("empty", {"type": "string", "enum": [1]}, [], []),
    ]
    lines = [
        {
            "id": name,
            "schema": schema,
            "tests": [{"valid": True, "data": x} for x in good]
            + [{"valid": False, "data": x} for x in bad],
        }
        for name, schema, good, bad in rows
    ]
    (folder / "Tiny.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


@pytest.fixture(scope="module")
def options(tmp_path_factory, tokenizer, data) -> SchemasOptions:
    made = SchemasOptions(
        "schemas",
        results=tmp_path_factory.mktemp("results"),
        schemas=data,
        chosen=(tokenizer,),
        engines=(OURS, "nothing"),
        jobs=1,
    )
    schemas.measure(made, Limits(seconds=300))
    return made


def reason_of(schema, text, **options):
    return reason(compile_json_schema(schema, **options), text, COMPACT)


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


def test_deep_values_are_explained_only_where_anything_may_stand():
    assert reason_of({}, "[[[[[[1]]]]]]", depth=2) == DEPTH
    assert reason_of(PAIR, '{"b":true,"a":1,"c":{"d":{"e":{"f":{"g":[]}}}}}', depth=2) == DEPTH
    arrays = {
        "type": "array",
        "items": {"type": "array", "items": {"type": "array", "maxItems": 0}},
    }
    assert reason_of(arrays, "[[[1]]]") is None


def test_a_search_that_is_too_long_says_so():
    names = [f"k{i}" for i in range(12)]
    schema = {"properties": {n: {"type": "integer"} for n in names}, "type": "object"}
    value = dict.fromkeys(reversed(names), 1)
    assert reason_of(schema, json.dumps(value, separators=COMPACT)) == ORDER
    # 2^12 subsets of names that may all come anywhere, before each of which nothing is known.
    loose = compile_regex(r'\{("k\d+":1,)*"z":[01]\}')
    value = dict.fromkeys([f"k{i}" for i in range(16)], 1)
    assert reason(loose, json.dumps(value, separators=COMPACT), COMPACT) in (GAVE_UP, None)


def test_spellings_are_of_the_same_number():
    for text in ("1e3", "1.50", "-0.0", "0.00", "12", "1E-3", "-2.5e0"):
        found = spellings(Number(text))
        assert {Decimal(other) for other in found} == {Decimal(text)}
        assert found[0] == text
    assert spellings(Number("1e99999")) == ["1e99999"]


def test_nesting():
    assert [nesting(v) for v in (1, "a", [], {}, [[]], {"a": [1, {}]})] == [0, 0, 1, 1, 2, 3]


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
    assert not Judge().compile({"schema": {"format": "date"}}).verdict('"2023-02-29"')
    assert Judge().compile({"schema": {"format": "date"}}).verdict('"2024-02-29"')
    draft4 = {"$schema": "http://json-schema.org/draft-04/schema#", "type": "integer"}
    assert not Judge().compile({"schema": draft4}).verdict("1.0")
    assert Judge().compile({"schema": {"type": "integer"}}).verdict("1.0")
    with pytest.raises(RefusedError):
        Judge().compile({"schema": {"type": "no type"}})


def test_cases_are_shuffled_alike_for_all(data):
    cases = schema_cases(data, "compact")
    assert [case.id for case in cases] == ["pair", "label", "refused", "empty"]
    assert cases[0].texts[1] == '{"b":true,"a":2}'
    assert schema_cases(data, "spaced")[0].texts[1] == '{"b": true, "a": 2}'
    assert shuffled(cases, 2, 0) == shuffled(cases, None, 0)[:2]


def test_every_case_is_a_row_that_is_judged_and_explained(options):
    units, manifest = schemas_rows.read_units(options)
    assert manifest["complete"]
    (ours,) = units
    assert ours.engine == OURS
    status = {row["id"]: row["status"] for row in ours.rows}
    assert status == {
        "pair": "compiled",
        "label": "compiled",
        "refused": "refused",
        "empty": "unsatisfiable",
    }
    assert ours.rejected() == [("pair", 1)]
    assert ours.let_through() == []
    assert dict(ours.reasons()) == {ORDER: 1}
    assert ours.refusals()["uniqueItems"] == 1
    assert schemas_rows.wrongs(units) == []
    assert schemas_rows.disagreements(manifest) == [("label", 0, True, False)]
    pair = next(row for row in ours.rows if row["id"] == "pair")
    assert pair["accepted"] == [True, False, False, False]
    # Of the one valid text that is accepted: each id but the end, which is checked, not timed.
    ids = TABLE.encode('{"a":1,"b":true}')
    assert ours.masks().n == len(ids) + 0
    assert pair["wrong_masks"] == []
    assert manifest["missing"].keys() == {f"nothing, {options.chosen[0]}"}


def test_a_run_goes_on_where_it_stopped(options):
    path = schemas.path_of(options, OURS, options.chosen[0])
    made_by, rows = read(path)
    before = path.read_text()
    path.write_text("".join(before.splitlines(keepends=True)[:-1]))
    schemas.measure(options, Limits(seconds=300))
    again_by, again = read(path)
    assert made_by == again_by
    assert [row["id"] for row in again] == [row["id"] for row in rows]
    assert again[:-1] == rows[:-1]  # not measured again
    Store(path, {"made": "by something else"})
    assert read(path)[1] == []
    path.write_text(before)


def test_what_is_wrong_is_found(options, capsys):
    units, manifest = schemas_rows.read_units(options)
    (ours,) = units
    wrong = json.loads(json.dumps(ours.rows))
    by_id = {row["id"]: row for row in wrong}
    by_id["pair"]["accepted"] = [True, False, True, False]
    by_id["pair"]["reasons"] = {"1": UNEXPLAINED}
    by_id["label"]["wrong_masks"] = ["3"]
    by_id["empty"]["status"] = "failed"
    by_id["empty"]["message"] = "KeyError"
    unit = schemas_rows.Unit(OURS, ours.tokenizer, wrong, ours.verdicts)
    assert unit.let_through() == [("pair", 2)]
    assert len(schemas_rows.wrongs([unit])) == 4
    assert "1 of 1" in str(schemas_report.outcomes([unit], manifest).rows) or unit.rejected()
    assert schemas_report.render(options) == []
    shown = capsys.readouterr().out
    assert "uniqueItems 1" in shown
    assert "Missing" not in shown
    assert "Missing: nothing" in (options.folder / "schemas.md").read_text()


def test_regexes_are_cases_too(tmp_path, tokenizer):
    file = tmp_path / "some.jsonl"
    rows = [{"id": "r", "group": "g", "regex": "(true|[ab]+)", "valid": ["true", "abba", "c"]}]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    made = SchemasOptions("schemas", results=tmp_path, regexes=file, chosen=(tokenizer,), jobs=1)
    made = SchemasOptions(**{**vars(made), "engines": (OURS,)})
    schemas.measure(made, Limits(seconds=300))
    ((unit,), _) = schemas_rows.read_units(made)
    assert unit.rows[0]["accepted"] == [True, True, False]
    assert schemas_rows.wrongs([unit])  # a valid text is rejected, and there is no reason


class Runaway:
    """Stands for a peer: does what the schema says."""

    size: dict[str, object] = {}  # noqa: RUF012

    def __init__(self) -> None:
        self.tokenizer = TABLE

    def compile(self, source):
        if source["schema"] == "refuse":
            raise ValueError("no\nnever")
        return self

    def session(self):
        return constrain(TABLE, "(true|a)", eos_ids=(TABLE.n_ids - 1,)).matcher()


def test_a_worker_reads_the_ids_of_a_text():
    TABLE.eos_ids = (TABLE.n_ids - 1,)
    worker = Worker(Runaway())
    assert worker.answer({"compile": {"schema": "refuse"}})["message"] == "ValueError: no"
    assert worker.answer({"compile": {"schema": ""}})["status"] == "compiled"
    row = worker.answer({"texts": ["true", "tru", "a", "b", "é"], "valid": [True] + [False] * 4})
    assert row["accepted"] == [True, False, True, False, False]
    assert sum(row["masks"]["counts"].values()) == 1  # `true` is one id


def test_a_process_that_runs_away_or_dies_is_an_answer(monkeypatch, tmp_path):
    script = tmp_path / "worker.py"
    script.write_text(
        "import json, sys, time\n"
        "print(json.dumps({'ready': True, 'peak_mb': 1}), flush=True)\n"
        "for line in sys.stdin:\n"
        "    what = json.loads(line)\n"
        "    if what == 'die': sys.exit(7)\n"
        "    if what == 'sleep': time.sleep(60)\n"
        "    if what == 'eat': x = bytearray(300_000_000); time.sleep(60)\n"
        "    print(json.dumps({'status': 'compiled', 'said': what}), flush=True)\n"
    )
    real = __import__("subprocess").Popen

    def popen(command, **options):
        return real([sys.executable, str(script)], **options)

    monkeypatch.setattr("experiments.schemas_server.subprocess.Popen", popen)
    with WorkerServer((), Limits(seconds=1, mb=200)) as server:
        assert server.ask("hello")["said"] == "hello"
        died = server.ask("die")
        assert (died["status"], died["message"]) == ("crashed", "exit code 7")
        started = time.perf_counter()
        assert server.ask("sleep")["status"] == "over time"
        assert time.perf_counter() - started < 30
        assert server.ask("eat")["status"] == "over memory"
        assert server.ask("again")["said"] == "again"
    script.write_text('print(\'{"ready": false, "message": "not here"}\')')
    with WorkerServer((), Limits()) as server, pytest.raises(MissingEngineError, match="not here"):
        server.start()


def test_walks_end_and_follow_the_masks():
    TABLE.eos_ids = (TABLE.n_ids - 1,)
    constraint = constrain(TABLE, compile_json_schema(CLOSED))
    rng = random.Random(5)
    texts = {TABLE.decode(random_ids(constraint, rng)) for _ in range(60)}
    values = [json.loads(text) for text in texts]
    assert all(isinstance(value["a"], int) for value in values)
    assert {value.get("b") for value in values} == {None, True, False}
    assert len(texts) > 20


def test_checks_of_walks():
    check = checker(schema_walks.Task("t", "json", CLOSED))
    assert check('{"a":1}') is None
    assert "cannot be read" in check('{"a":1')
    assert "not valid" in check('{"a":"x"}')
    cents = checker(schema_walks.Task("t", "json", {"type": "number", "multipleOf": 0.01}))
    assert cents("0.07") in (None, ROUNDING)
    assert cents("1.13") in (None, ROUNDING)
    assert "not valid" in cents("0.075")
    assert exactly([Decimal("1.0"), {"a": Decimal("1.5")}]) == [1, {"a": Decimal("1.5")}]
    lines = checker(schema_walks.Task("t", "yaml", CLOSED))
    assert lines("a: 1\nb: true\n") is None
    assert "not valid" in lines("a: no\n")


def test_large_automata_are_not_walked(tokenizer, monkeypatch):
    monkeypatch.setattr("experiments.schema_walks_process.MOST_STATES", 3)
    row = walked(schema_walks.Task("pair", "json", CLOSED), tokenizer, 1, 0)
    assert row["why_not"] == "its automaton has over 3 states"


def test_walks_of_schemas_are_rows(tmp_path, tokenizer, monkeypatch, capsys):
    tasks = [
        schema_walks.Task("pair", "json", CLOSED),
        schema_walks.Task("refused", "json", {"type": "array", "uniqueItems": True}),
        schema_walks.Task("lines", "yaml", CLOSED),
    ]
    made = SchemasOptions("walks", results=tmp_path, chosen=(tokenizer,), n=20, jobs=1)
    schema_walks.measure(made, tasks)
    rows, manifest = schema_walks.read_run(made)
    assert manifest["complete"]
    assert [row.get("walks") for row in rows] == [10, None, 10]
    assert "uniqueItems" in rows[1]["why_not"]
    assert schema_walks.render(rows, manifest, made) == []
    assert "in place of 1 schemas that were refused" in capsys.readouterr().out
    rows[0]["failures"] = [{"why": "not valid", "text": "x", "ids": [1]}]
    assert len(schema_walks.render(rows, manifest, made)) == 1


def test_a_walk_that_is_wrong_is_a_failure(monkeypatch, tokenizer):
    """The automaton of another schema: its texts are not valid under the one that is checked."""
    other = compile_json_schema({"type": "object", "properties": {"a": {"type": "boolean"}}})
    monkeypatch.setattr("experiments.schema_walks_process.compiled", lambda task: other)
    row = walked(schema_walks.Task("t", "json", CLOSED), tokenizer, 10, 0)
    assert row["failures"]
    assert row["failures"][0]["why"].startswith("not valid")


def test_the_judge_is_asked_once(options):
    rows = read(schemas.path_of(options, JUDGE, "-"))[1]
    assert {row["id"]: row.get("accepted") for row in rows}["label"] == [False, False]
    assert isinstance(Case("i", "g", {}, (), ()), Case)
