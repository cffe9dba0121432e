"""One engine under one exam: its times, and what it allows. Runs in the process of the engine."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from bpe_automata.kernels.bits import has
from experiments.run.executors import Row
from experiments.serving.peers_exams import Exam
from experiments.shared.engines import Begin, Engine, PeerError, Session, refusals
from experiments.shared.timing import timed

SHARES = {"compile": 0.3, "cold": 0.5, "warm": 0.6, "outside": 0.7, "offers": 0.85, "places": 1.0}
"""Of the seconds of an exam, by when each part is to be left; the first of each is always done."""


class Answers:
    """One constraint under one engine. ordinary: packed int32 [words], the ids that are compared;
    eos_ids: end of sequence; repeats: of compiling; seconds: for all of it."""

    def __init__(
        self,
        engine: Engine,
        exam: Exam,
        ordinary: np.ndarray,
        eos_ids: tuple[int, ...],
        repeats: int,
        seconds: float,
    ) -> None:
        self._engine, self._exam, self._repeats = engine, exam, repeats
        self._ordinary, self._eos_ids, self._seconds = ordinary, eos_ids, seconds
        self._buffer = np.zeros((1, len(ordinary)), dtype=np.int32)
        self._started = time.perf_counter()
        self.begin: Begin | None = None

    def compiled(self) -> Row:
        """compile, first: seconds of compiling, and of the first mask after it, each time anew."""
        row: Row = {"compile": [], "first": []}
        for _ in self._within("compile", range(self._repeats)):
            self.begin = None
            spent, begin = timed(partial(self._engine.prepare, self._exam.regex))
            first, _ = timed(partial(self._first, begin))
            self.begin = begin
            row["compile"].append(spent)
            row["first"].append(first)
        return row

    def _first(self, begin: Begin) -> None:
        with refusals():
            begin().mask(self._buffer)

    def masks(self, begin: Begin) -> Row:
        """cold: seconds of each mask along the texts of the language, where it is the first one
        there; warm: of each, once more; blocked: which of the texts were stopped on the way, or may
        not end."""
        row: Row = {"cold": [], "warm": [], "inside": 0, "blocked": []}
        seen: set[tuple[int, ...]] = {()}  # the first mask of all came with compiling
        for k, ids in self._within("cold", list(enumerate(self._exam.inside))):
            seconds, passes = self._follow(begin, ids)
            places = [tuple(ids[:n]) for n in range(len(seconds))]
            each = zip(places, seconds, strict=True)
            row["cold"] += [spent for place, spent in each if place not in seen]
            seen.update(places)
            row["inside"] += 1
            row["blocked"] += [] if passes else [k]
        for ids in self._within("warm", self._exam.inside):
            row["warm"] += self._follow(begin, ids)[0]
        return row

    def admitted(self, begin: Begin) -> Row:
        """outside, completed: texts that are not of the language, and which of them passed;
        offered, admitted: other ids for texts that are, and how many of them passed."""
        row: Row = {"outside": 0, "completed": [], "offered": 0, "admitted": 0}
        for k, ids in self._within("outside", list(enumerate(self._exam.outside))):
            row["outside"] += 1
            row["completed"] += [k] if self._follow(begin, ids)[1] else []
        for ids in self._within("offers", self._exam.offers):
            row["offered"] += 1
            row["admitted"] += self._follow(begin, ids)[1]
        return row

    def compared(self, begin: Begin) -> Row:
        """Ids over all places of a small language: missing, those of the tokenizer's own that are
        not allowed; impossible, allowed though no text goes on so; other, those that are neither
        of the tokenizer's own nor impossible. unreached: places that the engine did not let us to.
        """
        row: Row = {"places": 0, "missing": 0, "impossible": 0, "other": 0, "unreached": 0}
        exam = self._exam
        each = list(zip(exam.places, exam.canonical, exam.possible, strict=True))
        for ids, canonical, possible in self._within("places", each):
            row["places"] += 1
            if len(self._follow(begin, ids)[0]) <= len(ids):
                row["unreached"] += 1
                continue
            found = self._buffer[0] & self._ordinary
            row["missing"] += _count(canonical & ~found)
            row["impossible"] += _count(found & ~possible)
            row["other"] += _count(found & possible & ~canonical)
        return row

    def _within(self, part: str, items: Sequence[Any]) -> Any:
        """As many of them as there is time for."""
        end = self._started + self._seconds * SHARES[part]
        for k, item in enumerate(items):
            if k and time.perf_counter() > end:
                return
            yield item

    def _follow(self, begin: Begin, ids: list[int]) -> tuple[list[float], bool]:
        """(seconds of the mask at each place along the ids, up to where one is not allowed; whether
        all could be read, and then the end). The last mask stays in the buffer."""
        seconds: list[float] = []
        try:
            with refusals():
                session = begin()
                for token in (*ids, None):
                    spent, _ = timed(lambda: session.mask(self._buffer))
                    seconds.append(spent)
                    if token is None:
                        return seconds, self._may_end(session)
                    if not has(self._buffer[0], token):
                        break
                    session.advance(token)
        except PeerError:  # it breaks here, so that nothing can follow
            pass
        return seconds, False

    def _may_end(self, session: Session) -> bool:
        """By its last mask; peers whose masks hold no end of sequence are asked."""
        own: Callable[[], bool] | None = getattr(session, "may_end", None)
        return own() if own else any(has(self._buffer[0], end) for end in self._eos_ids)


def _count(bits: np.ndarray) -> int:
    return int(np.unpackbits(np.ascontiguousarray(bits).view(np.uint8)).sum())
