"""What `jsonschema` says of instances.

Patterns are translated for Python, whose `re` reads them otherwise than ECMA-262 does: it counts
U+001C to U+001F and U+0085 as white space, digits and letters of all scripts as `\\d` and `\\w`,
lets `$` stand before a last newline, and `.` for a carriage return.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from typing import Any

import yaml

from bpe_automata.errors import ArgumentError


class Verdicts:
    """What `jsonschema` says under one schema, by the draft that it names (2020-12 where it names
    none), with the formats that its helpers can check. Raises ArgumentError for what is no schema.
    """

    def __init__(self, schema: Any) -> None:
        from jsonschema import Draft202012Validator
        from jsonschema.exceptions import SchemaError
        from jsonschema.validators import validator_for

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            kind = validator_for(schema, default=Draft202012Validator)
        try:
            kind.check_schema(schema)
        except SchemaError as error:
            raise ArgumentError(error.message[:200]) from error
        self._validator = kind(schema, format_checker=kind.FORMAT_CHECKER)

    def is_valid(self, value: Any) -> bool:
        """Raises what jsonschema raises, of a $ref that leads nowhere."""
        return bool(self._validator.is_valid(value))

    def complaint(self, value: Any) -> str:
        """The first thing that is wrong."""
        error = next(self._validator.iter_errors(value), None)
        return f"{error.message[:200]} (at {error.json_path})" if error else ""


def checker(schema: Any, style: str) -> Callable[[str], str | None]:
    """What is wrong with a text, or None. Raises ArgumentError for what is no schema."""
    judge = Verdicts(with_patterns_for_python(schema))

    def check(text: str) -> str | None:
        try:
            value = (json.loads if style == "json" else yaml.safe_load)(text)
        except Exception as error:  # whatever a parser raises
            return f"it cannot be read: {type(error).__name__}: {error}"[:200]
        return None if judge.is_valid(value) else f"not valid: {judge.complaint(value)}"[:300]

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
_DATA = ("const", "enum", "default", "examples")
_MAPS = ("properties", "$defs", "definitions", "dependentSchemas")


def for_python(pattern: str) -> str:
    """The pattern that says the same for `re.search`."""
    found, inside, at = [], False, 0
    while at < len(pattern):
        character, after = pattern[at], pattern[at + 1 : at + 2]
        if character == "\\":
            members = _CLASSES.get(after)
            plain = character + after
            found.append(plain if members is None else members if inside else f"[{members}]")
            at += 2
            continue
        if inside:
            inside = character != "]"
            found.append(character)
        elif character == "[":
            inside = True
            found.append(character)
        else:
            found.append({"$": r"\Z", ".": r"[^\n\r\u2028\u2029]"}.get(character, character))
        at += 1
    return "".join(found)


def with_patterns_for_python(schema: Any) -> Any:
    """A schema whose patterns are those that `re` must read."""
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
