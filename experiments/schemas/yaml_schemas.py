"""Real schemas of YAML files, compiled to block YAML, and the real files that come with them.

Each file is loaded, written again in the pinned style, and offered to the automaton of its schema:
a valid one is accepted, or it is said why it is not. Texts are drawn from each automaton; each must
be loaded by `yaml.safe_load` and be valid for `jsonschema`, with formats. A text that is not, and a
file that is accepted though it is not valid, make the exit code 1.

Data: SchemaStore (schemas with their own positive test files), `--yaml-schemas FILE` for another
one.
"""

from __future__ import annotations

import json
import math
import random
import resource
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from bpe_automata._automata.linked import ByteAutomaton
from bpe_automata._budget import Budget
from bpe_automata.errors import (
    ArgumentError,
    BpeAutomataError,
)
from bpe_automata.schemas import yaml_schema
from bpe_automata.schemas._yaml_style import INDENT, key_names
from experiments.run import config
from experiments.run.config import option
from experiments.run.executors import FAILURE, Cell, Row
from experiments.run.files import require
from experiments.run.measuring import Run
from experiments.run.readme import wrapped
from experiments.run.report import Report
from experiments.run.tables import Column, Table, frame, table
from experiments.schemas.engines.interface import status_of
from experiments.schemas.inputs import SMOKE_YAML, YAML_SCHEMAS, yaml_cases, yaml_text
from experiments.schemas.judge import Verdicts
from experiments.show import fixed, whole
from experiments.statistics import quantile

VERSION = 1
BUDGET = Budget(max_states=200_000)
"""Six times as many states are made for all texts of a schema."""
COMPILED = "compiled"
_BYTES = (40, 200, 1000)  # lengths at which a walk turns home, in turn


@dataclass(frozen=True)
class Config(config.Config):
    """Which schemas, and how many texts of each."""

    yaml_schemas: Path = option(YAML_SCHEMAS, "JSON lines of schemas with YAML files")
    n: int | None = option(None, "yaml_schemas: the first so many; none: all")
    texts: int = option(50, "yaml_schemas: drawn from each automaton")


SMOKE = Config(yaml_schemas=SMOKE_YAML, texts=12)


def measure(run: Run[Config]) -> None:
    """A row per schema."""
    chosen = run.config
    given = yaml_cases(chosen.yaml_schemas)[: chosen.n]
    run.cells([Cell(case["id"], measured, (case, chosen.texts, chosen.seed)) for case in given])


@cache
def warm() -> None:
    """Kernels are loaded, and tables made that are made once: no part of any schema's time."""
    yaml_schema({"type": "object", "properties": {"a": {"type": "integer"}}}).accepts(b"a: 1\n")


def measured(case: Row, walks: int, seed: int) -> Row:
    """One schema: `status` COMPILED, or why not; its files and its walks."""
    warm()
    row: Row = {"id": case["id"], "files": [], "walks": 0, "failures": []}
    started = time.process_time()  # of one thread, so that other work on the machine counts less
    try:
        dfa = yaml_schema(case["schema"], order="schema", budget=BUDGET)
    except BpeAutomataError as error:
        row["seconds"] = time.process_time() - started
        keyword = getattr(error, "keyword", None)
        return row | {"status": status_of(error), "keyword": keyword, "message": str(error)[:300]}
    row |= {"seconds": time.process_time() - started, "status": COMPILED}
    judge = Verdicts(case["schema"])
    checked = Files(case["schema"], dfa, judge)
    row["files"] = [checked.verdict(text) for text in case["yaml"]]
    row |= walked(dfa, judge, random.Random(seed), walks)
    row |= {"states": dfa.n_written}
    return row | {"peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3}


def walked(dfa: ByteAutomaton, judge: Verdicts, rng: random.Random, walks: int) -> Row:
    """`walks` random texts; the failures: what went wrong, and the text."""
    texts = [dfa.sample(rng, _BYTES[k % len(_BYTES)]).decode() for k in range(walks)]
    complaints = [(complaint(text, judge), text) for text in texts]
    failures = [{"why": why, "text": text} for why, text in complaints if why]
    return {"walks": walks, "characters": sum(map(len, texts)), "failures": failures}


# What becomes of a real YAML file: accepted in the pinned style, or why it is not.
#
# Whether a value is accepted with its keys in another order is read off the automaton alone, member
# by member, so that nothing of how it was made is used.

ACCEPTED = "accepted"
ORDER = "accepted, keys in another order"
NUMBER = "accepted, 1.0 written as 1"
KEY = "a name that is left out"
INVALID = "not valid for jsonschema"
NO_JSON = "holds what JSON has not"
NO_YAML = "not loaded by PyYAML"
WRONG = "accepted though not valid"
UNEXPLAINED = "unexplained"
OUTCOMES = (
    ACCEPTED, ORDER, NUMBER, KEY, INVALID, NO_JSON, NO_YAML, WRONG, UNEXPLAINED,
)  # fmt: skip


class Files:
    """The files of one schema. dfa: its automaton; judge: what says which are valid."""

    def __init__(self, schema: Any, dfa: ByteAutomaton, judge: Verdicts) -> None:
        self._schema, self._dfa, self._judge = schema, dfa, judge
        self._names = list(dict.fromkeys(_names(schema)))

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
        if self._in_some_order(self._dfa, value):
            return ORDER
        if self._in_some_order(self._dfa, _whole(value)):
            return NUMBER
        others = {name for mapping in _mappings(value) for name in mapping} - set(self._names)
        if not all(key_names().accepts(name.encode()) for name in others):
            return KEY
        return UNEXPLAINED

    def _in_some_order(self, dfa: ByteAutomaton, value: Any) -> bool:
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


def in_some_order(dfa: ByteAutomaton, value: Any, names: Sequence[str] = ()) -> bool:
    """Does some order of the keys, at each level, give an accepted text? names: which are likely to
    come first, in order. Raises OutOfStepsError."""
    return any(map(dfa.accepting.__getitem__, _Search(dfa, names).root(value)))


class _Search:
    """The states of the automaton after the texts of a value, which each method yields."""

    def __init__(self, dfa: ByteAutomaton, names: Sequence[str]) -> None:
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


# What is said of the rows.

_SHARES = {"median": 0.5, "p90": 0.9, "max": 1.0}
_SHOWN = 20


def render(rows: Sequence[Row], manifest: Row) -> Report:
    """wrong: texts that are accepted and should not be, drawn or from files; files rejected for no
    reason; schemas that could not be measured."""
    done = [row for row in rows if not row.get(FAILURE)]
    outcomes = Counter(outcome for row in done for outcome in row["files"])
    refused = [row for row in done if row["status"] != COMPILED]
    reasons = Counter(f"{row['status']}: {row.get('keyword') or '-'}" for row in refused)
    tables = [
        _statuses(done, manifest),
        _costs(done),
        _counts(
            "The files that come with them",
            ("", "files"),
            [(name, outcomes[name]) for name in OUTCOMES if outcomes[name]],
            ["each was loaded and written again in the pinned style, keys in its own order"],
        ),
        _counts("Not compiled", ("status: keyword", "schemas"), reasons.most_common()),
    ]
    failed = [f"{row['key']}: {row[FAILURE]}" for row in rows if row.get(FAILURE)]
    found = [*wrongs(done), *failed]
    return Report("YAML schemas", tables, facts=facts_of(done), wrong=found[:_SHOWN])


def wrongs(rows: Sequence[Row]) -> list[str]:
    """What is wrong of this package."""
    found = [
        f"{row['id']}: {failure['why']}: {failure['text'][:300]!r}"
        for row in rows
        for failure in row["failures"]
    ]
    return found + [
        f"{row['id']}: file {k}: {outcome}"
        for row in rows
        for k, outcome in enumerate(row["files"])
        if outcome in (WRONG, UNEXPLAINED)
    ]


def facts_of(rows: Sequence[Row]) -> Row:
    """What the README says."""
    outcomes = Counter(outcome for row in rows for outcome in row["files"])
    return {
        "schemas": len(rows),
        "statuses": dict(Counter(row["status"] for row in rows).most_common()),
        "texts": sum(row["walks"] for row in rows),
        "wrong_texts": sum(len(row["failures"]) for row in rows),
        "files": sum(outcomes.values()),
        "accepted": sum(outcomes[outcome] for outcome in (ACCEPTED, ORDER, NUMBER)),
        "wrong_files": outcomes[WRONG] + outcomes[UNEXPLAINED],
    }


def _counts(
    title: str,
    names: tuple[str, str],
    counts: Iterable[tuple[str, int]],
    notes: Sequence[str] = (),
) -> Table:
    """A line for each of what was counted."""
    lines = frame([dict(zip(names, count, strict=True)) for count in counts])
    columns = [Column(names[0], names[0]), Column(names[1], names[1], whole)]
    return table(title, lines, columns, notes)


def _statuses(rows: Sequence[Row], manifest: Row) -> Table:
    counts = Counter(row["status"] for row in rows).most_common()
    counts += [
        ("random texts", sum(row["walks"] for row in rows)),
        ("their characters", sum(row.get("characters", 0) for row in rows)),
        ("not loaded, or not valid", sum(len(row["failures"]) for row in rows)),
    ]
    notes = ["each text goes through yaml.safe_load and jsonschema"]
    notes.append(f"measured in {manifest['wall_seconds']:g} s")
    return _counts("SchemaStore's schemas of YAML files", ("", "number"), counts, notes)


def _costs(rows: Sequence[Row]) -> Table:
    """Seconds of all, sizes of the compiled ones."""
    done = [row for row in rows if row["status"] == COMPILED]
    kinds = (
        ("CPU seconds, compiled", done, "seconds", fixed(2)),
        ("CPU seconds, all", rows, "seconds", fixed(2)),
        ("states that the texts led to", done, "states", whole),
    )
    lines = []
    for name, some, field, show in kinds:
        found = [row[field] for row in some]
        cells = {column: show(quantile(found, share)) for column, share in _SHARES.items()}
        lines += [{"name": name} | cells] if found else []
    columns = [Column("", "name"), *(Column(name, name) for name in _SHARES)]
    peak = max((row["peak_mb"] for row in done), default=0)
    note = f"a process compiles many of them; the memory of one rose to {peak:,.0f} MB at most"
    return table("What they cost", frame(lines), columns, [note])


def readme(facts: Row) -> str:
    """One paragraph."""
    compiled = facts["statuses"].get(COMPILED, 0)
    return wrapped(
        f"`python -m experiments yaml_schemas`: of {facts['schemas']} schemas of SchemaStore with "
        f"YAML files {compiled} compile. Of {facts['texts']:,} texts drawn from them "
        f"{facts['wrong_texts']} are not loaded or not valid; of {facts['files']} files "
        f"{facts['accepted']} are accepted, and {facts['wrong_files']} accepted or rejected for no "
        "good reason ([table](paper_figures/yaml_schemas.md))."
    )
