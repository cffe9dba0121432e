"""How the automata grow with the regex: DirectMerge against CartesianMerge.

States, transitions, seconds and memory of the published algorithms in plain Python (the reference)
and of the package, on one language: BPE alone with the Mistral-7B merge table. Each cell runs in a
process of its own with a limit of time and of memory; over a limit is a row, and larger sizes of
that family are skipped for that method. Methods that finished are compared with one another, as
languages and by their first masks; a disagreement is in its row, and makes the exit code 1.

`--n`: the largest size of each family.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bpe_automata import TokenAutomaton
from experiments import article_table, growth_report
from experiments.growth_families import FAMILIES, Family
from experiments.growth_methods import CARTESIAN, LAZY, METHODS
from experiments.growth_server import Server
from experiments.optional import require
from experiments.runner import Options, Run, read_run, write_atomically

Row = dict[str, Any]


@dataclass(frozen=True)
class Limits:
    """seconds, mb (10^6 bytes): of a cell; most_kept: an automaton with more transitions is not
    kept, and so not compared."""

    seconds: float = 45
    mb: float = 4000
    most_kept: int = 12_000_000


def run(options: Options) -> None:
    """Measure unless told to render only; then print the tables and draw the figure. Exit code 1
    where methods disagree."""
    if not options.render_only:
        measure(options, json.dumps(article_table.bpe_alone_of_mistral()), FAMILIES, Limits())
    rows, manifest = read_run(options)
    growth_report.render(rows, manifest, options)
    if any(row.get("disagrees") for row in rows):
        raise SystemExit(1)


def measure(options: Options, table: str, families: Sequence[Family], limits: Limits) -> None:
    """One row per preparation of a method and per cell. table: a tokenizer.json, BPE alone."""
    started = time.perf_counter()
    cells = [*_cells(families, options.n)]
    config = {"limit_seconds": limits.seconds, "limit_mb": limits.mb}
    provenance = {"tokenizer": article_table.NAME, "load_average": list(os.getloadavg())}
    run_ = Run(options, config, provenance, len(METHODS) + len(cells), started)
    console = require("rich.console").Console(stderr=True)
    with tempfile.TemporaryDirectory() as scratch, console.status("preparing") as status:
        file = Path(scratch) / "tokenizer.json"
        write_atomically(file, table)
        with Server(file) as server:
            # The reference last: its tables stay in the memory of all processes after it.
            for method in sorted(METHODS, key=lambda name: name == CARTESIAN):
                status.update(f"preparing {method}")
                answer = server.ask({"prepare": method})
                run_.add({"kind": "preparation", "method": method, **answer})
            series = _Series(server, Path(scratch), limits)
            for family, n, method in cells:
                status.update(f"{method}: {family.name}, n = {n}")
                run_.add(series.row(family, n, method))


def _cells(families: Sequence[Family], largest: int | None) -> Iterator[tuple[Family, int, str]]:
    for family in families:
        for n in family.chosen(largest):
            for method in METHODS:
                yield family, n, method


class _Series:
    """Cell after cell: what was over a limit already, and what can be compared."""

    def __init__(self, server: Server, scratch: Path, limits: Limits) -> None:
        self.server, self.scratch, self.limits = server, scratch, limits
        self.over: dict[tuple[str, str], int] = {}
        self.finished: list[tuple[Row, Path]] = []

    def row(self, family: Family, n: int, method: str) -> Row:
        """Measure one, and compare it with the others of its size."""
        regex = family.regex(n)
        row = {"kind": "cell", "family": family.name, "n": n, "method": method, "regex": regex}
        if (family.name, method) in self.over:
            return row | {"status": "skipped", "over_at": self.over[family.name, method]}
        file = self.scratch / f"{method}.npz"
        limits = {"limit_seconds": self.limits.seconds, "limit_mb": self.limits.mb}
        question = {"method": method, "regex": regex, "file": None if method == LAZY else str(file)}
        row |= self.server.ask(question | limits | {"most_kept": self.limits.most_kept})
        if row["status"] != "done":
            self.over[family.name, method] = n
            return row
        return self._compared(row, file)

    def _compared(self, row: Row, file: Path) -> Row:
        """With `disagrees`: what is wrong, by method; `equal_to`: the methods that made the same
        automaton; `minimal`: states and transitions of the least one, if it is the first."""
        same = (row["family"], row["n"])
        self.finished = [f for f in self.finished if (f[0]["family"], f[0]["n"]) == same]
        found: dict[str, str] = {}
        equal: list[str] = []
        mine = TokenAutomaton.load(file) if row["kept"] else None
        for other, other_file in self.finished:
            if _first(other) != _first(row):
                found[other["method"]] = "another first mask"
            elif mine and other["kept"]:
                differing = mine.equivalent(TokenAutomaton.load(other_file))
                if differing is None:
                    equal.append(other["method"])
                else:
                    found[other["method"]] = f"{list(differing.ids)}"
        if mine and not any(other["kept"] for other, _ in self.finished):
            least = mine.minimised()
            row["minimal"] = [least.n_states, least.n_transitions]
        self.finished.append((row, file))
        return row | {"equal_to": equal, "disagrees": found}


def _first(row: Row) -> tuple[int, int]:
    return row["first_ids"], row["first_crc32"]
