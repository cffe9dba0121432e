"""What keywords and references mean: by examples, and by the verdicts of jsonschema on random
schemas.
"""

from __future__ import annotations

import json
import random
import re
from contextlib import suppress
from typing import Any, Literal

import jsonschema
import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support import examples
from support.values import depth, orders, spelled

from bpe_automata.errors import ArgumentError, UnsatisfiableSchemaError, UnsupportedSchemaError
from bpe_automata.schemas import json_schema, schema_of

NAMES = ("a", "b", "c")
OTHERS = ("x1", "x2", "y")
TEXTS = ("", "a", "ab", "b1", "é", "long text", "2024-02-29", "1.2.3.4", "23:59:59Z")
NUMBERS = (0, 1, 2, -3, 10, 0.5, 2.0, -1.5)

scalars = st.sampled_from((None, False, True, *NUMBERS, *TEXTS))
instances = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(NAMES + OTHERS), inner, max_size=3)
    ),
    max_leaves=5,
)

_types = st.sampled_from(("null", "boolean", "integer", "number", "string", "array", "object"))
_leaves = st.one_of(
    st.booleans(),
    st.just({}),
    st.builds(lambda t: {"type": t}, _types),
    st.builds(lambda t: {"type": t}, st.lists(_types, min_size=1, max_size=3, unique=True)),
    st.builds(lambda v: {"enum": v}, st.lists(instances, min_size=1, max_size=3)),
    st.builds(lambda v: {"const": v}, instances),
    st.builds(lambda low, k: {k: low}, st.sampled_from(NUMBERS), st.sampled_from(
        ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"))),
    st.builds(lambda d: {"multipleOf": d}, st.sampled_from((1, 2, 0.5, 3))),
    st.builds(lambda p: {"pattern": p}, st.sampled_from(("a", "^b", "[0-9]$", "^..$"))),
    st.builds(lambda f: {"format": f}, st.sampled_from(("date", "time", "ipv4", "email"))),
    st.builds(lambda k, n: {k: n}, st.sampled_from(("minLength", "maxLength")), st.integers(0, 3)),
)  # fmt: skip


def _some(**optional: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Any of some keywords."""
    return st.fixed_dictionaries({}, optional=optional)


def _with(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    names = st.lists(st.sampled_from(NAMES + OTHERS[:1]), max_size=2, unique=True)
    few = st.lists(inner, min_size=1, max_size=3)
    objects = _some(
        type=st.just("object"),
        properties=st.dictionaries(st.sampled_from(NAMES), inner, max_size=3),
        patternProperties=st.dictionaries(st.sampled_from(("^x", "1$", "a|y")), inner, max_size=2),
        additionalProperties=inner,
        unevaluatedProperties=inner,
        required=names,
        maxProperties=st.integers(0, 3),
        minProperties=st.integers(0, 2),
        propertyNames=st.sampled_from(({"maxLength": 1}, {"pattern": "^[ax]"}, {"enum": ["a"]})),
    )
    arrays = _some(
        type=st.just("array"),
        items=inner,
        prefixItems=st.lists(inner, min_size=1, max_size=2),
        minItems=st.integers(0, 2),
        maxItems=st.integers(0, 3),
        contains=inner,
        minContains=st.integers(0, 2),
        maxContains=st.integers(0, 2),
        unevaluatedItems=inner,
        uniqueItems=st.booleans(),
    )
    either = _some(**dict.fromkeys(("anyOf", "oneOf", "allOf"), few)) | _some(
        **dict.fromkeys(("not", "if", "then", "else"), inner),
        dependentRequired=st.dictionaries(st.sampled_from(NAMES), names, max_size=2),
        dependentSchemas=st.dictionaries(st.sampled_from(NAMES), inner, max_size=1),
    )
    both = st.builds(lambda one, other: {**one, **other}, objects | arrays, either)
    constants = st.lists(st.sampled_from(("a", True, None, 1)), min_size=1, max_size=2)
    tagged = st.builds(
        lambda some, rest: {
            "type": "object",
            "required": ["a"],
            "properties": {"a": {"enum": some}, "b": rest},
        },
        constants,
        inner,
    )
    union = st.builds(
        lambda keyword, some: {keyword: some},
        st.sampled_from(("oneOf", "anyOf")),
        st.lists(tagged | inner, min_size=2, max_size=3),
    )
    return st.one_of(objects, arrays, either, both, union)


schemas = st.recursive(_leaves, _with, max_leaves=6)


def whole(value: Any) -> Any:
    """With integers for the floats that are whole."""
    if isinstance(value, dict):
        return {name: whole(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return list(map(whole, value))
    return int(value) if isinstance(value, float) and value.is_integer() else value


def accepts(schema: Any, *texts: str, **options: Any) -> list[bool]:
    dfa = json_schema(schema, **options)
    return [dfa.accepts(text.encode()) for text in texts]


def test_members_stand_in_the_order_that_is_asked_for() -> None:
    schema = {"properties": {"b": {}, "a": {}, "z": {}}, "required": ["z", "a"], "type": "object"}
    texts = ('{"b":1,"a":1,"z":1}', '{"a":1,"z":1}', '{"a":1,"b":1,"z":1}', '{"z":1,"a":1}')
    in_order, free = [True, True, False, False], [True] * 4
    for order, opened, closed in (
        ("schema", in_order, in_order),
        ("any", free, free),
        ("open", free, in_order),
    ):
        assert accepts(schema, *texts, order=order) == opened
        assert accepts(schema, *texts, order=order, closed=True) == closed
    assert accepts(schema, '{"q":1,"a":1,"z":1}', order="open") == [True]
    assert accepts(schema, '{"q":1,"a":1,"z":1}', order="schema") == [False]


def test_a_named_property_comes_once_and_members_of_one_name_must_all_fit() -> None:
    schema = {"properties": {"a": {}}, "additionalProperties": {"type": "null"}}
    texts = ('{"a":1,"a":2}', '{"a":1,"x":null,"x":null}', '{"x":1,"x":null}')
    assert accepts(schema, *texts) == [False, True, False]


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"minimum": 1, "exclusiveMinimum": True}, "2", "1"),
        ({"items": [{"type": "null"}], "additionalItems": {"const": 1}}, "[null,1]", "[null,2]"),
        ({"dependencies": {"a": {"required": ["b"]}}}, '{"a":1,"b":1}', '{"a":1}'),
        ({"$ref": "#/x-parts/a~1b%20c", "x-parts": {"a/b c": {"const": 2}}}, "2", "1"),
        ({"nullable": True, "type": "string", "x": 3}, '""', "null"),
        ({"oneOf": [{"required": ["k"], "properties": {"k": {"const": k}}} for k in "aba"]},
         '{"k":"b"}', '{"k":"a"}'),
    ],
)  # fmt: skip
def test_what_the_official_suite_does_not_try(schema: Any, good: str, bad: str) -> None:
    """Older spellings in the newest draft; places that no draft names; keywords of none."""
    assert accepts(schema, good, bad) == [True, False]


def test_a_recursive_schema_goes_as_many_rounds_as_asked() -> None:
    node = {"type": "object", "properties": {"n": {"$ref": "#"}}, "additionalProperties": False}
    texts = ['{"n":' * rounds + "{}" + "}" * rounds for rounds in range(5)]
    assert accepts(node, *texts) == [True] * 5
    for most in range(4):
        found = json_schema(node).to_dfa(depth=most)
        assert [found.accepts(t.encode()) for t in texts] == [n <= most for n in range(5)]


def test_what_nothing_is_said_of_is_nested_as_deep_as_asked() -> None:
    texts = ["[" * level + "]" * level for level in range(1, 6)]
    assert accepts({}, *texts) == [True] * 5
    for written in (
        json_schema({}).to_dfa(depth=2),
        json_schema({"type": "array"}).to_dfa(depth=2),
    ):
        found = [written.accepts(text.encode()) for text in texts]
        assert found == [True, True, True, False, False]
    with pytest.raises(ArgumentError, match="negative"):
        json_schema({}).to_dfa(depth=-1)


def test_closed_leaves_no_other_properties_where_nothing_is_said_of_them() -> None:
    schema = {"type": "object", "properties": {"a": {"additionalProperties": True}}}
    texts = ('{"a":{"x":1}}', '{"b":1}')
    assert accepts(schema, *texts) == [True, True]
    assert accepts(schema, *texts, closed=True) == [True, False]


def test_closed_takes_away_in_a_comparison_what_it_took_before() -> None:
    schema = {"not": {"properties": {"a": {"const": 1}}, "required": ["a"]}, "type": "object",
              "properties": {"a": {}}, "additionalProperties": True}  # fmt: skip
    assert accepts(schema, '{"a":1,"b":2}', '{"a":2,"b":2}', closed=True) == [False, True]


def test_a_function_stands_for_the_object_of_its_arguments() -> None:
    pytest.importorskip("pydantic")

    def book(city: str, *, kind: Literal["a", "b"], copy: bool = False) -> None:
        """Only its signature counts."""

    def typed(city: str, **others: int) -> None: ...

    assert schema_of(book)["required"] == ["city", "kind"]
    bad = ('{"city":"x","kind":"c"}', '{"city":1,"kind":"a"}', '{"city":"","kind":"b","x":1}')
    assert accepts(book, '{"city":"x","kind":"a","copy":true}', *bad) == [True, False, False, False]
    bad = ('{"city":"","z":"s"}', '{"z":2}')
    assert accepts(typed, '{"city":"","z":2}', *bad) == [True, False, False]


def test_pydantic_models_and_types_stand_for_their_schemas() -> None:
    pydantic = pytest.importorskip("pydantic")
    Point = pydantic.create_model("Point", x=(int, ...), next=("Point | None", None))
    assert accepts(Point, '{"x":1,"next":{"x":2,"next":null}}', '{"x":"1"}') == [True, False]
    assert accepts(pydantic.TypeAdapter(list[bool]), "[true]", "[1]") == [True, False]
    assert accepts(dict[str, int], '{"a":1}', '{"a":null}') == [True, False]


def test_a_recursive_schema_that_closes_itself() -> None:
    schema = {
        "$defs": {"node": {"type": "object", "properties": {"v": {"type": "integer"}}}},
        "$ref": "#/$defs/node",
        "properties": {"next": {"$ref": "#"}},
        "unevaluatedProperties": False,
    }
    good = ('{"next":{"v":2},"v":1}', '{"next":{"next":{}}}')
    bad = ('{"v":1,"w":1}', '{"next":{"w":1}}', '{"v":"s"}')
    assert accepts(schema, *good, *bad) == [True, True, False, False, False]


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf", "if", "dependentSchemas", "contains"])
def test_what_is_looked_at_in_some_instances_is_refused(keyword: str) -> None:
    inside = {"properties": {"a": {}}}
    value = {"if": inside, "contains": {}, "dependentSchemas": {"a": inside}}.get(keyword, [inside])
    with pytest.raises(UnsupportedSchemaError, match=keyword) as caught:
        json_schema({"allOf": [{keyword: value}], "unevaluatedItems": False})
    assert caught.value.pointer == "#/unevaluatedItems"


FREE = {"type": "object", "additionalProperties": {"type": "integer"}}


def names_twice(text: bytes) -> bool:
    """Does an object anywhere in a JSON text have a name twice?"""
    twice: list[bool] = []
    json.loads(text, object_pairs_hook=lambda pairs: twice.append(len(dict(pairs)) < len(pairs)))
    return any(twice)


def test_one_other_name_is_still_there() -> None:
    found = json_schema(FREE, unique_names=True)
    texts = (b"{}", b'{"a":1}', b'{"a":1,"a":2}', b'{"a":1,"b":2}')
    assert [found.accepts(text) for text in texts] == [True, True, False, False]
    named = {"type": "object", "properties": {"a": {}, "b": {}}}
    found = json_schema(named, unique_names=True)
    texts = (b'{"a":1,"b":2,"c":3}', b'{"a":1,"b":2,"b":3}', b'{"c":3,"c":3}')
    assert [found.accepts(text) for text in texts] == [True, False, False]


# Not draft 4, which has neither boolean schemas nor an exclusiveMinimum that is a number.
OLDER = (
    "http://json-schema.org/draft-06/schema#",
    "http://json-schema.org/draft-07/schema#",
    "https://json-schema.org/draft/2019-09/schema",
)


def check(schema: Any, values: list[Any]) -> None:
    """In any order a text is accepted iff its value is valid, also of values near those that are
    drawn; in the schema's, some order of each valid value; what is drawn is valid, every state on
    the way and beside it leads to the end, and as soon as it says; and what is written out is the
    same, as deep as it goes."""
    kind = jsonschema.validators.validator_for(schema)  # 2020-12 without a $schema
    valid = kind(schema, format_checker=kind.FORMAT_CHECKER).is_valid
    try:
        free, in_order = json_schema(schema, order="any"), json_schema(schema, order="schema")
    except UnsupportedSchemaError as error:
        event(f"refused: {error.keyword}")
        return
    except UnsatisfiableSchemaError:
        event("unsatisfiable")
        assert not any(map(valid, values))
        return
    rng, values = random.Random(len(values)), list(values)
    unique = json_schema(schema, unique_names=True, whitespace="flexible")
    for language in [free, in_order, unique] * 3:
        data, state = language.sample(rng, 60), language.start
        assert language is not unique or not names_twice(data)
        for byte in data:
            aside = language.step(state, int(rng.choice(language.live_bytes(state))))
            for at in (state, aside):
                home = language.shortest(at)
                assert language.accepting[language.walk(home, at)]
                assert len(home) == language.far[at], (data, home)
            state = language.step(state, byte)
        value = json.loads(data)
        with suppress(OverflowError):  # theirs: 1e999 is an infinity, it has no multiples
            assert valid(value), data
            values += [near(value, rng) for _ in range(3)]
    written = in_order.to_dfa(depth=2)
    for value in filter(is_small, values):
        ways = [
            free.accepts(spelled(one)) or free.accepts(spelled(whole(one))) for one in orders(value)
        ]
        assert set(ways) == {valid(value)}, value
        texts = [spelled(one) for each in orders(value) for one in (each, whole(each))]
        assert any(map(in_order.accepts, texts)) == valid(value), value
        if depth(value) <= 2:
            assert list(map(written.accepts, texts)) == list(map(in_order.accepts, texts)), value


def near(value: Any, rng: random.Random) -> Any:
    """A value that differs in one place: something is left out, added, or another."""
    if isinstance(value, dict | list) and value and rng.random() < 0.8:
        changed = dict(value) if isinstance(value, dict) else dict(enumerate(value))
        at = rng.choice(list(changed))
        kind = rng.randrange(4)
        if kind == 0:
            del changed[at]
        elif kind == 1:
            changed[rng.choice(NAMES + OTHERS)] = changed[at]
        else:
            changed[at] = near(changed[at], rng)
        return changed if isinstance(value, dict) else list(changed.values())
    return rng.choice((None, True, *NUMBERS, *TEXTS, [], {}))


def is_small(value: Any) -> bool:
    """Has it few orders, and only numbers and texts that one spelling stands for?"""
    text = json.dumps(value)
    return text.count(":") <= 4 and not re.search(r"[0-9]{9}|e[+-]?[0-9]", text)


@examples(30)
@given(schemas, st.lists(instances, min_size=5, max_size=15))
def test_a_text_is_accepted_iff_its_instance_is_valid(schema: Any, values: list[Any]) -> None:
    check(schema, values)


@examples(15)
@given(st.sampled_from(OLDER), schemas, st.lists(instances, min_size=5, max_size=15))
def test_so_it_is_in_older_drafts(draft: str, schema: Any, values: list[Any]) -> None:
    check({"$schema": draft, "allOf": [schema]}, values)
