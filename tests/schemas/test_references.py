"""References to other documents and to metaschemas, and those that depend on the way to them; all
of them against `jsonschema` with the same registry.
"""

from __future__ import annotations

import itertools
import json
import sys
from typing import Any

import jsonschema
import pytest
from referencing import Registry, Resource
from referencing.exceptions import NoSuchResource
from referencing.jsonschema import DRAFT202012

from bpe_automata.errors import (
    ArgumentError,
    InvalidSchemaError,
    MissingDependencyError,
    SchemaError,
    SchemaTooLargeError,
    UnsupportedSchemaError,
)
from bpe_automata.schemas import json_schema, yaml_schema

D2019 = "https://json-schema.org/draft/2019-09/schema"
D2020 = "https://json-schema.org/draft/2020-12/schema"
NODE = {"type": "object", "properties": {"v": True, "next": {"$dynamicRef": "#node"}}}
OTHERS = {
    "http://e.org/item": {"type": "integer", "minimum": 1},
    "http://e.org/a/list": {"type": "array", "items": {"$ref": "../item"}},
    "http://e.org/node": {"$id": "http://e.org/node", "$dynamicAnchor": "node", **NODE},
    "http://e.org/named": {"$defs": {"x": {"$anchor": "x", "const": 1}}},
    "http://e.org/vocabulary": {
        "$schema": D2020,
        "$vocabulary": {"https://json-schema.org/draft/2020-12/vocab/applicator": True}},
    "http://e.org/own": {"$schema": D2020, "$vocabulary": {"http://e.org/vocab/own": True}},
}  # fmt: skip


def registry(documents: dict[str, Any]) -> Registry[Any]:
    made = ((uri, DRAFT202012.create_resource(found)) for uri, found in documents.items())
    return Registry().with_resources(made)


REGISTRY = registry(OTHERS)
STRICT = {
    "$id": "http://e.org/strict",
    "$schema": D2020,
    "$dynamicAnchor": "node",
    "$ref": "node",
    "properties": {"v": {"type": "integer"}, "next": True},
    "additionalProperties": False,
}
CURSED = {"$schema": D2019, "$id": "http://e.org/r", "$recursiveAnchor": True,
          "type": ["object", "null"], "additionalProperties": {"$ref": "b"}, "$defs": {
              "b": {"$id": "b", "$recursiveAnchor": True, "type": ["object", "integer"],
                    "properties": {"a": {"$recursiveRef": "#"}}}}}  # fmt: skip
INSTANCES = [
    *(None, 1, 0, "a", [], [1], [0], {}, {"v": 1}, {"v": "x"}, {"next": {}}, {"w": 1}),
    *({"next": {"v": "x"}}, {"next": {"w": 1}}, {"v": 1, "next": {"v": 1, "next": {"v": 2}}}),
    *({"a": None}, {"a": {}}, {"a": 1}, {"a": {"a": None}}, {"a": {"a": 1}}, {"a": {"a": {}}}),
]


def accepted(schema: Any, found: Any = REGISTRY) -> list[bool]:
    dfa = json_schema(schema, registry=found)
    return [dfa.accepts(json.dumps(v, separators=(",", ":")).encode()) for v in INSTANCES]


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "http://e.org/item"},
        {"$ref": "http://e.org/a/list"},
        {"$ref": "http://e.org/node"},
        {"$ref": "http://e.org/named#x"},
        {"$ref": "http://e.org/named#/$defs/x"},
        {"$id": "http://e.org/x", "properties": {"a": {"$ref": "node"}}},
        STRICT,
        {"$ref": "#/$defs/s", "$defs": {"s": STRICT}},
        {"properties": {"a": STRICT, "v": True, "next": {"$ref": "http://e.org/node"}}},
        {"$dynamicRef": "http://e.org/node#node"},
        {"$id": "http://e.org/", "$dynamicRef": "#a", "$defs": {"a": {"$anchor": "a", "const": 1}}},
        CURSED,
        {"$schema": D2019, "$id": "http://e.org/o", "allOf": [{"$ref": "r"}],
         "$defs": {"r": CURSED}},
    ],
)  # fmt: skip
def test_a_reference_leads_where_jsonschema_goes(schema: Any) -> None:
    kind = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
    validator = kind(schema, registry=REGISTRY)
    assert accepted(schema) == [validator.is_valid(value) for value in INSTANCES]


@pytest.mark.parametrize("outer", range(3))
def test_the_outermost_dynamic_anchor_counts_on_every_way(outer: int) -> None:
    """Three resources, each of which refers to the next: the anchor of the first that has one. Only
    one of them, `outer`, wants a member."""
    closed = {"type": "object", "additionalProperties": False}
    for have in itertools.product((False, True), repeat=3):
        resources = [
            {
                "$id": f"http://e.org/{i}",
                "properties": {"a": {"$ref": f"{i + 1}"}},
                "minProperties": int(i == outer),
                **closed,
                **({"$dynamicAnchor": "x"} if has else {}),
            }
            for i, has in enumerate(have)
        ]
        last = closed | {"$id": "http://e.org/3", "properties": {"b": {"$dynamicRef": "#x"}},
                "$defs": {"x": {"$dynamicAnchor": "x", "const": 3}}}  # fmt: skip
        schema = {
            **resources[0],
            "$schema": D2020,
            "$defs": dict(zip("bcd", (*resources[1:], last), strict=True)),
        }
        validator = jsonschema.Draft202012Validator(schema)
        dfa = json_schema(schema)
        for inside in ({}, {"b": 3}, {"b": {}}, {"b": {"a": {}}}, {"b": 4}, {"b": {"b": {}}}):
            for value in (inside, {"a": inside}, {"a": {"a": inside}}, {"a": {"a": {"a": inside}}}):
                text = json.dumps(value, separators=(",", ":"))
                assert dfa.accepts(text.encode()) == validator.is_valid(value), (have, value)


def test_metaschemas_are_known() -> None:
    dfa = yaml_schema(
        {"$ref": "http://json-schema.org/draft-04/schema#/definitions/positiveInteger"}
    )
    assert [dfa.accepts(text) for text in (b"1\n", b"-1\n")] == [True, False]


def test_a_metaschema_leaves_keywords_out() -> None:
    schema = {"$schema": "http://e.org/vocabulary", "properties": {"a": False}, "minProperties": 9,
              "unevaluatedProperties": False}  # fmt: skip
    dfa = json_schema(schema, registry=REGISTRY)
    assert [dfa.accepts(text) for text in (b'{"b":1}', b'{"a":1}', b"1")] == [True, False, True]


def fault(schema: Any, **options: Any) -> SchemaError:
    with pytest.raises(SchemaError) as caught:
        json_schema(schema, **options)
    return caught.value


def test_where_no_document_is_found_the_reference_is_named() -> None:
    error = fault({"properties": {"a": {"$ref": "http://e.org/item"}}})
    assert isinstance(error, UnsupportedSchemaError)
    assert (error.keyword, error.pointer) == ("$ref", "#/properties/a/$ref")
    error = fault({"$ref": "http://e.org/none"}, registry=REGISTRY)
    assert isinstance(error, UnsupportedSchemaError)
    error = fault({"$schema": "http://e.org/none"}, registry=REGISTRY)
    assert isinstance(error, UnsupportedSchemaError)
    assert error.keyword == "$schema"
    error = fault({"$schema": "http://e.org/own"}, registry=REGISTRY)
    assert isinstance(error, UnsupportedSchemaError)
    assert error.keyword == "$vocabulary"
    with pytest.raises(ArgumentError, match="is no schema"):
        json_schema({"$ref": "http://e.org/none"}, registry=registry({"t": "text"}))
    assert isinstance(
        fault({"$ref": "http://e.org/item#/a"}, registry=REGISTRY), InvalidSchemaError
    )
    with pytest.raises(ArgumentError, match=r"referencing\.Registry"):
        json_schema({}, registry=OTHERS)


def test_a_fault_in_another_document_has_its_pointer_and_no_scope() -> None:
    found = registry({"http://e.org/bad": {"$dynamicAnchor": "x", "items": {"minItems": "1"}}})
    error = fault({"$ref": "http://e.org/bad"}, registry=found)
    assert error.pointer == "http://e.org/bad#/items/minItems"
    assert "(at http://e.org/bad#/items/minItems of the schema)" in str(error)


def test_a_metaschema_without_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema_specifications", None)
    with pytest.raises(MissingDependencyError, match="pip install jsonschema-specifications"):
        json_schema({"$ref": D2020})
    assert isinstance(fault({"$schema": D2020.replace("2020-12", "next")}), UnsupportedSchemaError)


def test_documents_without_end_are_refused() -> None:
    def retrieve(uri: str) -> Resource[Any]:
        if not uri.startswith("n:"):
            raise NoSuchResource(uri)
        number = int(uri[2:]) + 1
        return DRAFT202012.create_resource({"items": {"$ref": f"n:{number}"}})

    error = fault({"$ref": "n:0"}, registry=Registry(retrieve=retrieve))
    assert isinstance(error, SchemaTooLargeError)
    assert error.resource == "documents"
    meta = {f"m:{n}": {"$schema": f"m:{n + 1}"} for n in range(20)} | {"m:20": {"$schema": "m:0"}}
    assert isinstance(fault({"$schema": "m:0"}, registry=registry(meta)), UnsupportedSchemaError)


def test_scopes_without_end_are_refused() -> None:
    """Sixteen anchors with two targets each: a state of its own for each choice."""
    choice = {"properties": {}}
    resources = {}
    for n in range(16):
        for k in "ab":
            resources[f"{n}{k}"] = {"$id": f"r:{n}{k}", "$defs": {"x": {"$dynamicAnchor": f"x{n}"}},
                                    "$ref": f"c:{n + 1}"}  # fmt: skip
        resources[f"c{n}"] = {
            "$id": f"c:{n}",
            "properties": {k: {"$ref": f"r:{n}{k}"} for k in "ab"},
        }
    resources["c16"] = {"$id": "c:16", **choice}
    error = fault({"$ref": "c:0", "$defs": resources})
    assert isinstance(error, SchemaTooLargeError)
    assert error.resource in ("schemas", "levels")
