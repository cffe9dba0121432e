"""`oneOf` whose branches a constant tells apart: against `jsonschema`, and in linear work."""

from __future__ import annotations

import itertools
import json
from typing import Any

import jsonschema
from hypothesis import given
from hypothesis import strategies as st
from support import examples

from bpe_automata.errors import UnsatisfiableSchemaError
from bpe_automata.schemas import json_schema

KINDS = ("a", "b", True, None, 1)
kinds = st.lists(st.sampled_from(KINDS), min_size=1, max_size=3, unique_by=repr)
members = st.fixed_dictionaries(
    {"k": kinds.map(lambda some: {"enum": some})},
    optional={"v": st.sampled_from(({"type": "integer"}, {"enum": [1, 2]}, {"type": "string"}))},
)
branches = st.one_of(
    st.builds(
        lambda given, required, types: {"type": types, "properties": given, "required": required},
        members,
        st.sampled_from((["k"], ["k"], ["k", "v"], ["v"], [])),
        st.sampled_from(("object", "object", ["object", "array"])),
    ),
    st.sampled_from(({"type": "array", "maxItems": 1}, {"required": ["v"], "type": "object"})),
)
INSTANCES = [
    *([], [1], [1, 2], {}),
    *({"k": kind} for kind in KINDS),
    *({"v": value} for value in (1, 3, "s")),
    *({"k": kind, "v": value} for kind in KINDS for value in (1, 3, "s")),
]


@examples(60)
@given(st.lists(branches, min_size=2, max_size=4))
def test_one_branch_and_no_other(some: list[Any]) -> None:
    schema = {"oneOf": some}
    try:
        accepts = json_schema(schema).accepts
    except UnsatisfiableSchemaError:
        accepts = lambda _: False  # noqa: E731
    validator = jsonschema.Draft202012Validator(schema)
    for value in INSTANCES:
        orders = itertools.permutations(value.items()) if isinstance(value, dict) else [value]
        kind = type(value)
        texts = (json.dumps(kind(order), separators=(",", ":")).encode() for order in orders)
        assert any(map(accepts, texts)) == validator.is_valid(value), value


def tools(count: int) -> dict[str, Any]:
    arguments = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
    return {
        "oneOf": [
            {
                "type": "object",
                "properties": {"name": {"const": f"tool{i}"}, "arguments": arguments},
                "required": ["name", "arguments"],
            }
            for i in range(count)
        ]
    }


def test_a_tool_that_comes_twice_is_valid_for_none() -> None:
    branches = tools(5)["oneOf"]
    closed = [{**branch, "additionalProperties": False} for branch in [*branches, branches[2]]]
    dfa = json_schema({"oneOf": closed}, closed=True)
    found = [dfa.accepts(f'{{"name":"tool{i}","arguments":{{"x":1}}}}'.encode()) for i in range(6)]
    assert found == [True, True, False, True, True, False]
