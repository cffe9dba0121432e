"""Names that come twice: never those that the schema spells out, and none with `unique_names`."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from bpe_automata.schemas import compile_json_schema, compile_yaml_schema

FREE = {"type": "object", "additionalProperties": {"type": "integer"}}
SCHEMAS: list[Any] = [
    FREE,
    {},
    {"type": "object", "properties": {"a": {}, "b": FREE}, "required": ["b"]},
    {"type": "object", "patternProperties": {"^x": {"type": "null"}, "^y": FREE}},
    {"type": "array", "items": FREE | {"minProperties": 1}},
    {"type": "object", "properties": {"a": {"type": "null"}}, "maxProperties": 2},
    {"type": "object", "additionalProperties": {}, "not": {"required": ["z"]}},
    {"oneOf": [FREE, {"type": "object", "required": ["k"], "properties": {"k": {"type": "null"}}}]},
    {"type": "object", "propertyNames": {"pattern": "^[ab]$"}, "properties": {"a": {}}},
]


def names_twice(text: str) -> bool:
    """Does an object anywhere in a JSON text have a name twice?"""
    twice: list[bool] = []
    json.loads(text, object_pairs_hook=lambda pairs: twice.append(len(dict(pairs)) < len(pairs)))
    return any(twice)


@pytest.mark.parametrize("schema", SCHEMAS)
def test_no_name_comes_twice_with_unique_names(schema: Any) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    found = compile_json_schema(schema, unique_names=True, depth=1)
    rng, valid = random.Random(0), jsonschema.Draft202012Validator(schema).is_valid
    for length in (4, 12, 30, 60):
        for _ in range(25):
            text = found.sample(rng, length).decode()
            assert not names_twice(text), text
            assert valid(json.loads(text)), text


def test_one_other_name_is_still_there() -> None:
    found = compile_json_schema(FREE, unique_names=True)
    texts = (b"{}", b'{"a":1}', b'{"a":1,"a":2}', b'{"a":1,"b":2}')
    assert [found.accepts(text) for text in texts] == [True, True, False, False]
    named = {"type": "object", "properties": {"a": {}, "b": {}}}
    found = compile_json_schema(named, unique_names=True)
    texts = (b'{"a":1,"b":2,"c":3}', b'{"a":1,"b":2,"b":3}', b'{"c":3,"c":3}')
    assert [found.accepts(text) for text in texts] == [True, False, False]


def test_readers_of_yaml_get_no_name_twice() -> None:
    found = compile_yaml_schema(FREE, unique_names=True)
    assert [found.accepts(text) for text in (b"a: 1\n", b"a: 1\na: 2\n")] == [True, False]
    ruamel = pytest.importorskip("ruamel.yaml")
    rng = random.Random(0)
    for _ in range(40):
        text = found.sample(rng, 20).decode()
        assert isinstance(
            ruamel.YAML(typ="safe", pure=True).load(text), dict
        )  # no DuplicateKeyError


def test_without_it_all_values_of_a_name_are_valid() -> None:
    assert compile_json_schema(FREE).accepts(b'{"a":1,"a":2}')
    assert not compile_json_schema(FREE).accepts(b'{"a":1,"a":"x"}')
    named = {"type": "object", "properties": {"a": {"type": "integer"}}}
    assert not compile_json_schema(named).accepts(b'{"a":1,"a":2}')
