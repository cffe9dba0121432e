"""What engines are asked about masks, and the process of one engine that answers:
`python -m experiments.serving.masks_child ENGINE TOKENIZER`.

The constraints are short and long, narrow and wide, with texts of their languages. Where a mask
admits much, and each count is a state of its own, masks cost most. The process says with its first
line how the engine came up, and answers each line of its input with a line. All lines are JSON.
Times are microseconds, the lesser of wall time and CPU time of the process, all its threads
together: what others on the machine take from it is not the engine's cost.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np

from bpe_automata import Tokenizer
from bpe_automata._kernels.bits import has
from bpe_automata.errors import ArgumentError, BpeAutomataError
from experiments.engines.interface import (
    Begin,
    PeerError,
    Session,
    Whitespace,
    filling,
    may_end,
    refusals,
)
from experiments.engines.named import engine_of
from experiments.run.executors import Row
from experiments.run.files import lines_of
from experiments.schemas.inputs import Case
from experiments.shared.resources import forget_peak, repeated, resident, settled
from experiments.shared.watched import Answer, failure_of, serve

WHITESPACE: Whitespace = "spaced"
"""Of the texts of schemas: the one style that all engines know."""
MASKED = 300
"""Ids of a text before which masks are made; after them it is only read."""
REPEATS = 21
"""Of a batch."""
HELD_MB = 2000
"""What schemas may hold together, 10^6 bytes; then they are let go of."""


ENGINE, CONSTRAINT, SCHEMA, BATCH = "engine", "constraint", "schema", "batch"
"""What an engine is asked: how it comes up, about a constraint, a schema, and a batch."""
KINDS = ("cold", "warm", "advance")
"""What is timed of a text."""
_WARMING = "warming"


def _cases(group: str) -> dict[str, Case]:
    """By name; the wide counted ones are last, for they take the most time."""
    rows = lines_of(Path(__file__).with_name("masks_constraints.jsonl"))
    cases = [
        Case(row["name"], group, row["source"], tuple(row["texts"]), (True,) * len(row["texts"]))
        for row in rows
        if row["group"] == group
    ]
    return {case.id: case for case in cases}


CONSTRAINTS = _cases(CONSTRAINT)
WARMING = _cases(_WARMING)
"""What every engine compiles and follows before anything is timed: all kinds, but small, for some
engines write them out."""
BATCHES = {
    "wide": ("string of 200", "prose of 300", "line of 500"),
    "mixed": ("boolean", "URL", "JSON string", "date", "UUID", "IPv4", "words", "code"),
}
"""By batch: the constraints whose prefixes it is made of."""


def constraints(names: Sequence[str]) -> list[Case]:
    """Those of these names, all for none. Raises ArgumentError."""
    unknown = [name for name in names if name not in CONSTRAINTS]
    if unknown:
        known = ", ".join(CONSTRAINTS)
        raise ArgumentError(f"no constraint is named {unknown[0]!r}; there are {known}")
    return [CONSTRAINTS[name] for name in names or CONSTRAINTS]


# ---------------------------------------------------------------- the process


def spent(call: Callable[..., object], *arguments: object) -> float:
    """Microseconds of a call."""
    cpu, wall = time.process_time_ns(), time.perf_counter_ns()
    call(*arguments)
    wall = time.perf_counter_ns() - wall
    return round(min(wall, time.process_time_ns() - cpu) / 1e3, 2)


class Worker:
    """An engine that has come up. ready: seconds that it took; process_mb, engine_mb: 10^6 bytes
    resident, before it and for it."""

    def __init__(self, name: str, tokenizer: Tokenizer) -> None:
        self._eos_ids, self._words = tokenizer.eos_ids, (tokenizer.n_ids + 31) // 32
        self._buffer = np.zeros((1, self._words), dtype=np.int32)
        before, started = settled(), time.perf_counter()
        self._engine = engine_of(name, tokenizer)
        self._held: list[Begin] = []
        for case in WARMING.values():  # kernels and tables that are made once are no one's cost
            with suppress(PeerError, BpeAutomataError), refusals():
                ids = [*map(tokenizer.encode, case.texts)]
                self._along(ids, self._engine.prepared(case.source, WHITESPACE))
        seconds = time.perf_counter() - started
        self.ready: Row = {"ready": seconds, "process_mb": before, "engine_mb": settled() - before}
        gc.collect()
        gc.freeze()  # what is there by now stays; later collections need not look through it

    def answer(self, question: Row) -> Row:
        """Of a source with `ids` of texts, or of a `batch`. Raises PeerError, BpeAutomataError."""
        if "batch" in question:
            return {"batch": self._batch(question["batch"])}
        before = settled()
        forget_peak()
        begun: list[Begin] = []
        row: Row = {
            "compile": spent(
                lambda: begun.append(self._engine.prepared(question["source"], WHITESPACE))
            ),
            "first": spent(self._first, begun[0]),
        }
        row["texts"] = self._along(question["ids"], begun[0])
        row["peak_mb"] = max(0.0, (resident("VmHWM") or before) - before)
        if question["hold"]:
            row |= self._hold(begun[0])
        return row

    def _first(self, begin: Begin) -> None:
        begin().mask(self._buffer)

    def _hold(self, begin: Begin) -> Row:
        """held: how many schemas are alive by now; process_mb: what the process has."""
        self._held.append(begin)
        row = {"held": len(self._held), "process_mb": settled()}
        if row["process_mb"] > self.ready["process_mb"] + HELD_MB:
            self._held.clear()
        return row

    def _along(self, texts: Sequence[list[int]], begin: Begin) -> list[Row]:
        """Of each text: cold, microseconds of the masks at prefixes that are new;
        advance, of reading each id; warm, of all its masks by a second session; stopped, how many
        ids were read if it was not read to the end (as many as it has: it may not end there)."""
        seen: set[tuple[int, ...]] = {()}  # the very first mask came with compiling
        rows = []
        for ids in texts:
            session = begin()
            masks, steps, stopped = self._follow(session, ids)
            prefixes = [tuple(ids[:k]) for k in range(len(masks))]
            cold = [us for prefix, us in zip(prefixes, masks, strict=True) if prefix not in seen]
            seen.update(prefixes)
            again = getattr(session, "again", None)
            if again is None:
                session = begin()
            else:
                again()
            warm = self._follow(session, ids)[0]
            rows.append({"cold": cold, "advance": steps, "warm": warm, "stopped": stopped})
        return rows

    def _follow(
        self, session: Session, ids: Sequence[int]
    ) -> tuple[list[float], list[float], int | None]:
        """(microseconds of each mask, of each step, where it was stopped)."""
        fill, bits = filling(session, self._buffer), self._buffer[0]
        masks, steps = list[float](), list[float]()
        for k, token in enumerate(ids):
            if k < MASKED:
                masks.append(spent(fill))
                if not has(bits, token):
                    return masks, steps, k
            try:
                steps.append(spent(session.advance, token))
            except PeerError:
                return masks, steps, k
        masks.append(spent(fill))
        return masks, steps, None if may_end(session, bits, self._eos_ids) else len(ids)

    def _batch(self, prefixes: Sequence[Row]) -> list[float]:
        """Microseconds, wall time, of each of `REPEATS` times that all masks are made in one call,
        each where its own ids have led; all prefixes are known."""
        begins: dict[str, Begin] = {}
        sessions = list[Session]()
        for prefix in prefixes:
            key = json.dumps(prefix["source"])
            if key not in begins:
                begins[key] = self._engine.prepared(prefix["source"], WHITESPACE)
            sessions.append(begins[key]())
            stopped = self._follow(sessions[-1], prefix["ids"])[2]
            if stopped is not None and stopped < len(prefix["ids"]):
                raise PeerError(f"id {prefix['ids'][stopped]} is refused")
        out = np.zeros((len(prefixes), self._words), dtype=np.int32)
        fill = self._engine.batch(sessions, out)
        fill()
        return [1e6 * seconds for seconds in repeated(fill, REPEATS)]


def answered(worker: Worker, question: Row) -> Row:
    """Its answer, or a failure."""
    try:
        with refusals():
            return worker.answer(question)
    except BpeAutomataError as error:
        return failure_of(error)


def opened(name: str, source: str) -> tuple[Row, Answer]:
    """What `serve` needs."""
    worker = Worker(name, Tokenizer.load(source))
    return worker.ready, partial(answered, worker)


if __name__ == "__main__":
    serve(partial(opened, *sys.argv[1:3]))
