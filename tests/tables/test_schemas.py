"""The judge of schemas: what is valid, and why another text of a valid value is rejected."""

from __future__ import annotations

from decimal import Decimal

import pytest
from tiny import CLOSED, PAIR

from bpe_automata.schemas import json_schema
from experiments.schemas.engines.interface import RefusedError
from experiments.schemas.judge import (
    BOTH,
    NUMBERS,
    ORDER,
    SURROGATES,
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


def test_the_judge_follows_the_draft_and_the_formats():
    assert not Verdicts({"format": "date"}).verdict('"2023-02-29"')
    assert Verdicts({"format": "date"}).verdict('"2024-02-29"')
    draft4 = {"$schema": "http://json-schema.org/draft-04/schema#", "type": "integer"}
    assert not Verdicts(draft4).verdict("1.0")
    assert Verdicts({"type": "integer"}).verdict("1.0")
    with pytest.raises(RefusedError):
        Verdicts({"type": "no type"})
