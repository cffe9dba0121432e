"""What becomes of a real YAML file: accepted in the pinned style, or why it is not.

Whether a value is accepted with its keys in another order is read off the automaton alone, member
by member, so that nothing of how it was made is used.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.budget import Budget
from bpe_automata.errors import ArgumentError, BpeAutomataError
from bpe_automata.schemas import compile_yaml_schema
from bpe_automata.schemas.yaml_scalars import key_names
from bpe_automata.schemas.yaml_style import INDENT, yaml_text
from experiments.run.files import require
from experiments.schemas.judge import Verdicts

ACCEPTED = "accepted"
ORDER = "accepted, keys in another order"
NUMBER = "accepted, 1.0 written as 1"
DEPTH = "nested beyond the stated depth"
KEY = "a name that is left out"
INVALID = "not valid for jsonschema"
NO_JSON = "holds what JSON has not"
NO_YAML = "not loaded by PyYAML"
WRONG = "accepted though not valid"
UNEXPLAINED = "unexplained"
OUTCOMES = (
    ACCEPTED, ORDER, NUMBER, DEPTH, KEY, INVALID, NO_JSON, NO_YAML, WRONG, UNEXPLAINED,
)  # fmt: skip
_DEEPER = (4, 5)
_BUDGET = Budget(max_states=200_000, max_seconds=60)  # only to explain


class Files:
    """The files of one schema. dfa: its automaton; judge: what says which are valid."""

    def __init__(self, schema: Any, dfa: ByteDFA, judge: Verdicts) -> None:
        self._schema, self._dfa, self._judge = schema, dfa, judge
        self._names = list(dict.fromkeys(_names(schema)))
        self._made: dict[int, ByteDFA] = {}

    def verdict(self, text: str) -> str:
        """One of OUTCOMES."""
        yaml = require("yaml")
        try:
            value = yaml.safe_load(text)
        except yaml.YAMLError:
            return NO_YAML
        try:
            written_again = yaml_text(value)
        except ArgumentError:
            return NO_JSON
        accepted = self._dfa.accepts(written_again.encode())
        if not self._judge.is_valid(value):
            return WRONG if accepted else INVALID
        return ACCEPTED if accepted else self._why(value)

    def _why(self, value: Any) -> str:
        """Why a valid file is not accepted."""
        if self._in_some_order(self._dfa, value):
            return ORDER
        if self._in_some_order(self._dfa, _whole(value)):
            return NUMBER
        others = {name for mapping in _mappings(value) for name in mapping} - set(self._names)
        if not all(key_names().accepts(name.encode()) for name in others):
            return KEY
        deeper = any(self._in_some_order(dfa, _whole(value)) for dfa in self._deeper())
        return DEPTH if deeper else UNEXPLAINED

    def _deeper(self) -> Iterator[ByteDFA]:
        """The automata of greater depths, each made when it is first needed."""
        for depth in _DEEPER:
            if depth not in self._made:
                try:
                    self._made[depth] = compile_yaml_schema(
                        self._schema, depth=depth, budget=_BUDGET
                    )
                except BpeAutomataError:
                    return
            yield self._made[depth]

    def _in_some_order(self, dfa: ByteDFA, value: Any) -> bool:
        try:
            return in_some_order(dfa, value, self._names)
        except OutOfStepsError:
            return False


def complaint(text: str, judge: Verdicts) -> str:
    """What is wrong with a text that an automaton accepts; "" if nothing is."""
    yaml = require("yaml")
    try:
        value = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        return f"{type(error).__name__}: {error}"[:300]
    try:
        json.dumps(value)
    except TypeError as error:
        return f"no JSON: {error}"
    return "" if judge.is_valid(value) else judge.complaint(value) or "not valid"


def _mappings(value: Any) -> Iterator[dict[str, Any]]:
    """All in a value, each before those inside it."""
    if isinstance(value, dict):
        yield value
    parts = value.values() if isinstance(value, dict) else value
    for part in parts if isinstance(value, dict | list) else ():
        yield from _mappings(part)


def _names(schema: Any) -> Iterator[str]:
    """The names of properties, in the order of the schema."""
    for mapping in _mappings(schema):
        properties = mapping.get("properties")
        yield from properties if isinstance(properties, dict) else ()


def _whole(value: Any) -> Any:
    """With integers for floats without a fraction, as a set of integers is written."""
    if isinstance(value, dict):
        return {name: _whole(member) for name, member in value.items()}
    if isinstance(value, list):
        return [*map(_whole, value)]
    if isinstance(value, float) and math.isfinite(value) and value == int(value):
        return int(value)
    return value


# Is a value among the texts of an automaton of block YAML, in its own order of keys or another?

STEPS = 20_000
"""Members tried, of one value."""


class OutOfStepsError(Exception):
    """Neither an order was found, nor that there is none."""


def in_some_order(dfa: ByteDFA, value: Any, names: Sequence[str] = ()) -> bool:
    """Does some order of the keys, at each level, give an accepted text? names: which are likely to
    come first, in order. Raises OutOfStepsError."""
    return any(map(dfa.accepting.__getitem__, _Search(dfa, names).root(value)))


class _Search:
    """The states of the automaton after the texts of a value, which each method yields."""

    def __init__(self, dfa: ByteDFA, names: Sequence[str]) -> None:
        self._dfa, self._rank = dfa, {name: i for i, name in reversed([*enumerate(names)])}
        self._steps_left = STEPS

    def root(self, value: Any) -> Iterator[int]:
        yield from self._value(self._dfa.start, value, 0, False)

    def _read(self, state: int, text: str) -> int:
        return self._dfa.walk(text.encode(), state) if state else 0

    def _value(self, state: int, value: Any, level: int, after_key: bool) -> Iterator[int]:
        """From `state` over the value. level, after_key: where it stands."""
        if not isinstance(value, dict | list) or not value:
            yield self._read(state, " " * after_key + yaml_text(value))
            return
        state = self._read(state, f"\n{_margin(level)}" if after_key else "")
        if isinstance(value, dict):
            ranked = sorted(value.items(), key=lambda member: self._rank.get(member[0], 10**6))
            yield from self._members(state, tuple(ranked), "", level, set())
        else:
            yield from self._items(state, value, "", level)

    def _members(
        self,
        state: int,
        members: tuple[tuple[str, Any], ...],
        begin: str,
        level: int,
        seen: set[tuple[int, frozenset[str]]],
    ) -> Iterator[int]:
        """All orders of these members; begin: what stands before the next one."""
        key = (state, frozenset(name for name, _ in members))
        if state == 0 or key in seen:
            return
        seen.add(key)
        if not members:
            yield state
        for i, (name, value) in enumerate(members):
            self._step()
            others = members[:i] + members[i + 1 :]
            after_name = self._read(state, begin + yaml_text({name: ""}).removesuffix(' ""\n'))
            for after in self._value(after_name, value, level + 1, True) if after_name else ():
                yield from self._members(after, others, _margin(level), level, seen)

    def _items(self, state: int, items: Sequence[Any], begin: str, level: int) -> Iterator[int]:
        """All items, in order."""
        if not items:
            yield state
            return
        self._step()
        after_dash = self._read(state, f"{begin}- ")
        for after in self._value(after_dash, items[0], level + 1, False) if after_dash else ():
            if after:
                yield from self._items(after, items[1:], _margin(level), level)

    def _step(self) -> None:
        self._steps_left -= 1
        if self._steps_left < 0:
            raise OutOfStepsError


def _margin(level: int) -> str:
    return " " * (INDENT * level)
