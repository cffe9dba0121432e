"""Instances judged by `jsonschema`.

Patterns are translated for Python's `re`, which differs from ECMA-262: there U+001C to U+001F and
U+0085 are white space, `\\d` and `\\w` match digits and letters of all scripts, `$` also matches
before a last newline, and `.` a carriage return.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable
from typing import Any

import yaml
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from jsonschema.validators import validator_for

from bpe_automata.errors import ArgumentError


def judge_of(schema: Any) -> Any:
    """The validator of a schema, by the draft that the schema names (2020-12 if none), with the
    formats that the helpers of `jsonschema` check. Raises ArgumentError for an invalid schema."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        kind = validator_for(schema, default=Draft202012Validator)
    try:
        kind.check_schema(schema)
    except SchemaError as error:
        raise ArgumentError(error.message[:200]) from error
    return kind(schema, format_checker=kind.FORMAT_CHECKER)


def checker(schema: Any, style: str) -> Callable[[str], str | None]:
    """What is wrong with a text, or None, as a function. Raises ArgumentError for a bad schema."""
    judge = judge_of(with_patterns_for_python(schema))

    def check(text: str) -> str | None:
        try:
            value = (json.loads if style == "json" else yaml.safe_load)(text)
        except Exception as error:  # parsers raise many types
            return f"it cannot be read: {type(error).__name__}: {error}"[:200]
        wrong = next(judge.iter_errors(value), None)
        return wrong and f"not valid: {wrong.message[:200]} (at {wrong.json_path})"[:300]

    return check


# Patterns.


_SPACES = r"\t\n\v\f\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_NO_SPACES = (
    r"\0-\x08\x0e-\x1f!-\x9f\xa1-\u167f\u1681-\u1fff\u200b-\u2027\u202a-\u202e\u2030-\u205e"
    r"\u2060-\u2fff\u3001-\ufefe\uff00-\U0010ffff"
)
_CLASSES = {
    "s": _SPACES,
    "S": _NO_SPACES,
    "d": "0-9",
    "D": r"\0-/:-\U0010ffff",
    "w": "A-Za-z0-9_",
    "W": r"\0-/:-@\[-^`{-\U0010ffff",
}
_OUTSIDE = {rf"\{name}": f"[{members}]" for name, members in _CLASSES.items()}
_OUTSIDE |= {"$": r"\Z", ".": r"[^\n\r\u2028\u2029]"}
"""The translation of each piece of a pattern outside of brackets."""
_DATA = ("const", "enum", "default", "examples")
_MAPS = ("properties", "$defs", "definitions", "dependentSchemas")


def for_python(pattern: str) -> str:
    """The equivalent pattern for `re.search`."""

    def said(piece: re.Match[str]) -> str:
        if piece[0].startswith("["):
            return re.sub(r"\\(.)", lambda one: _CLASSES.get(one[1], one[0]), piece[0])
        return _OUTSIDE.get(piece[0], piece[0])

    return re.sub(r"(?s)\\.|\[(?:\\.|[^\]\\])*\]|[$.]", said, pattern)


def with_patterns_for_python(schema: Any) -> Any:
    """The schema with its patterns translated for `re`."""
    if isinstance(schema, list):
        return [with_patterns_for_python(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {name: _keyword(name, value) for name, value in schema.items()}


def _keyword(name: str, value: Any) -> Any:
    if name in _DATA:
        return value
    if name == "pattern" and isinstance(value, str):
        return for_python(value)
    if name in _MAPS and isinstance(value, dict):
        return {key: with_patterns_for_python(part) for key, part in value.items()}
    if name == "patternProperties" and isinstance(value, dict):
        return {for_python(key): with_patterns_for_python(part) for key, part in value.items()}
    return with_patterns_for_python(value)
