"""Schema after schema of Table 2, with engines in turns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Protocol

from bpe_automata import Tokenizer
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.constructions import CanonicalAutomaton, SegmentCache
from bpe_automata.errors import BpeAutomataError
from experiments.article.mistral import mistral_table
from experiments.article.server import DONE, failed
from experiments.article.table2_methods import Item, Source, Task, eager, item_of, lazy, segmented
from experiments.article.table2_reference import Reference, measured, prepared
from experiments.run.executors import Row
from experiments.serving.speed import from_cache
from experiments.shared.resources import repeated, timed

REPEATS = 3
"""How often the automaton of the tokenizer is made."""
COLD, WARMED = "segments, cold", "segments, warm"


class Limits(Protocol):
    """Of all schemas together, and of memory; see `table2.Config`."""

    @property
    def merges(self) -> int | None: ...

    @property
    def reference_total(self) -> float: ...

    @property
    def reference_mb(self) -> float: ...

    @property
    def segments_total(self) -> float: ...


class Series:
    """The warm cache knows the schemas before. plain: seconds for the plain algorithms on one
    schema, 0 to leave them out."""

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
            self._reference = prepared(mistral_table(self.limits.merges))
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
