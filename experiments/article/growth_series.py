"""Cell after cell of the growth experiment: what is skipped, and who agrees with whom."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

from bpe_automata import TokenAutomaton, Tokenizer, compile_regex
from experiments.article.growth_methods import LAZY, METHODS, Bench, Built, Family
from experiments.article.server import DONE, FAILED, Server, forked, limits, peak_mb, serve, settle
from experiments.run.executors import FAILURE, Row
from experiments.shared.resources import timed

SKIPPED = "skipped"


@dataclass(frozen=True)
class Asked:
    """A cell: the regex of a family and a size, under a method."""

    family: Family
    n: int
    method: str

    @property
    def key(self) -> str:
        """Of its row."""
        return f"{self.family.name}, n = {self.n}: {self.method}"


class Limits(Protocol):
    """What a cell may take, and how large an automaton is compared; see `growth.Config`."""

    @property
    def limit_seconds(self) -> float: ...

    @property
    def limit_mb(self) -> float: ...

    @property
    def most_kept(self) -> int: ...


class Series:
    """What was over a limit already, and what can be compared. Automata of the regex that is at
    hand are files in a folder of the run, so that one that goes on compares with them too.

    known: rows of cells that were measured before.
    """

    def __init__(
        self, server: Server, folder: Path, limits: Limits, known: Sequence[Row] = ()
    ) -> None:
        self.server, self.folder, self.limits = server, folder, limits
        self.over: dict[tuple[str, str], Row] = {}
        self.finished: list[Row] = []
        folder.mkdir(parents=True, exist_ok=True)
        names = {self._file(row["key"]) for row in known}
        for left in {*folder.iterdir()} - names:  # of an earlier state of the code
            left.unlink()
        for row in known:
            self._remember(row)

    def row(self, asked: Asked) -> Row:
        """Measure one, and compare it with the others of its size."""
        regex, family, method = asked.family.regex(asked.n), asked.family.name, asked.method
        row = {"kind": "cell", "family": family, "n": asked.n, "method": method, "regex": regex}
        row["key"] = asked.key
        if before := self.over.get((family, method)):
            return row | _skipped(before)
        row |= self.server.ask(self._question(asked, regex))
        if row["status"] == DONE:
            row |= self.compared(row)
        self._remember(row)
        return row

    def _question(self, asked: Asked, regex: str) -> Row:
        return {
            "method": asked.method,
            "regex": regex,
            "file": None if asked.method == LAZY else str(self._file(asked.key)),
            "limit_seconds": self.limits.limit_seconds,
            "limit_mb": self.limits.limit_mb,
            "most_kept": self.limits.most_kept,
        }

    def _file(self, key: str) -> Path:
        return self.folder / f"{quote(key, safe='')}.npz"

    def _remember(self, row: Row) -> None:
        if row["status"] == DONE:
            self.finished.append(row)
        elif row["status"] != SKIPPED:
            self.over[row["family"], row["method"]] = row

    def compared(self, row: Row) -> Row:
        """`disagrees`: what is wrong, by method; `equal_to`: the methods that made the same
        automaton; `minimal`: states and transitions of the least one, if it is the first."""
        others = self._of_its_size(row)
        mine = self._automaton(row)
        disagrees: dict[str, str] = {}
        equal: list[str] = []
        for other in others:
            theirs = self._automaton(other)
            if _first(other) != _first(row):
                disagrees[other["method"]] = "another first mask"
            elif mine is not None and theirs is not None:
                differing = mine.equivalent(theirs)
                if differing is None:
                    equal.append(other["method"])
                else:
                    disagrees[other["method"]] = f"{list(differing.ids)}"
        found: Row = {"equal_to": equal, "disagrees": disagrees}
        if mine is not None and not any(other["kept"] for other in others):
            least = mine.minimised()
            found["minimal"] = [least.n_states, least.n_transitions]
        return found

    def _automaton(self, row: Row) -> TokenAutomaton | None:
        """None where it was not kept, or is there no more."""
        file = self._file(row["key"])
        return TokenAutomaton.load(file) if row["kept"] and file.exists() else None

    def _of_its_size(self, row: Row) -> list[Row]:
        """The others that finished. Only these are compared with it: other files can go."""
        others = [other for other in self.finished if _size(other) == _size(row)]
        names = {self._file(one["key"]) for one in [row, *others]}
        for file in {*self.folder.iterdir()} - names:
            file.unlink()
        return others


def _skipped(before: Row) -> Row:
    """After one that was over a limit; after a failure it is one too, so that it is tried again
    with it."""
    row: Row = {"status": SKIPPED, "over_at": before["n"]}
    if before["status"] == FAILED:
        row[FAILURE] = f"n = {before['n']} failed"
    return row


def _first(row: Row) -> tuple[int, int]:
    return row["first_ids"], row["first_crc32"]


def _size(row: Row) -> tuple[str, int]:
    return row["family"], row["n"]


# The process of the growth experiment: `python -m experiments.article.growth_series FILE`.
#
# FILE: a tokenizer.json, BPE alone. {"prepare": METHOD} is to be asked before the cells of a
# method; see `growth_cell` for those.


def measured(bench: Bench, cell: Row) -> Row:
    """What a forked process found out about a cell; if it died, of what.

    cell: method, regex, limit_seconds, limit_mb (10^6 bytes; both for the construction alone),
    file (.npz to which the automaton goes, or None), most_kept (its transitions at most).
    """
    return forked(lambda: _row(bench, cell))


def _row(bench: Bench, cell: Row) -> Row:
    """Construct within the limits; then, without limits, count, and keep the automaton."""
    dfa = compile_regex(cell["regex"])
    method = METHODS[cell["method"]]
    before = peak_mb()
    with limits(cell["limit_seconds"], cell["limit_mb"]):
        seconds, built = timed(lambda: method(bench, dfa))
    peak = max(0.0, peak_mb() - before)
    return {"seconds": seconds, "peak_mb": peak, **_sizes(built, cell)}


def _sizes(built: Built, cell: Row) -> Row:
    sizes = built.sizes()
    row: Row = {
        "states": sizes.states,
        "transitions": sizes.transitions,
        "integers": sizes.integers,
        "first_ids": len(sizes.first),
        "first_crc32": zlib.crc32(repr(sizes.first).encode()),
        "kept": False,
    }
    small = sizes.transitions is not None and sizes.transitions <= cell["most_kept"]
    if built.automaton and cell["file"] and small:
        automaton = built.automaton()
        # Without the spellings, which are the same for all.
        parts = (automaton.start, automaton.accepting, automaton.offsets, automaton.symbols)
        TokenAutomaton(*parts, automaton.targets).save(Path(cell["file"]))
        row["kept"] = True
    return row


def main(file: str) -> None:
    """Answer until the input ends."""
    bench = Bench(Tokenizer.load(file))

    def answer(question: Row) -> Row:
        if "prepare" not in question:
            return measured(bench, question)
        seconds, _ = timed(lambda: bench.prepare(question["prepare"]))
        settle()
        return {"seconds": seconds}

    serve(answer)


if __name__ == "__main__":
    main(sys.argv[1])
