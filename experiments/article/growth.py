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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from experiments.article.forks import DONE, MEMORY, TIME, worker
from experiments.article.growth_cells import (
    ANYTHING,
    LETTERS,
    NAMES,
    NESTED,
    SKIPPED,
    Asked,
    Family,
    Limits,
    Series,
    named,
)
from experiments.article.growth_worker import CARTESIAN, DIRECT, EXPLICIT, LAZY, METHODS
from experiments.article.mistral import MERGES_HELP, bpe_alone_of_mistral, name_of
from experiments.article.redrawn_panels import in_lines, subplots
from experiments.run import config
from experiments.run.config import option
from experiments.run.executors import FAILURE, Row
from experiments.run.measuring import Run, progress
from experiments.run.readme import wrapped
from experiments.run.report import Figure, Report
from experiments.run.tables import (
    Column,
    Group,
    Table,
    fixed,
    frame,
    records,
    several,
    table,
    whole,
)
from experiments.shared.watched import WatchedProcess

VERSION = 1
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
            bounds = Limits(config.limit_seconds, config.limit_mb, config.most_kept)
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


# ---------------------------------------------------------------- tables

SHORT = {
    DIRECT: "DirectMerge\n(reference)",
    CARTESIAN: "CartesianMerge\n(reference)",
    LAZY: "package,\nfirst mask",
    EXPLICIT: "package,\nwritten out",
}


def render(rows: Sequence[Row], manifest: Row) -> Report:
    """Three tables and a figure; a method that was stopped is a result."""
    config, cells = manifest["config"], cells_of(rows)
    found, title = frame(cells), name_of(config["merges"])
    wrong = [
        f"{row['key']}: differs from {other}: {how}"
        for row in cells
        for other, how in (row.get("disagrees") or {}).items()
    ]
    if not cells:
        return Report(f"Growth: {title}", facts=facts(cells, config))
    tables = [sizes(found, title), costs(found, config), reaches(found, rows, config)]
    figures = [draw(found, config)]
    return Report(f"Growth: {title}", tables, figures, facts(cells, config), wrong)


def cells_of(rows: Sequence[Row]) -> list[Row]:
    """The cells by family (as they came), size and method; `why`: of those that failed."""
    cells = [
        row | {FAILURE: None, "why": row.get(FAILURE, "")}
        for row in rows
        if row.get("kind") == "cell"
    ]
    families, methods = [*dict.fromkeys(row["family"] for row in cells)], [*METHODS]

    def order(row: Row) -> tuple[int, int, int]:
        return families.index(row["family"]), row["n"], methods.index(row["method"])

    return sorted(cells, key=order)


def sizes(cells: pd.DataFrame, title: str) -> Table:
    """One line per regex: the automata that were written out, and whether they agree."""
    columns = [
        Column("states / transitions", _regex),
        *(
            Column(SHORT[method], _of(method, "states", "transitions"), several(whole))
            for method in METHODS
            if method != LAZY
        ),
        Column("minimal", _minimal, several(whole)),
        Column("equal", agreement),
    ]
    notes = [
        "reference: the published algorithms in plain Python. CartesianMerge: the relevant pairs "
        "of the product, never written out by it. The package's states also hold the last id",
        "minimal: the least automaton of the language, where one was written out; equal: how many "
        "automata were compared, as languages (fewer where one is too large to be kept)",
    ]
    return table(f"Growth of the automata: {title}", _by_regex(cells), columns, notes)


def costs(cells: pd.DataFrame, config: Row) -> Table:
    """One line per regex: seconds and memory of each method."""

    def seconds(method: str) -> Callable[[Group], str | None]:
        def of(group: Group) -> str | None:
            found = records(group[group["method"] == method])
            return _seconds(found[0], config) if found else None

        return of

    def megabytes(method: str) -> Callable[[Group], Any]:
        return lambda group: next(iter(_of(method, "peak_mb")(group) or ()), None)

    columns = [
        Column("", _regex),
        *(Column(f"{SHORT[method]}, s", seconds(method)) for method in METHODS),
        *(Column(f"{SHORT[method]}, MB", megabytes(method), fixed(0)) for method in METHODS),
    ]
    notes = [
        f"from a byte DFA on, one process for each cell; over {' or '.join(limits(config))} a cell "
        "is given up, and larger ones are skipped (...)",
        "MB: 10^6 bytes, peak of the cell's process over what it began with",
    ]
    return table("Seconds and memory", _by_regex(cells), columns, notes)


def reaches(cells: pd.DataFrame, rows: Sequence[Row], config: Row) -> Table:
    """How far each method went."""

    def reach(method: str) -> Callable[[Group], str]:
        return lambda group: _reach(records(group[group["method"] == method]), config)

    prepared = [row for row in rows if row.get("kind") == "preparation" and "seconds" in row]
    shared = [f"{r['method']} {r['seconds']:.1f} s" for r in prepared if r["seconds"] >= 0.05]
    columns = [
        Column("largest n that was finished", "family"),
        *(Column(SHORT[method], reach(method)) for method in METHODS),
    ]
    notes = [
        "made once for all regexes, not counted above: "
        + (", ".join(shared) or "nothing that takes long"),
        "published, as a plot without numbers: n = 1 .. 6 of `.` repeated, for both algorithms, in "
        "the article's companion notebook (CartesianMerge there over 27 characters, DirectMerge "
        "over 100)",
    ]
    return table("Where each method stops", cells.groupby("family", sort=False), columns, notes)


def agreement(here: Group) -> str | None:
    """Of the cells of one regex: how many automata are equal, or who differs."""
    done = records(here[here["status"] == DONE])
    if wrong := [row["method"] for row in done if row["disagrees"]]:
        return "NO: " + ", ".join(wrong)
    compared = 1 + sum(bool(row["equal_to"]) for row in done)
    return str(compared) if compared > 1 else None


def _by_regex(cells: pd.DataFrame) -> Iterator[tuple[Any, Group]]:
    return iter(cells.groupby(["family", "n"], sort=False))


def _regex(here: Group) -> str:
    return f"{here['family'].iloc[0]}, n = {here['n'].iloc[0]}"


def _of(method: str, *fields: str) -> Callable[[Group], list[Any] | None]:
    """Numbers of a method that finished and wrote them down."""

    def of(here: Group) -> list[Any] | None:
        done = records(here[(here["method"] == method) & (here["status"] == DONE)])
        return [done[0][field] for field in fields] if done else None

    return of


def _minimal(here: Group) -> list[int] | None:
    return next((row["minimal"] for row in records(here) if row.get("minimal")), None)


def _seconds(row: Row, config: Row) -> str:
    if row["status"] == DONE:
        return f"{row['seconds']:.2g}" if row["seconds"] < 10 else f"{row['seconds']:.0f}"
    return "..." if row["status"] == SKIPPED else why(row, config)


def _reach(of_method: Sequence[Row], config: Row) -> str:
    """The largest n that was finished, and what stopped the next one."""
    stopped = next((row for row in of_method if row["status"] not in (DONE, SKIPPED)), None)
    reached = str(_largest(of_method) or "none")
    if stopped is None:
        return f"{reached} (largest tried)"
    return f"{reached}, then {why(stopped, config)}"


def _largest(of_method: Sequence[Row]) -> int:
    return max((int(row["n"]) for row in of_method if row["status"] == DONE), default=0)


def why(row: Row, config: Row) -> str:
    """What stopped a cell."""
    seconds, memory = limits(config)
    stopped = {TIME: f"over {seconds}", MEMORY: f"over {memory}"}
    return stopped.get(row["status"], f"failed: {row['why'][:60]}")


def limits(config: Row) -> tuple[str, str]:
    """What a cell may take: time, memory."""
    return f"{config['limit_seconds']:g} s", f"{config['limit_mb'] / 1e3:g} GB"


# ---------------------------------------------------------------- facts


def facts(cells: Sequence[Row], config: Row) -> Row:
    """regexes: how many have been tried; compared, differing: pairs of automata; minimal: by
    family the largest least automaton that is known; first_mask: the package's slowest, seconds;
    reach: by family and method the largest n that was finished, 0 if none."""
    done = [row for row in cells if row["status"] == DONE]
    families = dict.fromkeys(row["family"] for row in cells)
    return {
        "regexes": len({row["regex"] for row in cells}),
        "compared": sum(len(row["equal_to"]) + len(row["disagrees"]) for row in done),
        "differing": sum(len(row["disagrees"]) for row in done),
        "minimal": {
            row["family"]: {k: row[k] for k in ("n", "regex", "minimal")}
            for row in done
            if "minimal" in row
        },
        "first_mask": max((r["seconds"] for r in done if r["method"] == LAZY), default=None),
        "reach": {
            family: {
                method: _largest(
                    [r for r in done if (r["family"], r["method"]) == (family, method)]
                )
                for method in METHODS
            }
            for family in families
        },
        "limit_seconds": config["limit_seconds"],
    }


def readme(facts: Row) -> str:
    """What is compared, and how large results are."""
    differing = facts["differing"]
    verdict = f"{differing} of them differ" if differing else "all are equal"
    said = (
        "All methods that end are compared, by their first masks and, where they write an "
        f"automaton down, as languages: {facts['compared']} pairs of automata for "
        f"{facts['regexes']} regexes, {verdict}."
    )
    largest = [facts["minimal"].get(family.name) for family in (LETTERS, ANYTHING)]
    shown = [
        f"`{found['regex']}` has {found['minimal'][1] / 1e6:.1f} million transitions"
        for found in largest
        if found
    ]
    if shown:
        said += (
            " What makes DirectMerge and explicit products impractical is not their steps but "
            f"their result: the minimal automaton of {', that of '.join(shown)}. The lazy product "
            "never writes it down."
        )
    return wrapped(said)


# ---------------------------------------------------------------- the figure

STYLE: dict[str, tuple[str, str, str]] = {
    DIRECT: ("DirectMerge (reference)", "#d1495b", "s"),
    CARTESIAN: ("CartesianMerge (reference)", "#edae49", "^"),
    EXPLICIT: ("package, all states written out", "#7fc4cc", "o"),
    LAZY: ("package, to the first mask", "#00798c", "o"),
}
"""Name in the legend, color, marker; later ones are drawn on top."""
QUANTITIES = {"seconds": "seconds", "integers": "integers to keep"}


def draw(cells: pd.DataFrame, config: Row) -> Figure:
    """A column per family; seconds above, integers to keep below; log scales."""
    families = [*cells.groupby("family", sort=False)]
    width = max(3.1 * len(families), 6.2)
    figure, grid = subplots(2, len(families), figsize=(width, 6.6), sharex="col", sharey="row")
    for column, (family, of_family) in zip(grid.T, families, strict=True):
        for axes, quantity in zip(column, QUANTITIES, strict=True):
            _lines(axes, of_family, quantity)
        _crosses(column[0], of_family, config)
        column[0].set_title(family, loc="left", fontsize=11)
        column[1].set_xlabel("n")
    for axes, label in zip(grid[:, 0], QUANTITIES.values(), strict=True):
        axes.set_ylabel(f"{label} (log scale)")
    entries = (zip(*axes.get_legend_handles_labels(), strict=True) for axes in reversed(grid[0]))
    legend = {label: handle for of_axes in entries for handle, label in of_axes}
    labels = sorted(legend, key=[label for label, _, _ in STYLE.values()].index)
    # There is room: JSON objects have few integers to keep.
    handles = [legend[label] for label in labels]
    grid[1, -1].legend(handles, labels, loc="upper left", frameon=False, fontsize=9)
    return Figure("growth", figure, in_lines(headline(records(cells), config), width), note(config))


def _lines(axes: Any, of_family: Group, quantity: str) -> None:
    """A line per method over the sizes that it finished."""
    for order, (method, (label, color, marker)) in enumerate(STYLE.items()):
        done = of_family[(of_family["method"] == method) & (of_family["status"] == DONE)]
        points = [(row["n"], row[quantity]) for row in records(done) if row[quantity]]
        if points:
            style = {"color": color, "marker": marker, "markersize": 5, "zorder": 2 + order}
            axes.plot(*zip(*points, strict=True), label=label, **style)
    sizes = sorted({*of_family["n"]})
    axes.set_yscale("log")
    if sizes[-1] > 2 * len(sizes):
        axes.set_xscale("log", base=2)
    axes.set_xticks(sizes, [str(n) for n in sizes])
    axes.minorticks_off()
    axes.grid(axis="y", color="#eeeeee")
    axes.set_axisbelow(True)


def _crosses(axes: Any, of_family: Group, config: Row) -> None:
    """The limit of time, and a cross where a method was stopped by it or by its memory."""
    limit = config["limit_seconds"]
    axes.axhline(limit, color="#bbbbbb", linewidth=0.8, linestyle=":")
    for method, (_, color, _) in STYLE.items():
        of_method = records(of_family[of_family["method"] == method])
        done = [row for row in of_method if row["status"] == DONE]
        for row in of_method:
            if row["status"] not in (TIME, MEMORY):
                continue
            style = {"color": color, "markersize": 9, "markeredgewidth": 2, "zorder": 9}
            axes.plot(row["n"], limit, "x", **style)
            if done:
                steps = [done[-1]["n"], row["n"]], [done[-1]["seconds"], limit]
                axes.plot(*steps, color=color, linewidth=0.9, linestyle="--", zorder=1)


def headline(cells: Sequence[Row], config: Row) -> str:
    """The message, with the numbers of these rows."""
    tried = [row for row in cells if row["method"] == DIRECT]
    done = [row for row in tried if row["status"] == DONE]
    seconds, memory = limits(config)
    ends = [
        f"at n = {_largest([row for row in tried if row['family'] == family])} for {family}"
        for family in dict.fromkeys(r["family"] for r in tried if r["status"] in (TIME, MEMORY))
    ]
    if not ends:
        return f"DirectMerge finished {len(done)} of {len(tried)} regexes, each within {seconds}"
    first = [r["seconds"] for r in cells if r["method"] == LAZY and r["status"] == DONE]
    return (
        f"DirectMerge stops being practical: within {seconds} and {memory} it ends "
        f"{' and '.join(ends)};\n"
        f"the package makes the first mask of each regex in at most {max(first, default=0):.2g} s"
    )


def note(config: Row) -> str:
    """What the crosses and the numbers are."""
    return (
        f"{name_of(config['merges'])}. x: given up, over {' or '.join(limits(config))}. "
        "Integers: 1 a state, 2 a transition; CartesianMerge "
        "(reference) keeps the lift and its relevant pairs, besides the forbidden sets of all "
        "texts, which regexes share. The reference is the published algorithms in plain Python. "
        "Each construction was timed once."
    )
