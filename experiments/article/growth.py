"""How the automata grow with the regex: DirectMerge against CartesianMerge.

States, transitions, seconds and memory of the published algorithms in plain Python (the reference)
and of the package, on one language: BPE alone with the Mistral-7B merge table. Each cell runs in a
process of its own with a limit of time and of memory; over a limit is a row, and larger sizes of
that family are skipped for that method. Methods that finished are compared with one another, as
languages and by their first masks; a disagreement is in its row, and is wrong.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from bpe_automata import TokenAutomaton
from experiments.article import growth_report
from experiments.article.forks import DONE, SKIPPED, worker
from experiments.article.growth_worker import CARTESIAN, LAZY, METHODS
from experiments.article.mistral import MERGES_HELP, bpe_alone_of_mistral
from experiments.engines.named import check_known
from experiments.run import config
from experiments.run.config import option
from experiments.run.executors import FAILURE, Row
from experiments.run.measuring import Run, progress
from experiments.shared.watched import WatchedProcess


@dataclass(frozen=True)
class Family:
    """name: with n as a variable; regex: of a size; sizes: those of a default run, ascending."""

    name: str
    regex: Callable[[int], str]
    sizes: tuple[int, ...]

    def chosen(self, largest: int | None) -> tuple[int, ...]:
        """The sizes up to `largest` (None: those of a default run)."""
        if largest is None:
            return self.sizes
        doubling = self.sizes[-1] > len(self.sizes)
        grown = range(self.sizes[-1] + 1, largest + 1)
        extra = tuple(n for n in grown if not doubling or not n & (n - 1))
        return (*(n for n in self.sizes if n <= largest), *extra)


def nested(n: int) -> str:
    """Boolean expressions whose operators nest n - 1 deep: alternations within alternations."""
    if n == 1:
        return "(true|false)"
    inner = nested(n - 1)
    return rf"(not {inner}|\({inner} (and|or) {inner}\))"


def fields(n: int) -> str:
    """A JSON object of n fields."""
    value = r'(true|false|null|-?(0|[1-9][0-9]*)|"(low|medium|high)")'
    return r"\{" + ", ".join(rf'"field{i}": {value}' for i in range(1, n + 1)) + r"\}"


_, LETTERS, NESTED, _ = FAMILIES = (
    Family(".{n}", ".{{{}}}".format, (1, 2, 3, 4, 5, 6)),
    Family("[a-z]{n}", "[a-z]{{{}}}".format, (1, 2, 3, 4, 5, 6, 7)),
    Family("alternations nested n deep", nested, (1, 2, 3, 4, 5)),
    Family("JSON object of n fields", fields, (1, 2, 4, 8, 16)),
)
NAMES = tuple(family.name for family in FAMILIES)


def named(names: Sequence[str]) -> list[Family]:
    """The families of these names. Raises ArgumentError."""
    check_known("families", names or ("",), NAMES)
    return [FAMILIES[NAMES.index(name)] for name in names]


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


class Series:
    """Measures cell after cell, with what earlier ones say: over a limit, or to be compared with.
    Automata of the current regex are files in a folder of the run, so that a run that is continued
    compares with them too.

    limits: what the worker is told besides; known: rows of earlier cells.
    """

    def __init__(
        self, process: WatchedProcess, folder: Path, limits: Row, known: Sequence[Row] = ()
    ) -> None:
        self.process, self.folder, self.limits = process, folder, limits
        self.over: dict[tuple[str, str], Row] = {}
        self.finished: list[Row] = []
        folder.mkdir(parents=True, exist_ok=True)
        names = {self._file(row["key"]) for row in known}
        self._keep_only(names)  # others are of an earlier state of the code
        for row in known:
            self._remember(row)

    def row(self, asked: Asked) -> Row:
        """Measure one, and compare it with the others of its size."""
        regex, family, method = asked.family.regex(asked.n), asked.family.name, asked.method
        row = {"kind": "cell", "family": family, "n": asked.n, "method": method, "regex": regex}
        row["key"] = asked.key
        if before := self.over.get((family, method)):
            row |= {"status": SKIPPED, "over_at": before["n"]}
            # Failed too, so that --retry measures both again.
            return row | ({FAILURE: f"n = {before['n']} failed"} if FAILURE in before else {})
        question = {
            "method": method,
            "regex": regex,
            "file": None if method == LAZY else str(self._file(asked.key)),
            **self.limits,
        }
        row |= self.process.answer(question)
        if row["status"] == DONE:
            row |= self.compared(row)
        self._remember(row)
        return row

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
        self._keep_only({self._file(one["key"]) for one in [row, *others]})
        return others

    def _keep_only(self, files: set[Path]) -> None:
        for file in {*self.folder.iterdir()} - files:
            file.unlink()


def _first(row: Row) -> tuple[int, int]:
    return row["first_ids"], row["first_crc32"]


def _size(row: Row) -> tuple[str, int]:
    return row["family"], row["n"]


VERSION = 1
render, readme = growth_report.render, growth_report.readme
SERVER = "experiments.article.growth_worker"


@dataclass(frozen=True)
class Config(config.Config):
    """What grows how far, over which table, and what a cell may take."""

    families: tuple[str, ...] = option(NAMES, "of regexes, separated by commas")
    largest: int | None = option(None, "largest size of each family (none: its own sizes)")
    merges: int | None = option(None, MERGES_HELP)
    limit_seconds: float = option(45, "of one construction")
    limit_mb: float = option(4000, "memory of one construction, 10^6 bytes")
    most_kept: int = option(12_000_000, "automata with more transitions are not compared")


LIMITS = ("limit_seconds", "limit_mb", "most_kept")
SMOKE = Config(families=(LETTERS.name, NESTED.name), largest=2, merges=300, limit_seconds=5)


def measure(run: Run[Config]) -> None:
    """One row per preparation of a method and per cell."""
    tokenizer = bpe_alone_of_mistral(run.config.merges)
    measure_on(run, json.dumps(tokenizer), named(run.config.families))


def measure_on(run: Run[Config], tokenizer: str, families: Sequence[Family]) -> None:
    """tokenizer: a tokenizer.json, BPE alone."""
    config = run.config
    asked = (
        Asked(family, n, method)
        for family in families
        for n in family.chosen(config.largest)
        for method in METHODS
    )
    cells = {cell.key: cell for cell in asked}
    todo = set(run.expect([*(f"prepare {method}" for method in METHODS), *cells]))
    automata = run.folder / "automata"
    if todo:
        with worker(SERVER, tokenizer) as process, progress() as bar:
            _prepare(run, process, cells, todo)
            known = [row for row in run.rows if row["key"] in cells.keys() - todo]
            bounds = {name: getattr(config, name) for name in LIMITS}
            series = Series(process, automata, bounds, known)
            for key in bar.track([key for key in cells if key in todo], description="growth"):
                run.add(key, series.row(cells[key]))
    shutil.rmtree(automata, ignore_errors=True)


def _prepare(
    run: Run[Config], process: WatchedProcess, cells: dict[str, Asked], todo: set[str]
) -> None:
    """The methods of cells to be measured; the time is kept of the first run only."""
    wanted = {cells[key].method for key in todo & cells.keys()}
    # The reference last: its tables stay in the memory of all processes after it.
    for method in sorted(METHODS, key=lambda name: name == CARTESIAN):
        key = f"prepare {method}"
        if key in todo or method in wanted:
            row = process.answer({"prepare": method})
            if key in todo:
                run.add(key, {"kind": "preparation", "method": method} | row)
