"""Is a Python value JSON at all? A schema from a program may hold anything."""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from bpe_automata.budget import check
from bpe_automata.errors import InvalidSchemaError, SchemaTooLargeError
from bpe_automata.schemas.pointers import below

# The steps to a value, the last one outermost: pointers are made only for messages.
_Way = tuple[()] | tuple["_Way", str | int]
MAX_NESTING = 801  # two for each level of schemas, which `documents` bounds
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
        if len(around) > MAX_NESTING:
            advice = "lists and objects are nested more deeply; use $defs and $ref, or fewer levels"
            raise SchemaTooLargeError(_pointer(way), "levels", MAX_NESTING, advice)
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
