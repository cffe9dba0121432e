"""`dependentRequired`: names that imply each other, in any order of the members; and conditions on
one member that depend on others."""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import examples

from bpe_automata.errors import (
    SchemaTooLargeError,
    UnsatisfiableSchemaError,
    UnsupportedSchemaError,
)
from bpe_automata.schemas import _reader, compile_json_schema, link_json_schema

NAMES = "abcde"
needs = st.dictionaries(
    st.sampled_from(NAMES), st.lists(st.sampled_from(NAMES), min_size=1, max_size=2), max_size=4
)


def objects(**keywords: Any) -> dict[str, Any]:
    named = {name: {"const": 1} for name in NAMES}
    return {"type": "object", "properties": named, "additionalProperties": False, **keywords}


def enum(values: Any) -> Any:
    return {"enum": sorted(values)} if values else False


def accepted(schema: Any) -> list[bool]:
    try:
        dfa = compile_json_schema(schema)
    except UnsatisfiableSchemaError:
        return [False] * len(TEXTS)
    return [dfa.accepts(text.encode()) for text in TEXTS]


TEXTS = [
    json.dumps(dict.fromkeys(some, 1), separators=(",", ":"))
    for count in range(len(NAMES) + 1)
    for some in itertools.combinations(NAMES, count)
]


@examples(60)
@given(
    needs,
    needs,
    st.sampled_from(("allOf", "anyOf", "oneOf", "not", "if")),
    st.lists(st.sampled_from(NAMES), max_size=2, unique=True),
    st.sampled_from((None, 1, 3)),
    st.sampled_from((None, 1, 2)),
    st.sampled_from((None, *NAMES)),
)
def test_each_name_comes_with_those_that_it_needs(
    one: Any, two: Any, kind: str, required: Any, most: Any, fewest: Any, absent: Any
) -> None:
    schema = objects(dependentRequired=one, required=required)
    also = {"dependentRequired": two}
    schema |= {"not": also} if kind == "not" else {kind: [also, {"required": ["a"]}]}
    if kind == "if":
        schema |= {"if": also, "then": {"maxProperties": 3}, "else": {"required": ["b"]}}
    schema |= {} if most is None else {"maxProperties": most}
    schema |= {} if fewest is None else {"minProperties": fewest}
    if absent is not None:
        schema["properties"][absent] = False
    valid = jsonschema.Draft202012Validator(schema).is_valid
    assert accepted(schema) == [valid(json.loads(text)) for text in TEXTS]


def test_other_members_may_come_too() -> None:
    schema = {"type": "object", "dependentRequired": {"a": ["b"], "c": ["b"]}}
    dfa = compile_json_schema(schema)
    good = (b"{}", b'{"x":1,"x":2}', b'{"b":1,"x":1}', b'{"b":1,"a":1}', b'{"b":1,"a":1,"c":1}')
    bad = (b'{"a":1}', b'{"c":1,"x":1}', b'{"a":1,"c":1}')
    assert [dfa.accepts(text) for text in good + bad] == [True] * 5 + [False] * 3


def pairs(count: int, far: int) -> dict[str, Any]:
    """count pairs of names, in each of which one needs the other; far: how many names lie between
    them, in the order of the schema."""
    names = [f"p{i}" for i in range(2 * count)]
    step = far + 1
    needed = {}
    for start in range(0, 2 * count, 2 * step):
        for name, other in zip(
            names[start : start + step], names[start + step : start + 2 * step], strict=True
        ):
            needed[name] = [other]
    return {
        "type": "object",
        "properties": {name: {"type": "integer"} for name in names},
        "additionalProperties": False,
        "dependentRequired": needed,
    }


@pytest.mark.parametrize(("count", "far", "most"), [(10, 0, 200), (100, 0, 2500), (12, 3, 1000)])
def test_only_pairs_whose_second_name_is_to_come_take_states(
    count: int, far: int, most: int
) -> None:
    dfa = compile_json_schema(pairs(count, far))
    assert dfa.n_states < most
    assert dfa.accepts(b"{}")
    here, there = f'"p0":1,"p{far + 1}":2', f'"p{far + 1}":2'
    texts = (f"{{{here}}}", f"{{{there}}}", '{"p0":1}')
    assert [dfa.accepts(text.encode()) for text in texts] == [True, True, False]


def test_pairs_that_are_all_open_at_once_are_refused() -> None:
    with pytest.raises(SchemaTooLargeError) as caught:
        compile_json_schema(pairs(30, 29))
    assert caught.value.resource == "sets of members or items"


def test_a_name_that_needs_what_cannot_be_is_absent() -> None:
    schema = objects(dependentRequired={"a": ["b"], "b": ["c"]})
    schema["properties"]["c"] = False
    assert [t for t, ok in zip(TEXTS, accepted(schema), strict=True) if ok and '"a"' in t] == []
    with pytest.raises(UnsatisfiableSchemaError):
        compile_json_schema({**schema, "required": ["a"]})


def test_repeated_names_do_not_count_as_needed() -> None:
    """Where names are not listed, `not` compares them all, and is refused."""
    dfa = compile_json_schema({"not": {"dependentRequired": {"a": ["b"]}}})
    assert [dfa.accepts(t) for t in (b'{"a":1}', b'{"b":1,"a":1}', b"3")] == [True, False, False]
    with pytest.raises(UnsupportedSchemaError):
        compile_json_schema({"dependentRequired": {"a": ["b"]}, "minProperties": 3})


KINDS = ["p", "q", "r"]
conditions = st.dictionaries(
    st.sampled_from("abcd"),
    st.fixed_dictionaries(
        {
            "properties": st.fixed_dictionaries(
                {"kind": st.builds(enum, st.sets(st.sampled_from(KINDS)))}
            )
        },
        optional={"required": st.just(["kind"])},
    ),
    min_size=2,
)


@examples(40)
@given(conditions)
def test_conditions_on_one_member(dependent: Any) -> None:
    schema = {
        "properties": {"kind": {"enum": KINDS}} | {name: {"const": 1} for name in "abcd"},
        "additionalProperties": False,
        "dependentSchemas": dependent,
    }
    linked = link_json_schema({"type": "object", **schema}, order="any")
    validator = jsonschema.Draft202012Validator(schema)
    for count in range(5):
        for some in itertools.combinations("abcd", count):
            for kind in ({}, *({"kind": kind} for kind in KINDS)):
                value = {**dict.fromkeys(some, 1), **kind}
                text = json.dumps(value, separators=(",", ":")).encode()
                assert linked.accepts(text) == validator.is_valid(value), text


@examples(40)
@given(conditions, st.lists(st.sampled_from([*"abcd", "kind", "x"]), unique=True))
def test_overlapping_terms_have_the_texts_of_terms_that_are_apart(
    dependent: Any, named: list[str]
) -> None:
    """In the order of the schema too, with names that it lists, others in any order."""
    schema = {
        "type": "object",
        "properties": {name: {} for name in named},
        "anyOf": [{"required": ["x", "kind"]}, {"properties": {"kind": {}, "x": {}}}],
        "dependentSchemas": dependent,
    }
    if_present = _reader._if_present
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_reader, "_if_present", lambda *given: if_present(*given[:-1], False))
        apart = link_json_schema(schema)
    overlapping = link_json_schema(schema)
    for some in itertools.permutations([*"ab", "kind", "x"], 3):
        for kind in KINDS:
            text = json.dumps(
                {**dict.fromkeys(some, 1), **({"kind": kind} if "kind" in some else {})}
            )
            data = text.replace(" ", "").encode()
            assert overlapping.accepts(data) == apart.accepts(data), data


def test_many_conditions_on_one_member() -> None:
    """A schema of MaskBench has 17 of them: told apart they would be 2 ** 17 terms."""
    kinds = [f"kind {k}" for k in range(6)]
    some = {f"m{i}": {"properties": {"kind": enum(kinds[i % 6 :: 2])}} for i in range(24)}
    schema = {"properties": {"kind": enum(kinds)}, "dependentSchemas": some}
    found = link_json_schema({"type": "object", **schema}, order="any")
    validator, rng = jsonschema.Draft202012Validator(schema), random.Random(0)
    told = set()
    for _ in range(200):
        value = dict.fromkeys(rng.sample(sorted(some), rng.randrange(4)), 0)
        value |= {"kind": rng.choice(kinds)} if rng.random() < 0.9 else {}
        text = json.dumps(value, separators=(",", ":")).encode()
        told.add(validator.is_valid(value))
        assert found.accepts(text) == validator.is_valid(value), text
    assert told == {True, False}
