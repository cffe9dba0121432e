"""JSON schemas, real ones: what compiles, what is refused, what is wrong, and what it costs.

Every schema of MaskBench, with instances that `jsonschema` calls valid or not, goes to this package
and to others, each in a process of its own that is ended when it takes too long or too much memory.
Of this package a valid instance that is rejected is explained by a text of the same value that is
accepted; what is not explained, or an invalid instance that is accepted, makes the exit code 1.

`--regexes FILE`: ready regexes with texts instead; `--n` cases drawn with the seed. A peer whose
time is up leaves the rest of the cases out.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from bpe_automata.errors import BpeAutomataError
from experiments.run import config
from experiments.run.config import option
from experiments.run.executors import FAILURE, Row
from experiments.run.measuring import Run, progress
from experiments.run.provenance import version_of
from experiments.schemas.comparison_report import TITLE, facts, figures, readme, tables, wrong
from experiments.schemas.comparison_worker import OURS
from experiments.schemas.engines.interface import Whitespace
from experiments.schemas.inputs import (
    SCHEMAS,
    SMOKE_SCHEMAS,
    Case,
    regex_cases,
    schema_cases,
    shuffled,
)
from experiments.schemas.judge import GAVE_UP, JUDGE, UNEXPLAINED
from experiments.shared.watched import Limits, LostError, WatchedProcess
from experiments.texts import SMOKE_TOKENIZER


def shown(source: str) -> str:
    """What a table and a row call a tokenizer: its name, or of a path the last part."""
    return Path(source).name


__all__ = ["TITLE", "facts", "figures", "readme", "tables", "wrong"]

VERSION = 1
WORKER = "experiments.schemas.comparison_worker"
EngineName = Literal["bpe_automata", "llguidance", "xgrammar", "outlines_core"]
ENGINES: tuple[EngineName, ...] = get_args(EngineName)
TOKENIZERS = ("smollm2", "llama-3")
_QUICK: tuple[EngineName, ...] = ("bpe_automata", "llguidance")


@dataclass(frozen=True)
class Config(config.Config):
    """Which cases go to which engines, and how much time and memory each may take."""

    schemas: Path = option(SCHEMAS, "folder or file of JSON lines of schemas with instances")
    regexes: Path | None = option(None, "file of JSON lines of regexes with texts, instead")
    n: int | None = option(None, "schemas: how many cases, drawn by lot; none: all")
    tokenizers: tuple[str, ...] = option(TOKENIZERS, "names or paths")
    engines: tuple[EngineName, ...] = option(ENGINES, "schemas: which of them")
    whitespace: Whitespace = option("compact", "schemas: style of the texts")
    peer_seconds: float = option(90.0, "schemas: a peer begins no case after these")
    case_seconds: float = option(30.0, "schemas: an engine may take for a case")
    case_mb: float = option(3000.0, "schemas: an engine may hold, 10^6 bytes")


SMOKE = Config(schemas=SMOKE_SCHEMAS, tokenizers=(SMOKE_TOKENIZER,), engines=_QUICK)


def inputs(chosen: Config) -> Row:
    """The versions of the engines: rows of another version are not gone on with."""
    return {"versions": versions(chosen)}


def versions(chosen: Config) -> dict[str, str]:
    """Of each engine, and of the judge."""
    return {name: version(name) for name in (*chosen.engines, JUDGE)}


def version(name: str) -> str:
    """Of the installed package; "" if there is none."""
    return version_of("bpe-automata" if name == OURS else name) or ""


def measure(run: Run[Config]) -> None:
    """The judge first, then every engine with every tokenizer, several at a time."""
    chosen, cases = run.config, cases_of(run.config)
    run.note(cases=len(cases), engine_versions=versions(chosen), jobs=run.settings.jobs)
    comparison = Comparison(run, shuffled(cases, chosen.n, chosen.seed))
    with progress() as bar:
        comparison.judge(bar)
        with ThreadPoolExecutor(run.settings.jobs) as pool:
            done = [pool.submit(comparison.unit, *unit, bar) for unit in comparison.units]
            try:
                for unit in done:
                    unit.result()
            except BaseException:
                comparison.stop.set()
                raise


def cases_of(chosen: Config) -> list[Case]:
    """All that the data has. Raises MissingFileError."""
    if chosen.regexes:
        return regex_cases(chosen.regexes)
    return schema_cases(chosen.schemas, chosen.whitespace)


# ---------------------------------------------------------------- one engine, one tokenizer


class MissingEngineError(BpeAutomataError):
    """An engine is not installed, or does not take the tokenizer; the message says why."""


class Server(WatchedProcess):
    """The process of an engine, started when it is first needed, and again after it was ended.
    began_mb: what it had when it first came up."""

    began_mb: float | None = None

    def start(self) -> Row:
        """Have a process ready. Raises MissingEngineError."""
        first = super().start()
        if FAILURE in first:
            raise MissingEngineError(first[FAILURE])
        self.began_mb = first["peak_mb"] if self.began_mb is None else self.began_mb
        return first

    def ask(self, question: Row) -> Row:
        """Its answer, or {"status": "over time" | "over memory" | "crashed", ...}: that is a result
        too. Raises MissingEngineError."""
        self.start()
        try:
            return self.answer(question)
        except LostError as lost:
            message = lost.message if lost.status == "crashed" else ""
            ended = {"status": lost.status, "message": message, "keyword": None}
            return ended | {"peak_mb": lost.mb}


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

    def _server(self, engine: str, tokenizer: str) -> Server:
        arguments = (engine, tokenizer, self._config.whitespace)
        limits = Limits(self._config.case_seconds, self._config.case_mb)
        return Server(WORKER, arguments, limits)


def key_of(engine: str, tokenizer: str, case: Case) -> str:
    """Of a row."""
    return f"{engine} {shown(tokenizer)} {case.id}"


def row_of(server: Server, case: Case, valid: Verdicts) -> Row:
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


def _reasons(server: Server, texts: Sequence[str], valid: Verdicts, row: Row) -> dict[str, str]:
    """By position, why this package rejects a valid text. The memory and the time that it takes to
    find out are none of the engine's."""
    pairs = enumerate(zip(valid, row.get("accepted", ()), strict=False))
    asked = [k for k, (good, accepted) in pairs if good and not accepted]
    if not asked:
        return {}
    found = server.ask({"explain": [texts[k] for k in asked]}).get("reasons")
    reasons = found or [GAVE_UP] * len(asked)
    return {str(k): why for k, why in zip(asked, reasons, strict=True) if why is not None}
