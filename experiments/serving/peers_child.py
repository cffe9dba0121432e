"""The process of one engine: `python -m experiments.serving.peers_child ENGINE TOKENIZER SETTINGS`.

It says with its first line how the engine came up, and then answers each line of its input, the
path of an exam, with a line: the engine's times, and what it allows. All lines are JSON.
"""

from __future__ import annotations

import json
import pickle
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bpe_automata import Tokenizer
from bpe_automata._kernels.bits import has, packed
from bpe_automata.errors import BpeAutomataError
from experiments.engines.interface import (
    Begin,
    Engine,
    PeerError,
    Session,
    may_end,
    ordinary,
    refusals,
)
from experiments.engines.named import engine_of
from experiments.run.executors import Row
from experiments.shared.resources import forget_peak, resident, settled, timed
from experiments.shared.watched import Answer, failure_of, serve

Ids = list[int]
WARMING, WARM_TEXT = r"[a-f]{2}, (one|two)", "ab, one"
SHARES = {"compile": 0.3, "cold": 0.5, "warm": 0.6, "outside": 0.7, "offers": 0.85, "prefixes": 1.0}
"""Of the seconds of an exam, by when each part is to be left; the first of each is always done."""


@dataclass(frozen=True)
class Exam:
    """inside, outside: `encode` of the texts; offers: other ids for texts of the language, none of
    them what the tokenizer makes of its text.

    prefixes: beginnings of texts of a small language; canonical, possible: packed int32 [prefixes,
    words], the ordinary ids that may follow in the tokenizer's own ids of a text, and in any ids.
    """

    regex: str
    inside: tuple[Ids, ...]
    outside: tuple[Ids, ...]
    offers: tuple[Ids, ...]
    prefixes: tuple[Ids, ...]
    canonical: np.ndarray
    possible: np.ndarray


@dataclass
class Answers:
    """One constraint under one engine. ordinary: packed int32 [words], the ids that are compared;
    eos_ids: end of sequence; repeats: of compiling; seconds: for all of it."""

    engine: Engine
    exam: Exam
    ordinary: np.ndarray
    eos_ids: tuple[int, ...]
    repeats: int
    seconds: float
    begin: Begin | None = None

    def __post_init__(self) -> None:
        self._buffer = np.zeros((1, len(self.ordinary)), dtype=np.int32)
        self._started = time.perf_counter()

    def compiled(self) -> Row:
        """compile, first: seconds of compiling, and of the first mask after it, each time anew."""
        row: Row = {"compile": [], "first": []}
        for _ in self._within("compile", range(self.repeats)):
            self.begin = None
            spent, begin = timed(partial(self.engine.prepare, self.exam.regex))
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
        for k, ids in self._within("cold", list(enumerate(self.exam.inside))):
            seconds, passes = self._follow(begin, ids)
            prefixes = [tuple(ids[:n]) for n in range(len(seconds))]
            each = zip(prefixes, seconds, strict=True)
            row["cold"] += [spent for prefix, spent in each if prefix not in seen]
            seen.update(prefixes)
            row["inside"] += 1
            row["blocked"] += [] if passes else [k]
        for ids in self._within("warm", self.exam.inside):
            row["warm"] += self._follow(begin, ids)[0]
        return row

    def admitted(self, begin: Begin) -> Row:
        """outside, completed: texts that are not of the language, and which of them passed;
        offered, admitted: other ids for texts that are, and how many of them passed."""
        row: Row = {"outside": 0, "completed": [], "offered": 0, "admitted": 0}
        for k, ids in self._within("outside", list(enumerate(self.exam.outside))):
            row["outside"] += 1
            row["completed"] += [k] if self._follow(begin, ids)[1] else []
        for ids in self._within("offers", self.exam.offers):
            row["offered"] += 1
            row["admitted"] += self._follow(begin, ids)[1]
        return row

    def compared(self, begin: Begin) -> Row:
        """Ids over all prefixes of a small language: missing, those of the tokenizer's own that are
        not allowed; impossible, allowed though no text goes on so; other, those that are neither
        of the tokenizer's own nor impossible. unreached: prefixes that could not be read.
        """
        row: Row = {"places": 0, "missing": 0, "impossible": 0, "other": 0, "unreached": 0}
        exam = self.exam
        each = list(zip(exam.prefixes, exam.canonical, exam.possible, strict=True))
        for ids, canonical, possible in self._within("prefixes", each):
            row["places"] += 1
            if len(self._follow(begin, ids)[0]) <= len(ids):
                row["unreached"] += 1
                continue
            found = self._buffer[0] & self.ordinary
            row["missing"] += _count(canonical & ~found)
            row["impossible"] += _count(found & ~possible)
            row["other"] += _count(found & possible & ~canonical)
        return row

    def _within(self, part: str, items: Sequence[Any]) -> Any:
        """As many of them as there is time for."""
        end = self._started + self.seconds * SHARES[part]
        for k, item in enumerate(items):
            if k and time.perf_counter() > end:
                return
            yield item

    def _follow(self, begin: Begin, ids: list[int]) -> tuple[list[float], bool]:
        """(seconds of the mask at each prefix, up to where an id is not allowed; whether
        all could be read, and then the end). The last mask stays in the buffer."""
        seconds: list[float] = []
        try:
            with refusals():
                session = begin()
                for token in (*ids, None):
                    spent, _ = timed(lambda: session.mask(self._buffer))
                    seconds.append(spent)
                    if token is None:
                        return seconds, may_end(session, self._buffer[0], self.eos_ids)
                    if not has(self._buffer[0], token):
                        break
                    session.advance(token)
        except PeerError:  # it breaks here, so that nothing can follow
            pass
        return seconds, False


def _count(bits: np.ndarray) -> int:
    return int(np.unpackbits(np.ascontiguousarray(bits).view(np.uint8)).sum())


class Worker:
    """An engine that has come up. repeats, seconds: see `Answers`."""

    def __init__(self, name: str, tokenizer: Tokenizer, repeats: int, seconds: float) -> None:
        self._ordinary = packed(ordinary(tokenizer), tokenizer.n_ids)
        self._eos_ids, self._repeats, self._seconds = tokenizer.eos_ids, repeats, seconds
        before, started = settled(), time.perf_counter()
        self._engine = engine_of(name, tokenizer)
        session, buffer = self._engine.prepare(WARMING)(), np.zeros_like(self._ordinary[None])
        session.mask(buffer)
        spent = time.perf_counter() - started
        _follow(session, tokenizer.encode(WARM_TEXT), buffer)
        self.ready: Row = {"ready": spent, "engine_mb": settled() - before, "process_mb": before}

    def answer(self, exam: Exam) -> Row:
        """peak_mb: what compiling, and the masks along the texts, took at their highest."""
        before = settled()
        forget_peak()
        arguments = (self._ordinary, self._eos_ids, self._repeats, self._seconds)
        answers = Answers(self._engine, exam, *arguments)
        try:
            row = answers.compiled()
            if answers.begin is None:
                raise PeerError("nothing was compiled")
            row |= answers.masks(answers.begin)
            row["peak_mb"] = max(0.0, (resident("VmHWM") or before) - before)
            return row | answers.admitted(answers.begin) | answers.compared(answers.begin)
        except BpeAutomataError as error:
            return failure_of(error)


def _follow(session: Session, ids: Sequence[int], buffer: np.ndarray) -> None:
    """Kernels and tables that are made once are no part of any exam. An engine that does not let
    its reader through here is asked the exams all the same."""
    with suppress(PeerError), refusals():
        for token in ids:
            session.advance(token)
            session.mask(buffer)


def opened(name: str, source: str, settings: str) -> tuple[Row, Answer]:
    """What `serve` needs."""
    given = json.loads(settings)
    worker = Worker(name, Tokenizer.load(source), given["repeats"], given["seconds"])

    def answer(path: str) -> Row:
        exam: Exam = pickle.loads(Path(path).read_bytes())
        return worker.answer(exam)

    return worker.ready, answer


if __name__ == "__main__":
    serve(partial(opened, *sys.argv[1:4]))
