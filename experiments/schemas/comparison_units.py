"""The units of the comparison: all cases of one engine with one tokenizer, in a process of its own
that is watched from a thread."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from experiments.laws.exact_measure import shown
from experiments.run.executors import Row
from experiments.run.measuring import Run
from experiments.schemas.engines import JUDGE, OURS
from experiments.schemas.inputs import Case
from experiments.schemas.reasons import GAVE_UP, UNEXPLAINED
from experiments.schemas.server import MissingEngineError, WorkerServer

if TYPE_CHECKING:
    from experiments.schemas.comparison import Config

Verdicts = Sequence[bool | None]
"""Of each text of a case: is it valid? None where the judge cannot say."""

NO_TOKENIZER = "-"


class Comparison:
    """What a run has to do. units: (engine, tokenizer) of all but the judge; stop: set it, and each
    unit ends before its next case."""

    def __init__(self, run: Run[Config], cases: Sequence[Case]) -> None:
        self._run, self._cases, self._config = run, cases, run.config
        self.stop = threading.Event()
        self._lock = threading.Lock()  # of the run, to which every unit adds rows
        self._missing: dict[str, str] = {}
        run.note(missing=self._missing)
        self.units = [(e, t) for e in run.config.engines for t in run.config.tokenizers]
        self._todo = {
            unit: set(run.expect(key_of(*unit, case) for case in cases))
            for unit in [(JUDGE, NO_TOKENIZER), *self.units]
        }

    def judge(self, bar: Any) -> None:
        """The verdicts come first: others are asked about valid texts. Those of regexes are what
        the data says."""
        if not self._config.regexes:
            self.unit(JUDGE, NO_TOKENIZER, bar)
            return
        for case in self._left(JUDGE, NO_TOKENIZER):
            row = {"status": "compiled", "accepted": case.labels}
            self._add(JUDGE, NO_TOKENIZER, case, row)

    def unit(self, engine: str, tokenizer: str, bar: Any) -> None:
        """Every case that has no row yet, until the time of a peer is up. An engine that is not
        there is noted."""
        left = self._left(engine, tokenizer)
        name, total = f"{engine}, {shown(tokenizer)}", len(self._cases)
        task = bar.add_task(name, total=total, completed=total - len(left))
        spent = self._spent(engine, tokenizer)
        try:
            with self._server(engine, tokenizer) as server:
                while left and spent <= self._most_seconds(engine):
                    if self.stop.is_set():
                        return
                    row = row_of(server, left[0], self._verdicts(engine, left[0]))
                    self._add(engine, tokenizer, left.pop(0), row)
                    spent += row["wall"]
                    bar.advance(task)
        except MissingEngineError as error:
            with self._lock:
                self._missing[name] = str(error)
                self._run.note(missing=self._missing)
        with self._lock:
            self._run.expect_none_of(key_of(engine, tokenizer, case) for case in left)

    def _left(self, engine: str, tokenizer: str) -> list[Case]:
        todo = self._todo[engine, tokenizer]
        return [case for case in self._cases if key_of(engine, tokenizer, case) in todo]

    def _most_seconds(self, engine: str) -> float:
        return math.inf if engine in (OURS, JUDGE) else self._config.peer_seconds

    def _spent(self, engine: str, tokenizer: str) -> float:
        """Seconds, in earlier runs too."""
        rows = (self._kept(engine, tokenizer, case) for case in self._cases)
        return sum(row.get("wall", 0.0) for row in rows if row)

    def _kept(self, engine: str, tokenizer: str, case: Case) -> Row | None:
        return self._run.store.rows.get(key_of(engine, tokenizer, case))

    def _verdicts(self, engine: str, case: Case) -> Verdicts:
        """Those of a judge who does not read a schema are unknown, and so are the judge's own."""
        judged = None if engine == JUDGE else self._kept(JUDGE, NO_TOKENIZER, case)
        return (judged or {}).get("accepted") or [None] * len(case.texts)

    def _add(self, engine: str, tokenizer: str, case: Case, row: Row) -> None:
        whose: Row = {"engine": engine, "tokenizer": shown(tokenizer), "id": case.id}
        if engine == JUDGE:
            whose |= {"group": case.group, "labels": case.labels}
        with self._lock:
            self._run.add(key_of(engine, tokenizer, case), whose | row)

    def _server(self, engine: str, tokenizer: str) -> WorkerServer:
        arguments = (engine, tokenizer, self._config.whitespace)
        return WorkerServer(arguments, self._config.limits())


def key_of(engine: str, tokenizer: str, case: Case) -> str:
    """Of a row."""
    return f"{engine} {shown(tokenizer)} {case.id}"


def row_of(server: WorkerServer, case: Case, valid: Verdicts) -> Row:
    """One case of one engine: what compiling gave, and what was accepted."""
    server.start()
    started = time.perf_counter()
    row = server.ask({"compile": case.source})
    if row["status"] == "compiled" and case.texts:
        compiling = row.get("peak_mb")
        row |= server.ask({"texts": case.texts, "valid": valid})
        row |= {"compiling_mb": compiling, "reasons": _reasons(server, case.texts, valid, row)}
    if row["status"] == "unsatisfiable":
        row["accepted"] = [False] * len(case.texts)
        row["reasons"] = {str(k): UNEXPLAINED for k, good in enumerate(valid) if good}
    return row | {"wall": time.perf_counter() - started, "began_mb": server.began_mb}


def _reasons(
    server: WorkerServer, texts: Sequence[str], valid: Verdicts, row: Row
) -> dict[str, str]:
    """By position, why this package rejects a valid text. The memory and the time that it takes to
    find out are none of the engine's."""
    pairs = enumerate(zip(valid, row.get("accepted", ()), strict=False))
    asked = [k for k, (good, accepted) in pairs if good and not accepted]
    if not asked:
        return {}
    found = server.ask({"explain": [texts[k] for k in asked]}).get("reasons")
    reasons = found or [GAVE_UP] * len(asked)
    return {str(k): why for k, why in zip(asked, reasons, strict=True) if why is not None}
