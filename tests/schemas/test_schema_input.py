"""Bad schemas: a typed error with the JSON pointer of the fault, within the budget."""

from __future__ import annotations

import json
import pickle
import random
import re
import sys
from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Any

import pytest

from bpe_automata._budget import Budget
from bpe_automata.errors import (
    ArgumentError,
    InvalidSchemaError,
    SchemaError,
    SchemaTooLargeError,
    UnsatisfiableSchemaError,
    UnsupportedSchemaError,
)
from bpe_automata.schemas import json_schema
from bpe_automata.schemas._documents import Document
from bpe_automata.schemas._limits import MAX_LEVELS, limited_steps
from bpe_automata.schemas._reader import Reader
from bpe_automata.schemas._regularity import check_regular
from bpe_automata.schemas._sources import MAX_NESTING
from bpe_automata.schemas._values import ALL


def cycle() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    return found


def fault(schema: Any, kind: type[SchemaError], **options: Any) -> Any:
    with pytest.raises(kind) as caught:
        json_schema(schema, **options)
    pointer = caught.value.pointer
    assert pointer in str(caught.value) or len(pointer) > 300  # the middle of a long one is cut
    return caught.value


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ("{", "#"),
        ("[]", "#"),
        ({"type": "text"}, "#/type"),
        ({"properties": {"a": {"minimum": "3"}}}, "#/properties/a/minimum"),
        ({"properties": {"a": 3}}, "#/properties"),
        ({"items": {"maxItems": -1}}, "#/items/maxItems"),
        ({"multipleOf": 0}, "#/multipleOf"),
        ({"maximum": float("nan")}, "#/maximum"),
        ({"anyOf": []}, "#/anyOf"),
        ({"required": "a"}, "#/required"),
        ({"properties": {"a/b": {"pattern": "("}}}, "#/properties/a~1b/pattern"),
        ({"patternProperties": {"[": {}}}, "#/patternProperties/["),
        ({"$ref": "#/$defs/b"}, "#/$ref"),
        ({"$ref": "#b"}, "#/$ref"),
        ({"$ref": "#/enum/0", "enum": [3]}, "#/$ref"),
        ({"$ref": "#"}, "#"),
        ({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
         "#/$defs/a"),
        ({"$defs": {"a": {"anyOf": [{"type": "null"}, {"not": {"$ref": "#/$defs/a"}}]}},
          "items": {"$ref": "#/$defs/a"}}, "#/$defs/a"),
        ({"const": ["\ud800"]}, "#/const/0"),
        ({"dependentRequired": {"\ud800": ["a"]}}, "#/dependentRequired"),
        ({"$schema": 3}, "#/$schema"),
        ({"prefixItems": [{}], "items": [{}]}, "#/items"),
        ({"const": [1, {"a": {2}}]}, "#/const/1/a"),
        ({"default": (1,)}, "#/default"),
        ({"enum": [float("inf")]}, "#/enum/0"),
        ({"maximum": Decimal("sNaN")}, "#/maximum"),
        ({"const": {"a": {1: 2}}}, "#/const/a"),
        ({"properties": {1: {}}}, "#/properties"),
        ({"maxLength": -(10**5000)}, "#/maxLength"),
        ({"const": cycle()}, "#/const/0"),
        ('{"const": NaN}', "#/const"),
        ('{"const": 1e99999999999999999999}', "#"),
    ],
)  # fmt: skip
def test_what_is_no_schema_is_told_with_its_place(schema: Any, pointer: str) -> None:
    assert fault(schema, InvalidSchemaError).pointer == pointer


@pytest.mark.parametrize("source", [None, 3, ["type"], b"\xff"])
def test_what_stands_for_no_schema_is_told(source: Any) -> None:
    with pytest.raises(ArgumentError):
        json_schema(source)


@pytest.mark.parametrize(
    ("schema", "keyword", "pointer"),
    [
        ({"pattern": "a(?=b)"}, "pattern", "#/pattern"),
        ({"items": {"pattern": r"(a)\1"}}, "pattern", "#/items/pattern"),
        ({"format": "idn-hostname"}, "format", "#/format"),
        ({"uniqueItems": True}, "uniqueItems", "#/uniqueItems"),
        ({"items": {"items": {"type": "array", "uniqueItems": True}}}, "uniqueItems",
         "#/items/items/uniqueItems"),
        ({"not": {"items": {"not": {"uniqueItems": True}}}}, "not", "#/not/items/not"),
        ({"minProperties": 2}, "minProperties", "#/minProperties"),
        ({"minProperties": 2**31}, "minProperties", "#/minProperties"),
        ({"not": {"additionalProperties": {"type": "integer"}}}, "not", "#/not"),
        ({"not": {"items": {"not": {"items": {"not": {"additionalProperties": {"const": 1}}}}}}},
         "not", "#/not/items/not/items/not"),
        ({"not": {"uniqueItems": True}}, "not", "#/not"),
        ({"$ref": "https://example.org/other.json"}, "$ref", "#/$ref"),
        ({"$schema": "http://json-schema.org/draft-03/schema#"}, "$schema", "#/$schema"),
        ({"type": ["object", "string"], "propertyNames": {"$ref": "#"}}, "propertyNames",
         "#/propertyNames"),
        ({"not": {"maxProperties": 1}}, "maxProperties", "#/not/maxProperties"),
    ],
)  # fmt: skip
def test_what_no_automaton_tells_apart_is_refused(schema: Any, keyword: str, pointer: str) -> None:
    error = fault(schema, UnsupportedSchemaError)
    assert (error.keyword, error.pointer) == (keyword, pointer)


@pytest.mark.parametrize(
    "schema",
    [
        False,
        {"type": "integer", "minimum": 3, "maximum": 2},
        {"type": "object", "properties": {"a": {"allOf": [{}, {"enum": []}]}}, "required": ["a"]},
        {"type": "array", "minItems": 1, "items": {"type": "string", "const": 3}},
        {"$ref": "#/$defs/a", "$defs": {"a": {"not": {}}}},
        {"$defs": {"a": {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}},
                         "required": ["a"]}}, "$ref": "#/$defs/a"},
    ],
)  # fmt: skip
def test_a_schema_without_values_is_told(schema: Any) -> None:
    assert fault(schema, UnsatisfiableSchemaError).pointer == "#"


def test_a_name_that_looks_like_a_keyword_is_told_with_its_place() -> None:
    inside = {"propertys": {"a": {}}, "properties": {"propertys": {}}, "default": {"requird": 1}}
    with pytest.warns(UserWarning, match=r"propertys .* at #/items: is properties meant") as told:
        json_schema({"items": inside, "_format": 1, "readonly": True})
    assert [one.filename for one in told] == [__file__]


def test_a_schema_of_5_mb_is_refused_or_read_within_the_budget() -> None:
    wide = {"properties": {f"property{i}": {"type": "string"} for i in range(130_000)}}
    assert len(json.dumps(wide)) > 4_500_000
    assert fault(wide, SchemaTooLargeError).resource == "schemas"
    unused = {"description": "x" * 5_000_000, "type": "null"}
    assert json_schema(json.dumps(unused)).accepts(b"null")


def test_schemas_inside_one_another_are_refused_by_their_depth() -> None:
    assert fault("[" * 100_000, SchemaTooLargeError).resource == "levels"
    schema: Any = {}
    for _ in range(2000):
        schema = {"items": schema}
    assert fault(schema, SchemaTooLargeError).resource == "levels"


@pytest.mark.parametrize("keyword", ["items", "properties"])
def test_schemas_inside_one_another_are_read_and_written(keyword: str) -> None:
    schema: Any = {"const": 1}
    for _ in range(MAX_NESTING - 1):
        of_kind = {"items": schema} if keyword == "items" else {"properties": {"a": schema}}
        schema = {"type": "array" if keyword == "items" else "object", **of_kind}
    begin, end = ("[", "]") if keyword == "items" else ('{"a":', "}")
    dfa = json_schema(schema, closed=True)
    for text, is_valid in (("1", True), ("2", False)):
        deep = begin * (MAX_NESTING - 1) + text + end * (MAX_NESTING - 1)
        assert dfa.accepts(deep.encode()) == is_valid


def test_schemas_inside_one_another_in_place_are_refused_by_their_depth() -> None:
    schema: Any = {}
    for _ in range(MAX_NESTING - 1):
        schema = {"not": schema}
    error = fault(schema, SchemaTooLargeError)
    assert (error.resource, error.limit) == ("levels", MAX_LEVELS)
    assert error.pointer.startswith("#/not/not/not")
    assert "use fewer levels" in str(error)


def nested(count: int, around: Callable[[Any], Any], schema: Any) -> Any:
    for _ in range(count):
        schema = around(schema)
    return schema


@pytest.mark.parametrize(
    "schema",
    [
        {"const": nested(30_000, lambda v: [v], 1)},
        {"enum": [nested(30_000, lambda v: {"a": v}, 1)]},
        {"default": nested(30_000, lambda v: [v], 1)},
        nested(3_000, lambda v: {"allOf": [v]}, {"type": "null"}),
        '{"const":' + "[" * 30_000 + "1" + "]" * 30_000 + "}",
    ],
    ids=["const", "enum", "note", "allOf", "text"],
)
def test_what_is_nested_deeply_is_refused_under_any_recursion_limit(schema: Any) -> None:
    before = sys.getrecursionlimit()
    try:
        for limit in (before, 10**6):
            sys.setrecursionlimit(limit)
            assert fault(schema, SchemaTooLargeError).resource == "levels"
    finally:
        sys.setrecursionlimit(before)


def test_a_nested_constant_is_read_and_written() -> None:
    value = nested(300, lambda v: [{"a": v}], 1)
    found = json_schema({"const": value})
    assert list(found.strings(2)) == [json.dumps(value, separators=(",", ":")).encode()]


def deeper(calls: int, schema: Any) -> Any:
    """What compiling gives below so many calls: the texts, or the error."""
    if calls:
        return deeper(calls - 1, schema)
    try:
        return json_schema(schema, budget=Budget(max_seconds=1000)).accepting.size
    except SchemaError as error:
        return str(error)


def array_of(inner: Any) -> dict[str, Any]:
    return {"type": "array", "items": inner}


@pytest.mark.parametrize("levels", [79, 80, 100, 400, 401])
@pytest.mark.parametrize("kind", ["allOf", "text", "const", "compared"])
def test_a_schema_is_refused_on_any_stack_or_on_none(kind: str, levels: int) -> None:
    integer = {"type": "integer"}
    numbers = nested(levels, array_of, {"type": "number"})
    schema = {
        "allOf": lambda: nested(levels, lambda s: {"allOf": [s]}, integer),
        "text": lambda: json.dumps(numbers),
        "const": lambda: '{"const":' + "[" * 2 * levels + "1" + "]" * 2 * levels + "}",
        "compared": lambda: numbers | {"not": nested(levels, array_of, integer)},
    }[kind]()
    found = {str(deeper(calls, schema)) for calls in (0, 50, 700)}
    assert len(found) == 1
    assert "recursion" not in found.pop()


def test_a_deep_caller_gets_its_errors_and_its_budget() -> None:
    def below(calls: int) -> Any:
        if calls:
            return below(calls - 1)
        return json_schema({"enum": [[i] for i in range(50_000)]}, budget=QUICK)

    with pytest.raises(SchemaTooLargeError) as caught:
        below(500)
    assert (caught.value.resource, caught.value.limit) == ("seconds", QUICK.max_seconds)


QUICK = Budget(max_seconds=0.3)


@pytest.mark.parametrize(
    "schema",
    [
        {"enum": [{"a": i, "b": [i]} for i in range(20_000)]},
        {"enum": [i * 1.7 for i in range(50_000)]},
        {"enum": [f"s{i * 7919}" for i in range(500_000)]},
    ],
    ids=["objects", "numbers", "strings"],
)
@pytest.mark.parametrize("seconds", [0.02, 0.3])
def test_the_seconds_of_a_budget_end_a_call(schema: Any, seconds: float) -> None:
    with pytest.raises(SchemaTooLargeError) as caught:
        json_schema(schema, budget=Budget(max_seconds=seconds))
    assert caught.value.resource == "seconds"


def test_a_recursive_condition_does_not_multiply() -> None:
    schema = {"if": {"properties": {"a": {"$ref": "#"}}}, "then": {"required": ["b"]}}
    dfa = json_schema(schema)
    good = (b'{"a":1,"b":2}', b'{"a":{"a":1}}', b'{"b":1}', b'{"a":{},"b":1}', b'{"a":{}}', b"3")
    bad = (b'{"a":1}', b"{}", b'{"a":{"a":1,"b":1}}', b'{"a":{"b":1}}')
    assert [dfa.accepts(text) for text in good + bad] == [True] * len(good) + [False] * len(bad)


def test_what_is_compared_counts_to_the_budget() -> None:
    taken = {
        "not": {"items": {"properties": {f"p{i}": {"required": [f"q{i}"]} for i in range(20)}}}
    }
    values = Reader(Document({"properties": {"x": taken}})).values("#")
    with limited_steps(30), pytest.raises(SchemaTooLargeError) as caught:
        check_regular(values)
    assert (caught.value.resource, caught.value.pointer) == ("comparisons", "#/properties/x")


def test_alternatives_that_multiply_are_refused() -> None:
    either = [{"anyOf": [{"required": [f"{i}{k}"]} for k in "abcd"]} for i in range(12)]
    assert fault({"allOf": either}, SchemaTooLargeError).resource == "terms"


@pytest.mark.parametrize(
    ("schema", "resource", "pointer"),
    [
        ('{"minimum": 1e99999999}', "digits", "#/minimum"),
        ('{"items": {"const": [1e-99999999]}}', "digits", "#/items/const/0"),
        ('{"minLength": 1e99999999}', "digits", "#/minLength"),
        ({"const": 10**30_000}, "digits", "#/const"),
        ({"items": {"type": "null"}, "maxItems": 2**31 - 1}, "items or members", "#/maxItems"),
        ({"minItems": 10**8}, "items or members", "#/minItems"),
        ({"maxProperties": 2**31 - 1}, "items or members", "#/maxProperties"),
        ({"items": {"minLength": 2**31}}, "bytes", "#/items/minLength"),
        ({"items": {"pattern": "(a|b){99999999}"}}, "instructions", "#/items/pattern"),
        (
            {"patternProperties": {"x{99999999}": {}}},
            "instructions",
            "#/patternProperties/x{99999999}",
        ),
        ({"items": {"multipleOf": 1e-300}}, "states", "#/items/multipleOf"),
    ],
)  # fmt: skip
def test_what_would_be_endless_to_write_is_refused(
    schema: Any, resource: str, pointer: str
) -> None:
    error = fault(schema, SchemaTooLargeError)
    assert (error.resource, error.pointer) == (resource, pointer)


def test_large_counts_that_do_not_bind_are_read() -> None:
    few = {"type": "object", "properties": {"a": {"const": 1}}, "additionalProperties": False}
    found = json_schema({**few, "maxProperties": 2**31 - 1})
    assert found.accepts(b'{"a":1}')
    assert found.accepts(b"{}")
    assert not found.accepts(b'{"b":1}')
    pair = {"type": "array", "prefixItems": [{"const": 1}], "items": False, "maxItems": 2**31 - 1}
    found = json_schema(pair)
    assert found.accepts(b"[1]")
    assert not found.accepts(b"[1,1]")


@pytest.mark.parametrize("schema", ['{"const": 1%s}' % ("0" * 4999), {"const": 10**4999}])
def test_a_number_of_more_digits_than_an_int_takes_is_read_exactly(schema: Any) -> None:
    found = json_schema(schema)
    assert found.accepts(b"1" + b"0" * 4999)
    assert not found.accepts(b"1" + b"0" * 5000)


def test_errors_of_pydantic_are_told_as_ours() -> None:
    pydantic = pytest.importorskip("pydantic")
    called = pydantic.create_model("Called", f=(Callable[[int], int], ...))
    unknown = pydantic.create_model("Unknown", f=("Nowhere", ...))

    def unfit(f: Callable[[int], int]) -> None: ...

    def places(*rest: int) -> None: ...

    for source in (called, unknown, unfit, places, pydantic.TypeAdapter(called)):
        with pytest.raises(ArgumentError, match="has no schema"):
            json_schema(source)


@pytest.mark.parametrize(
    "pattern", [r"^\W$", r"^[^\w]$", r"^\s$", r"^\D\d$", re.compile(r"\A[0-9]{4}\Z")]
)
def test_what_a_model_describes_is_what_it_reads(pattern: Any) -> None:
    pydantic = pytest.importorskip("pydantic")
    sign = Annotated[str, pydantic.Field(pattern=pattern)]
    model = pydantic.create_model("Row", sign=(sign, ...), by_sign=(dict[sign, int], ...))
    found, rng = pickle.loads(pickle.dumps(json_schema(model, closed=True))), random.Random(0)
    for _ in range(30):
        model.model_validate_json(found.sample(rng, 60))


def test_the_schema_of_a_model_is_read_as_ecma_says_once_it_is_a_dict() -> None:
    schema = {"type": "string", "pattern": r"^\W$"}
    assert json_schema(schema).accepts('"é"'.encode())
    with pytest.raises(InvalidSchemaError, match=r"differ about \\A"):
        json_schema({"type": "string", "pattern": r"\A[0-9]{4}\Z"})


def test_a_model_may_write_its_own_schema() -> None:
    pydantic = pytest.importorskip("pydantic")

    class Own(pydantic.BaseModel):  # type: ignore[misc, name-defined]
        @classmethod
        def model_json_schema(cls) -> dict[str, Any]:
            return {"const": 1}

    assert json_schema(Own).accepts(b"1")


def test_flags_of_a_pattern_are_not_lost() -> None:
    pydantic = pytest.importorskip("pydantic")
    text = pydantic.StringConstraints(pattern=re.compile("a b", re.VERBOSE))
    with pytest.raises(ArgumentError, match=r"re\.VERBOSE.* 'a b'"):
        json_schema(pydantic.TypeAdapter(Annotated[str, text]))


def test_other_arguments_by_name_have_their_type() -> None:
    pytest.importorskip("pydantic")

    def typed(a: int, **others: int) -> None: ...

    def free(**others: Any) -> None: ...

    found = json_schema(typed)
    accepted = [found.accepts(t) for t in (b'{"a":1}', b'{"a":1,"z":2}', b'{"a":1,"z":"s"}')]
    assert accepted == [True, True, False]
    assert not found.accepts(b'{"z":2}')
    assert json_schema(free).accepts(b'{"z":"s"}')


def test_what_a_set_is_compared_with_is_not_kept_for_ever() -> None:
    before = len(ALL.memo)
    for value in range(3):
        json_schema({"properties": {"a": {"not": {"const": value}}}})
    assert len(ALL.memo) <= before + 1


def test_deep_sets_that_something_is_taken_from() -> None:
    """Sets deep inside are written first, in the order that is asked for when it is their turn."""
    deep: dict[str, Any] = {"type": "boolean"}
    for _ in range(20):
        deep = {"type": "object", "properties": {"a": deep}, "additionalProperties": False}
    names = [f"p{k}" for k in range(5)]
    schema = {
        "type": "object",
        "properties": {"a": deep, **{name: {"const": 1} for name in names}},
        "additionalProperties": False,
        "not": {"required": names},
    }
    found = json_schema(schema)
    inside = '{"a":' * 20 + "true" + "}" * 20
    assert found.accepts(f'{{"a":{inside},"p0":1,"p4":1}}'.encode())
    all_names = ",".join(f'"{name}":1' for name in names)
    assert not found.accepts(f'{{"a":{inside},{all_names}}}'.encode())
