"""`contains` with `minContains` and `maxContains`, against `jsonschema` on all small arrays."""

from __future__ import annotations

import itertools
import json
from typing import Any

import jsonschema
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support import examples

from bpe_automata.errors import (
    SchemaTooLargeError,
    UnsatisfiableSchemaError,
    UnsupportedSchemaError,
)
from bpe_automata.schemas import compile_json_schema

ITEMS = (1, 2, "s", [], {"a": 1}, {"b": 1})
ARRAYS = [list(items) for n in range(5) for items in itertools.product(ITEMS, repeat=n)]

kinds = st.sampled_from((
    True, False, {"type": "integer"}, {"const": 1}, {"enum": [1, "s"]}, {"type": "object"},
    {"required": ["a"]}, {"required": ["b"], "type": "object"}, {"maxItems": 0},
    {"not": {"const": 2}},
))  # fmt: skip
counted = st.fixed_dictionaries(
    {"contains": kinds},
    optional={"minContains": st.integers(0, 3), "maxContains": st.integers(0, 3)},
)
around = st.fixed_dictionaries({}, optional={
    "items": kinds,
    "prefixItems": st.lists(kinds, min_size=1, max_size=2),
    "minItems": st.integers(0, 3),
    "maxItems": st.integers(0, 4),
})  # fmt: skip
combined = st.one_of(
    st.just({}),
    st.builds(lambda one: {"allOf": [one]}, counted),
    st.builds(lambda one: {"not": one}, counted),
    st.builds(lambda one, two: {"oneOf": [one, two]}, counted, counted),
    st.builds(lambda one, two: {"if": one, "then": two}, counted, counted),
)


def agrees(schema: Any) -> None:
    try:
        accepts = compile_json_schema(schema, depth=2).accepts
    except UnsatisfiableSchemaError:
        accepts = lambda _: False  # noqa: E731
    except UnsupportedSchemaError:  # members that are not named would have to be compared
        assume(False)
    valid = jsonschema.Draft202012Validator(schema).is_valid
    for value in ARRAYS:
        text = json.dumps(value, separators=(",", ":"))
        assert accepts(text.encode()) == valid(value), text


@examples(25)
@given(counted, around, combined)
def test_as_many_items_are_of_the_kind_as_must_be(one: Any, two: Any, three: Any) -> None:
    agrees({"type": "array", **one, **two, **three})


@pytest.mark.parametrize("low", [0, 1, 2])
@pytest.mark.parametrize("high", [0, 1, 2, None])
def test_unique_items_are_counted_too(low: int, high: int | None) -> None:
    most = {} if high is None else {"maxContains": high}
    agrees(
        {
            "type": "array",
            "items": {"enum": [1, 2, "s", None]},
            "uniqueItems": True,
            "contains": {"type": "integer"},
            "minContains": low,
            **most,
        }
    )


def test_a_recursive_schema_counts_itself() -> None:
    schema = {"type": "array", "contains": {"$ref": "#"}, "minContains": 0, "maxContains": 1}
    dfa = compile_json_schema(schema, depth=3)
    good, bad = (b"[]", b"[[]]", b"[1,[[]],2]", b"[[[],[]],[]]"), (b"[[],[]]", b"[[1],[2]]")
    assert [dfa.accepts(text) for text in good + bad] == [True] * 4 + [False] * 2


def test_large_counts_are_refused_or_answered() -> None:
    few = {"type": "array", "items": {"enum": [1, 2]}, "contains": {"const": 1}}
    dfa = compile_json_schema({**few, "minContains": 300})
    assert dfa.accepts(f"[{','.join('1' * 300)}]".encode())
    assert not dfa.accepts(f"[{','.join('1' * 299)},2]".encode())
    with pytest.raises(SchemaTooLargeError) as caught:
        compile_json_schema({**few, "minContains": 10**8})
    assert (caught.value.resource, caught.value.pointer) == ("items or members", "#/minContains")
    with pytest.raises(SchemaTooLargeError) as caught:
        compile_json_schema({**few, "minContains": 900, "minItems": 900, "maxItems": 1000})
    assert caught.value.resource == "counts of items"
