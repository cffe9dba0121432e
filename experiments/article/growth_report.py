"""The cells of the growth experiment as tables, a figure, facts, and what the README says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd

from experiments.article.forks import DONE, MEMORY, SKIPPED, TIME
from experiments.article.growth_worker import CARTESIAN, DIRECT, EXPLICIT, LAZY, METHODS
from experiments.article.mistral import name_of
from experiments.run.executors import FAILURE, Row
from experiments.run.readme import wrapped
from experiments.run.report import Figure, Report, grid, panels
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
from experiments.shared.shown import PALE, in_lines

SHORT = {
    DIRECT: "DirectMerge\n(reference)",
    CARTESIAN: "CartesianMerge\n(reference)",
    LAZY: "package,\nfirst mask",
    EXPLICIT: "package,\nwritten out",
}


def render(rows: Sequence[Row], manifest: Row) -> Report:
    """Three tables and a figure; a method that was stopped is a result."""
    config, cells = manifest["config"], cells_of(rows)
    title = name_of(config["merges"])
    found = facts(cells, config)
    if not cells:
        return Report(f"Growth: {title}", facts=found)
    wrong = [
        f"{row['key']}: differs from {other}: {how}"
        for row in cells
        for other, how in (row.get("disagrees") or {}).items()
    ]
    lines = frame(cells)
    by_regex = lines.assign(regex=lines["family"] + lines["n"].map(", n = {}".format))
    tables = [sizes(by_regex, title), costs(by_regex, config), reaches(lines, rows, config)]
    return Report(f"Growth: {title}", tables, [draw(lines, config)], found, wrong)


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


def _of(method: str, of: Callable[[Row], Any]) -> Callable[[Group], Any]:
    """Of the row of a method, where it was tried."""
    return lambda here: next(map(of, records(here[here["method"] == method])), None)


def _done(method: str, *fields: str) -> Callable[[Group], Any]:
    """Numbers of a method that finished and wrote them down."""
    return _of(method, lambda row: [row[f] for f in fields] if row["status"] == DONE else None)


def sizes(cells: pd.DataFrame, title: str) -> Table:
    """One line per regex: the automata that were written out, and whether they agree."""
    columns = [
        Column("states / transitions", "regex"),
        *(
            Column(SHORT[method], _done(method, "states", "transitions"), several(whole))
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
    groups = cells.groupby("regex", sort=False)
    return table(f"Growth of the automata: {title}", groups, columns, notes)


def _minimal(here: Group) -> list[int] | None:
    return next((row["minimal"] for row in records(here) if row.get("minimal")), None)


def agreement(here: Group) -> str | None:
    """Of the cells of one regex: how many automata are equal, or who differs."""
    done = records(here[here["status"] == DONE])
    if wrong := [row["method"] for row in done if row["disagrees"]]:
        return "NO: " + ", ".join(wrong)
    compared = 1 + sum(bool(row["equal_to"]) for row in done)
    return str(compared) if compared > 1 else None


def costs(cells: pd.DataFrame, config: Row) -> Table:
    """One line per regex: seconds and memory of each method."""

    def seconds(row: Row) -> str:
        if row["status"] == DONE:
            return f"{row['seconds']:.2g}" if row["seconds"] < 10 else f"{row['seconds']:.0f}"
        return "..." if row["status"] == SKIPPED else why(row, config)

    columns = [
        Column("", "regex"),
        *(Column(f"{SHORT[method]}, s", _of(method, seconds)) for method in METHODS),
        *(
            Column(f"{SHORT[method]}, MB", _done(method, "peak_mb"), several(fixed(0)))
            for method in METHODS
        ),
    ]
    notes = [
        f"from a byte DFA on, one process for each cell; over {' or '.join(limits(config))} a cell "
        "is given up, and larger ones are skipped (...)",
        "MB: 10^6 bytes, peak of the cell's process over what it began with",
    ]
    return table("Seconds and memory", cells.groupby("regex", sort=False), columns, notes)


def reaches(cells: pd.DataFrame, rows: Sequence[Row], config: Row) -> Table:
    """How far each method went, and what stopped it."""

    def reach(method: str) -> Callable[[Group], str]:
        def of(family: Group) -> str:
            tried = family[family["method"] == method]
            reached = str(largest(tried) or "none")
            stopped = records(tried[~tried["status"].isin((DONE, SKIPPED))])
            if not stopped:
                return f"{reached} (largest tried)"
            return f"{reached}, then {why(stopped[0], config)}"

        return of

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


def largest(tried: Group) -> int:
    """The greatest n that was finished, 0 if none was."""
    return max((int(n) for n in tried[tried["status"] == DONE]["n"]), default=0)


def why(row: Row, config: Row) -> str:
    """What stopped a cell."""
    seconds, memory = limits(config)
    stopped = {TIME: f"over {seconds}", MEMORY: f"over {memory}"}
    return stopped.get(row["status"], f"failed: {row['why'][:60]}")


def limits(config: Row) -> tuple[str, str]:
    """What a cell may take: time, memory."""
    return f"{config['limit_seconds']:g} s", f"{config['limit_mb'] / 1e3:g} GB"


def facts(cells: Sequence[Row], config: Row) -> Row:
    """regexes: how many have been tried; compared, differing: pairs of automata; minimal: by
    family the largest least automaton that is known; first_mask: the package's slowest, seconds;
    reach: by family and method the largest n that was finished, 0 if none."""
    done = [row for row in cells if row["status"] == DONE]
    reach = {row["family"]: dict.fromkeys(METHODS, 0) for row in cells}
    for row in done:
        reach[row["family"]][row["method"]] = row["n"]
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
        "reach": reach,
        "limit_seconds": config["limit_seconds"],
    }


LARGE = ("[a-z]{n}", ".{n}")
"""Families whose minimal automata the README speaks of."""


def readme(facts: Row) -> str:
    """What is compared, and how large results are."""
    differing = facts["differing"]
    verdict = f"{differing} of them differ" if differing else "all are equal"
    said = (
        "All methods that end are compared, by their first masks and, where they write an "
        f"automaton down, as languages: {facts['compared']} pairs of automata for "
        f"{facts['regexes']} regexes, {verdict}."
    )
    shown = [
        f"`{found['regex']}` has {found['minimal'][1] / 1e6:.1f} million transitions"
        for found in map(facts["minimal"].get, LARGE)
        if found
    ]
    if shown:
        said += (
            " What makes DirectMerge and explicit products impractical is not their steps but "
            f"their result: the minimal automaton of {', that of '.join(shown)}. The lazy product "
            "never writes it down."
        )
    return wrapped(said)


# The figure.

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
    figure, axes = panels(2, len(families), (width, 6.6), sharex="col", sharey="row")
    for column, (family, of_family) in zip(axes.T, families, strict=True):
        for panel, quantity in zip(column, QUANTITIES, strict=True):
            _lines(panel, of_family, quantity)
        _crosses(column[0], of_family, config["limit_seconds"])
        column[0].set_title(family, loc="left", fontsize=11)
        column[1].set_xlabel("n")
    for panel, label in zip(axes[:, 0], QUANTITIES.values(), strict=True):
        panel.set_ylabel(f"{label} (log scale)")
    marks: dict[str, Any] = {}
    for panel in reversed(axes[0]):
        handles, labels = panel.get_legend_handles_labels()
        marks |= dict(zip(labels, handles, strict=True))
    names = [label for label, _, _ in STYLE.values() if label in marks]
    # There is room: JSON objects have few integers to keep.
    place = {"loc": "upper left", "frameon": False, "fontsize": 9}
    axes[1, -1].legend([marks[name] for name in names], names, **place)
    return Figure("growth", figure, in_lines(headline(cells, config), width), note(config))


def _lines(panel: Any, of_family: Group, quantity: str) -> None:
    """A line per method over the sizes that it finished."""
    for order, (method, (label, color, marker)) in enumerate(STYLE.items()):
        done = of_family[(of_family["method"] == method) & (of_family["status"] == DONE)]
        points = [(row["n"], row[quantity]) for row in records(done) if row[quantity]]
        if points:
            # Earlier ones are larger: they are seen around later ones of the same value.
            style = {"color": color, "marker": marker, "markersize": 8 - order, "zorder": 2 + order}
            panel.plot(*zip(*points, strict=True), label=label, **style)
    tried = sorted({*of_family["n"]})
    panel.set_yscale("log")
    if tried[-1] > 2 * len(tried):
        panel.set_xscale("log", base=2)
    panel.set_xticks(tried, [str(n) for n in tried])
    panel.minorticks_off()
    grid(panel, "y")


def _crosses(panel: Any, of_family: Group, limit: float) -> None:
    """The limit of time, and a cross where a method was stopped by it or by its memory."""
    panel.axhline(limit, color=PALE, linewidth=0.8, linestyle=":")
    for order, (method, (_, color, _)) in enumerate(STYLE.items()):
        tried = of_family[of_family["method"] == method]
        done = records(tried[tried["status"] == DONE])
        for row in records(tried[tried["status"].isin((TIME, MEMORY))]):
            cross = {"color": color, "markersize": 13 - 2 * order, "markeredgewidth": 2}
            panel.plot(row["n"], limit, "x", zorder=9 + order, **cross)
            if done:
                steps = [done[-1]["n"], row["n"]], [done[-1]["seconds"], limit]
                panel.plot(*steps, color=color, linewidth=0.9, linestyle="--", zorder=1)


def headline(cells: pd.DataFrame, config: Row) -> str:
    """The message, with the numbers of these rows."""
    tried, done = cells[cells["method"] == DIRECT], cells[cells["status"] == DONE]
    seconds, memory = limits(config)
    ends = [
        f"at n = {largest(tried[tried['family'] == family])} for {family}"
        for family in tried[tried["status"].isin((TIME, MEMORY))]["family"].unique()
    ]
    if not ends:
        finished = (tried["status"] == DONE).sum()
        return f"DirectMerge finished {finished} of {len(tried)} regexes, each within {seconds}"
    slowest = max(done[done["method"] == LAZY]["seconds"], default=0)
    return (
        f"DirectMerge stops being practical: within {seconds} and {memory} it ends "
        f"{' and '.join(ends)};\n"
        f"the package makes the first mask of each regex in at most {slowest:.2g} s"
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
