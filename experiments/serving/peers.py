"""Peers: what compiling, masks and memory cost in each engine, and which ids it admits.

Each engine has a process of its own for each tokenizer, and answers for the same constraints: how
long it takes, whether it lets the tokenizer's own ids of a text of the language pass, whether it
stops texts of none, and whether it admits ids that the tokenizer would not make. The last is
measured: each of the ids that are offered was looked at by the tokenizer itself. What is right
comes from `encode` and from `bpe_automata.reference`, not from any automaton. Engines that are not
installed are one failure each, which says how to install them.
"""

from __future__ import annotations

import json
import pickle
import random
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bpe_automata import Tokenizer
from bpe_automata._kernels.bits import packed
from bpe_automata.reference import canonical_trie
from experiments.engines.interface import ordinary
from experiments.engines.named import OURS, PEERS, check_known, missing, versions
from experiments.run import config
from experiments.run.config import option
from experiments.run.executors import FAILURE, Row
from experiments.run.files import lines_of
from experiments.run.measuring import Run, progress
from experiments.schemas.inputs import spelled
from experiments.serving.peers_child import Exam, Ids
from experiments.serving.peers_report import readme, render
from experiments.shared.watched import Limits, WatchedProcess

__all__ = ["readme", "render"]

VERSION = 2
CHILD = "experiments.serving.peers_child"
MOST_MB = 6000
TRIES = 20
"""Random respellings that are tried for each one that is wanted."""
MOST_PREFIXES = 60
"""Beginnings of texts at which masks are compared."""


@dataclass(frozen=True)
class Case:
    """inside: texts of the language, all of it where `is_small`; outside: texts that are not."""

    regex: str
    inside: tuple[str, ...]
    outside: tuple[str, ...]
    is_small: bool


CASES = {
    row["name"]: Case(row["regex"], tuple(row["inside"]), tuple(row["outside"]), row["is_small"])
    for row in lines_of(Path(__file__).with_name("peers_constraints.jsonl"))
}


# ---------------------------------------------------------------- the run


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
    with WatchedProcess(CHILD, [name, source, settings], limits) as process:
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


# ---------------------------------------------------------------- exams


def exam(tokenizer: Tokenizer, case: Case, offers: int, rng: random.Random) -> Exam:
    """The exam of a case. Texts that the tokenizer cannot spell are left out."""
    inside = [ids for text in case.inside if (ids := spelled(tokenizer, text)) is not None]
    outside = [ids for text in case.outside if (ids := spelled(tokenizer, text)) is not None]
    prefixes, canonical, possible = _prefixes(tokenizer, case, rng)
    offered = list(respellings(tokenizer, inside, offers, rng))
    return Exam(
        case.regex,
        tuple(inside),
        tuple(outside),
        tuple(offered),
        tuple(prefixes),
        canonical,
        possible,
    )


def respellings(
    tokenizer: Tokenizer, texts: Sequence[Ids], most: int, rng: random.Random
) -> Iterator[Ids]:
    """Up to `most` different sequences of ordinary ids that spell one of `texts` as the tokenizer
    does not: `encode` of what they decode to is something else."""
    seen = {tuple(ids) for ids in texts}
    ids_of = tokenizer.derived("ordinary ids of bytes", _ids_of)
    full = [ids for ids in texts if ids]
    for _ in range(TRIES * most if full else 0):
        if len(seen) >= most + len({tuple(ids) for ids in texts}):
            return
        found = _respelled(tokenizer, rng.choice(full), ids_of, rng)
        if found is None or tuple(found) in seen:
            continue
        if tokenizer.encode(tokenizer.decode(found)) != found:
            seen.add(tuple(found))
            yield found


def _respelled(
    tokenizer: Tokenizer, ids: Ids, ids_of: dict[bytes, Ids], rng: random.Random
) -> Ids | None:
    """One to three neighbours spelled anew, each next token as likely as any other; None where that
    comes to what no token begins."""
    first = rng.randrange(len(ids))
    last = min(len(ids), first + rng.randint(1, 3))
    rest, found = b"".join(map(tokenizer.token_bytes, ids[first:last])), list[int]()
    while rest:
        options = [i for n in range(1, len(rest) + 1) for i in ids_of.get(rest[:n], ())]
        if not options:
            return None
        found.append(rng.choice(options))
        rest = rest[len(tokenizer.token_bytes(found[-1])) :]
    return [*ids[:first], *found, *ids[last:]]


def _ids_of(tokenizer: Tokenizer) -> dict[bytes, Ids]:
    """bytes -> the ordinary ids that spell them."""
    found: dict[bytes, Ids] = {}
    for token, text in ordinary(tokenizer).items():
        found.setdefault(text, []).append(token)
    return found


def _prefixes(
    tokenizer: Tokenizer, case: Case, rng: random.Random
) -> tuple[list[Ids], np.ndarray, np.ndarray]:
    """See `Exam`; of a larger number of prefixes some are drawn."""
    words = (tokenizer.n_ids + 31) // 32
    prefixes: list[Ids] = []
    masks: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    if case.is_small:
        trie = canonical_trie(tokenizer, case.inside, banned=tokenizer.added_ids)
        inner = sorted(ids for ids, follow in trie.items() if follow != {None})
        ids_of = tokenizer.derived("ordinary ids of bytes", _ids_of)
        for ids in sorted(rng.sample(inner, min(MOST_PREFIXES, len(inner)))):
            follow = [token for token in trie[ids] if token is not None]
            prefixes.append(list(ids))
            masks[0].append(packed(follow, tokenizer.n_ids))
            written = tokenizer.text_bytes(ids)
            masks[1].append(packed(possible(ids_of, case.inside, written), tokenizer.n_ids))
    empty = np.zeros((0, words), dtype=np.int32)
    return prefixes, np.array(masks[0] or empty), np.array(masks[1] or empty)


def possible(ids_of: dict[bytes, Ids], texts: Sequence[str], written: bytes) -> set[int]:
    """The ordinary ids that lead from `written` to what begins a text of a finite language: all
    that `reference.lift_mask` allows there, where every byte has a token."""
    rests = {
        text.encode().removeprefix(written) for text in texts if text.encode().startswith(written)
    }
    return {
        token
        for rest in rests
        for end in range(1, len(rest) + 1)
        for token in ids_of.get(rest[:end], ())
    }
