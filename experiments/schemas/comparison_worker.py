"""The process of one engine: `python -m experiments.schemas.comparison_worker ENGINE TOKENIZER
WHITESPACE`.

Answers each line of input, a JSON object, with a line: {"compile": SOURCE} first, then {"texts":
[...], "valid": [...]} about what was compiled, then {"explain": [...]}: why are these, which are
valid, rejected? A peer may crash or run away: the other end of the pipe watches the clock and the
memory.
"""

from __future__ import annotations

import gc
import math
import sys
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from bpe_automata import Tokenizer
from bpe_automata.errors import BpeAutomataError, BudgetExceededError
from experiments.run.executors import Row
from experiments.schemas.engines.interface import (
    SEPARATORS,
    Begin,
    Engine,
    PeerError,
    RefusedError,
    Session,
    Whitespace,
    may_end,
    refusals,
)
from experiments.schemas.engines.named import Ours, engine_of
from experiments.schemas.judge import (
    JUDGE,
    UNEXPLAINED,
    Verdicts,
    reason,
)
from experiments.shared.resources import forget_peak, give_back, resident, timed
from experiments.shared.watched import Answer, serve

# Many durations in little space (`statistics` would load all of scipy into a process whose
# memory is measured).

_LEAST = 1e-8  # seconds: bucket 0 and below
_PER_DECADE = 200
"""A bucket is 1.2 % wide."""


@dataclass
class Histogram:
    """Counts of seconds by logarithmic buckets; largest: exact."""

    counts: Counter[int] = field(default_factory=Counter)
    largest: float = 0.0

    def add(self, seconds: float) -> None:
        """Count one."""
        bucket = int(_PER_DECADE * math.log10(max(seconds, _LEAST) / _LEAST))
        self.counts[max(0, bucket)] += 1
        self.largest = max(self.largest, seconds)

    @property
    def n(self) -> int:
        """How many were counted."""
        return self.counts.total()

    def quantile(self, q: float) -> float:
        """Seconds that at least the share `q` does not exceed, to 1.2 %; nan of nothing."""
        if not self.counts:
            return math.nan
        before = max(0, math.ceil(q * self.n - 1e-9) - 1)
        for bucket in sorted(self.counts):
            before -= self.counts[bucket]
            if before < 0:
                return min(self.largest, _LEAST * 10 ** ((bucket + 1) / _PER_DECADE))
        return self.largest

    def row(self) -> dict[str, Any]:
        """For a JSON file; `of_rows` reads it."""
        return {"largest": self.largest, "counts": {str(k): n for k, n in self.counts.items()}}


def of_rows(rows: Iterable[dict[str, Any]]) -> Histogram:
    """All of them together."""
    total = Histogram()
    for row in rows:
        total.counts.update({int(k): n for k, n in row["counts"].items()})
        total.largest = max(total.largest, row["largest"])
    return total


OURS = "bpe_automata"
"""This package among the engines of the comparison: canonical, members in any order, added tokens
not read as text, as no other engine reads them."""
MASKED = 300
"""Ids of a text before which the mask is made and timed; after them the ids are only read."""
STATES = "too many states"
"""The reason where a text leads an automaton to more states than it may have."""
_VARIED = {
    "a": {"type": "string", "maxLength": 9, "pattern": "^a"},
    "b": {"type": "number", "minimum": 0, "multipleOf": 0.5},
    "c": {"type": "array", "items": {"enum": [1, "x"]}, "maxItems": 3},
    "d": {"anyOf": [{"format": "date"}, {"additionalProperties": {"type": "integer"}}]},
    "e": {"not": {"type": "object", "required": ["z"]}},
}
WARMING: tuple[Row, ...] = (
    {"regex": '"[a-z]+"'},
    {"schema": {"type": "string", "maxLength": 9}},
    {"schema": {"type": "object", "properties": _VARIED}},
)


class OursCase:
    """One source, compiled by this package. The constraint is made for the first session: that is
    not compiling."""

    def __init__(self, engine: Ours, source: Row, whitespace: Whitespace) -> None:
        self._engine, self._source, self._whitespace = engine, source, whitespace
        self.dfa = engine.language(source, whitespace)
        self._begin: Begin | None = None

    def session(self) -> Session:
        """A text from its beginning."""
        if self._begin is None:
            self._begin = self._engine.beginning(self._engine.constraint(self.dfa))
        return self._begin()

    def accepts(self, text: str) -> bool:
        """Is a text in the language? Raises BudgetExceededError where it leads to more states than
        there may be."""
        return self.dfa.accepts(text.encode("utf-8", "surrogatepass"))

    def reason(self, text: str) -> str:
        """Why a valid instance, in this text, is rejected."""
        if "regex" in self._source:
            return UNEXPLAINED
        try:
            return STATES if self.accepts(text) else self._reason(text)
        except BudgetExceededError:
            return STATES

    def _reason(self, text: str) -> str:
        return reason(self.dfa, text, SEPARATORS[self._whitespace]) or UNEXPLAINED


class Worker:
    """An engine, and what it compiled last."""

    def __init__(self, engine: Engine, tokenizer: Tokenizer, whitespace: Whitespace) -> None:
        self._engine, self._tokenizer, self._whitespace = engine, tokenizer, whitespace
        self._buffer = np.zeros((1, (self._tokenizer.n_ids + 31) // 32), dtype=np.int32)
        self._begin: Begin | None = None
        self._case: OursCase | None = None

    def answer(self, question: Row) -> Row:
        """One line of output, with the peak of the memory since the last."""
        if "compile" in question:
            self._begin = self._case = None
            give_back()  # memory of the case before is none of the next one's
        forget_peak()
        if "compile" in question:
            row = self._compile(question["compile"])
        elif "explain" in question:
            row = {"reasons": [self._reason(text) for text in question["explain"]]}
        else:
            row = self._texts(question["texts"], question["valid"])
        return row | {"peak_mb": resident("VmHWM")}

    def _compile(self, source: Row) -> Row:
        started = time.perf_counter()
        try:
            with refusals():
                self._begin = self._prepared(source)
                seconds = time.perf_counter() - started
                first, _ = timed(lambda: self._session().mask(self._buffer))
        except PeerError as error:
            self._begin = self._case = None
            return self._refused(error) | {"compile": time.perf_counter() - started}
        return {"status": "compiled", "compile": seconds, "first": first}

    def _prepared(self, source: Row) -> Begin:
        if isinstance(self._engine, Ours):
            self._case = OursCase(self._engine, source, self._whitespace)
            return self._case.session
        return self._engine.prepared(source, self._whitespace)

    def _refused(self, error: PeerError) -> Row:
        """Whatever else this package raises is a fault of it; of a peer it is a refusal."""
        status, keyword = "failed" if isinstance(self._engine, Ours) else "refused", None
        if isinstance(error, RefusedError):
            status, keyword = error.status, error.keyword
        return {"status": status, "message": str(error)[:300], "keyword": keyword}

    def _session(self) -> Session:
        if self._begin is None:
            raise PeerError("nothing is compiled")
        return self._begin()

    def _texts(self, texts: list[str], valid: list[bool | None]) -> Row:
        """accepted: of each text; masks: a histogram of seconds along the valid ones; wrong_masks:
        texts that the automaton and its masks disagree about."""
        masks = Histogram()
        row: Row = {"accepted": [], "wrong_masks": []}
        for text, good in zip(texts, valid, strict=True):
            row["accepted"].append(self._accepts(text, masks if good else None, row))
        return row | {"masks": masks.row()}

    def _reason(self, text: str) -> str | None:
        return self._case.reason(text) if self._case else None

    def _accepts(self, text: str, masks: Histogram | None, row: Row) -> bool:
        if self._case is None:
            return self._follows(text, masks)
        try:
            accepted = self._case.accepts(text)
            if accepted and masks is not None and not self._follows(text, masks):
                row["wrong_masks"].append(text[:200])
            return accepted
        except BudgetExceededError:  # of its masks too: what has no room is rejected
            return False

    def _follows(self, text: str, masks: Histogram | None) -> bool:
        """Can the tokenizer's own ids of `text` be read, and then the end?"""
        try:
            ids = self._tokenizer.encode(text)
        except BpeAutomataError:
            return False
        if self._tokenizer.text_bytes(ids) != text.encode():  # it has bytes that no token spells
            return self._case is not None
        try:
            with refusals():
                session = self._session()
                for k, token in enumerate(ids):
                    if masks is not None and k < MASKED:
                        masks.add(timed(lambda: session.mask(self._buffer))[0])
                    session.advance(token)
                session.mask(self._buffer)
                return may_end(session, self._buffer[0], self._tokenizer.eos_ids)
        except PeerError as error:
            if self._case is not None and isinstance(error.__cause__, BudgetExceededError):
                raise error.__cause__ from None
        return False


class JudgeWorker:
    """The same for the judge, who has no masks."""

    def __init__(self) -> None:
        self._compiled: Verdicts | None = None

    def answer(self, question: Row) -> Row:
        """`accepted`: True, False, or None where it cannot say."""
        if "texts" in question:
            return {"accepted": [self._verdict(text) for text in question["texts"]]}
        try:
            self._compiled = Verdicts(question["compile"]["schema"])
        except RefusedError as error:
            return {"status": error.status, "message": str(error), "keyword": None}
        return {"status": "compiled"}

    def _verdict(self, text: str) -> bool | None:
        try:
            return self._compiled.verdict(text) if self._compiled else None
        except Exception:  # a $ref that leads nowhere, a pattern that is not Python's
            return None


def opened(name: str, source: str, whitespace: Whitespace) -> tuple[Row, Answer]:
    """What `serve` needs. Raises PeerError, and what loading a tokenizer raises."""
    if name == JUDGE:
        return {"peak_mb": resident("VmHWM")}, JudgeWorker().answer
    tokenizer = Tokenizer.load(source)
    is_ours = name == OURS
    ours = Ours(tokenizer, added_tokens=False, order="any") if is_ours else None
    engine = ours or engine_of(name, tokenizer)
    worker = Worker(engine, tokenizer, whitespace)
    for case in WARMING:  # kernels and tables that are made once are no part of any case
        worker.answer({"compile": case})
        worker.answer({"texts": ['"a"'], "valid": [True]})
    gc.collect()
    gc.freeze()  # what is there by now stays; later collections need not look through it
    return {"peak_mb": resident("VmHWM")}, worker.answer


if __name__ == "__main__":
    given: Any = sys.argv[1:4]
    serve(partial(opened, *given))
