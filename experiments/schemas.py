"""JSON schemas, real ones: what compiles, what is refused, what is wrong, and what it costs.

Every schema of MaskBench, with instances that `jsonschema` calls valid or not, goes to this package
and to others, each in a process of its own that is ended when it takes too long or too much memory.
Of this package a valid instance that is rejected is explained by a text of the same value that is
accepted; what is not explained, or an invalid instance that is accepted, makes the exit code 1.

`--regexes FILE`: ready regexes with texts instead; `--n` cases drawn with the seed; `--engines`,
`--tokenizer`, `--whitespace`. An interrupted run goes on where it stopped; rows of this package are
kept as long as its code stays the same, those of a peer as long as its version does.
"""

from __future__ import annotations

import argparse
import json
import os
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from experiments import schemas_options, schemas_report
from experiments.optional import require
from experiments.runner import Options, versions, write_atomically
from experiments.schemas_engines import version
from experiments.schemas_inputs import Case, digest, regex_cases, schema_cases, shuffled
from experiments.schemas_options import JUDGE, OURS, SchemasOptions, folder_name
from experiments.schemas_reasons import GAVE_UP, UNEXPLAINED
from experiments.schemas_server import Limits, MissingEngineError, WorkerServer
from experiments.schemas_store import Store, code_digest

Row = dict[str, Any]

MEASURE = 1
"""Goes up with what is measured: rows of earlier ones are dropped."""


def options_of(chosen: argparse.Namespace, common: Options) -> SchemasOptions:
    """With what this experiment alone has."""
    return schemas_options.options_of(chosen, common)


def run(options: Options) -> None:
    """Measure unless told to render only; then print the tables and write them for the paper. Exit
    code 1 for anything wrong that is not explained."""
    given = options if isinstance(options, SchemasOptions) else SchemasOptions(**vars(options))
    if not given.render_only:
        measure(given)
    if schemas_report.render(given):
        raise SystemExit(1)


def measure(options: SchemasOptions, limits: Limits | None = None) -> None:
    """Judge, then every engine with every tokenizer; `manifest.json` says what was to be done."""
    started = time.perf_counter()
    cases = _cases(options)
    run_ = _Run(options, limits or Limits(), digest(cases))
    chosen = shuffled(cases, options.n, options.seed)
    manifest = run_.manifest(len(cases), chosen)
    run_.write(manifest)
    with _bar() as bar:
        if not options.regexes:
            run_.unit(JUDGE, "-", chosen, {}, bar)
        if OURS in options.engines:
            run_.compile_kernels()
        verdicts = run_.verdicts(chosen)
        with ThreadPoolExecutor(options.jobs) as pool:
            try:
                units = [*_units(options)]
                done = [pool.submit(run_.unit, *unit, chosen, verdicts, bar) for unit in units]
                for unit in done:
                    unit.result()
            except BaseException:
                run_.stop.set()
                raise
    missing, seconds = run_.missing, round(time.perf_counter() - started, 2)
    run_.write(manifest | {"complete": True, "missing": missing, "wall_seconds": seconds})


def _cases(options: SchemasOptions) -> list[Case]:
    if options.regexes:
        return regex_cases(options.regexes)
    return schema_cases(options.schemas, options.whitespace)


def _units(options: SchemasOptions) -> Iterator[tuple[str, str]]:
    for engine in options.engines:
        for tokenizer in options.chosen:
            yield engine, tokenizer


def _bar() -> Any:
    console = require("rich.console").Console(stderr=True)
    return require("rich.progress").Progress(console=console, transient=True)


class _Run:
    """One run: stores, limits, what is missing."""

    def __init__(self, options: SchemasOptions, limits: Limits, data: str) -> None:
        self.options, self.limits, self.data = options, limits, data
        self.missing: dict[str, str] = {}
        self.stop = threading.Event()

    def unit(
        self, engine: str, tokenizer: str, cases: Sequence[Case], verdicts: Row, bar: Any
    ) -> None:
        """Every case that is not done yet."""
        store = self._store(engine, tokenizer)
        task = bar.add_task(f"{engine}, {tokenizer}", total=len(cases))
        spent = sum(row["wall"] for row in store.rows.values())
        peer = engine not in (OURS, JUDGE)
        arguments = (engine, tokenizer, self.options.whitespace)
        with WorkerServer(arguments, self.limits) as server:
            for case in cases:
                if self.stop.is_set() or (peer and spent > self.options.peer_seconds):
                    break
                if case.id not in store.rows:
                    try:
                        row = _row(server, case, verdicts.get(case.id))
                    except MissingEngineError as error:
                        self.missing[f"{engine}, {tokenizer}"] = str(error)
                        break
                    spent += row["wall"]
                    store.add(row | {"began_mb": server.began_mb})
                bar.advance(task)

    def compile_kernels(self) -> None:
        """In a process that ends: compiling takes memory that is no part of any case."""
        arguments = (OURS, self.options.chosen[0], self.options.whitespace)
        with WorkerServer(arguments, self.limits) as server:
            server.start()

    def verdicts(self, cases: Sequence[Case]) -> dict[str, list[bool | None]]:
        """By case, of each text: is it valid? For regexes it is what the data says."""
        if self.options.regexes:
            return {case.id: [*case.labels] for case in cases}
        judged = self._store(JUDGE, "-").rows
        return {case.id: judged[case.id].get("accepted", []) for case in cases}

    def _store(self, engine: str, tokenizer: str) -> Store:
        made_by = {
            "measure": MEASURE,
            "engine": engine,
            "version": version(engine),
            "code": code_digest() if engine == OURS else "",
            "data": self.data,
            "limits": vars(self.limits),
        }
        return Store(path_of(self.options, engine, tokenizer), made_by)

    def manifest(self, n: int, chosen: Sequence[Case]) -> Row:
        """What the rows are to be made of; `labels`: of the data, by case."""
        options = self.options
        return {
            "experiment": options.name,
            "complete": False,
            "seed": options.seed,
            "cases": n,
            "chosen": [case.id for case in chosen],
            "groups": {case.id: case.group for case in chosen},
            "labels": {case.id: case.labels for case in chosen},
            "data": (options.regexes or options.schemas).name,
            "regexes": bool(options.regexes),
            "whitespace": options.whitespace,
            "engines": options.engines,
            "tokenizers": options.chosen,
            "limits": vars(self.limits),
            "peer_seconds": options.peer_seconds,
            "engine_versions": {e: version(e) for e in (*options.engines, JUDGE)},
            "versions": versions(),
            "cores": os.cpu_count(),
            "load_average": list(os.getloadavg()),
        }

    def write(self, manifest: Row) -> None:
        """Beside the rows."""
        text = json.dumps(manifest, indent=2) + "\n"
        write_atomically(self.options.folder / "manifest.json", text)


def path_of(options: SchemasOptions, engine: str, tokenizer: str) -> Any:
    """The rows of one engine with one tokenizer."""
    name = engine if engine == JUDGE else f"{engine}-{folder_name(tokenizer)}"
    return options.folder / f"{name}.jsonl"


def _reasons(
    server: WorkerServer, texts: Sequence[str], valid: Sequence[bool | None], row: Row
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


def _row(server: WorkerServer, case: Case, valid: Sequence[bool | None] | None) -> Row:
    """One case of one engine: what compiling gave, and what was accepted."""
    server.start()
    started = time.perf_counter()
    row: Row = {"id": case.id} | server.ask({"compile": case.source})
    if row["status"] == "compiled" and case.texts:
        known = list(valid) if valid is not None else [None] * len(case.texts)
        compiling = row.get("peak_mb")
        row |= server.ask({"texts": case.texts, "valid": known})
        row |= {"compiling_mb": compiling, "reasons": _reasons(server, case.texts, known, row)}
    if row["status"] == "unsatisfiable" and valid:
        row["accepted"] = [False] * len(case.texts)
        row["reasons"] = {str(k): UNEXPLAINED for k, good in enumerate(valid) if good}
    return row | {"wall": time.perf_counter() - started}
