"""The process of one engine: `python -m experiments.serving.peers_child ENGINE TOKENIZER SETTINGS`.

It says with its first line how the engine came up, and then answers each line of its input, the
path of an exam, with a line. All lines are JSON.
"""

from __future__ import annotations

import json
import pickle
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
from numba.core.event import install_recorder

from bpe_automata import Tokenizer
from bpe_automata.errors import BpeAutomataError
from bpe_automata.kernels.bits import packed
from experiments.run.executors import FAILURE, Row
from experiments.serving.peers_exams import Exam
from experiments.serving.peers_questions import Answers
from experiments.shared.engines import PeerError, Session, ordinary, refusals
from experiments.shared.memory import forget_peak, give_back, resident
from experiments.shared.more_engines import engine_of

WARMING, WARM_TEXT = r"[a-f]{2}, (one|two)", "ab, one"


class Worker:
    """An engine that has come up. repeats, seconds: see `Answers`."""

    def __init__(self, name: str, tokenizer: Tokenizer, repeats: int, seconds: float) -> None:
        self._ordinary = packed(ordinary(tokenizer), tokenizer.n_ids)
        self._eos_ids, self._repeats, self._seconds = tokenizer.eos_ids, repeats, seconds
        before, started = _settled(), time.perf_counter()
        self._engine = engine_of(name, tokenizer)
        session, buffer = self._engine.prepare(WARMING)(), np.zeros_like(self._ordinary[None])
        session.mask(buffer)
        spent = time.perf_counter() - started
        _follow(session, tokenizer.encode(WARM_TEXT), buffer)
        self.ready: Row = {"ready": spent, "engine_mb": _settled() - before, "process_mb": before}

    def answer(self, exam: Exam) -> Row:
        """peak_mb: what compiling, and the masks along the texts, took at their highest."""
        before = _settled()
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
        except (PeerError, BpeAutomataError) as error:
            return {FAILURE: f"{type(error).__name__}: {error}"[:120]}


def _follow(session: Session, ids: Sequence[int], buffer: np.ndarray) -> None:
    """Kernels and tables that are made once are no part of any exam. An engine that does not let
    its reader through here is asked the exams all the same."""
    with suppress(PeerError), refusals():
        for token in ids:
            session.advance(token)
            session.mask(buffer)


def _settled() -> float:
    """Resident megabytes (10^6 bytes) once freed memory is given back."""
    give_back()
    return resident("VmRSS") or 0.0


def main(name: str, source: str, settings: str) -> None:
    """Answer until the input ends; whatever else is printed goes to stderr."""
    out, sys.stdout = sys.stdout, sys.stderr
    given = json.loads(settings)
    try:
        with install_recorder("numba:compile") as compiled:
            worker = Worker(name, Tokenizer.load(source), given["repeats"], given["seconds"])
    except (PeerError, BpeAutomataError) as error:
        print(json.dumps({FAILURE: f"{type(error).__name__}: {error}"[:120]}), file=out, flush=True)
        return
    print(json.dumps(worker.ready | {"compiled": len(compiled.buffer)}), file=out, flush=True)
    for line in sys.stdin:
        exam: Exam = pickle.loads(Path(json.loads(line)).read_bytes())
        print(json.dumps(worker.answer(exam)), file=out, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:4])
