"""The schemas of Table 2, as automata with texts to decode along, and what is measured of each."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bpe_automata import Tokenizer
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.constructions import CanonicalAutomaton, SegmentCache
from bpe_automata.errors import BpeAutomataError, MissingFileError
from bpe_automata.schemas import compile_json_schema
from experiments.article.forks import DONE, failed
from experiments.article.mistral import mistral_table
from experiments.article.table2_methods import (
    Reference,
    Task,
    eager,
    lazy,
    measured,
    prepared_reference,
    segmented,
)
from experiments.run.executors import Row
from experiments.run.files import ROOT, lines_of, require
from experiments.serving.speed import from_cache
from experiments.shared.resources import repeated, timed

SCHEMAS = ROOT.parent / "shared" / "data" / "maskbench"
"""MaskBench, where it lies: its licence is not known, so it is no part of the repository."""
GROUP = "Glaiveai2K"
"""The file of it that is taken: function calls, as in the article."""

_INSTALL = "pip install datasets"
_ID_KEYS = ("id", "unique_id", "name")
_SCHEMA_KEYS = ("schema", "json_schema", "parameters")

write: Callable[[Any], str] = partial(json.dumps, separators=(",", ":"), ensure_ascii=False)


@dataclass(frozen=True)
class Source:
    """id, schema; instances: those that the data says are valid."""

    id: str
    schema: Any
    instances: tuple[Any, ...]


@dataclass(frozen=True)
class Item:
    """dfa: of the compact texts, with only the properties that the schema names; text: one of them,
    an instance's if there is one; seconds: to compile; failure: why there is no automaton."""

    source: Source
    dfa: ByteDFA | None
    text: str
    seconds: float
    failure: str | None = None


def sources_of(schemas: Path, n: int | None, seed: int) -> list[Source]:
    """The function calls of `SCHEMAS`, or everything in another folder, in a file or in a hub data
    set; `n` of them drawn by lot. Raises MissingFileError, MissingDependencyError."""
    if schemas.is_dir():
        rows = _from_folder(schemas)
    else:
        rows = [*lines_of(schemas)] if schemas.is_file() else _from_hub(str(schemas))
    found = [_source(number, row) for number, row in enumerate(rows)]
    random.Random(seed).shuffle(found)
    return found[:n]


def _from_folder(folder: Path) -> list[Mapping[str, Any]]:
    pattern = f"{GROUP}*.jsonl*" if folder == SCHEMAS else "*.jsonl*"
    paths = sorted(folder.glob(pattern))
    if not paths:
        raise MissingFileError(f"{folder} has no files {pattern}; give --schemas")
    return [row for path in paths for row in lines_of(path)]


def _from_hub(name: str) -> list[Mapping[str, Any]]:
    """All rows of a data set, its training split if it has several."""
    if name.count("/") != 1 or name.startswith((".", "/")):
        message = f"{name} is neither a folder or file of JSON lines nor the hub id of a data set"
        raise MissingFileError(f"{message} (owner/name); give --schemas")
    load = require("datasets", _INSTALL).load_dataset
    try:
        rows: Iterable[Mapping[str, Any]] = load(name, split="train")
    except (OSError, ValueError) as error:
        reason = str(error).strip().split("\n")[0]
        raise MissingFileError(f"cannot load the data set {name!r}: {reason}") from error
    return list(rows)


def _source(number: int, row: Mapping[str, Any]) -> Source:
    schema = next((row[key] for key in _SCHEMA_KEYS if row.get(key) is not None), None)
    if schema is None:
        keys = ", ".join(_SCHEMA_KEYS)
        raise MissingFileError(f"row {number} of the data has no schema: it needs one of {keys}")
    schema = json.loads(schema) if isinstance(schema, str) else schema
    valid = tuple(test["data"] for test in row.get("tests", ()) if test["valid"])
    name = next((row[key] for key in _ID_KEYS if key in row), number)
    return Source(str(name), schema, valid)


def item_of(source: Source) -> Item:
    """Compiled; what is refused says why."""
    try:
        seconds, dfa = timed(lambda: compile_json_schema(source.schema, closed=True))
    except BpeAutomataError as error:
        reason = f"{type(error).__name__}: {str(error).splitlines()[0]}"
        return Item(source, None, "", 0.0, reason)
    texts = (write(instance) for instance in source.instances)
    fitting = (text for text in texts if dfa.accepts(text.encode("utf-8", "replace")))
    shortest = dfa.shortest() or b""
    return Item(source, dfa, next(fitting, shortest.decode()), seconds)


REPEATS = 3
"""How often the automaton of the tokenizer is made."""
COLD, WARMED = "segments, cold", "segments, warm"


@dataclass(frozen=True)
class Limits:
    """merges: of the plain algorithms' table, None for all; reference_total, segments_total:
    seconds of the plain algorithms, and with a cache of segments, for all schemas together;
    reference_mb: 10^6 bytes."""

    merges: int | None
    reference_total: float
    reference_mb: float
    segments_total: float


class Series:
    """Measures schema after schema; the warm cache knows the earlier ones. plain: seconds for the
    plain algorithms on one schema, 0 to leave them out."""

    def __init__(self, tokenizer: Tokenizer, plain: float, limits: Limits) -> None:
        self.tokenizer, self.plain, self.limits = tokenizer, plain, limits
        self.cache, self.spent, self.shared = SegmentCache(), 0.0, 0.0
        self._reference: Reference | None = None

    @property
    def reference(self) -> Reference | None:
        """The plain algorithms with what they make once, as long as they have time left."""
        if not self.plain or self.spent >= self.limits.reference_total:
            return None
        if self._reference is None:
            self._reference = prepared_reference(mistral_table(self.limits.merges))
        return self._reference

    def warm(self, source: Source) -> None:
        """Load the kernels, and what an engine makes once for a tokenizer."""
        item = item_of(source)
        if item.dfa is not None:
            self._package(item, item.dfa, SegmentCache())
        self.shared = 0.0

    def go_on_after(self, known: Iterable[tuple[Source, Row]]) -> None:
        """As if these had just been measured: the time is theirs, and the cache knows them."""
        rows = [*known]
        self.spent = sum(row.get("reference_wall", 0.0) for _, row in rows)
        self.shared = sum(row.get("segments_wall", 0.0) for _, row in rows)
        if self.shared < self.limits.segments_total:
            for source, row in rows:
                item = item_of(source)
                if item.dfa is not None and WARMED in row.get("methods", ()):
                    _tried(partial(segmented, self._task(item, item.dfa), self.cache))

    def tokenizer_row(self) -> Row:
        """Step 1."""
        whole = repeated(lambda: CanonicalAutomaton(self.tokenizer), REPEATS)
        from_cache(self.tokenizer)
        stored = repeated(lambda: from_cache(self.tokenizer), REPEATS)
        plain = [self.reference.seconds] if self.reference else []
        return {"kind": "tokenizer", "eager": whole, "stored": stored, "reference": plain}

    def row(self, source: Source) -> Row:
        """The engines that have time left on one schema; `failure`: why there is no automaton."""
        item = item_of(source)
        row: Row = {"kind": "schema", "id": source.id, "failure": item.failure, "methods": {}}
        if item.dfa is None:
            return row
        before = self.spent, self.shared
        row |= {"states": item.dfa.n_states, "compile": item.seconds}
        row["methods"] = self._package(item, item.dfa, self.cache)
        if reference := self.reference:
            row["methods"] |= self._table_alone(reference, item, item.dfa)
        row["reference_wall"] = self.spent - before[0]
        row["segments_wall"] = self.shared - before[1]
        return row

    def _task(self, item: Item, dfa: ByteDFA) -> Task:
        return Task(self.tokenizer, dfa, self.tokenizer.encode(item.text))

    def _package(self, item: Item, dfa: ByteDFA, cache: SegmentCache) -> dict[str, Row]:
        task = self._task(item, dfa)
        found = {"eager": _tried(partial(eager, task)), "lazy": _tried(partial(lazy, task))}
        if self.shared < self.limits.segments_total:
            for name, known in ((COLD, SegmentCache()), (WARMED, cache)):
                spent, found[name] = timed(partial(_tried, partial(segmented, task, known)))
                self.shared += spent
        return found

    def _table_alone(self, reference: Reference, item: Item, dfa: ByteDFA) -> dict[str, Row]:
        task = Task(reference.tokenizer, dfa, reference.tokenizer.encode(item.text))
        seconds = min(self.plain, self.limits.reference_total - self.spent)
        work = partial(measured, reference, dfa, item.text, seconds, self.limits.reference_mb)
        spent, row = timed(work)
        self.spent += spent
        return {"eager, table alone": _tried(partial(eager, task)), "reference": row}


def _tried(method: Callable[[], Row]) -> Row:
    """Its row, or why it failed."""
    try:
        return {"status": DONE} | method()
    except BpeAutomataError as error:
        return failed(f"{type(error).__name__}: {error}")
