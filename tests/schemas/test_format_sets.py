"""Formats that are only known up to a few texts, where sets are taken from one another."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from bpe_automata.automata.algebra import difference
from bpe_automata.errors import UnsatisfiableSchemaError, UnsupportedSchemaError
from bpe_automata.schemas import compile_json_schema
from bpe_automata.schemas.formats import SUPPORTED, UNDERSTATED, format_language, format_upper_bound

CHECKER = Draft202012Validator.FORMAT_CHECKER
OUTSIDE = {  # that the RFC or a checker takes, and `format_language` does not
    "date": ["0000-02-29"],
    "time": ["23:59:60Z", "12:00:00Z\n"],
    "date-time": ["1990-12-31T23:59:60Z", "0000-01-01T00:00:00Z", "1990-12-31t23:59:59z\n"],
    "duration": ["p1y", "-P1Y", "P0,5D"],
    "email": ["@", "a b@c", "a@[x:y]"],
    "hostname": ["xn--a", "a.", "\u0661", "a\n"],
    "uri": ["a://[V0.1]", "a:b\n"],
    "uri-reference": ["//[V0.1]"],
    "iri": ["a:\U00010000", "a:%zz", "a://[V0.1]"],
    "iri-reference": ["\U00010000", "//[::1]/", "//[V0.1]"],
    "uri-template": ["a b", "{%41}", "{a:1000}"],
    "relative-json-pointer": ["100", "0+1/a", "1-2#"],
}


@pytest.mark.parametrize("name", sorted(SUPPORTED))
def test_a_format_lies_in_its_larger_set(name: str) -> None:
    assert difference(format_language(name), format_upper_bound(name)).is_empty
    assert (format_upper_bound(name) is format_language(name)) == (name not in UNDERSTATED)


@pytest.mark.parametrize("name", sorted(UNDERSTATED))
def test_what_a_checker_takes_lies_in_the_larger_set(name: str) -> None:
    most, rng = format_upper_bound(name), random.Random(name)
    assert [text for text in OUTSIDE[name] if not most.accepts(text.encode())] == []
    assert not all(format_language(name).accepts(text.encode()) for text in OUTSIDE[name])
    if name not in CHECKER.checkers:
        pytest.skip("jsonschema has no checker for it here")
    for _ in range(60 if name.startswith("iri") else 400):
        text = format_language(name).sample(rng, 30).decode()
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(text) + 1)
            text = text[:at] + rng.choice(("", *"01:.-/%zT@ {}\né+,P")) + text[at + 1 :]
        if not most.accepts(text.encode()):
            assert not CHECKER.conforms(text, name), text


def check(schema: Any, good: list[Any], bad: list[Any], count: int = 40) -> None:
    """Some instances, and that nothing invalid is accepted."""
    found = compile_json_schema(schema)
    valid = Draft202012Validator(schema, format_checker=CHECKER).is_valid

    def accepts(value: Any) -> bool:
        return found.accepts(json.dumps(value, separators=(",", ":")).encode())

    assert [value for value in good if not accepts(value)] == []
    assert [value for value in bad if accepts(value)] == []
    assert all(map(valid, good))
    rng = random.Random(0)
    for _ in range(count):
        value = json.loads(found.sample(rng, 50))
        assert valid(value), value


def text_but(**schema: Any) -> dict[str, Any]:
    return {"type": "string", **schema}


def test_not() -> None:
    check(text_but(**{"not": {"format": "email"}}), ["a", "a.b"], ["a@b", "a@[x:y]", "@"])
    check(text_but(**{"not": {"format": "date"}}), ["2024-02-30", ""], ["2024-02-29", "0000-01-01"])
    check(text_but(**{"not": {"format": "ipv4"}}), ["1.2.3", "1.2.3.256"], ["1.2.3.4"])
    check(text_but(**{"not": {"format": "duration"}}), ["1D"], ["P1D", "p1d", "-P1D"])
    listed = {"enum": ["a@b", "a b@c", "x", 1], "not": {"format": "email"}}
    check(listed, ["x"], [1, "a@b", "a b@c"])


def test_not_twice_is_what_it_was() -> None:
    twice = {"type": "string", "not": {"not": {"format": "date-time"}}}
    good = ["1985-04-12T23:20:50.52Z"]
    check(twice, good, ["1990-12-31T23:59:60Z", "x"])


def test_inside_of_objects_and_arrays() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "required": ["a"],
        "additionalProperties": False,
        "not": {"properties": {"a": {"format": "email"}}},
    }
    check(schema, [{"a": "x"}], [{"a": "a@b"}, {"a": "a b@c"}])
    items = {"type": "array", "items": {"type": "string"}, "contains": {"format": "date"}}
    check(items, [["x", "2024-02-29"]], [["x"], ["0000-01-01"]])
    without = {"type": "array", "items": {"type": "string"}, "not": items}
    check(without, [["x"], []], [["2024-02-29"], ["0000-01-01"]])
    none = {"type": "array", "items": {"type": "string"}, "not": {"items": {"format": "email"}}}
    check(none, [["x"], ["a@b", "x"]], [["a@b"], ["@", "a@b"], []])


def test_one_of() -> None:
    both = {"oneOf": [text_but(format="date"), text_but(format="date-time")]}
    check(both, ["2024-02-29", "1985-04-12T23:20:50.52Z"], ["0000-01-01", "x"])
    kinds = {"oneOf": [text_but(format=name) for name in ("hostname", "ipv4", "ipv6")]}
    check(kinds, ["a.b", "::1"], ["1.2.3.4", "xn--a", "a_b"])
    over = {"oneOf": [text_but(format="email"), text_but(format="uri")]}
    check(over, ["a@b", "urn:x"], ["mailto:a@b"])
    objects = {
        "oneOf": [
            {
                "type": "object",
                "properties": {"at": text_but(format=name)},
                "required": ["at"],
                "additionalProperties": False,
            }
            for name in ("date", "time")
        ]
    }
    check(objects, [{"at": "2024-02-29"}, {"at": "12:00:00Z"}], [{"at": "12:00:60Z"}, {"at": ""}])


def test_if_then_else() -> None:
    schema = {
        "type": "string",
        "if": {"format": "date"},
        "then": {"pattern": "^2"},
        "else": {"maxLength": 4},
    }
    bad = ["1999-01-01", "0000-01-01", "abcde"]
    check(schema, ["2024-02-29", "abcd"], bad)
    with_lengths = {"type": "string", "if": {"format": "email", "maxLength": 5}, "then": False}
    check(with_lengths, ["a@bcdefgh", "abc"], ["a@b", "@"])


def test_names() -> None:
    names = {"type": "object", "propertyNames": {"format": "date"}, "maxProperties": 1}
    found = compile_json_schema(names, depth=0)
    assert found.accepts(b'{"2024-02-29":1}')
    assert not found.accepts(b'{"x":1}')
    undecided = names | {"properties": {"0000-01-01": {}}}
    with pytest.raises(UnsupportedSchemaError, match="0000-01-01") as refused:
        compile_json_schema(undecided)
    assert refused.value.keyword == "format"
    with pytest.raises(UnsupportedSchemaError) as refused:
        compile_json_schema({"type": "object", "not": {"propertyNames": {"format": "date"}}})
    assert refused.value.keyword == "format"
    required = {"type": "object", "propertyNames": {"format": "email"}, "required": ["a b@c"]}
    with pytest.raises(UnsupportedSchemaError, match="a b@c"):
        compile_json_schema(required)


def test_nothing_that_is_sure() -> None:
    with pytest.raises(UnsatisfiableSchemaError, match="not decided"):
        compile_json_schema({"const": "a b@c", "not": {"format": "email"}})
    with pytest.raises(UnsupportedSchemaError, match="8 values"):
        compile_json_schema(
            {
                "type": "array",
                "uniqueItems": True,
                "items": {"enum": ["x", "a b@c"], "not": {"format": "email"}},
            }
        )
