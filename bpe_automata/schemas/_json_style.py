"""Writes values as JSON (RFC 8259), with one of three kinds of white space.

    compact   {"a":1,"b":[1,2]}
    spaced    {"a": 1, "b": [1, 2]}          as `json.dumps` writes by default
    flexible  after { [ , and before } ] nothing, one space, or a line feed and up to 2 spaces for
              each level of the line; after a colon nothing or one space

Flexible also accepts the two others, `json.dumps(indent=2)`, and mixtures of all these. No white
space comes before or after the whole value.
"""

from __future__ import annotations

import json
from collections import defaultdict
from functools import lru_cache
from typing import Literal, get_args

from bpe_automata._budget import Budget
from bpe_automata.automata.algebra import concatenation
from bpe_automata.automata.compile import compile_regex
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.automata.sources import from_strings
from bpe_automata.errors import ArgumentError
from bpe_automata.schemas._escapes import Escapes, json_string
from bpe_automata.schemas._numbers import spellings
from bpe_automata.schemas._scalar_sets import Finite
from bpe_automata.schemas._style import Context, Layout, Piece, Shared, Style

Whitespace = Literal["compact", "spaced", "flexible"]
_SHARED: defaultdict[tuple[Whitespace, Escapes], Shared] = defaultdict(Shared)
_INDENT = 2  # spaces for each level, at most
_spelled = json.JSONEncoder(ensure_ascii=False).encode


class JsonStyle(Style):
    """JSON. A context is a level of nesting, 0 for the whole text; without line breaks always 0."""

    quotes, root = True, 0

    def __init__(
        self,
        whitespace: Whitespace = "compact",
        escapes: Escapes = "minimal",
        budget: Budget = Budget(),  # noqa: B008 - frozen
    ) -> None:
        if whitespace not in get_args(Whitespace):
            choices = ", ".join(map(repr, get_args(Whitespace)))
            raise ArgumentError(f"whitespace is {whitespace!r}: give one of {choices}")
        if escapes not in get_args(Escapes):
            choices = ", ".join(map(repr, get_args(Escapes)))
            raise ArgumentError(f"escapes is {escapes!r}: give one of {choices}")
        super().__init__(_SHARED[whitespace, escapes])
        self._whitespace, self._escapes, self._budget = whitespace, escapes, budget
        self._colon: Piece = _after_colon(whitespace)

    def objects(self, context: Context) -> Layout:
        """In braces."""
        return _layout(self._whitespace, b"{}", context)

    def arrays(self, context: Context) -> Layout:
        """In brackets."""
        return _layout(self._whitespace, b"[]", context)

    def numbers(self, numbers: ByteDFA) -> ByteDFA:
        """See `_numbers`."""
        return self._once("numbers", numbers, lambda: spellings(numbers))

    def strings(self, strings: ByteDFA, context: Context) -> ByteDFA:
        """In quotes."""
        return self._once("strings", strings, lambda: self._quoted(strings))

    def string(self, text: str) -> Piece:
        """In quotes."""
        if self._escapes == "minimal":
            return _spelled(text).encode()
        return self._quoted(from_strings((text,)))

    def key(self, name: str, layout: Layout) -> Piece:
        """In quotes, with a colon."""
        quoted, colon = self.string(name), self._colon
        if isinstance(quoted, bytes) and isinstance(colon, bytes):
            return quoted + colon
        return concatenation(quoted, colon)

    def keys(self, names: ByteDFA, layout: Layout) -> ByteDFA:
        """In quotes, with a colon."""

        def find() -> ByteDFA:
            return concatenation(self._quoted(names), self._colon, budget=self._budget)

        return self._once("keys", names, find)

    def _quoted(self, strings: ByteDFA) -> ByteDFA:
        if isinstance(strings, Finite) and self._escapes == "minimal":  # a tenth of the time
            return from_strings(map(_spelled, strings.elements))
        return json_string(strings, self._escapes, self._budget)


@lru_cache(maxsize=256)
def _layout(whitespace: Whitespace, pair: bytes, level: int) -> Layout:
    opening, closing = pair[:1], pair[1:]
    if whitespace != "flexible":
        return Layout(opening, b"," if whitespace == "compact" else b", ", closing, pair, 0)
    deep, here = _gap(level + 1), _gap(level)
    return Layout(
        concatenation(opening, deep),
        concatenation(b",", deep),
        concatenation(here, closing),
        concatenation(opening, here, closing),
        level + 1,
    )


def _after_colon(whitespace: Whitespace) -> Piece:
    if whitespace == "flexible":
        return compile_regex(r": ?")
    return b":" if whitespace == "compact" else b": "


@lru_cache(maxsize=64)
def _gap(level: int) -> ByteDFA:
    """Nothing, a space, or a line feed and up to 2 * level spaces."""
    return compile_regex(rf" ?|\n {{0,{_INDENT * level}}}")
