"""One schema document: where its parts are, what they are called, and where a $ref leads.

A part is known by its pointer. `$id` gives a part a URI and its references a base, `$anchor` a name
inside the nearest `$id`; other documents are never fetched.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import islice
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

from bpe_automata.budget import check
from bpe_automata.errors import InvalidSchemaError, SchemaTooLargeError, UnsupportedSchemaError
from bpe_automata.schemas.drafts import (
    ASSERTING,
    DRAFT_2020,
    SHELVES,
    Draft,
    below,
    draft_of,
    is_schema,
    parts,
    tokens_of,
)

# Is a Python value JSON at all? A schema from a program may hold anything.

# The steps to a value, the last one outermost: pointers are made only for messages.
_Way = tuple[()] | tuple["_Way", str | int]
MAX_LEVELS = 801  # two for each level of schemas, which `documents` bounds
MAX_DIGITS = 20_000  # of a number: 1e99999999 is short, but what is made of it is not
_LEAST_TOO_LONG = 10**MAX_DIGITS


def check_json(schema: Any) -> None:
    """Raises InvalidSchemaError, with the pointer, for what JSON has not: a set, a tuple, a NaN, a
    name that is no string, a list that holds itself; SchemaTooLargeError for a number of more than
    MAX_DIGITS digits, and for more than MAX_NESTING lists and objects inside one another."""
    fine: set[int] = set()  # containers that hold only JSON
    around: set[int] = set()  # those that the walk is inside of
    waiting: list[tuple[_Way, Any, bool]] = [((), schema, False)]
    while waiting:
        check()
        way, value, is_end = waiting.pop()
        if is_end:
            around.discard(id(value))
            fine.add(id(value))
            continue
        if not isinstance(value, dict | list):
            _check_scalar(way, value)
            continue
        if id(value) in around:
            raise InvalidSchemaError(_pointer(way), "a value that contains itself is no JSON")
        if id(value) in fine:
            continue
        around.add(id(value))
        if len(around) > MAX_LEVELS:
            advice = "lists and objects are nested more deeply; use $defs and $ref, or fewer levels"
            raise SchemaTooLargeError(_pointer(way), "levels", MAX_LEVELS, advice)
        waiting.append((way, value, True))
        waiting += [((way, token), inner, False) for token, inner in _members(way, value)]


def _pointer(way: _Way) -> str:
    tokens = []
    while way:
        way, token = way
        tokens.append(token)
    return below("#", *reversed(tokens))


def _members(way: _Way, value: dict[Any, Any] | list[Any]) -> Iterable[tuple[str | int, Any]]:
    if isinstance(value, list):
        return enumerate(value)
    for name in value:
        if not isinstance(name, str):
            raise InvalidSchemaError(_pointer(way), f"the name {name!r} of a member is no string")
    return value.items()


def _check_scalar(way: _Way, value: Any) -> None:
    if value is None or isinstance(value, str):
        return
    if isinstance(value, int):
        if abs(value) >= _LEAST_TOO_LONG:
            raise _too_long(way)
        return
    if isinstance(value, Decimal) and value.is_finite():
        if max(abs(value.adjusted()), len(value.as_tuple().digits)) >= MAX_DIGITS:
            raise _too_long(way)
        return
    if isinstance(value, float) and math.isfinite(value):
        return
    shown = f"a {type(value).__name__}" if not isinstance(value, float | Decimal) else repr(value)
    raise InvalidSchemaError(_pointer(way), f"{shown} is no JSON value")


def _too_long(way: _Way) -> SchemaTooLargeError:
    advice = "written out, the number has more; use a shorter one"
    return SchemaTooLargeError(_pointer(way), "digits", MAX_DIGITS, advice)


MAX_PARTS = 50_000
MAX_NESTING = 400  # schemas inside one another; in place (allOf, not) calls may end sooner
_INT_DIGITS = 4300
_NAMES = ("$anchor", "$dynamicAnchor")
_ANCHOR = re.compile(r"[A-Za-z_][-A-Za-z0-9._:]*")


@dataclass(frozen=True, eq=False)
class Part:
    """A schema somewhere in the document. schema: what of it its draft knows. base: the URI against
    which its references are read. given: all of it, through which a pointer may lead."""

    pointer: str
    schema: Any
    base: str
    draft: Draft
    given: Any = None


def parsed(text: str) -> Any:
    """A schema from JSON text, its fractions exact. Raises InvalidSchemaError."""
    try:
        return json.loads(text, parse_float=Decimal, parse_int=_whole)
    except (ValueError, ArithmeticError) as error:  # numbers too long for Python are no better
        raise InvalidSchemaError("#", f"the text is no JSON that can be read: {error}") from None
    except RecursionError:
        raise _too_deep("#") from None


def _whole(digits: str) -> int | Decimal:
    """Python turns only so many digits into an int."""
    return int(digits) if len(digits) <= _INT_DIGITS else Decimal(digits)


class Document:
    """The parts of one schema. all_formats: also those that a part's draft does not define are
    more than notes. Raises InvalidSchemaError, UnsupportedSchemaError, SchemaTooLargeError."""

    def __init__(self, schema: Any, all_formats: bool = False) -> None:
        if not is_schema(schema):
            kind = type(schema).__name__
            raise InvalidSchemaError("#", f"a schema is an object or a boolean, not a {kind}")
        check_json(schema)
        self._parts: dict[str, Part] = {}
        self._resources: dict[str, str] = {}  # URI -> pointer
        self._anchors: dict[tuple[str, str], str] = {}  # (base, name) -> pointer
        self._dynamic: dict[str, list[str]] = {}  # name of a $dynamicAnchor -> pointers
        self.root, self._all_formats = schema, all_formats
        self._scan(Part("#", schema, "", _draft("#", schema, DRAFT_2020)))

    def part(self, pointer: str) -> Part:
        """The part at a pointer that is known to be one."""
        return self._parts[pointer]

    def target(self, part: Part, keyword: str) -> Part:
        """Where `$ref`, `$dynamicRef` or `$recursiveRef` of a part leads."""
        reference = part.schema[keyword]
        uri, fragment = urldefrag(reference)
        base = urldefrag(urljoin(part.base, uri))[0] if uri else part.base
        where = below(part.pointer, keyword)
        resource = self._resources.get(base)
        if resource is None:
            why = f"{reference!r} is another document; put it under $defs, with its $id"
            raise UnsupportedSchemaError(keyword, where, why)
        if keyword == "$recursiveRef" or unquote(fragment) in self._dynamic:
            self._only_one(keyword, where, unquote(fragment))
        if fragment and not fragment.startswith("/"):
            found = self._anchors.get((base, unquote(fragment)))
            if found is None:
                raise InvalidSchemaError(where, f"{reference!r} leads nowhere: no such $anchor")
            return self._parts[found]
        return self._at(self._parts[resource], tokens_of(fragment), where, reference)

    def _only_one(self, keyword: str, where: str, name: str) -> None:
        """A dynamic reference is as good as a plain one if there is nothing to choose from."""
        if keyword != "$ref" and len(self._dynamic.get(name, ())) > 1:
            why = f"where it leads depends on the way to it: {len(self._dynamic[name])} targets"
            raise UnsupportedSchemaError(keyword, where, why)

    def _at(self, start: Part, tokens: list[str], where: str, reference: str) -> Part:
        """The part that some steps lead to; a part that no keyword made one becomes one."""
        here, pointer, nearest = start.given, start.pointer, start
        for token in tokens:
            here = _step(here, token)
            if here is _NOWHERE:
                raise InvalidSchemaError(where, f"{reference!r} leads nowhere")
            pointer = below(pointer, token)
            nearest = self._parts.get(pointer, nearest)
        if pointer not in self._parts:
            if not is_schema(here):
                raise InvalidSchemaError(where, f"{reference!r} leads to what is no schema")
            self._scan(Part(pointer, here, nearest.base, nearest.draft))
        return self._parts[pointer]

    def _scan(self, start: Part) -> None:
        """Note down a part and all below it."""
        waiting = [(start, 0)]
        while waiting:
            check()
            part, level = waiting.pop()
            if len(self._parts) + len(waiting) >= MAX_PARTS:
                advice = "the schema has more parts; take out what is not needed"
                raise SchemaTooLargeError(part.pointer, "schemas", MAX_PARTS, advice)
            if level > MAX_NESTING:
                raise _too_deep(part.pointer)
            part = self._noted(part)
            waiting += [(inner, level + 1) for inner in islice(_inner(part), MAX_PARTS)]

    def _noted(self, part: Part) -> Part:
        """The part with its own base, and with what its draft knows, in all tables."""
        part = replace(part, given=part.schema)
        if isinstance(part.schema, dict):
            part = self._named(part)
            part = replace(part, schema=self._known(part))
            schema = part.schema
            for keyword in _NAMES:
                name = schema.get(keyword)
                if isinstance(name, str) and _ANCHOR.fullmatch(name):
                    self._anchors[part.base, name] = part.pointer
                    if keyword == "$dynamicAnchor":
                        self._dynamic.setdefault(name, []).append(part.pointer)
            if schema.get("$recursiveAnchor") is True:
                self._dynamic.setdefault("", []).append(part.pointer)
        elif part.pointer == "#":
            self._resources[""] = "#"
        self._parts[part.pointer] = part
        return part

    def _known(self, part: Part) -> Any:
        """The members of a part that its draft knows, and notes that none does."""
        schema, draft = part.given, part.draft
        unknown = {keyword for keyword in schema if not draft.knows(keyword)}
        if "format" in schema and not (self._all_formats or draft.defines(schema["format"])):
            unknown.add("format")
        if not unknown:
            return schema
        return {keyword: value for keyword, value in schema.items() if keyword not in unknown}

    def _named(self, part: Part) -> Part:
        """The part with the base that its `$id` makes; the root is one without, too."""
        schema, draft = part.schema, part.draft
        name = schema.get(draft.id_keyword)
        if part.pointer == "#" and not isinstance(name, str):
            name = schema.get("id") or schema.get("$id")  # of another draft, and harmless here
        if part.pointer == "#":
            self._resources[""] = "#"
        if not isinstance(name, str) or (draft.ref_alone and "$ref" in schema):
            return part
        uri, anchor = urldefrag(urljoin(part.base, name))
        if anchor and name.startswith("#"):  # how drafts up to 7 spell an $anchor
            self._anchors[part.base, anchor] = part.pointer
            return part
        self._resources.setdefault(uri, part.pointer)
        inner = _draft(part.pointer, schema, draft)
        return replace(part, base=uri, draft=inner)


_NOWHERE = object()


def _step(here: Any, token: str) -> Any:
    """One step of a pointer."""
    if isinstance(here, dict):
        return here.get(token, _NOWHERE)
    if isinstance(here, list) and re.fullmatch("0|[1-9][0-9]{0,8}", token):
        return here[int(token)] if int(token) < len(here) else _NOWHERE
    return _NOWHERE


def _inner(part: Part) -> Iterator[Part]:
    """The schemas right inside a part."""
    if not isinstance(part.schema, dict):
        return
    for keyword, value in part.schema.items():
        if keyword in ASSERTING or keyword in SHELVES:
            for way, schema in parts(keyword, value):
                if is_schema(schema):
                    yield Part(below(part.pointer, keyword, *way), schema, part.base, part.draft)


def _draft(pointer: str, schema: Any, above: Draft) -> Draft:
    """The draft of a schema by its `$schema`, else the one around it."""
    uri = schema.get("$schema") if isinstance(schema, dict) else None
    if uri is None:
        return above
    if not isinstance(uri, str):
        raise InvalidSchemaError(below(pointer, "$schema"), f"$schema is {uri!r}, not a string")
    found = draft_of(uri)
    if found is None:
        why = f"{uri!r} is none of the drafts 4, 6, 7, 2019-09 and 2020-12"
        raise UnsupportedSchemaError("$schema", below(pointer, "$schema"), why)
    return found


def _too_deep(pointer: str) -> SchemaTooLargeError:
    advice = "schemas are nested more deeply; use $defs and $ref"
    return SchemaTooLargeError(pointer, "levels", MAX_NESTING, advice)
