"""Lists the keywords and formats of each draft of JSON Schema, and the values keywords may have.

One table serves all drafts. An older spelling (`definitions`, `dependencies`, items as a list,
additionalItems, a boolean exclusiveMinimum, `id`) is also read in newer drafts, where it has no
other meaning; a keyword that is newer than the draft is a note. `Draft` has all other differences.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

from bpe_automata._sharing import cached

_NEAR = 0.83  # similarity by `difflib` of a name that counts as a misspelled keyword
DEPENDENT_SCHEMAS = ("dependentSchemas", "dependencies")
COUNTED = ("Length", "Items", "Properties", "Contains")
TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")


@dataclass(frozen=True)
class Draft:
    """number: orders the drafts; later ones have their year. ref_alone: whether keywords next to a
    $ref are ignored. id_keyword: the one that sets the URI of a schema. agreed: whether patterns
    match only where all dialects find a match, not just ECMA-262."""

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


def is_schema(value: object) -> bool:
    """Whether the value has the form of a schema."""
    return isinstance(value, dict | bool)


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _list_of(test: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: isinstance(value, list) and all(map(test, value))


def _object_of(test: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: isinstance(value, dict) and all(map(test, value.values()))


def _text(value: object) -> bool:
    return isinstance(value, str)


_SCHEMA = ("a schema (an object or a boolean)", is_schema)
_KINDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "type": (
        f"one of {', '.join(TYPES)}, or a list of them",
        lambda v: v in TYPES or (isinstance(v, list) and all(name in TYPES for name in v)),
    ),
    "enum": ("a list", lambda v: isinstance(v, list)),
    "uniqueItems": ("true or false", lambda v: isinstance(v, bool)),
    "multipleOf": ("a number above 0", lambda v: _number(v) and v > 0),
    "items": ("a schema or a list of schemas", lambda v: is_schema(v) or _list_of(is_schema)(v)),
    "required": ("a list of strings", _list_of(_text)),
    "dependentRequired": ("an object of lists of strings", _object_of(_list_of(_text))),
    "dependencies": (
        "an object of schemas or lists of strings",
        _object_of(lambda v: is_schema(v) or _text(v) or _list_of(_text)(v)),
    ),
    **dict.fromkeys(("minimum", "maximum"), ("a number", _number)),
    **dict.fromkeys(
        ("exclusiveMinimum", "exclusiveMaximum"),
        ("a number", lambda v: isinstance(v, bool) or _number(v)),
    ),
    **dict.fromkeys(
        ("$ref", "$dynamicRef", "$recursiveRef", "pattern", "format"), ("a string", _text)
    ),
    **dict.fromkeys(
        (f"{bound}{what}" for bound in ("min", "max") for what in COUNTED),
        ("a whole number that is not negative", lambda v: _number(v) and v >= 0 and v == int(v)),
    ),
    **dict.fromkeys(
        ("allOf", "anyOf", "oneOf", "prefixItems"),
        ("a list of schemas that is not empty", lambda v: v != [] and _list_of(is_schema)(v)),
    ),
    **dict.fromkeys(
        ("properties", "patternProperties", "dependentSchemas"),
        ("an object of schemas", _object_of(is_schema)),
    ),
    **dict.fromkeys(("additionalItems", "unevaluatedItems", "contains"), _SCHEMA),
    **dict.fromkeys(("additionalProperties", "unevaluatedProperties", "propertyNames"), _SCHEMA),
    **dict.fromkeys(("not", "if", "then", "else"), _SCHEMA),
}


def fault_of(keyword: str, value: object) -> str | None:
    """A description of what the value of a keyword must be; None if it is that."""
    words, fits = _KINDS.get(keyword, ("", None))
    return None if fits is None or fits(value) else words


ASSERTING = frozenset(name for name, (words, _) in _KINDS.items() if "schema" in words)
"""Keywords whose value is a schema, or has schemas in it, that apply to the instance."""
DEFINITIONS = frozenset(("$defs", "definitions", "contentSchema"))
"""Keywords with schemas that apply only where they are referred to."""
OF_STRINGS = frozenset(("minLength", "maxLength", "pattern", "format"))
OF_NUMBERS = frozenset(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"))
OF_ARRAYS = frozenset(name for name in _KINDS if name.endswith(("Items", "items")))
OF_OBJECTS = frozenset(name for name in _KINDS if "ropert" in name) | {"required"}

_OF_NAMES = frozenset(("properties", "patternProperties", "$defs", "definitions"))
_OF_NAMES |= frozenset(DEPENDENT_SCHEMAS)
_OTHERS = frozenset(("$id", "$schema", "$anchor", "$dynamicAnchor", "contentMediaType", "title"))
"""Keywords that say nothing of values, which `near_keyword` must not take for misspelled ones."""


@lru_cache(maxsize=1024)
def near_keyword(name: str) -> str | None:
    """The keyword that a name looks like, if it is none itself. A name that does not begin with a
    letter looks like none: people begin their own notes with `_`."""
    keywords = _KINDS.keys() | DEFINITIONS
    if name in keywords | _OTHERS or not name[:1].isalpha() or len(name) < 5:
        return None
    found = get_close_matches(name, keywords, 1, _NEAR)
    return found[0] if found else None


def parts(keyword: str, value: Any) -> list[tuple[tuple[str | int, ...], Any]]:
    """(tokens of the pointer from the keyword, schema) for each schema in the keyword's value."""
    if keyword in _OF_NAMES:
        return [((name,), v) for name, v in value.items()] if isinstance(value, dict) else []
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
