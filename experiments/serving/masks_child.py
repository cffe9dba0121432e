"""The process of one engine: `python -m experiments.serving.masks_child ENGINE TOKENIZER`.

It says with its first line how the engine came up, and answers each line of its input with a line.
All lines are JSON. Times are microseconds, the lesser of wall time and CPU time of the process, all
its threads together: what others on the machine take from it is not the engine's cost.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

import numpy as np
from numba.core.event import install_recorder

from bpe_automata import Tokenizer
from bpe_automata.errors import BpeAutomataError
from bpe_automata.kernels.bits import has
from experiments.run.executors import FAILURE, Row
from experiments.schemas.engines import prepared
from experiments.serving.masks_cases import WARMING
from experiments.shared.engines import Begin, PeerError, Session, Whitespace, filling, refusals
from experiments.shared.memory import forget_peak, give_back, resident
from experiments.shared.more_engines import engine_of

WHITESPACE: Whitespace = "spaced"
"""Of the texts of schemas: the one style that all engines know."""
MASKED = 300
"""Ids of a text before which masks are made; after them it is only read."""
BATCHES = 21
HELD_MB = 2000
"""What schemas may hold together, 10^6 bytes; then they are let go of."""


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
        before, started = _settled(), time.perf_counter()
        self._engine = engine_of(name, tokenizer)
        self._held: list[Begin] = []
        for source, text in WARMING:  # kernels and tables that are made once are no one's cost
            with suppress(PeerError, BpeAutomataError), refusals():
                self._along([tokenizer.encode(text)], prepared(self._engine, source, WHITESPACE))
        seconds = time.perf_counter() - started
        self.ready: Row = {"ready": seconds, "process_mb": before, "engine_mb": _settled() - before}
        gc.collect()
        gc.freeze()  # what is there by now stays; later collections need not look through it

    def answer(self, question: Row) -> Row:
        """Of a source with `ids` of texts, or of a `batch`. Raises PeerError, BpeAutomataError."""
        if "batch" in question:
            return {"batch": self._batch(question["batch"])}
        before = _settled()
        forget_peak()
        begun: list[Begin] = []
        row: Row = {
            "compile": spent(
                lambda: begun.append(prepared(self._engine, question["source"], WHITESPACE))
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
        row = {"held": len(self._held), "process_mb": _settled()}
        if row["process_mb"] > self.ready["process_mb"] + HELD_MB:
            self._held.clear()
        return row

    def _along(self, texts: Sequence[list[int]], begin: Begin) -> list[Row]:
        """Of each text: cold, microseconds of the masks at places where no earlier text of it was;
        advance, of reading each id; warm, of all its masks by a second session; stopped, how many
        ids were read if it was not read to the end (as many as it has: it may not end there)."""
        seen: set[tuple[int, ...]] = {()}  # the very first mask came with compiling
        rows = []
        for ids in texts:
            session = begin()
            masks, steps, stopped = self._follow(session, ids)
            places = [tuple(ids[:k]) for k in range(len(masks))]
            cold = [us for place, us in zip(places, masks, strict=True) if place not in seen]
            seen.update(places)
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
        return masks, steps, None if self._may_end(session) else len(ids)

    def _may_end(self, session: Session) -> bool:
        """By its last mask; peers whose masks hold no end of sequence are asked."""
        own: Callable[[], bool] | None = getattr(session, "may_end", None)
        return own() if own else any(has(self._buffer[0], end) for end in self._eos_ids)

    def _batch(self, places: Sequence[Row]) -> list[float]:
        """Microseconds, wall time, of each of `BATCHES` times that all masks are made in one call,
        each where its own ids have led; all places are known."""
        begins: dict[str, Begin] = {}
        sessions = list[Session]()
        for place in places:
            key = json.dumps(place["source"])
            if key not in begins:
                begins[key] = prepared(self._engine, place["source"], WHITESPACE)
            sessions.append(begins[key]())
            stopped = self._follow(sessions[-1], place["ids"])[2]
            if stopped is not None and stopped < len(place["ids"]):
                raise PeerError(f"id {place['ids'][stopped]} is refused")
        out = np.zeros((len(places), self._words), dtype=np.int32)
        fill = self._engine.batch(sessions, out)
        fill()
        return [_wall(fill) for _ in range(BATCHES)]


def _wall(call: Callable[[], object]) -> float:
    started = time.perf_counter_ns()
    call()
    return (time.perf_counter_ns() - started) / 1e3


def _settled() -> float:
    """Resident megabytes (10^6 bytes) once freed memory is given back."""
    give_back()
    return resident("VmRSS") or 0.0


def answered(worker: Worker, question: Row) -> Row:
    """Its answer, or a failure."""
    try:
        with refusals():
            return worker.answer(question)
    except (PeerError, BpeAutomataError) as error:
        return {FAILURE: f"{type(error).__name__}: {error}"[:160]}


def main(name: str, source: str) -> None:
    """Answer until the input ends; whatever else is printed goes to stderr."""
    out, sys.stdout = sys.stdout, sys.stderr
    try:
        with install_recorder("numba:compile") as compiled:
            worker = Worker(name, Tokenizer.load(source))
    except (PeerError, BpeAutomataError) as error:
        print(json.dumps({FAILURE: f"{type(error).__name__}: {error}"[:160]}), file=out, flush=True)
        return
    print(json.dumps(worker.ready | {"compiled": len(compiled.buffer)}), file=out, flush=True)
    for line in sys.stdin:
        print(json.dumps(answered(worker, json.loads(line))), file=out, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:3])
