"""The process of one engine: `python -m experiments.schemas.worker ENGINE TOKENIZER WHITESPACE`.

Answers each line of input, a JSON object, with a line: {"compile": SOURCE} first, then {"texts":
[...], "valid": [...]} about what was compiled, then {"explain": [...]}: why are these, which are
valid, rejected? A peer may crash or run away: the other end of the
pipe watches the clock and the memory.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
from numba.core.event import install_recorder

from bpe_automata import Tokenizer
from bpe_automata.errors import BpeAutomataError
from experiments.run.executors import Row
from experiments.schemas.engines import (
    JUDGE,
    OURS,
    Compiled,
    RefusedError,
    SchemaEngine,
    open_peer,
)
from experiments.schemas.histogram import Histogram
from experiments.schemas.ours import Judge, OursCompiled, OursEngine
from experiments.shared.engines import PeerError, Session, refusals
from experiments.shared.memory import forget_peak, give_back, resident
from experiments.shared.timing import timed

MASKED = 300
"""Ids of a text before which the mask is made and timed; after them the ids are only read."""
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


class Worker:
    """An engine, and what it compiled last."""

    def __init__(self, engine: SchemaEngine) -> None:
        self._engine, self._tokenizer = engine, engine.tokenizer
        self._buffer = np.zeros((1, (self._tokenizer.n_ids + 31) // 32), dtype=np.int32)
        self._compiled: Compiled | None = None

    def answer(self, question: Row) -> Row:
        """One line of output, with the peak of the memory since the last."""
        if "compile" in question:
            self._compiled = None
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
                self._compiled = self._engine.compile(source)
                seconds = time.perf_counter() - started
                first, _ = timed(lambda: self._session().mask(self._buffer))
        except PeerError as error:
            self._compiled = None
            return self._refused(error) | {"compile": time.perf_counter() - started}
        return {"status": "compiled", "compile": seconds, "first": first}

    def _refused(self, error: PeerError) -> Row:
        """Whatever else this package raises is a fault of it; of a peer it is a refusal."""
        status, keyword = "failed" if isinstance(self._engine, OursEngine) else "refused", None
        if isinstance(error, RefusedError):
            status, keyword = error.status, error.keyword
        return {"status": status, "message": str(error)[:300], "keyword": keyword}

    def _session(self) -> Session:
        if self._compiled is None:
            raise PeerError("nothing is compiled")
        return self._compiled.session()

    def _texts(self, texts: list[str], valid: list[bool | None]) -> Row:
        """accepted: of each text; masks: a histogram of seconds along the valid ones; wrong_masks:
        texts that the automaton and its masks disagree about."""
        masks = Histogram()
        row: Row = {"accepted": [], "wrong_masks": []}
        for text, good in zip(texts, valid, strict=True):
            row["accepted"].append(self._accepts(text, masks if good else None, row))
        return row | {"masks": masks.row()}

    def _reason(self, text: str) -> str | None:
        """None of a peer."""
        return self._compiled.reason(text) if isinstance(self._compiled, OursCompiled) else None

    def _accepts(self, text: str, masks: Histogram | None, row: Row) -> bool:
        compiled = self._compiled
        if isinstance(compiled, OursCompiled):
            accepted = compiled.dfa.accepts(text.encode("utf-8", "surrogatepass"))
            if accepted and masks is not None and not self._follows(text, masks):
                row["wrong_masks"].append(text[:200])
            return accepted
        return self._follows(text, masks)

    def _follows(self, text: str, masks: Histogram | None) -> bool:
        """Can the tokenizer's own ids of `text` be read, and then the end?"""
        try:
            ids = self._tokenizer.encode(text)
        except BpeAutomataError:
            return False
        if self._tokenizer.text_bytes(ids) != text.encode():  # it has bytes that no token spells
            return isinstance(self._compiled, OursCompiled)
        with suppress(PeerError, BpeAutomataError), refusals():
            session = self._session()
            for k, token in enumerate(ids):
                if masks is not None and k < MASKED:
                    masks.add(timed(lambda: session.mask(self._buffer))[0])
                session.advance(token)
            return self._may_end(session)
        return False

    def _may_end(self, session: Session) -> bool:
        session.mask(self._buffer)
        words = self._buffer[0]
        return any(words[end // 32] >> (end % 32) & 1 for end in self._tokenizer.eos_ids)


class JudgeWorker:
    """The same for the judge, who has no masks."""

    def __init__(self) -> None:
        self._compiled: Any = None

    def answer(self, question: Row) -> Row:
        """`accepted`: True, False, or None where it cannot say."""
        if "texts" in question:
            return {"accepted": [self._verdict(text) for text in question["texts"]]}
        try:
            self._compiled = Judge().compile(question["compile"])
        except RefusedError as error:
            return {"status": error.status, "message": str(error), "keyword": None}
        return {"status": "compiled"}

    def _verdict(self, text: str) -> bool | None:
        try:
            return bool(self._compiled.verdict(text))
        except Exception:  # a $ref that leads nowhere, a pattern that is not Python's
            return None


def opened(engine: str, tokenizer: str, whitespace: str) -> Worker | JudgeWorker:
    """Raises PeerError, and what loading a tokenizer raises."""
    if engine == JUDGE:
        return JudgeWorker()
    loaded = Tokenizer.load(tokenizer)
    made: Any = OursEngine if engine == OURS else partial(open_peer, engine)
    worker = Worker(made(loaded, whitespace))
    for source in WARMING:  # kernels and tables that are made once are no part of any case
        worker.answer({"compile": source})
        worker.answer({"texts": ['"a"'], "valid": [True]})
    gc.collect()
    gc.freeze()  # what is there by now stays; later collections need not look through it
    return worker


def main(engine: str, tokenizer: str, whitespace: str) -> None:
    """Answer until the input ends; whatever else is printed goes to stderr."""
    out, sys.stdout = sys.stdout, sys.stderr
    try:
        with install_recorder("numba:compile") as compiled:
            worker = opened(engine, tokenizer, whitespace)
        ready: Row = {"ready": True, "peak_mb": resident("VmHWM"), "compiled": len(compiled.buffer)}
    except (PeerError, BpeAutomataError) as error:
        ready = {"ready": False, "message": str(error)}
    print(json.dumps(ready), file=out, flush=True)
    if ready["ready"]:
        for line in sys.stdin:
            print(json.dumps(worker.answer(json.loads(line))), file=out, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:4])
