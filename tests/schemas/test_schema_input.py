"""Bad schemas: a typed error with the JSON pointer of the fault, within the budget."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bpe_automata.automata.budget import Budget
from bpe_automata.errors import (
    ArgumentError,
    InvalidSchemaError,
    SchemaError,
    SchemaTooLargeError,
    UnsatisfiableSchemaError,
    UnsupportedSchemaError,
)
from bpe_automata.schemas import compile_json_schema


def fault(schema: Any, kind: type[SchemaError], **options: Any) -> Any:
    with pytest.raises(kind) as caught:
        compile_json_schema(schema, **options)
    assert caught.value.pointer in str(caught.value)
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
        ({"maximum": float("nan")}, "#/maximum"),
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
        ({"$schema": 3}, "#/$schema"),
    ],
)  # fmt: skip
def test_what_is_no_schema_is_told_with_its_place(schema: Any, pointer: str) -> None:
    assert fault(schema, InvalidSchemaError).pointer == pointer


@pytest.mark.parametrize("source", [None, 3, ["type"], b"\xff"])
def test_what_stands_for_no_schema_is_told(source: Any) -> None:
    with pytest.raises(ArgumentError):
        compile_json_schema(source)


@pytest.mark.parametrize(
    ("schema", "keyword", "pointer"),
    [
        ({"pattern": "a(?=b)"}, "pattern", "#/pattern"),
        ({"items": {"pattern": r"(a)\1"}}, "pattern", "#/items/pattern"),
        ({"format": "regex"}, "format", "#/format"),
        ({"uniqueItems": True}, "uniqueItems", "#"),
        ({"items": {"items": {"type": "array", "uniqueItems": True}}}, "uniqueItems",
         "#/items/items"),
        ({"minProperties": 2}, "minProperties", "#"),
        ({"contains": {}, "maxContains": 2}, "maxContains", "#/maxContains"),
        ({"contains": {}, "minContains": 2}, "minContains", "#/minContains"),
        ({"unevaluatedProperties": False, "anyOf": [{}]}, "unevaluatedProperties",
         "#/unevaluatedProperties"),
        ({"not": {"additionalProperties": {"type": "integer"}}}, "not", "#/not"),
        ({"not": {"uniqueItems": True}}, "not", "#/not"),
        ({"$ref": "https://example.org/other.json"}, "$ref", "#/$ref"),
        ({"$schema": "http://json-schema.org/draft-03/schema#"}, "$schema", "#/$schema"),
        ({"const": "\ud800"}, "const", "#/const"),
    ],
)  # fmt: skip
def test_what_no_automaton_tells_apart_is_refused(schema: Any, keyword: str, pointer: str) -> None:
    error = fault(schema, UnsupportedSchemaError)
    assert (error.keyword, error.pointer) == (keyword, pointer)


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        (False, "#"),
        ({"type": "integer", "minimum": 3, "maximum": 2}, "#"),
        ({"type": "object", "properties": {"a": {"allOf": [{}, {"enum": []}]}}, "required": ["a"]},
         "#/properties/a/allOf/1"),
        ({"type": "array", "minItems": 1, "items": {"type": "string", "const": 3}}, "#/items"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"not": {}}}}, "#/$defs/a"),
        ({"$defs": {"a": {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}},
                          "required": ["a"]}}, "$ref": "#/$defs/a"}, "#"),
    ],
)  # fmt: skip
def test_a_schema_without_values_is_told_with_the_deepest_cause(schema: Any, pointer: str) -> None:
    assert fault(schema, UnsatisfiableSchemaError).pointer == pointer


def test_a_schema_of_5_mb_is_refused_or_read_within_the_budget() -> None:
    wide = {"properties": {f"property{i}": {"type": "string"} for i in range(130_000)}}
    assert len(json.dumps(wide)) > 4_500_000
    assert fault(wide, SchemaTooLargeError).resource == "schemas"
    unused = {"description": "x" * 5_000_000, "type": "null"}
    assert compile_json_schema(json.dumps(unused)).accepts(b"null")


def test_schemas_inside_one_another_are_refused_by_their_depth() -> None:
    assert fault("[" * 100_000, SchemaTooLargeError).resource == "levels"
    schema: Any = {}
    for _ in range(2000):
        schema = {"items": schema}
    assert fault(schema, SchemaTooLargeError).resource == "levels"


def test_alternatives_that_multiply_are_refused() -> None:
    either = [{"anyOf": [{"required": [f"{i}{k}"]} for k in "abcd"]} for i in range(12)]
    assert fault({"allOf": either}, SchemaTooLargeError).resource == "terms"


def test_an_automaton_over_the_budget_is_refused() -> None:
    schema = {"items": {"type": "string", "maxLength": 500}, "maxItems": 50}
    fault(schema, SchemaTooLargeError, budget=Budget(max_states=1000))
