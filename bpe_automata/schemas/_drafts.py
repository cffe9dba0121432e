"""Lists the keywords and formats of each draft of JSON Schema, and the values keywords may have.

One table serves all drafts. An older spelling (`definitions`, `dependencies`, items as a list,
additionalItems, a boolean exclusiveMinimum, `id`) is also read in newer drafts, where it has no
other meaning; a keyword in a draft older than itself is a note. `Draft` has all other differences.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

from bpe_automata._sharing import cached

_NEAR = 0.83  # by `difflib`, of a name that is a keyword misspelled
REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
DEPENDENT_SCHEMAS = ("dependentSchemas", "dependencies")
TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")


@dataclass(frozen=True)
class Draft:
    """number: orders the drafts; later ones have their year. ref_alone: keywords next to a $ref are
    ignored. id_keyword: sets the URI of a schema. agreed:
    patterns match where all dialects find a match, not only ECMA-262."""

    name: str
    number: int
    ref_alone: bool = False
    id_keyword: str = "$id"
    agreed: bool = False

    def __hash__(self) -> int:
        return self.number

    @cached
    def notes(self) -> frozenset[str]:
        """The keywords of other drafts that have no meaning in this one."""
        newer = (keyword for keyword, since in _SINCE.items() if self.number < since)
        dropped = (keyword for keyword, until in _UNTIL.items() if until < self.number)
        return frozenset((*newer, *dropped))

    def defines(self, format_name: object) -> bool:
        """Whether this draft defines the format; otherwise it is a note."""
        return _FORMATS.get(str(format_name), math.inf) <= self.number


# The first draft that has a keyword, if that is not draft 4, and the last draft that has it, if a
# newer one dropped it and it is not read as an older spelling.
_SINCE = {
    **dict.fromkeys(("const", "contains", "propertyNames"), 6),
    **dict.fromkeys(("if", "then", "else"), 7),
    **dict.fromkeys(("dependentRequired", "dependentSchemas", "minContains", "maxContains"), 2019),
    **dict.fromkeys(("unevaluatedItems", "unevaluatedProperties", "contentSchema"), 2019),
    **dict.fromkeys(("$anchor", "$recursiveRef", "$recursiveAnchor"), 2019),
    **dict.fromkeys(("prefixItems", "$dynamicRef", "$dynamicAnchor"), 2020),
}
_UNTIL = {"$recursiveRef": 2019, "$recursiveAnchor": 2019}
# The first draft that defines a format. (`regex` and `idn-email` came with
# draft 7, but jsonschema asserts them in older drafts, and what it rejects must not be accepted.)
_FORMATS = {
    **dict.fromkeys(("date-time", "email", "hostname", "ipv4", "ipv6", "uri"), 4),
    **dict.fromkeys(("regex", "idn-email"), 4),
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
    "json-schema.org/draft-04/schema": Draft("4", 4, True, "id"),
}


def draft_of(uri: str) -> Draft | None:
    """The draft that `$schema` names; None if it is not supported."""
    return _DRAFTS.get(uri.removeprefix("http://").removeprefix("https://").removesuffix("#"))


def is_number(value: object) -> bool:
    """A JSON number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_count(value: object) -> bool:
    """An integer JSON number that is not negative."""
    return is_number(value) and value >= 0 and value == int(value)  # type: ignore[operator, call-overload]


def is_schema(value: object) -> bool:
    """Whether the value has the form of a schema."""
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


Expected = tuple[Callable[[object], bool], str]  # (test of a value, words for messages)
_TEXT: Expected = (lambda value: isinstance(value, str), "a string")
_COUNT: Expected = (is_count, "a whole number that is not negative")
_SCHEMA: Expected = (is_schema, "a schema (an object or a boolean)")
_SCHEMAS: Expected = (_schemas, "a list of schemas that is not empty")
_NAMED: Expected = (_named_schemas, "an object of schemas")
_ITEMS: Expected = (
    lambda v: is_schema(v) or (isinstance(v, list) and all(map(is_schema, v))),
    "a schema or a list of schemas",
)
_BOUND: Expected = (lambda value: isinstance(value, bool) or is_number(value), "a number")

# Keywords for a single type, but `contains`, which looks at values inside.
OF_STRINGS: Mapping[str, Expected] = {
    "minLength": _COUNT,
    "maxLength": _COUNT,
    "pattern": _TEXT,
    "format": _TEXT,
}
OF_NUMBERS: Mapping[str, Expected] = {
    "minimum": (is_number, "a number"),
    "maximum": (is_number, "a number"),
    "exclusiveMinimum": _BOUND,
    "exclusiveMaximum": _BOUND,
    "multipleOf": (lambda v: is_number(v) and v > 0, "a number above 0"),  # type: ignore[operator]
}
OF_ARRAYS: Mapping[str, Expected] = {
    "items": _ITEMS,
    "prefixItems": _SCHEMAS,
    "additionalItems": _SCHEMA,
    "unevaluatedItems": _SCHEMA,
    "minItems": _COUNT,
    "maxItems": _COUNT,
    "uniqueItems": (lambda value: isinstance(value, bool), "true or false"),
}
OF_OBJECTS: Mapping[str, Expected] = {
    "properties": _NAMED,
    "patternProperties": _NAMED,
    "additionalProperties": _SCHEMA,
    "unevaluatedProperties": _SCHEMA,
    "propertyNames": _SCHEMA,
    "required": (_strings, "a list of strings"),
    "minProperties": _COUNT,
    "maxProperties": _COUNT,
}
EXPECTED: Mapping[str, Expected] = {
    **dict.fromkeys(REFERENCES, _TEXT),
    "type": (_types, f"one of {', '.join(TYPES)}, or a list of them"),
    "enum": (lambda value: isinstance(value, list), "a list"),
    **OF_STRINGS,
    **OF_NUMBERS,
    **OF_ARRAYS,
    **OF_OBJECTS,
    "contains": _SCHEMA,
    "minContains": _COUNT,
    "maxContains": _COUNT,
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

# Keywords whose value is a schema, or has schemas in it, that apply to the instance.
ASSERTING = frozenset(
    keyword
    for keyword, expected in EXPECTED.items()
    if expected in (_SCHEMA, _SCHEMAS, _NAMED, _ITEMS) or keyword == "dependencies"
)
# Keywords with schemas that apply only where they are referred to.
DEFINITIONS = frozenset(("$defs", "definitions", "contentSchema"))


_OTHERS = frozenset(("$id", "$schema", "$anchor", "$dynamicAnchor", "contentMediaType", "title"))
"""Keywords that say nothing of values, and that others look like."""


@lru_cache(maxsize=1024)
def near_keyword(name: str) -> str | None:
    """The keyword that a name looks like which is none; people begin notes of theirs with `_`."""
    known = EXPECTED.keys() | DEFINITIONS
    if name in known | _OTHERS or not name[:1].isalpha() or len(name) < 5:
        return None
    found = get_close_matches(name, known, 1, _NEAR)
    return found[0] if found else None


def parts(keyword: str, value: Any) -> list[tuple[tuple[str | int, ...], Any]]:
    """(tokens of the pointer from the keyword, schema) for each schema in the keyword's value."""
    if keyword in ("properties", "patternProperties", "dependentSchemas", "$defs", "definitions"):
        return [((name,), v) for name, v in value.items()] if isinstance(value, dict) else []
    if keyword == "dependencies":
        found = value.items() if isinstance(value, dict) else ()
        return [((name,), v) for name, v in found if is_schema(v)]
    if isinstance(value, list):
        return [((at,), v) for at, v in enumerate(value)]
    return [((), value)]


# JSON pointers in URI fragments (RFC 6901), such as `#/properties/a~1b`.


def below(pointer: str, *tokens: str | int) -> str:
    """The pointer with more tokens. It is not percent-encoded, so that people can read it."""
    for token in tokens:
        text = str(token)
        if "~" in text or "/" in text:
            text = text.replace("~", "~0").replace("/", "~1")
        pointer = f"{pointer}/{text}"
    return pointer


def tokens_of(fragment: str) -> list[str]:
    """The tokens of a pointer such as "/properties/a~1b", "#/properties/a%20b", "b.json#/items"."""
    path = unquote(fragment[fragment.find("#") + 1 :])
    return [token.replace("~1", "/").replace("~0", "~") for token in path.split("/")[1:]]
