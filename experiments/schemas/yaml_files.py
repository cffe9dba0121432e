"""What becomes of a real YAML file: accepted in the pinned style, or why it is not."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.budget import Budget
from bpe_automata.errors import ArgumentError, BpeAutomataError
from bpe_automata.schemas import compile_yaml_schema
from bpe_automata.schemas.yaml_scalars import key_names
from bpe_automata.schemas.yaml_style import yaml_text
from experiments.run.files import require
from experiments.schemas.judge import Verdicts
from experiments.schemas.yaml_orders import OutOfStepsError, in_some_order

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
        others = set(_keys(value)) - set(self._names)
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


def _names(schema: Any) -> Iterator[str]:
    """The names of properties, in the order of the schema."""
    if isinstance(schema, dict):
        properties = schema.get("properties")
        yield from properties if isinstance(properties, dict) else ()
        for part in schema.values():
            yield from _names(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from _names(part)


def _keys(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, member in value.items():
            yield name
            yield from _keys(member)
    elif isinstance(value, list):
        for item in value:
            yield from _keys(item)


def _whole(value: Any) -> Any:
    """With integers for floats without a fraction, as a set of integers is written."""
    if isinstance(value, dict):
        return {name: _whole(member) for name, member in value.items()}
    if isinstance(value, list):
        return [*map(_whole, value)]
    if isinstance(value, float) and math.isfinite(value) and value == int(value):
        return int(value)
    return value
