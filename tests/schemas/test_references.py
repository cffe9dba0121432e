"""References that are refused; the official suite has those that are followed."""

from __future__ import annotations

import sys
from typing import Any

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
from bpe_automata.schemas import json_schema

D2019 = "https://json-schema.org/draft/2019-09/schema"
D2020 = "https://json-schema.org/draft/2020-12/schema"


def registry(**documents: Any) -> Registry[Any]:
    made = ((uri, DRAFT202012.create_resource(found)) for uri, found in documents.items())
    return Registry().with_resources(made)


def fault(schema: Any, **options: Any) -> SchemaError:
    with pytest.raises(SchemaError) as caught:
        json_schema(schema, **options)
    return caught.value


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ({"$schema": D2020, "items": {"$dynamicRef": "#"}}, "#/items/$dynamicRef"),
        ({"$schema": D2019, "items": {"$recursiveRef": "#"}}, "#/items/$recursiveRef"),
        ({"properties": {"a": {"$ref": "http://e.org/none"}}}, "#/properties/a/$ref"),
        ({"$schema": "http://e.org/none"}, "#/$schema"),
    ],
)
def test_what_leads_nowhere_or_depends_on_the_way_is_refused(schema: Any, pointer: str) -> None:
    error = fault(schema, registry=registry())
    assert isinstance(error, UnsupportedSchemaError)
    assert (error.keyword, error.pointer) == (pointer.rpartition("/")[2], pointer)


def test_what_a_reference_finds_must_be_a_schema() -> None:
    error = fault({"$ref": "item#/a"}, registry=registry(item={"type": "integer"}))
    assert isinstance(error, InvalidSchemaError)
    with pytest.raises(ArgumentError, match="is no schema"):
        json_schema({"$ref": "http://e.org/none"}, registry=registry(t="text"))
    with pytest.raises(ArgumentError, match=r"referencing\.Registry"):
        json_schema({}, registry={"t": {}})


@pytest.mark.parametrize("pointer", ["allOf/-1", "allOf/01", "allOf/2", "title/0"])
def test_only_what_json_pointers_spell_is_found(pointer: str) -> None:
    """As RFC 6901 has it; `referencing` takes -1 and 01 for indices, and letters for items."""
    error = fault({"allOf": [{}, {}], "title": "text", "$ref": f"#/{pointer}"})
    assert isinstance(error, InvalidSchemaError)
    assert "leads nowhere" in str(error)


def test_what_nothing_refers_to_may_be_faulty() -> None:
    """`referencing` raises AttributeError, as it goes through all parts to find an anchor."""
    definitions = {"x": {"$anchor": "b", "type": "null"}, "y": {"items": 3}}
    assert json_schema({"$ref": "#b", "$defs": definitions}).accepts(b"null")


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
