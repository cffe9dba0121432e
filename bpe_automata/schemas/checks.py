"""Looked at before anything is read: each keyword's kind of value, and keywords that are refused
whatever they say. A keyword that the specification does not know is a note, and passed over."""

from __future__ import annotations

from typing import Any

from bpe_automata.arguments import short
from bpe_automata.errors import InvalidSchemaError, UnsupportedSchemaError
from bpe_automata.schemas.documents import Part
from bpe_automata.schemas.drafts import KINDS, TYPES, below
from bpe_automata.schemas.formats import DEFINED, SUPPORTED

_TEXTS = ("required", "const", "enum", "pattern", "dependentRequired")
_BY_NAME = ("properties", "patternProperties", "dependentSchemas", "dependencies")


def check_keywords(part: Part) -> None:
    """Raises InvalidSchemaError, UnsupportedSchemaError with the pointer of the first fault."""
    schema = part.schema
    if not isinstance(schema, dict):
        return
    if part.draft.ref_alone and "$ref" in schema:
        schema = {"$ref": schema["$ref"]}
    for keyword, value in schema.items():
        kind = KINDS.get(keyword)
        if kind is not None and not kind[0](value):
            where = below(part.pointer, keyword)
            raise InvalidSchemaError(where, f"{keyword} is {short(value)}, not {kind[1]}")
    if isinstance(schema.get("items"), list) and "prefixItems" in schema:
        where = below(part.pointer, "items")
        raise InvalidSchemaError(where, "beside prefixItems, items is one schema, not a list")
    _check_texts(part.pointer, schema)
    _check_format(part.pointer, schema)


def _check_texts(pointer: str, schema: dict[str, Any]) -> None:
    """Names and texts must be texts: half a surrogate pair has no UTF-8."""
    for keyword in _TEXTS + _BY_NAME:
        value = schema.get(keyword)
        try:
            _encoded(list(value) if keyword in _BY_NAME and value else value)
        except UnicodeEncodeError:
            why = "half of a surrogate pair in it has no UTF-8"
            raise UnsupportedSchemaError(keyword, below(pointer, keyword), why) from None


def _encoded(value: Any) -> None:
    """Raises UnicodeEncodeError for a text in a JSON value that is none."""
    waiting = [value]
    while waiting:
        here = waiting.pop()
        if isinstance(here, str):
            here.encode()
        elif isinstance(here, list | tuple):
            waiting += here
        elif isinstance(here, dict):
            waiting += [*here, *here.values()]


def _check_format(pointer: str, schema: dict[str, Any]) -> None:
    name = schema.get("format")
    if name in DEFINED and name not in SUPPORTED and _may_be(schema, "string"):
        why = f"{name!r} is no set of texts that is known here exactly"
        raise UnsupportedSchemaError("format", below(pointer, "format"), why)


def types_of(schema: dict[str, Any]) -> frozenset[str]:
    """The types that a schema's own `type` allows."""
    types = schema.get("type", TYPES)
    return frozenset((types,) if isinstance(types, str) else types)


def _may_be(schema: dict[str, Any], kind: str) -> bool:
    return kind in types_of(schema)
