"""What the comparison on schemas is made of: reasons, histograms, the judge, the worker."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from tiny_schemas import CLOSED, PAIR, TABLE

from bpe_automata import compile_regex, constrain
from bpe_automata.schemas import compile_json_schema
from experiments.engines.interface import Engine, RefusedError
from experiments.schemas.comparison_worker import Worker
from experiments.schemas.histogram import Histogram, of_rows
from experiments.schemas.judge import Judge
from experiments.schemas.reasons import (
    BOTH,
    DEPTH,
    GAVE_UP,
    NUMBERS,
    ORDER,
    SURROGATES,
    Number,
    nesting,
    reason,
    spellings,
)

pytest.importorskip("jsonschema")

COMPACT = (",", ":")


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
