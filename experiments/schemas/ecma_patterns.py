"""Patterns of JSON Schema for Python's `re`, which reads them otherwise than ECMA-262 does.

`re` counts U+001C to U+001F and U+0085 as white space, digits and letters of all scripts as `\\d`
and `\\w`, lets `$` stand before a last newline, and `.` for a carriage return. Nothing here knows
of automata: it is for the judge of texts that an automaton made.
"""

from __future__ import annotations

from typing import Any

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
    """The same pattern for `re.search`."""
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
