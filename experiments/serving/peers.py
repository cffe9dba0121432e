"""Peers: what compiling, masks and memory cost beside other engines, and who admits what.

Each engine has a process of its own for each tokenizer, and answers for the same constraints: how
long it takes, whether it lets the tokenizer's own ids of a text of the language pass, whether it
stops texts of none, and whether it admits ids that the tokenizer would not make. The last is
measured: each of the ids that are offered was looked at by the tokenizer itself. Engines that are
not installed are one failure each, which says how to install them.
"""

from __future__ import annotations

import json
import pickle
import random
import tempfile
from dataclasses import dataclass
from pathlib import Path

from bpe_automata import Tokenizer
from experiments.run import config
from experiments.run.config import option
from experiments.run.executors import FAILURE, Row
from experiments.run.measuring import Run, progress
from experiments.serving.peers_cases import CASES
from experiments.serving.peers_exams import exam
from experiments.serving.peers_process import Process
from experiments.serving.peers_report import readme, render
from experiments.shared.more_engines import OURS, PEERS, check_known, missing, versions
from experiments.shared.watched import Limits

__all__ = ["SMOKE", "VERSION", "Config", "measure", "readme", "render"]

VERSION = 2
CHILD = "experiments.serving.peers_child"
MOST_MB = 6000


@dataclass(frozen=True)
class Config(config.Config):
    """offers: other ids for texts of a language; repeats: of compiling; seconds: of one exam."""

    engines: tuple[str, ...] = option((*OURS, *PEERS), "which engines")
    tokenizers: tuple[str, ...] = option(
        ("smollm2", "llama-3"), "names of tokenizers, or their files"
    )
    constraints: tuple[str, ...] = option(tuple(CASES), "which constraints")
    repeats: int = option(5, "how often each regex is compiled")
    offers: int = option(40, "ids that are not the tokenizer's own, offered of each constraint")
    seconds: float = option(2.0, "that an engine gets for one constraint; then fewer repeats do")


SMOKE = Config(
    engines=("lift",), tokenizers=("gpt2",), constraints=("answer",), repeats=1, offers=5
)


def inputs(chosen: Config) -> Row:
    """The versions of the peers: rows of another version are not gone on with."""
    return {"versions": versions(chosen.engines)}


def measure(run: Run[Config]) -> None:
    """One row for each engine, tokenizer and constraint, and one for how each engine came up."""
    check_known("engines", run.config.engines, [*OURS, *PEERS])
    check_known("constraints", run.config.constraints, CASES)
    run.note(peers=versions(run.config.engines))
    todo = set(run.expect(_keys(run.config)))
    with tempfile.TemporaryDirectory() as folder, progress() as bar:
        exams = Exams(run.config, Path(folder))
        task = bar.add_task("", total=len(run.config.engines) * len(run.config.tokenizers))
        for name in run.config.engines:
            if why := missing(name):
                if name in todo:
                    run.add(name, {"engine": name, FAILURE: why})
                bar.advance(task, len(run.config.tokenizers))
                continue
            for source in run.config.tokenizers:
                bar.update(task, description=f"{name}, {source}")
                _pair(run, name, source, exams, todo)
                bar.advance(task)


def _keys(given: Config) -> list[str]:
    """Of all rows that there may be: one for an engine that is not installed."""
    keys = []
    for name in given.engines:
        if missing(name):
            keys.append(name)
            continue
        for head in (f"{name} {source}" for source in given.tokenizers):
            keys += [head, *(f"{head} {constraint}" for constraint in given.constraints)]
    return keys


def _pair(run: Run[Config], name: str, source: str, exams: Exams, todo: set[str]) -> None:
    """All that one engine is asked about one tokenizer. One that never came up has one row; one
    that came up, and not again when the run was gone on with, fails at each constraint."""
    head = f"{name} {source}"
    keys = {f"{head} {constraint}": constraint for constraint in run.config.constraints}
    is_new, left = head in todo, [key for key in keys if key in todo]
    if not is_new and any(row["key"] == head and row.get(FAILURE) for row in run.rows):
        run.expect_none_of(keys)
        return
    if not is_new and not left:
        return
    settings = json.dumps({"repeats": run.config.repeats, "seconds": run.config.seconds})
    whose = {"engine": name, "tokenizer": source}
    limits = Limits(seconds=60 + 5 * run.config.seconds, mb=MOST_MB)
    with Process(CHILD, [name, source, settings], limits) as process:
        first = process.start()
        if is_new:
            run.add(head, whose | first)
            if FAILURE in first:
                run.expect_none_of(keys)
                return
        for key in left:
            asked = whose | {"constraint": keys[key]}
            answer = first if FAILURE in first else process.ask(str(exams.path(source, keys[key])))
            run.add(key, asked | answer)


class Exams:
    """The exams of all tokenizers, made when they are first needed, in files that all engines
    read."""

    def __init__(self, given: Config, folder: Path) -> None:
        self._config, self._folder = given, folder
        self._tokenizers: dict[str, Tokenizer] = {}

    def path(self, source: str, constraint: str) -> Path:
        """Where that of one tokenizer and one constraint is."""
        number = self._config.tokenizers.index(source)
        path = self._folder / f"{number}-{constraint}"
        if not path.exists():
            if source not in self._tokenizers:
                self._tokenizers[source] = Tokenizer.load(source)
            rng = random.Random(f"{self._config.seed} {constraint}")
            made = exam(self._tokenizers[source], CASES[constraint], self._config.offers, rng)
            path.write_bytes(pickle.dumps(made))
        return path
