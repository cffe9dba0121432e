"""What `jsonschema` says of instances, and why an automaton rejects the text of a valid one.

Patterns are translated for Python, whose `re` reads them otherwise than ECMA-262 does: it counts
U+001C to U+001F and U+0085 as white space, digits and letters of all scripts as `\\d` and `\\w`,
lets `$` stand before a last newline, and `.` for a carriage return.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache
from itertools import islice, product
from typing import Any

from bpe_automata._automata.linked import ByteAutomaton
from experiments.schemas.engines.interface import RefusedError

JUDGE = "jsonschema"
"""Its name among the engines of the comparison."""


class Verdicts:
    """What `jsonschema` says under one schema, by the draft that it names (2020-12 where it names
    none), with the formats that its helpers can check. Raises RefusedError for what is no schema.
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
            raise RefusedError("invalid", error.message[:200]) from error
        self._validator = kind(schema, format_checker=kind.FORMAT_CHECKER)

    def verdict(self, text: str) -> bool:
        """Is the instance valid? Raises what jsonschema raises, of a $ref that leads nowhere."""
        return self.is_valid(json.loads(text))

    def is_valid(self, value: Any) -> bool:
        """The same of a value."""
        return bool(self._validator.is_valid(value))

    def complaint(self, value: Any) -> str:
        """The first thing that is wrong."""
        error = next(self._validator.iter_errors(value), None)
        return f"{error.message[:200]} (at {error.json_path})" if error else ""


# ---------------------------------------------------------------- patterns


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


# ---------------------------------------------------------------- reasons
#
# Why a text of a valid instance is not in the language of its schema's automaton. A value has more
# texts than the language holds: members may come in any order, a number may be spelled in several
# ways. The search goes over these, along the automaton; if one is accepted, what had to be changed
# is the reason.

ORDER, NUMBERS = "order", "number spelling"
BOTH = f"{ORDER} and {NUMBERS}"
CHANGES = {
    ORDER: frozenset({ORDER}),
    NUMBERS: frozenset({NUMBERS}),
    BOTH: frozenset({ORDER, NUMBERS}),
}
"""What may be changed, by what it is called."""
SURROGATES, GAVE_UP = "lone surrogate", "search given up"
UNEXPLAINED = "UNEXPLAINED"
TRIES = 50_000
"""Members that one search may try."""
EFFORTS = (0, 1, 2)
"""A search that takes the best name to come next and never goes back; one that goes back until an
object can be left in some state; and the search for all."""


class GivenUpError(Exception):
    """The search tried as much as it may."""


def reason(dfa: ByteAutomaton, text: str, separators: tuple[str, str]) -> str | None:
    """Which other text of the same value `dfa` accepts; None if there is none."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return SURROGATES
    value = json.loads(text, parse_int=Number, parse_float=Number)
    given_up = False
    for effort, (name, changes) in product(EFFORTS, CHANGES.items()):
        try:
            search = Search(dfa, separators, changes, effort)
            if any(dfa.accepting[q] for q in search.after(value, dfa.start)):
                return name
        except GivenUpError:
            given_up = given_up or effort == EFFORTS[-1]
    return GAVE_UP if given_up else None


class Number(str):
    """A number as it is spelled."""


class Search:
    """Texts of one value along an automaton. changes: ORDER, members in any order; NUMBERS, in any
    spelling."""

    def __init__(
        self,
        dfa: ByteAutomaton,
        separators: tuple[str, str],
        changes: frozenset[str],
        effort: int,
    ) -> None:
        self._dfa, self._effort = dfa, effort
        self._orders, self._numbers = ORDER in changes, NUMBERS in changes
        self._comma, self._colon = (separator.encode() for separator in separators)
        self._tries = 0
        self._known: dict[tuple[int, int], frozenset[int]] = {}
        self._walked: dict[tuple[int, bytes], int] = {}
        self._kept: list[Any] = []

    def after(self, value: Any, state: int) -> frozenset[int]:
        """Live states after a text of `value` from `state`. Raises GivenUpError."""
        key = (id(value), state)
        if key not in self._known:
            self._known[key] = frozenset(end for end in self._ends(value, state) if end)
            self._kept.append(value)  # so that its id stays its
        return self._known[key]

    def _ends(self, value: Any, state: int) -> Iterator[int]:
        if isinstance(value, dict):
            opened = self._walk(b"{", state)
            ends = self._members(value, frozenset(value), opened, b"", set())
            yield from ends if self._effort == EFFORTS[-1] else islice(filter(None, ends), 1)
        elif isinstance(value, list):
            for inside in self._items(value, self._walk(b"[", state)):
                yield self._walk(b"]", inside)
        else:
            yield from (self._walk(text.encode(), state) for text in self._texts(value))

    def _items(self, items: list[Any], state: int) -> set[int]:
        states, comma = {state}, b""
        for item in items:
            begun = [self._walk(comma, q) for q in states]
            states = {end for q in begun if q for end in self.after(item, q)}
            comma = self._comma
        return states

    def _members(
        self,
        members: dict[str, Any],
        left: frozenset[str],
        state: int,
        comma: bytes,
        seen: set[tuple[int, frozenset[str]]],
    ) -> Iterator[int]:
        """With those that are left, in whatever order leads on."""
        if not state or (state, left) in seen:
            return
        seen.add((state, left))
        if not left:
            yield self._walk(b"}", state)
        for name, ends in self._next(members, left, state, comma):
            for end in ends:
                yield from self._members(members, left - {name}, end, self._comma, seen)
            if not self._effort:
                return

    def _next(
        self, members: dict[str, Any], left: frozenset[str], state: int, comma: bytes
    ) -> list[tuple[str, frozenset[int]]]:
        """(name, the states after it) of what may come next: first what leaves most of these to
        come after it, for that is the order of the schema."""
        ahead = [name for name in members if name in left]
        found: dict[str, frozenset[int]] = {}
        for name in ahead if self._orders else ahead[:1]:
            self._try()
            key = self._walk(comma + _quoted(name) + self._colon, state)
            if not key:
                continue
            found[name] = self.after(members[name], key)
            if not self._effort and not found[name]:
                return []
        keys = {name: self._comma + _quoted(name) + self._colon for name in found}

        def left_out(name: str) -> int:
            return sum(not self._walk(key, end) for key in keys.values() for end in found[name])

        return [(name, found[name]) for name in sorted(found, key=left_out) if found[name]]

    def _texts(self, value: Any) -> list[str]:
        if not isinstance(value, Number):
            return [json.dumps(value, ensure_ascii=False)]
        return spellings(value) if self._numbers else [str(value)]

    def _walk(self, data: bytes, state: int) -> int:
        key = (state, data)
        if state and key not in self._walked:
            self._walked[key] = self._dfa.walk(data, state)
        return self._walked[key] if state else 0

    def _try(self) -> None:
        self._tries += 1
        if self._tries > TRIES:
            raise GivenUpError


@lru_cache(maxsize=10_000)
def _quoted(name: str) -> bytes:
    return json.dumps(name, ensure_ascii=False).encode()


def spellings(number: Number) -> list[str]:
    """The same number without exponent, without and with a fraction."""
    value = Decimal(number)
    if not value.is_finite() or abs(value.adjusted()) > 400:
        return [str(number)]
    plain = f"{value:f}"
    whole = plain.rstrip("0").rstrip(".") if "." in plain else plain
    found = [str(number), plain, whole]
    found += [f"{whole}.0"] if "." not in whole else []
    found += ["0", "0.0"] if not value else []
    return list(dict.fromkeys(found))
