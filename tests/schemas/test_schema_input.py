"""Bad schemas: a typed error with the JSON pointer of the fault, within the budget."""

from __future__ import annotations

import json
import pickle
import random
import re
import sys
from collections.abc import Callable
from typing import Annotated, Any

import pytest

from bpe_automata._budget import Budget
from bpe_automata.errors import (
    ArgumentError,
    InvalidSchemaError,
    SchemaError,
    SchemaTooLargeError,
    UnsatisfiableSchemaError,
    UnsupportedSchemaError,
)
from bpe_automata.schemas import json_schema
from bpe_automata.schemas._sources import MAX_NESTING


def cycle() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    return found


def fault(schema: Any, kind: type[SchemaError], **options: Any) -> Any:
    with pytest.raises(kind) as caught:
        json_schema(schema, **options)
    pointer = caught.value.pointer
    assert pointer in str(caught.value) or len(pointer) > 300  # the middle of a long one is cut
    return caught.value


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ("{", "#"),
        ("[]", "#"),
        ({"type": "text"}, "#/type"),
        ({"properties": {"a": {"minimum": "3"}}}, "#/properties/a/minimum"),
        ({"properties": {"a": 3}}, "#/properties"),
        ({"items": {"maxItems": -1}}, "#/items/maxItems"),
        ({"multipleOf": 0}, "#/multipleOf"),
        ({"maximum": float("nan")}, "#"),
        ({"anyOf": []}, "#/anyOf"),
        ({"required": "a"}, "#/required"),
        ({"properties": {"a/b": {"pattern": "("}}}, "#/properties/a~1b/pattern"),
        ({"patternProperties": {"[": {}}}, "#/patternProperties/["),
        ({"$ref": "#/$defs/b"}, "#/$ref"),
        ({"$ref": "#b"}, "#/$ref"),
        ({"$ref": "#/enum/0", "enum": [3]}, "#/$ref"),
        ({"$ref": "#"}, "#"),
        ({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
         "#/$defs/a"),
        ({"$defs": {"a": {"anyOf": [{"type": "null"}, {"not": {"$ref": "#/$defs/a"}}]}},
          "items": {"$ref": "#/$defs/a"}}, "#/$defs/a"),
        ({"const": ["\ud800"]}, "#"),
        ({"dependentRequired": {"\ud800": ["a"]}}, "#"),
        ({"$schema": 3}, "#/$schema"),
        ({"prefixItems": [{}], "items": [{}]}, "#/items"),
        ({"const": [1, {"a": {2}}]}, "#"),
        ({"const": 10**30_000}, "#"),
        ('{"minimum": 1e99999999}', "#"),
        ('{"const": NaN}', "#"),
    ],
)  # fmt: skip
def test_what_is_no_schema_is_told_with_its_place(schema: Any, pointer: str) -> None:
    assert fault(schema, InvalidSchemaError).pointer == pointer


@pytest.mark.parametrize("source", [None, 3, ["type"], b"\xff"])
def test_what_stands_for_no_schema_is_told(source: Any) -> None:
    with pytest.raises(ArgumentError):
        json_schema(source)


@pytest.mark.parametrize(
    ("schema", "keyword", "pointer"),
    [
        ({"pattern": "a(?=b)"}, "pattern", "#/pattern"),
        ({"format": "idn-hostname"}, "format", "#/format"),
        ({"not": {"items": {"not": {"uniqueItems": True}}}}, "not", "#/not/items/not"),
        ({"minProperties": 2}, "minProperties", "#/minProperties"),
        ({"minProperties": 2**31}, "minProperties", "#/minProperties"),
        ({"not": {"additionalProperties": {"type": "integer"}}}, "not", "#/not"),
        ({"$ref": "https://example.org/other.json"}, "$ref", "#/$ref"),
        ({"$schema": "http://json-schema.org/draft-03/schema#"}, "$schema", "#/$schema"),
        ({"type": ["object", "string"], "propertyNames": {"$ref": "#"}}, "propertyNames",
         "#/propertyNames"),
        ({"not": {"maxProperties": 1}}, "maxProperties", "#/not/maxProperties"),
    ],
)  # fmt: skip
def test_what_no_automaton_tells_apart_is_refused(schema: Any, keyword: str, pointer: str) -> None:
    error = fault(schema, UnsupportedSchemaError)
    assert (error.keyword, error.pointer) == (keyword, pointer)


@pytest.mark.parametrize(
    "schema",
    [
        False,
        {"type": "integer", "minimum": 3, "maximum": 2},
        {"type": "object", "properties": {"a": {"allOf": [{}, {"enum": []}]}}, "required": ["a"]},
        {"type": "array", "minItems": 1, "items": {"type": "string", "const": 3}},
        {"$ref": "#/$defs/a", "$defs": {"a": {"not": {}}}},
        {"$defs": {"a": {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}},
                         "required": ["a"]}}, "$ref": "#/$defs/a"},
    ],
)  # fmt: skip
def test_a_schema_without_values_is_told(schema: Any) -> None:
    assert fault(schema, UnsatisfiableSchemaError).pointer == "#"


def test_a_name_that_looks_like_a_keyword_is_told_with_its_place() -> None:
    inside = {"propertys": {"a": {}}, "properties": {"propertys": {}}, "default": {"requird": 1}}
    with pytest.warns(UserWarning, match=r"propertys .* at #/items: is properties meant") as told:
        json_schema({"items": inside, "_format": 1, "readonly": True})
    assert [one.filename for one in told] == [__file__]


def test_a_schema_of_5_mb_is_refused_or_read_within_the_budget() -> None:
    wide = {"properties": {f"property{i}": {"type": "string"} for i in range(130_000)}}
    assert len(json.dumps(wide)) > 4_500_000
    assert fault(wide, SchemaTooLargeError).resource == "schemas"
    unused = {"description": "x" * 5_000_000, "type": "null"}
    assert json_schema(json.dumps(unused)).accepts(b"null")


def nested(count: int, around: Callable[[Any], Any], schema: Any) -> Any:
    for _ in range(count):
        schema = around(schema)
    return schema


@pytest.mark.parametrize(
    ("around", "begin", "end"),
    [
        (lambda schema: {"type": "array", "items": schema}, "[", "]"),
        (lambda schema: {"type": "object", "properties": {"a": schema}}, '{"a":', "}"),
    ],
)
def test_schemas_inside_one_another_are_read_and_written(around: Any, begin: str, end: str) -> None:
    levels = MAX_NESTING - 1
    dfa = json_schema(nested(levels, around, {"const": 1}), closed=True)
    for text, is_valid in (("1", True), ("2", False)):
        assert dfa.accepts((begin * levels + text + end * levels).encode()) == is_valid


@pytest.mark.parametrize(
    "schema",
    [
        {"enum": [nested(30_000, lambda v: {"a": v}, 1)]},
        {"default": nested(30_000, lambda v: [v], 1)},
        {"const": cycle()},
        nested(3_000, lambda v: {"allOf": [v]}, {"type": "null"}),
        '{"const":' + "[" * 30_000 + "1" + "]" * 30_000 + "}",
    ],
    ids=["enum", "note", "cycle", "allOf", "text"],
)
def test_what_is_nested_deeply_is_refused_under_any_recursion_limit(schema: Any) -> None:
    before = sys.getrecursionlimit()
    try:
        for limit in (before, 10**6):
            sys.setrecursionlimit(limit)
            assert fault(schema, SchemaTooLargeError).resource == "levels"
    finally:
        sys.setrecursionlimit(before)


@pytest.mark.parametrize(
    "schema",
    [
        {"enum": [{"a": i, "b": [i]} for i in range(20_000)]},
        {"enum": [i * 1.7 for i in range(500_000)]},
        {"enum": [f"s{i * 7919}" for i in range(500_000)]},
    ],
    ids=["objects", "numbers", "strings"],
)
@pytest.mark.parametrize("seconds", [0.02, 0.3])
def test_the_seconds_of_a_budget_end_a_call(schema: Any, seconds: float) -> None:
    with pytest.raises(SchemaTooLargeError) as caught:
        json_schema(schema, budget=Budget(max_seconds=seconds))
    assert caught.value.resource == "seconds"


def test_alternatives_that_multiply_are_refused() -> None:
    either = [{"anyOf": [{"required": [f"{i}{k}"]} for k in "abcd"]} for i in range(12)]
    assert fault({"allOf": either}, SchemaTooLargeError).resource == "terms"


@pytest.mark.parametrize(
    ("schema", "resource", "pointer"),
    [
        ({"minItems": 10**8}, "items or members", "#/minItems"),
        ({"items": {"minLength": 2**31}}, "bytes", "#/items/minLength"),
        ({"items": {"pattern": "(a|b){99999999}"}}, "instructions", "#/items/pattern"),
        (
            {"patternProperties": {"x{99999999}": {}}},
            "instructions",
            "#/patternProperties/x{99999999}",
        ),
        ({"items": {"multipleOf": 0.123456789}}, "states", "#/items/multipleOf"),
    ],
)  # fmt: skip
def test_what_would_be_endless_to_write_is_refused(
    schema: Any, resource: str, pointer: str
) -> None:
    error = fault(schema, SchemaTooLargeError)
    assert (error.resource, error.pointer) == (resource, pointer)


def test_bounds_above_may_be_of_any_size() -> None:
    found = json_schema({"maxItems": 2**31 - 1, "maxProperties": 2**40, "maxContains": 2**50})
    assert found.accepts(b'[{"a":[1,2]}]')


def test_errors_of_pydantic_are_told_as_ours() -> None:
    pydantic = pytest.importorskip("pydantic")
    called = pydantic.create_model("Called", f=(Callable[[int], int], ...))
    unknown = pydantic.create_model("Unknown", f=("Nowhere", ...))

    def unfit(f: Callable[[int], int]) -> None: ...

    def places(*rest: int) -> None: ...

    for source in (called, unknown, unfit, places, pydantic.TypeAdapter(called)):
        with pytest.raises(ArgumentError, match="has no schema"):
            json_schema(source)


@pytest.mark.parametrize(
    "pattern", [r"^\W$", r"^[^\w]$", r"^\s$", r"^\D\d$", re.compile(r"\A[0-9]{4}\Z")]
)
def test_what_a_model_describes_is_what_it_reads(pattern: Any) -> None:
    pydantic = pytest.importorskip("pydantic")
    sign = Annotated[str, pydantic.Field(pattern=pattern)]
    model = pydantic.create_model("Row", sign=(sign, ...), by_sign=(dict[sign, int], ...))
    found, rng = pickle.loads(pickle.dumps(json_schema(model, closed=True))), random.Random(0)
    for _ in range(30):
        model.model_validate_json(found.sample(rng, 60))


def test_the_schema_of_a_model_is_read_as_ecma_says_once_it_is_a_dict() -> None:
    schema = {"type": "string", "pattern": r"^\W$"}
    assert json_schema(schema).accepts('"é"'.encode())
    with pytest.raises(InvalidSchemaError, match=r"differ about \\A"):
        json_schema({"type": "string", "pattern": r"\A[0-9]{4}\Z"})


def test_flags_of_a_pattern_are_not_lost() -> None:
    pydantic = pytest.importorskip("pydantic")
    text = pydantic.StringConstraints(pattern=re.compile("a b", re.VERBOSE))
    with pytest.raises(ArgumentError, match=r"re\.VERBOSE.* 'a b'"):
        json_schema(pydantic.TypeAdapter(Annotated[str, text]))
