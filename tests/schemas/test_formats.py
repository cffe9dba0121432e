"""Formats: examples of the RFCs, the calendar, the checkers of `jsonschema`, and their bounds."""

from __future__ import annotations

import datetime
import ipaddress
import json
import random
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from jsonschema.exceptions import FormatError

from bpe_automata.automata.algebra import difference
from bpe_automata.errors import ArgumentError, UnsatisfiableSchemaError, UnsupportedSchemaError
from bpe_automata.schemas import compile_json_schema
from bpe_automata.schemas.formats import (
    DEFINED,
    SUPPORTED,
    UNDERSTATED,
    format_language,
    format_upper_bound,
)

CHECKER = Draft202012Validator.FORMAT_CHECKER
GOOD = {
    "date": ("2024-02-29", "2000-02-29", "1999-12-31", "0001-01-01"),
    "time": ("23:59:59Z", "00:00:00.123+05:30", "12:00:00z", "01:02:03-00:00"),
    "date-time": ("1985-04-12T23:20:50.52Z", "1996-12-19t16:39:57-08:00"),
    "duration": ("P4DT12H30M5S", "PT0S", "P1Y2M3D", "P4Y", "P2W", "PT36H", "P1M", "PT1M"),
    "email": (
        *("a@b", "joe.bloggs@example.com", "te~st@example.com", '"joe bloggs"@example.com'),
        *(r'"a\"b@"@x.y', "joe@[127.0.0.1]", "joe@[IPv6:::1]", "joe@[IPv6:1:2:3:4:5:6:7:8]"),
    ),
    "hostname": ("a", "www.example.com", "1host", "a" * 63, "a-b--c", "x." * 126 + "y"),
    "ipv4": ("0.0.0.0", "255.249.199.9"),
    "ipv6": (
        "::",
        "::1",
        "1::",
        "1:2:3:4:5:6:7:8",
        "1::8",
        "::ffff:1.2.3.4",
        "1:2:3:4:5:6:1.2.3.4",
    ),
    "uri": (
        *(
            "http://foo.bar/?baz=qux#quux",
            "urn:oasis:names:x",
            "mailto:a@b.c",
            "a:",
            "ftp://h:21/p",
        ),
        *("ldap://[2001:db8::7]/c=GB?one", "tel:+1-816", "http://[v1.a:b]/", "http://u:p@h", "a:/"),
    ),
    "uri-reference": ("", "/abc", "//h/p", "a/b:c", "#x", "?y", "../z", "%41", "http://a"),
    "iri": ("http://ƒøø.ßår/?∂éœ=πîx#πîüx", "a:日"),
    "iri-reference": ("âππ", "#ƒrägmênt", ""),
    "uri-template": (
        "http://x/d{/term:1,list*}{?q}",
        "",
        "{+path}/a",
        "{a.b}",
        "a'b",
        "\U00010300",
    ),
    "json-pointer": ("", "/", "/foo//bar~0/baz~1/%a", "/日"),
    "relative-json-pointer": ("0", "1/foo", "0#", "12/a~1"),
    "uuid": ("2eb8aa08-aa98-11ea-b4aa-73b441d16380", "2EB8AA08-AA98-11EA-B4Aa-73B441D16380"),
}
BAD = {
    "date": ("2023-02-29", "1900-02-29", "2021-04-31", "2021-13-01", "21-01-01", "2021-1-1", ""),
    "time": ("24:00:00Z", "12:60:00Z", "12:00:00", "12:00Z", "12:00:00.Z", "12:00:00+24:00"),
    "date-time": ("1990-02-31T15:59:59Z", "1990-12-31 15:59:59Z", "1990-12-31T15:59:59"),
    "duration": ("P", "PT", "P1", "1D", "P1D2H", "P2D1Y", "P1YT", "P1Y2W", "P1Y3D", "PT1H2S"),
    "email": ("joe", ".a@b", "a.@b", "a..b@c", "a b@c", "a@b_c", "a@-b", "a@[1.2.3]", "a@"),
    "hostname": ("", "-a", "a-", "a_b", "a" * 64, "a..b", "a.", "x." * 127 + "y", "xn--a", "é"),
    "ipv4": ("256.0.0.1", "1.2.3", "1.2.3.4.5", "01.2.3.4", "1.2.3.4\n", "1.2.3.4/8"),
    "ipv6": (
        "",
        ":",
        "1:2",
        "1:2:3:4:5:6:7:8:9",
        "1::2::3",
        ":::",
        "12345::",
        "::1%e",
        "1:2:3:4:5:6:7::8",
    ),
    "uri": (
        "//foo",
        "a b",
        "http:// x",
        ":a",
        "a:%zz",
        "bar,baz:foo",
        "http://[::1",
        "a:[",
        "é:x",
        "a:é",
        "a://[V0.1]",  # the RFC takes it, checkers do not: see UNDERSTATED
    ),
    "uri-reference": ("a b", r"\\W", "%4", "1:2:", "#a#b"),
    "iri": ("/abc", "http://2001:db8::7]", "âππ", "a:\ue000"),
    "iri-reference": ("a b", r"\\WINDOWS"),
    "uri-template": ("{", "{}", "}", "{a", "a b", "{a:0}", "{|a}"),
    "json-pointer": ("a", "/~", "/~2", "#/a"),
    "relative-json-pointer": ("", "/a", "-1", "01", "0##", "1#/a"),
    "uuid": ("2eb8aa08aa9811eab4aa73b441d16380", "2eb8aa08-aa98-11ea-b4ga-73b441d16380", ""),
}


def accepts(name: str, text: str) -> bool:
    return format_language(name).accepts(text.encode())


def checked(name: str, text: str) -> bool:
    try:
        CHECKER.check(text, name)
    except FormatError:
        return False
    return True


def test_every_format_has_examples() -> None:
    assert set(GOOD) == set(BAD) == SUPPORTED
    assert {"idn-email", "idn-hostname", "regex"} == DEFINED - SUPPORTED
    assert UNDERSTATED <= SUPPORTED


@pytest.mark.parametrize("name", sorted(SUPPORTED))
def test_examples(name: str) -> None:
    assert [text for text in GOOD[name] if not accepts(name, text)] == []
    assert [text for text in BAD[name] if accepts(name, text)] == []


def test_every_day_of_the_calendar() -> None:
    for year in (1, 4, 100, 400, 1900, 1999, 2000, 2023, 2024, 9999):
        for month in range(14):
            for day in range(33):
                assert accepts("date", f"{year:04}-{month:02}-{day:02}") == is_day(year, month, day)


def is_day(year: int, month: int, day: int) -> bool:
    try:
        datetime.date(year, month, day)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("name", sorted(SUPPORTED))
def test_what_is_in_passes_the_checker(name: str) -> None:
    if name not in CHECKER.checkers:
        pytest.skip("jsonschema has no checker for it here")
    rng, dfa = random.Random(name), format_language(name)
    for _ in range(15 if name.startswith("iri") else 60):  # iri: a slow parser
        text = dfa.sample(rng, rng.choice((8, 30, 90))).decode()
        assert checked(name, text), text


@pytest.mark.parametrize(
    "name", ["date", "time", "date-time", "ipv4", "ipv6", "uri", "uri-reference"]
)
def test_near_misses_are_told_apart_as_the_checker_does(name: str) -> None:
    if name not in CHECKER.checkers:
        pytest.skip("jsonschema has no checker for it here")
    rng, dfa = random.Random(name), format_language(name)
    for _ in range(200):
        text = dfa.sample(rng, 30).decode()
        at = rng.randrange(len(text) + 1)
        near = text[:at] + rng.choice(("", *"01:.-/%z@92 a")) + text[at + rng.randrange(2) :]
        if not near.startswith("0000"):  # a year that `datetime` does not have
            assert accepts(name, near) == checked(name, near), near


def test_addresses_of_ipv6() -> None:
    rng = random.Random(0)
    for _ in range(3_000):
        parts = [
            "".join(rng.choices("0aF9", k=rng.randrange(6))) for _ in range(rng.randrange(1, 10))
        ]
        text = ":".join(parts) + rng.choice(("", "", ":1.2.3.4", "::"))
        try:
            ipaddress.IPv6Address(text)
            valid = True
        except ValueError:
            valid = False
        assert accepts("ipv6", text) == valid, text


def test_an_unknown_format() -> None:
    with pytest.raises(ArgumentError, match="colour"):
        format_language("colour")


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
