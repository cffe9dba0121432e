"""The cells of the growth experiment: growing regexes, what is skipped, and what is compared.

Four families of regexes have a size n. A method that is over a limit at one size is not tried at
larger ones; automata of the same regex are compared as languages, first masks by their ids.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import quote

from bpe_automata import TokenAutomaton
from bpe_automata.errors import ArgumentError
from experiments.article.forks import DONE
from experiments.article.growth_worker import LAZY
from experiments.run.executors import FAILURE, Row
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


def anything(n: int) -> str:
    """Any n characters but a line break. The article's companion notebook plots n = 1 .. 6."""
    return f".{{{n}}}"


def letters(n: int) -> str:
    """n small letters."""
    return f"[a-z]{{{n}}}"


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


ANYTHING, LETTERS, NESTED, FIELDS = FAMILIES = (
    Family(".{n}", anything, (1, 2, 3, 4, 5, 6)),
    Family("[a-z]{n}", letters, (1, 2, 3, 4, 5, 6, 7)),
    Family("alternations nested n deep", nested, (1, 2, 3, 4, 5)),
    Family("JSON object of n fields", fields, (1, 2, 4, 8, 16)),
)
NAMES = tuple(family.name for family in FAMILIES)


def named(names: Sequence[str]) -> list[Family]:
    """The families of these names. Raises ArgumentError."""
    known = dict(zip(NAMES, FAMILIES, strict=True))
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        wrong = f"{unknown[0]!r} is none of them" if unknown else "none is given"
        raise ArgumentError(f"--families: {wrong}; they are: {', '.join(NAMES)}")
    return [known[name] for name in names]


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


@dataclass(frozen=True)
class Limits:
    """What a construction may take, 10^6 bytes, and how large an automaton is compared."""

    limit_seconds: float
    limit_mb: float
    most_kept: int


class Series:
    """Measures cell after cell, with what earlier ones say: over a limit, or to be compared with.
    Automata of the current regex are files in a folder of the run, so that a run that is continued
    compares with them too.

    known: rows of earlier cells.
    """

    def __init__(
        self,
        process: WatchedProcess,
        folder: Path,
        limits: Limits,
        known: Sequence[Row] = (),
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
            **asdict(self.limits),
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
