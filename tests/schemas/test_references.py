"""References to other documents and to metaschemas, and those that depend on the way to them; all
of them against `jsonschema` with the same registry.
"""

from __future__ import annotations

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
NODE = {"type": "object", "properties": {"v": True, "next": {"$ref": "#node"}}}
OTHERS = {
    "http://e.org/item": {"type": "integer", "minimum": 1},
    "http://e.org/a/list": {"type": "array", "items": {"$ref": "../item"}},
    "http://e.org/node": {"$id": "http://e.org/node", "$dynamicAnchor": "node", **NODE},
    "http://e.org/named": {"$defs": {"x": {"$anchor": "x", "const": 1}}},
}  # fmt: skip


def registry(documents: dict[str, Any]) -> Registry[Any]:
    made = ((uri, DRAFT202012.create_resource(found)) for uri, found in documents.items())
    return Registry().with_resources(made)


REGISTRY = registry(OTHERS)
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
    ],
)  # fmt: skip
def test_a_reference_leads_where_jsonschema_goes(schema: Any) -> None:
    kind = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
    validator = kind(schema, registry=REGISTRY)
    assert accepted(schema) == [validator.is_valid(value) for value in INSTANCES]


@pytest.mark.parametrize("keyword", ["$dynamicRef", "$recursiveRef"])
def test_what_depends_on_the_way_to_it_is_refused(keyword: str) -> None:
    draft = D2020 if keyword == "$dynamicRef" else D2019
    schema = {"$schema": draft, "properties": {"a": {keyword: "#"}}}
    error = fault(schema)
    assert isinstance(error, UnsupportedSchemaError)
    assert (error.keyword, error.pointer) == (keyword, f"#/properties/a/{keyword}")


def test_metaschemas_are_known() -> None:
    dfa = yaml_schema(
        {"$ref": "http://json-schema.org/draft-04/schema#/definitions/positiveInteger"}
    )
    assert [dfa.accepts(text) for text in (b"1\n", b"-1\n")] == [True, False]


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
    with pytest.raises(ArgumentError, match="is no schema"):
        json_schema({"$ref": "http://e.org/none"}, registry=registry({"t": "text"}))
    assert isinstance(
        fault({"$ref": "http://e.org/item#/a"}, registry=REGISTRY), InvalidSchemaError
    )
    with pytest.raises(ArgumentError, match=r"referencing\.Registry"):
        json_schema({}, registry=OTHERS)


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
