"""Formats: examples of the RFCs, the calendar, the checkers of `jsonschema`, and their bounds; and
what a draft of JSON Schema does not know yet is a note in it.
"""

from __future__ import annotations

import datetime
import itertools
import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from jsonschema.exceptions import FormatError

from bpe_automata._budget import Budget
from bpe_automata.automata.algebra import difference
from bpe_automata.errors import (
    ArgumentError,
    UnsatisfiableSchemaError,
    UnsupportedRegexError,
    UnsupportedSchemaError,
)
from bpe_automata.schemas import json_schema, yaml_schema
from bpe_automata.schemas._ecma import ecma_pattern
from bpe_automata.schemas._formats import (
    SUPPORTED,
    UNDERSTATED,
    format_language,
    format_upper_bound,
)

CHECKER = Draft202012Validator.FORMAT_CHECKER
EXAMPLES = json.loads(Path(__file__).with_name("formats.json").read_text(encoding="utf-8"))
"""format -> good: texts of it, bad: others, outside: what the RFC or a checker takes, and
`format_language` does not."""


REFUSED_BY_ITS_CHECKER = {
    **dict.fromkeys(("time", "date-time"), r":60"),
    **dict.fromkeys(("iri", "iri-reference"), r"[\U00010000-\U0010ffff]|\[[Vv]"),
    "uri-template": r"\{[^}]*([%:]|\.[%_A-Za-z0-9])",
    "relative-json-pointer": r"^[0-9]*0[0-9]",
    "regex": "",
}
"""Texts of a format, by a regex of something in them, that `jsonschema` refuses though the source
of the format allows them: leap seconds, planes above 0, escapes and lengths in names, some numbers
with a 0. (Its `regex` is Python's.)"""


def accepts(name: str, text: str) -> bool:
    return format_language(name).accepts(text.encode())


def checked(name: str, text: str) -> bool:
    try:
        CHECKER.check(text, name)
    except FormatError:
        return False
    return True


@pytest.mark.parametrize("name", sorted(SUPPORTED))
def test_examples(name: str) -> None:
    assert [text for text in EXAMPLES[name]["good"] if not accepts(name, text)] == []
    assert [text for text in EXAMPLES[name]["bad"] if accepts(name, text)] == []


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
        known = REFUSED_BY_ITS_CHECKER.get(name)
        assert checked(name, text) or (known is not None and re.search(known, text)), text


def test_a_regex_can_be_read() -> None:
    """Without what the reader of patterns refuses because it is not regular."""
    rng, dfa, read = random.Random(0), format_language("regex"), 0
    for _ in range(400):
        text = dfa.sample(rng, rng.choice((8, 20, 40))).decode()
        try:
            ecma_pattern(text, Budget())
        except UnsupportedRegexError:
            continue
        read += 1
    assert read > 200


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
        if not near.startswith("0000") and ":60" not in near:  # which `datetime` does not have
            assert accepts(name, near) == checked(name, near), near


@pytest.mark.parametrize("name", sorted(SUPPORTED))
def test_a_format_lies_in_its_larger_set(name: str) -> None:
    assert difference(format_language(name), format_upper_bound(name)).is_empty
    assert (format_upper_bound(name) is format_language(name)) == (name not in UNDERSTATED)


@pytest.mark.parametrize("name", sorted(UNDERSTATED))
def test_what_a_checker_takes_lies_in_the_larger_set(name: str) -> None:
    most, rng, outside = format_upper_bound(name), random.Random(name), EXAMPLES[name]["outside"]
    assert [text for text in outside if not most.accepts(text.encode())] == []
    assert not all(format_language(name).accepts(text.encode()) for text in outside)
    if name not in CHECKER.checkers:
        pytest.skip("jsonschema has no checker for it here")
    for _ in range(60 if name.startswith("iri") else 400):
        text = format_language(name).sample(rng, 30).decode()
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(text) + 1)
            text = text[:at] + rng.choice(("", *"01:.-/%zT@ {}\né+,P")) + text[at + 1 :]
        if not most.accepts(text.encode()):
            assert not CHECKER.conforms(text, name), text


def of(*names: str) -> list[dict[str, Any]]:
    return [{"type": "string", "format": name} for name in names]


AT = [
    {"type": "object", "properties": {"at": one}, "required": ["at"]} for one in of("date", "time")
]
ITEMS: dict[str, Any] = {"type": "array", "items": {"type": "string"}}
WITH_DATE = {**ITEMS, "contains": {"format": "date"}}


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"not": {"format": "email"}}, ["a", "a.b"], ["a@b", "a@[x:y]", "@"]),
        ({"not": {"format": "duration"}}, ["1D"], ["P1D", "p1d", "-P1D"]),
        ({"enum": ["a@b", "a b@c", "x", 1], "not": {"format": "email"}}, ["x"], ["a@b", "a b@c"]),
        ({"not": {"properties": {"a": {"format": "email"}}}}, [{"a": "x"}], [{"a": "a b@c"}]),
        (WITH_DATE, [["x", "2024-02-29"]], [["x"], ["0000-01-01"]]),
        ({**ITEMS, "not": WITH_DATE}, [["x"], []], [["2024-02-29"], ["0000-01-01"]]),
        ({**ITEMS, "not": {"items": {"format": "email"}}}, [["x"], ["a@b", "x"]], [["@"], []]),
        ({"oneOf": of("date", "date-time")}, ["2024-02-29", "1985-04-12T23:20:50.52Z"], ["x"]),
        ({"oneOf": of("hostname", "ipv4", "ipv6")}, ["a.b", "::1"], ["1.2.3.4", "xn--a", "a_b"]),
        ({"oneOf": of("email", "uri")}, ["a@b", "urn:x"], ["mailto:a@b"]),
        ({"oneOf": AT}, [{"at": "2024-02-29"}], [{"at": "12:00:60Z"}, {"at": ""}]),
        ({"if": {"format": "date"}, "then": {"pattern": "^2"}, "else": {"maxLength": 4}},
         ["2024-02-29", "abcd"], ["1999-01-01", "0000-01-01", "abcde"]),
        ({"if": {"format": "email", "maxLength": 5}, "then": False}, ["a@bcdefgh"], ["a@b", "@"]),
    ],
)  # fmt: skip
def test_formats_are_taken_away_as_far_as_they_are_known(
    schema: Any, good: list[Any], bad: list[Any]
) -> None:
    """Some instances, and that nothing invalid is accepted."""
    schema = {"type": ["string", "object", "array"], **schema}
    found = json_schema(schema)
    valid = Draft202012Validator(schema, format_checker=CHECKER).is_valid
    for value in (*good, *bad):
        accepted = found.accepts(json.dumps(value, separators=(",", ":")).encode())
        assert accepted == (value in good), value
    assert all(map(valid, good))
    rng = random.Random(0)
    for _ in range(20):
        assert valid(json.loads(found.sample(rng, 50)))


def test_names() -> None:
    names = {"type": "object", "propertyNames": {"format": "date"}, "maxProperties": 1}
    found = json_schema(names)
    assert found.accepts(b'{"2024-02-29":1}')
    assert not found.accepts(b'{"x":1}')
    undecided = names | {"properties": {"0000-01-01": {}}}
    with pytest.raises(UnsupportedSchemaError, match="0000-01-01") as refused:
        json_schema(undecided)
    assert refused.value.keyword == "format"
    with pytest.raises(UnsupportedSchemaError) as refused:
        json_schema({"type": "object", "not": {"propertyNames": {"format": "date"}}})
    assert refused.value.keyword == "not"
    required = {"type": "object", "propertyNames": {"format": "email"}, "required": ["a b@c"]}
    with pytest.raises(UnsupportedSchemaError, match="a b@c"):
        json_schema(required)


def test_nothing_that_is_sure() -> None:
    with pytest.raises(UnsatisfiableSchemaError, match="not decided"):
        json_schema({"const": "a b@c", "not": {"format": "email"}})
    with pytest.raises(UnsupportedSchemaError, match="64 values"):
        json_schema(
            {
                "type": "array",
                "uniqueItems": True,
                "items": {"enum": ["x", "a b@c"], "not": {"format": "email"}},
            }
        )


# ---------------------------------------------------------------- drafts

URIS = {
    4: "http://json-schema.org/draft-04/schema#",
    6: "http://json-schema.org/draft-06/schema#",
    7: "http://json-schema.org/draft-07/schema#",
    2019: "https://json-schema.org/draft/2019-09/schema",
    2020: "https://json-schema.org/draft/2020-12/schema",
}
SINCE = {"ipv4": 4, "date-time": 4, "json-pointer": 6, "date": 7, "iri": 7, "uuid": 2019}


@pytest.mark.parametrize("draft", URIS)
@pytest.mark.parametrize("name", SINCE)
def test_formats_are_those_of_the_draft(name: str, draft: int) -> None:
    schema = {"$schema": URIS[draft], "type": "string", "format": name}
    assert json_schema(schema).accepts(b'"a b"') == (draft < SINCE[name])
    assert not json_schema(schema, formats="all").accepts(b'"a b"')


def test_formats_that_are_not_known_exactly_are_refused_where_they_are_asserted() -> None:
    schema = {"$schema": URIS[4], "type": "string", "format": "idn-hostname"}
    assert json_schema(schema).accepts(b'"("')
    assert yaml_schema(schema).accepts(b"(\n")
    for name in ("regex", "idn-email"):  # jsonschema asserts them in any draft
        assert not json_schema(schema | {"format": name}).accepts(b'"("')
    for make in (json_schema, yaml_schema):
        with pytest.raises(UnsupportedSchemaError):
            make(schema, formats="all")
        with pytest.raises(ArgumentError):
            make(schema, formats="none")  # type: ignore[arg-type]


def test_formats_that_are_not_known_are_refused_where_all_are_asserted() -> None:
    schema = {"properties": {"a": {"type": "number", "format": "time-delta"}}}
    json_schema(schema)
    with pytest.raises(UnsupportedSchemaError, match=r"time-delta.*uuid4.*'draft'") as told:
        json_schema(schema, formats="all")
    assert told.value.pointer == "#/properties/a/format"


@pytest.mark.parametrize("version", [1, 3, 4, 5, 6, 7, 8])
def test_uuids_of_a_version_are_those_of_pydantic(version: int) -> None:
    pydantic = pytest.importorskip("pydantic")
    adapter = pydantic.TypeAdapter(getattr(pydantic, f"UUID{version}"))
    found = json_schema(adapter, formats="all")
    assert json_schema(adapter).accepts(b'""')  # no draft defines the format
    for digit, variant in itertools.product("0123456789abcdefABCDEF", repeat=2):
        text = f'"2eb8aa08-aa98-{digit}1ea-{variant}4aa-73b441d16380"'
        try:
            valid = bool(adapter.validate_json(text))
        except ValueError:
            valid = False
        assert found.accepts(text.encode()) == valid
