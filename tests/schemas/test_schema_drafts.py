"""What a draft does not know yet is a note in it, as the validators of that draft have it."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from bpe_automata.errors import ArgumentError, UnsupportedSchemaError
from bpe_automata.schemas import compile_json_schema, compile_yaml_schema

URIS = {
    4: "http://json-schema.org/draft-04/schema#",
    6: "http://json-schema.org/draft-06/schema#",
    7: "http://json-schema.org/draft-07/schema#",
    2019: "https://json-schema.org/draft/2019-09/schema",
    2020: "https://json-schema.org/draft/2020-12/schema",
}
VALUES = (None, 0, 1, "s", "2024-02-29", [], [1], ["s"], {}, {"a": 1}, {"a": 1, "b": 2}, {"b": 1})
LATER: dict[str, Any] = {
    "const": {"const": 1},
    "contains": {"contains": {"type": "string"}},
    "minContains": {"contains": {"type": "string"}, "minContains": 0},
    "propertyNames": {"propertyNames": {"pattern": "a"}},
    "if": {"if": True, "then": {"type": "string"}, "else": False},
    "dependentRequired": {"dependentRequired": {"a": ["b"]}},
    "dependentSchemas": {"dependentSchemas": {"a": {"required": ["b"]}}},
    "prefixItems": {"prefixItems": [{"type": "string"}]},
    "unevaluatedItems": {"unevaluatedItems": False},
    "unevaluatedProperties": {"properties": {"a": {}}, "unevaluatedProperties": False},
}


@pytest.mark.parametrize("draft", URIS)
@pytest.mark.parametrize("keyword", LATER)
def test_keywords_say_what_they_say_in_the_draft(keyword: str, draft: int) -> None:
    for inner in (LATER[keyword], {"items": LATER[keyword]}):
        schema = {"$schema": URIS[draft], **inner}
        validator = jsonschema.validators.validator_for(schema)(schema)
        found = compile_json_schema(schema)
        for value in (*VALUES, [[1], 1]):
            text = json.dumps(value, separators=(",", ":")).encode()
            turned = b'{"b":2,"a":1}'  # what is needed may be written first
            accepted = found.accepts(text) or (text == b'{"a":1,"b":2}' and found.accepts(turned))
            assert accepted == validator.is_valid(value), (schema, value)


@pytest.mark.parametrize("keyword", ["const", "dependentRequired", "unevaluatedProperties"])
def test_not_of_a_note_is_not_of_everything(keyword: str) -> None:
    schema = {"$schema": URIS[4], "anyOf": [{"not": LATER[keyword]}, {"enum": [None]}]}
    found = compile_json_schema(schema)
    assert found.accepts(b"null")
    assert not found.accepts(b'{"b":1}')
    assert not found.accepts(b"0")


def test_refused_keywords_are_notes_too() -> None:
    counted = {"contains": {}, "maxContains": 2}
    assert compile_json_schema({"$schema": URIS[7], **counted}).accepts(b"[1,1,1]")
    with pytest.raises(UnsupportedSchemaError):
        compile_json_schema({"$schema": URIS[2019], **counted})
    assert compile_json_schema({"$schema": URIS[6], "if": 3, "type": "null"}).accepts(b"null")


def test_a_reference_may_lead_into_a_note() -> None:
    schema = {"$schema": URIS[6], "then": {"const": 1}, "items": {"$ref": "#/then"}}
    found = compile_json_schema(schema)
    assert found.accepts(b"[1]")
    assert not found.accepts(b"[2]")


def test_older_spellings_are_read_without_a_draft() -> None:
    found = compile_json_schema({"items": [{"const": 1}], "additionalItems": False})
    assert found.accepts(b"[1]")
    assert not found.accepts(b"[2]")
    assert not found.accepts(b"[1,1]")
    found = compile_json_schema({"type": "integer", "minimum": 3, "exclusiveMinimum": True})
    assert found.accepts(b"4")
    assert not found.accepts(b"3")
    found = compile_json_schema({"type": "object", "dependencies": {"a": ["b"]}})
    assert found.accepts(b'{"b":1}')
    assert not found.accepts(b'{"a":1}')


SINCE = {"ipv4": 4, "date-time": 4, "json-pointer": 6, "date": 7, "iri": 7, "uuid": 2019}


@pytest.mark.parametrize("draft", URIS)
@pytest.mark.parametrize("name", SINCE)
def test_formats_are_those_of_the_draft(name: str, draft: int) -> None:
    schema = {"$schema": URIS[draft], "type": "string", "format": name}
    assert compile_json_schema(schema).accepts(b'"a b"') == (draft < SINCE[name])
    assert not compile_json_schema(schema, formats="all").accepts(b'"a b"')


def test_formats_that_are_not_known_exactly_are_refused_where_they_are_asserted() -> None:
    schema = {"$schema": URIS[4], "type": "string", "format": "idn-hostname"}
    assert compile_json_schema(schema).accepts(b'"("')
    assert compile_yaml_schema(schema).accepts(b"(\n")
    for name in ("regex", "idn-email"):  # jsonschema asserts them in any draft
        with pytest.raises(UnsupportedSchemaError):
            compile_json_schema(schema | {"format": name})
    for make in (compile_json_schema, compile_yaml_schema):
        with pytest.raises(UnsupportedSchemaError):
            make(schema, formats="all")
        with pytest.raises(ArgumentError):
            make(schema, formats="none")  # type: ignore[arg-type]


def test_names_are_not_taken_for_notes() -> None:
    inner = {name: {"dependencies": {"title": need}} for name, need in (("a", "b"), ("b", "c"))}
    found = compile_json_schema({"properties": inner})
    assert found.accepts(b'{"b":{"c":1,"title":1}}')
    assert not found.accepts(b'{"b":{"b":1,"title":1}}')


@pytest.mark.parametrize(
    ("schema", "right", "wrong"),
    [
        ({"items": {"enum": [1.5, 2.5]}}, "[1.5,2.5]", "[1.5,1.5]"),
        ({"items": {"enum": [1, 1.5]}}, "[1.50,1]", "[1.5,1.50]"),
        ({"prefixItems": [{"enum": [1, 2]}, {"enum": ["a", 1]}], "maxItems": 2}, "[2,1]", "[1,1]"),
        ({"prefixItems": [{"enum": [1]}, {}], "maxItems": 1}, "[1]", "[1,1]"),
    ],
)  # fmt: skip
def test_unique_items_that_are_few(schema: dict[str, Any], right: str, wrong: str) -> None:
    found = compile_json_schema({"type": "array", "uniqueItems": True, **schema})
    assert found.accepts(right.encode())
    assert not found.accepts(wrong.encode())


def test_unique_items_by_text_are_refused_or_exact() -> None:
    left = {"enum": [1, 1.5], "not": {"type": "integer"}}
    schema = {"$schema": URIS[4], "type": "array", "uniqueItems": True, "items": left}
    with pytest.raises(UnsupportedSchemaError):
        compile_json_schema(schema)
