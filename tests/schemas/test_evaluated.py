"""`unevaluatedProperties` and `unevaluatedItems`, against an evaluator that collects what every
keyword has looked at, as section 11 of JSON Schema Core says it.
"""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support import examples

from bpe_automata.errors import (
    SchemaTooLargeError,
    UnsatisfiableSchemaError,
    UnsupportedSchemaError,
)
from bpe_automata.schemas import json_schema

NAMES = ("a", "b", "x")
OBJECTS = [
    dict(zip(names, values, strict=True))
    for count in range(4)
    for names in itertools.combinations(NAMES, count)
    for values in itertools.product((1, "s"), repeat=count)
]
ARRAYS = [list(items) for n in range(4) for items in itertools.product((1, "s"), repeat=n)]
Found = set[Any] | None  # names or indices that have been looked at; None: not valid


def looked_at(schema: Any, value: Any) -> Found:
    """What a schema looks at in an object or an array of scalars."""
    if isinstance(schema, bool):
        return set() if schema else None
    seen = _members(schema, value)
    for found in (seen, *_in_place(schema, value)):
        if found is None or seen is None:
            return None
        seen |= found
    members = value if isinstance(value, dict) else dict(enumerate(value))
    keyword = "unevaluatedProperties" if isinstance(value, dict) else "unevaluatedItems"
    if keyword in schema and seen is not None:
        if not all(fits(schema[keyword], members[name]) for name in members.keys() - seen):
            return None
        seen |= members.keys()
    return seen


def fits(schema: Any, scalar: Any) -> bool:
    return schema if isinstance(schema, bool) else scalar == schema.get("const", scalar)


def _members(schema: Any, value: Any) -> Found:
    """What the keywords of members look at."""
    if isinstance(value, dict):
        if not value.keys() >= {*schema.get("required", ())}:
            return None
        named, others = schema.get("properties", {}), "additionalProperties"
        applied = {name: named[name] for name in value.keys() & named.keys()}
    else:
        named, others = schema.get("prefixItems", []), "items"
        applied = dict(zip(range(len(value)), named, strict=False))
    members = value if isinstance(value, dict) else dict(enumerate(value))
    if others in schema:
        applied = {name: applied.get(name, schema[others]) for name in members}
    if not all(fits(one, members[name]) for name, one in applied.items()):
        return None
    seen = set(applied)
    if "contains" in schema and isinstance(value, list):
        fitting = {at for at, item in members.items() if fits(schema["contains"], item)}
        return seen | fitting if fitting else None
    return seen


def _in_place(schema: Any, value: Any) -> list[Found]:
    """What each schema for the same instance looks at."""
    found = [looked_at(one, value) for one in schema.get("allOf", ())]
    if "not" in schema:
        found.append(set() if looked_at(schema["not"], value) is None else None)
    return found


scalars = st.sampled_from((True, True, False, {"const": 1}, {"const": "s"}))
leaves = st.fixed_dictionaries({}, optional={
    "properties": st.dictionaries(st.sampled_from(NAMES), scalars, min_size=1, max_size=2),
    "required": st.lists(st.sampled_from(NAMES), max_size=1),
    "additionalProperties": scalars,
    "prefixItems": st.lists(scalars, min_size=1, max_size=2),
    "items": scalars,
    "contains": scalars,
    "unevaluatedProperties": scalars,
    "unevaluatedItems": scalars,
})  # fmt: skip


def _around(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    few = st.lists(inner, min_size=1, max_size=3)
    applying = st.fixed_dictionaries({}, optional={
        "allOf": few,
        "not": inner,
    })  # fmt: skip
    return st.builds(lambda one, other: {**one, **other}, leaves, applying)


schemas = st.recursive(leaves | st.booleans(), _around, max_leaves=8).filter(
    lambda schema: isinstance(schema, dict)
)


@examples(150)
@given(schemas, scalars, scalars)
def test_what_nothing_looks_at_is_left_to_the_keyword(schema: Any, name: Any, item: Any) -> None:
    schema = {**schema, "unevaluatedProperties": name, "unevaluatedItems": item}
    try:
        dfa = json_schema({**schema, "type": ["object", "array"]})
    except UnsatisfiableSchemaError:
        dfa = None
    except (UnsupportedSchemaError, SchemaTooLargeError):
        assume(False)  # members that are not named would have to be compared; too many terms
    for value in OBJECTS + ARRAYS:
        orders = itertools.permutations(value.items()) if isinstance(value, dict) else [value]
        texts = (
            json.dumps(dict(order) if isinstance(value, dict) else order, separators=(",", ":"))
            for order in orders
        )
        accepted = dfa is not None and any(dfa.accepts(text.encode()) for text in texts)
        assert accepted == (looked_at(schema, value) is not None), value


def test_a_recursive_schema_that_closes_itself() -> None:
    node = {"type": "object", "properties": {"v": {"type": "integer"}}}
    schema = {
        "$defs": {"node": node},
        "$ref": "#/$defs/node",
        "properties": {"next": {"$ref": "#"}},
        "unevaluatedProperties": False,
    }
    dfa = json_schema(schema)
    good = (b'{"next":{"v":2},"v":1}', b'{"next":{"next":{}}}')
    bad = (b'{"v":1,"w":1}', b'{"next":{"w":1}}', b'{"v":"s"}')
    assert [dfa.accepts(text) for text in good + bad] == [True, True, False, False, False]


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf", "if", "dependentSchemas", "contains"])
def test_what_depends_on_the_instance_is_refused(keyword: str) -> None:
    inside = {"properties": {"a": {}}}
    value = {"if": inside, "contains": {}, "dependentSchemas": {"a": inside}}.get(keyword, [inside])
    schema = {"allOf": [{keyword: value}], "unevaluatedItems": False}
    with pytest.raises(UnsupportedSchemaError, match=keyword) as caught:
        json_schema(schema)
    assert caught.value.pointer == "#/unevaluatedItems"


def test_closed_schemas_stay_closed() -> None:
    schema = {
        "type": "object",
        "allOf": [{"properties": {"a": {}}}],
        "unevaluatedProperties": False,
    }
    for closed in (False, True):
        dfa = json_schema(schema, closed=closed)
        assert [dfa.accepts(text) for text in (b'{"a":1}', b'{"b":1}')] == [True, False]
