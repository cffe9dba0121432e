"""The drafts of JSON Schema, and what kind of value each keyword takes.

One table serves all drafts: an older spelling (`definitions`, `dependencies`, items as a list,
additionalItems, a boolean exclusiveMinimum, `id`) is read in the newer ones too, where it has no
other meaning. The reverse is not so: in a draft from before a keyword was, it is a note. What a
draft does otherwise than the newest hangs on `Draft`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from urllib.parse import unquote

TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")


@dataclass(frozen=True)
class Draft:
    """name: as people say it. number: drafts in order; later ones have their year. ref_alone: what
    stands beside a $ref is ignored. integers_by_text: 1.0 is no integer. id_keyword: the one that
    names a schema and the base of its references."""

    name: str
    number: int
    ref_alone: bool = False
    integers_by_text: bool = False
    id_keyword: str = "$id"

    def knows(self, keyword: str) -> bool:
        """Does the keyword say anything in this draft? Else it is a note."""
        until = _UNTIL.get(keyword, self.number)
        return _SINCE.get(keyword, 0) <= self.number <= until

    def defines(self, format_name: object) -> bool:
        """Is the format asserted in this draft? Else it is a note."""
        return _FORMATS.get(str(format_name), 0) <= self.number


# The first draft that has a keyword, if that is not draft 4; and the last one of those that are
# gone and are not read as older spellings.
_SINCE = {
    **dict.fromkeys(("const", "contains", "propertyNames"), 6),
    **dict.fromkeys(("if", "then", "else"), 7),
    **dict.fromkeys(("dependentRequired", "dependentSchemas", "minContains", "maxContains"), 2019),
    **dict.fromkeys(("unevaluatedItems", "unevaluatedProperties", "contentSchema"), 2019),
    **dict.fromkeys(("$anchor", "$recursiveRef", "$recursiveAnchor"), 2019),
    **dict.fromkeys(("prefixItems", "$dynamicRef", "$dynamicAnchor"), 2020),
}
_UNTIL = {"$recursiveRef": 2019, "$recursiveAnchor": 2019}
# The first draft that defines a format, if that is not draft 4. (`regex` and `idn-email` come with
# draft 7, but jsonschema asserts them before too: what it rejects must not be let through.)
_FORMATS = {
    **dict.fromkeys(("uri-reference", "uri-template", "json-pointer"), 6),
    **dict.fromkeys(("date", "time", "idn-hostname"), 7),
    **dict.fromkeys(("iri", "iri-reference", "relative-json-pointer"), 7),
    **dict.fromkeys(("duration", "uuid"), 2019),
}

DRAFT_2020 = Draft("2020-12", 2020)
_DRAFTS = {
    "json-schema.org/draft/2020-12/schema": DRAFT_2020,
    "json-schema.org/draft/2019-09/schema": Draft("2019-09", 2019),
    "json-schema.org/draft-07/schema": Draft("7", 7, ref_alone=True),
    "json-schema.org/draft-06/schema": Draft("6", 6, ref_alone=True),
    "json-schema.org/draft-04/schema": Draft("4", 4, True, True, "id"),
}


def draft_of(uri: str) -> Draft | None:
    """The draft that `$schema` names; None if it is none of those that are read."""
    return _DRAFTS.get(uri.removeprefix("http://").removeprefix("https://").removesuffix("#"))


def is_number(value: object) -> bool:
    """A finite JSON number."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return False
    return isinstance(value, int) or Decimal(value).is_finite()


def is_count(value: object) -> bool:
    """A JSON number that is a whole one, and not negative."""
    return is_number(value) and value >= 0 and value == int(value)  # type: ignore[operator, call-overload]


def is_schema(value: object) -> bool:
    """Could this be a schema?"""
    return isinstance(value, dict | bool)


def _strings(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _schemas(value: object) -> bool:
    return isinstance(value, list) and len(value) > 0 and all(map(is_schema, value))


def _named_schemas(value: object) -> bool:
    return isinstance(value, dict) and all(map(is_schema, value.values()))


def _dependencies(value: object) -> bool:
    return isinstance(value, dict) and all(
        is_schema(v) or _strings(v) or isinstance(v, str) for v in value.values()
    )


def _types(value: object) -> bool:
    return value in TYPES or (isinstance(value, list) and all(name in TYPES for name in value))


Kind = tuple[Callable[[object], bool], str]
_TEXT: Kind = (lambda value: isinstance(value, str), "a string")
_COUNT: Kind = (is_count, "a whole number that is not negative")
_SCHEMA: Kind = (is_schema, "a schema (an object or a boolean)")
_SCHEMAS: Kind = (_schemas, "a list of schemas that is not empty")
_NAMED: Kind = (_named_schemas, "an object of schemas")
_ITEMS: Kind = (
    lambda v: is_schema(v) or (isinstance(v, list) and all(map(is_schema, v))),
    "a schema or a list of schemas",
)
_BOUND: Kind = (lambda value: isinstance(value, bool) or is_number(value), "a number")

KINDS: Mapping[str, Kind] = {
    "$ref": _TEXT,
    "$dynamicRef": _TEXT,
    "$recursiveRef": _TEXT,
    "type": (_types, f"one of {', '.join(TYPES)}, or a list of them"),
    "enum": (lambda value: isinstance(value, list), "a list"),
    "minimum": (is_number, "a number"),
    "maximum": (is_number, "a number"),
    "exclusiveMinimum": _BOUND,
    "exclusiveMaximum": _BOUND,
    "multipleOf": (lambda v: is_number(v) and v > 0, "a number above 0"),  # type: ignore[operator]
    "minLength": _COUNT,
    "maxLength": _COUNT,
    "pattern": _TEXT,
    "format": _TEXT,
    "items": _ITEMS,
    "prefixItems": _SCHEMAS,
    "additionalItems": _SCHEMA,
    "unevaluatedItems": _SCHEMA,
    "contains": _SCHEMA,
    "minContains": _COUNT,
    "maxContains": _COUNT,
    "minItems": _COUNT,
    "maxItems": _COUNT,
    "uniqueItems": (lambda value: isinstance(value, bool), "true or false"),
    "properties": _NAMED,
    "patternProperties": _NAMED,
    "additionalProperties": _SCHEMA,
    "unevaluatedProperties": _SCHEMA,
    "propertyNames": _SCHEMA,
    "required": (_strings, "a list of strings"),
    "minProperties": _COUNT,
    "maxProperties": _COUNT,
    "dependencies": (_dependencies, "an object of schemas or lists of strings"),
    "dependentRequired": (
        lambda v: isinstance(v, dict) and all(map(_strings, v.values())),
        "an object of lists of strings",
    ),
    "dependentSchemas": _NAMED,
    "allOf": _SCHEMAS,
    "anyOf": _SCHEMAS,
    "oneOf": _SCHEMAS,
    "not": _SCHEMA,
    "if": _SCHEMA,
    "then": _SCHEMA,
    "else": _SCHEMA,
}

# Keywords of which the value, or each part of it, is a schema that says something of the instance.
ASSERTING = frozenset(
    keyword
    for keyword, kind in KINDS.items()
    if kind in (_SCHEMA, _SCHEMAS, _NAMED, _ITEMS) or keyword == "dependencies"
)
# Those that hold schemas only for others to refer to.
SHELVES = frozenset(("$defs", "definitions", "contentSchema"))


def parts(keyword: str, value: Any) -> list[tuple[tuple[str | int, ...], Any]]:
    """(way from the keyword, schema) for each schema that is the keyword's value or in it."""
    if keyword in ("properties", "patternProperties", "dependentSchemas", "$defs", "definitions"):
        return [((name,), v) for name, v in value.items()] if isinstance(value, dict) else []
    if keyword == "dependencies":
        found = value.items() if isinstance(value, dict) else ()
        return [((name,), v) for name, v in found if is_schema(v)]
    if isinstance(value, list):
        return [((at,), v) for at, v in enumerate(value)]
    return [((), value)]


# JSON pointers in URI fragments (RFC 6901): `#/properties/a~1b` leads to a part of a schema.


def below(pointer: str, *tokens: str | int) -> str:
    """The pointer to a part of what `pointer` leads to. Not percent-encoded, so that people can
    read it."""
    return "/".join((pointer, *(str(t).replace("~", "~0").replace("/", "~1") for t in tokens)))


def tokens_of(fragment: str) -> list[str]:
    """The steps of a pointer such as "/properties/a~1b" or "#/properties/a%20b"."""
    path = unquote(fragment.removeprefix("#"))
    return [token.replace("~1", "/").replace("~0", "~") for token in path.split("/")[1:]]
