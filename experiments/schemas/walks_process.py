"""The walks of one schema, in whatever process, and the checks of each text."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any

import numpy as np

from bpe_automata import ByteDFA, Constraint, Tokenizer, constrain
from bpe_automata.errors import BpeAutomataError
from experiments.engines.interface import RefusedError
from experiments.run.executors import Row
from experiments.schemas.judge import Judge, with_patterns_for_python
from experiments.shared.walks import CannotFinishError, ends, finish, readable

MOST_IDS = 80
"""Ids of a walk that are chosen at random at most; then it is completed."""
CANDIDATES = 48
"""Ids of a mask that are drawn at random, to choose from by the states that they lead to."""
_FAILURES = 5  # of one schema that are kept in full


@dataclass(frozen=True)
class Task:
    """style: "json" or "yaml"."""

    id: str
    style: str
    schema: Any

    @property
    def key(self) -> str:
        """Of its row."""
        return f"{self.style} {self.id}"


def walked(task: Task, tokenizer: str, walks: int, seed: int) -> Row:
    """One row: counts and failures, or `why_not`."""
    row: Row = {"id": task.id, "style": task.style}
    try:
        dfa = compiled(task)
        check = checker(task)
        loaded = _tokenizer(tokenizer)
        constraint = constrain(loaded, dfa, added_tokens=False)
        constraint.matcher()
    except (BpeAutomataError, RefusedError) as error:
        return row | {"why_not": f"{type(error).__name__}: {error}"[:300]}
    rng = random.Random(f"{seed} {task.id} {task.style}")
    texts, failures, ids = [], [], 0
    excused = dict.fromkeys(EXCUSES, 0)
    for _ in range(walks):
        try:
            walk = random_ids(constraint, rng)
        except CannotFinishError as error:
            failures.append({"why": "no way to the end", "text": "", "ids": error.args[0]})
            continue
        ids += len(walk)
        text = loaded.decode(walk)
        texts.append(text)
        why = check(text)
        if why in EXCUSES:
            excused[why] += 1
            why = None
        if why is None and loaded.encode(text) != walk:
            why = "its ids are not what encode gives"
        if why is not None:
            failures.append({"why": why, "text": text, "ids": walk})
    counts = {"walks": walks, "different": len(set(texts)), "ids": ids}
    counts["characters"] = sum(map(len, texts))
    return row | counts | excused | {"failures": failures[:_FAILURES]}


def compiled(task: Task) -> ByteDFA:
    """The automaton of a schema in its style. Raises BpeAutomataError."""
    from bpe_automata.schemas import compile_json_schema, compile_yaml_schema

    return (compile_yaml_schema if task.style == "yaml" else compile_json_schema)(task.schema)


def random_ids(constraint: Constraint, rng: random.Random) -> list[int]:
    """A walk that ends. Where the masks leave a choice, each state of the automaton that can be
    reached is alike likely, so that strings end and members come; after a random number of ids it
    takes those that come nearest to the end. Raises CannotFinishError."""
    engine = constraint.engine
    ids: list[int] = []
    state, q = engine.initial(), constraint.dfa.start
    for _ in range(rng.randrange(1, MOST_IDS + 1)):
        allowed = readable(constraint, state)
        if not len(allowed) or (engine.accepting(state) and rng.random() < 1 / 4):
            break
        token, q = _chosen(constraint, allowed, ids, q, rng)
        state = engine.step(state, token)
        ids.append(token)
    return finish(constraint, ids, state, rng)


def _chosen(
    constraint: Constraint, allowed: np.ndarray, ids: list[int], state: int, rng: random.Random
) -> tuple[int, int]:
    """(an id, the state of the automaton after it)."""
    if len(allowed) > CANDIDATES:
        drawn = [rng.randrange(len(allowed)) for _ in range(CANDIDATES)]
        short = _single_bytes(constraint.tokenizer)
        allowed = np.union1d(allowed[drawn], allowed[np.isin(allowed, short)])
    after = ends(constraint, allowed, ids, state)
    to = rng.choice(np.unique(after).tolist())
    token = int(rng.choice(allowed[after == to].tolist()))
    return token, int(to)


def _single_bytes(tokenizer: Tokenizer) -> np.ndarray:
    """The ids of one byte."""
    return tokenizer.derived(
        "ids of one byte",
        lambda made: np.flatnonzero([len(spelled) == 1 for spelled in made.spellings]),
    )


PATTERNS, ROUNDING = "patterns", "rounding"
EXCUSES = (PATTERNS, ROUNDING)
"""Where `jsonschema` on Python is wrong: it reads patterns as `re` does, or divides floats."""


def checker(task: Task) -> Callable[[str], str | None]:
    """What is wrong with a text, one of `EXCUSES`, or None. Raises RefusedError for what is no
    schema."""
    judge = Judge().compile({"schema": task.schema})
    translated = with_patterns_for_python(task.schema)
    as_ecma = Judge().compile({"schema": translated})
    exact = Judge().compile({"schema": exactly(json.loads(json.dumps(translated), **_EXACT))})

    def check(text: str) -> str | None:
        try:
            value = parsed(text, task.style)
        except Exception as error:  # whatever a parser raises
            return f"it cannot be read: {type(error).__name__}: {error}"[:200]
        if as_ecma.is_valid(value):
            return None if judge.is_valid(value) else PATTERNS
        if task.style == "json" and exact.is_valid(exactly(json.loads(text, **_EXACT))):
            return ROUNDING
        return f"not valid: {as_ecma.complaint(value)}"[:300]

    return check


_EXACT: dict[str, Any] = {"parse_float": Decimal}


def exactly(value: Any) -> Any:
    """With decimals that are integers as int: `jsonschema` does not know that they are."""
    if isinstance(value, dict):
        return {name: exactly(inside) for name, inside in value.items()}
    if isinstance(value, list):
        return [exactly(inside) for inside in value]
    if isinstance(value, Decimal) and value == value.to_integral_value():
        return int(value)
    return value


def parsed(text: str, style: str) -> Any:
    """As its readers read it."""
    if style == "json":
        return json.loads(text)
    import yaml

    return yaml.safe_load(text)


@lru_cache(maxsize=1)
def _tokenizer(name: str) -> Tokenizer:
    return Tokenizer.load(name)
