"""The growth rows as tables and as a figure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from experiments.article.growth_methods import (
    ANYTHING,
    CARTESIAN,
    DIRECT,
    EXPLICIT,
    LAZY,
    LETTERS,
    METHODS,
)
from experiments.article.growth_series import SKIPPED
from experiments.article.mistral import name_of
from experiments.article.panels import in_lines, subplots
from experiments.article.server import DONE, MEMORY, TIME
from experiments.run.executors import FAILURE, Row
from experiments.run.readme import wrapped
from experiments.run.report import Figure, Report
from experiments.run.tables import Table

# The growth figure: a column per family; seconds above, integers to keep below; log scales.

STYLE: dict[str, tuple[str, str, str]] = {
    DIRECT: ("DirectMerge (reference)", "#d1495b", "s"),
    CARTESIAN: ("CartesianMerge (reference)", "#edae49", "^"),
    EXPLICIT: ("package, all states written out", "#7fc4cc", "o"),
    LAZY: ("package, to the first mask", "#00798c", "o"),
}
"""Name in the legend, color, marker; later ones are drawn on top."""
QUANTITIES = {"seconds": "seconds", "integers": "integers to keep"}


def draw(cells: Sequence[Row], config: Row) -> Figure:
    """The figure of some cells, at least one; config: of their run."""
    families = [*dict.fromkeys(row["family"] for row in cells)]
    width = max(3.1 * len(families), 6.2)
    figure, grid = subplots(2, len(families), figsize=(width, 6.6), sharex="col", sharey="row")
    for column, family in zip(grid.T, families, strict=True):
        of_family = [row for row in cells if row["family"] == family]
        for axes, quantity in zip(column, QUANTITIES, strict=True):
            lines(axes, of_family, quantity)
        give_up(column[0], of_family, config)
        column[0].set_title(family, loc="left", fontsize=11)
        column[1].set_xlabel("n")
    for axes, label in zip(grid[:, 0], QUANTITIES.values(), strict=True):
        axes.set_ylabel(f"{label} (log scale)")
    # There is room: JSON objects have few integers to keep.
    grid[1, -1].legend(*legend(grid[0]), loc="upper left", frameon=False, fontsize=9)
    head = in_lines(headline(cells, config), width)
    return Figure("growth", figure, head, note(config))


def lines(axes: Any, of_family: Sequence[Row], quantity: str) -> None:
    """A line per method over the sizes that it finished."""
    for order, (method, (label, color, marker)) in enumerate(STYLE.items()):
        done = [row for row in of_family if row["method"] == method and row["status"] == DONE]
        points = [(row["n"], row[quantity]) for row in done if row[quantity]]
        if points:
            style = {"color": color, "marker": marker, "markersize": 5, "zorder": 2 + order}
            axes.plot(*zip(*points, strict=True), label=label, **style)
    sizes = sorted({row["n"] for row in of_family})
    axes.set_yscale("log")
    if sizes[-1] > 2 * len(sizes):
        axes.set_xscale("log", base=2)
    axes.set_xticks(sizes, [str(n) for n in sizes])
    axes.minorticks_off()
    axes.grid(axis="y", color="#eeeeee")
    axes.set_axisbelow(True)


def give_up(axes: Any, of_family: Sequence[Row], config: Row) -> None:
    """The limit of time, and a cross where a method was stopped by it or by its memory."""
    limit = config["limit_seconds"]
    axes.axhline(limit, color="#bbbbbb", linewidth=0.8, linestyle=":")
    for method, (_, color, _) in STYLE.items():
        of_method = [row for row in of_family if row["method"] == method]
        stopped = [row for row in of_method if row["status"] in (TIME, MEMORY)]
        before = [row for row in of_method if row["status"] == DONE]
        for row in stopped:
            axes.plot(row["n"], limit, "x", color=color, markersize=9, markeredgewidth=2, zorder=9)
            if before:
                ends = zip(
                    *((before[-1]["n"], before[-1]["seconds"]), (row["n"], limit)), strict=True
                )
                axes.plot(*ends, color=color, linewidth=0.9, linestyle="--", zorder=1)


def headline(cells: Sequence[Row], config: Row) -> str:
    """The message, with the numbers of these rows."""
    ends = []
    for family in dict.fromkeys(row["family"] for row in cells):
        of_method = [r for r in cells if r["family"] == family and r["method"] == DIRECT]
        if any(row["status"] in (TIME, MEMORY) for row in of_method):
            done = [row["n"] for row in of_method if row["status"] == DONE]
            ends.append(f"at n = {max(done, default=0)} for {family}")
    seconds, memory = limits(config)
    if not ends:
        tried = [row for row in cells if row["method"] == DIRECT]
        done = [row for row in tried if row["status"] == DONE]
        return f"DirectMerge finished {len(done)} of {len(tried)} regexes, each within {seconds}"
    first = [r["seconds"] for r in cells if r["method"] == LAZY and r["status"] == DONE]
    return (
        f"DirectMerge stops being practical: within {seconds} and {memory} it ends "
        f"{' and '.join(ends)};\n"
        f"the package makes the first mask of each regex in at most {max(first, default=0):.2g} s"
    )


def limits(config: Row) -> tuple[str, str]:
    """What a cell may take: time, memory."""
    return f"{config['limit_seconds']:g} s", f"{config['limit_mb'] / 1e3:g} GB"


def note(config: Row) -> str:
    """What the crosses and the numbers are."""
    return (
        f"{name_of(config['merges'])}. x: given up, over {' or '.join(limits(config))}. "
        "Integers: 1 a state, 2 a transition; CartesianMerge "
        "(reference) keeps the lift and its relevant pairs, besides the forbidden sets of all "
        "texts, which regexes share. The reference is the published algorithms in plain Python. "
        "Each construction was timed once."
    )


def legend(row_of_axes: Any) -> tuple[list[Any], list[str]]:
    """Handles and labels of all of them, each once."""
    found: dict[str, Any] = {}
    for axes in row_of_axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    return [*found.values()], [*found]


SHORT = {
    DIRECT: "DirectMerge\n(reference)",
    CARTESIAN: "CartesianMerge\n(reference)",
    LAZY: "package,\nfirst mask",
    EXPLICIT: "package,\nwritten out",
}


def report(rows: Sequence[Row], manifest: Row) -> Report:
    """Of whatever rows there are."""
    config, cells = manifest["config"], cells_of(rows)
    title = name_of(config["merges"])
    return Report(
        f"Growth: {title}",
        [sizes(cells, title), costs(cells, config), reaches(cells, rows, config)],
        [draw(cells, config)] if cells else [],
        facts(cells, config),
        [
            f"{row['key']}: differs from {other}: {how}"
            for row in cells
            for other, how in row.get("disagrees", {}).items()
        ],
    )


def cells_of(rows: Sequence[Row]) -> list[Row]:
    """The cells, by family (as they came), size and method; some may have been measured again."""
    cells = [row for row in rows if row.get("kind") == "cell"]
    families, methods = [*dict.fromkeys(row["family"] for row in cells)], [*METHODS]

    def place(row: Row) -> tuple[int, int, int]:
        return families.index(row["family"]), row["n"], methods.index(row["method"])

    return sorted(cells, key=place)


def facts(cells: Sequence[Row], config: Row) -> Row:
    """regexes: how many have been tried; compared, differing: pairs of automata; minimal: by
    family the largest least automaton that is known; first_mask: the package's slowest, seconds;
    reach: by family and method the largest n that was finished, 0 if none."""
    done = [row for row in cells if row["status"] == DONE]
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
            family: {m: _reached(of_family, m) for m in METHODS}
            for family, of_family in _by_family(cells)
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


def sizes(cells: Sequence[Row], title: str) -> Table:
    """One line per regex: the automata that were written out, and whether they agree."""
    written = [m for m in METHODS if m != LAZY]
    lines = [
        [
            name,
            *(_size(by.get(m)) for m in written),
            next((_pair(row["minimal"]) for row in by.values() if "minimal" in row), "-"),
            agreement([*by.values()]),
        ]
        for name, by in _by_regex(cells)
    ]
    columns = ["states / transitions", *(SHORT[m] for m in written), "minimal", "equal"]
    notes = [
        "reference: the published algorithms in plain Python. CartesianMerge: the relevant pairs "
        "of the product, never written out by it. The package's states also hold the last id",
        "minimal: the least automaton of the language, where one was written out; equal: how many "
        "automata were compared, as languages (fewer where one is too large to be kept)",
    ]
    return Table(f"Growth of the automata: {title}", columns, lines, notes)


def costs(cells: Sequence[Row], config: Row) -> Table:
    """One line per regex: seconds and memory of each method."""
    lines = [
        [
            name,
            *(_seconds(by.get(m), config) for m in METHODS),
            *(_memory(by.get(m)) for m in METHODS),
        ]
        for name, by in _by_regex(cells)
    ]
    columns = ["", *(f"{SHORT[m]}, s" for m in METHODS), *(f"{SHORT[m]}, MB" for m in METHODS)]
    notes = [
        "from a byte DFA on, one process for each cell; over "
        f"{config['limit_seconds']:g} s or {config['limit_mb'] / 1e3:g} GB a cell is given up, and "
        "larger ones are skipped (...)",
        "MB: 10^6 bytes, peak of the cell's process over what it began with",
    ]
    return Table("Seconds and memory", columns, lines, notes)


def _by_regex(cells: Sequence[Row]) -> Iterator[tuple[str, dict[str, Row]]]:
    """(a regex's name, its cells by method)."""
    for family, n in dict.fromkeys((row["family"], row["n"]) for row in cells):
        here = (row for row in cells if (row["family"], row["n"]) == (family, n))
        yield f"{family}, n = {n}", {row["method"]: row for row in here}


def agreement(here: Sequence[Row]) -> str:
    """Of the cells of one regex: how many automata are equal, or who differs."""
    wrong = [row["method"] for row in here if row.get("disagrees")]
    if wrong:
        return "NO: " + ", ".join(wrong)
    compared = 1 + sum(bool(row.get("equal_to")) for row in here)
    return f"{compared}" if compared > 1 else "-"


def reaches(cells: Sequence[Row], rows: Sequence[Row], config: Row) -> Table:
    """How far each method went."""
    lines = [
        [family, *(reach(of_family, m, config) for m in METHODS)]
        for family, of_family in _by_family(cells)
    ]
    prepared = (row for row in rows if row.get("kind") == "preparation")
    seconds = {row["method"]: row["seconds"] for row in prepared}
    shared = ", ".join(f"{m} {s:.1f} s" for m, s in seconds.items() if s >= 0.05)
    note = f"made once for all regexes, not counted above: {shared or 'nothing that takes long'}"
    published = (
        "published, as a plot without numbers: n = 1 .. 6 of `.` repeated, for both algorithms, in "
        "the article's companion notebook (CartesianMerge there over 27 characters, DirectMerge "
        "over 100)"
    )
    columns = ["largest n that was finished", *(SHORT[m] for m in METHODS)]
    return Table("Where each method stops", columns, lines, [note, published])


def _by_family(cells: Sequence[Row]) -> Iterator[tuple[str, list[Row]]]:
    for family in dict.fromkeys(row["family"] for row in cells):
        yield family, [row for row in cells if row["family"] == family]


def _reached(of_family: Sequence[Row], method: str) -> int:
    done = (r["n"] for r in of_family if r["method"] == method and r["status"] == DONE)
    return max(done, default=0)


def reach(of_family: Sequence[Row], method: str, config: Row) -> str:
    """The largest n that was finished, and what stopped the next one."""
    rows = [row for row in of_family if row["method"] == method]
    stopped = next((row for row in rows if row["status"] not in (DONE, SKIPPED)), None)
    reached = str(_reached(of_family, method) or "none")
    if stopped is None:
        return f"{reached} (largest tried)"
    return f"{reached}, then {why(stopped, config)}"


def why(row: Row, config: Row) -> str:
    """What stopped a cell."""
    seconds, memory = limits(config)
    named = {TIME: f"over {seconds}", MEMORY: f"over {memory}"}
    return named.get(row["status"], f"failed: {row.get(FAILURE, '')[:60]}")


def _size(row: Row | None) -> str:
    return _pair([row["states"], row["transitions"]]) if row and row["status"] == DONE else "-"


def _pair(sizes: Sequence[int]) -> str:
    return " / ".join(f"{size:,}" for size in sizes)


def _seconds(row: Row | None, config: Row) -> str:
    if row is None:
        return "-"
    if row["status"] == DONE:
        return f"{row['seconds']:.2g}" if row["seconds"] < 10 else f"{row['seconds']:.0f}"
    return "..." if row["status"] == SKIPPED else why(row, config)


def _memory(row: Row | None) -> str:
    return f"{row['peak_mb']:.0f}" if row and row["status"] == DONE else "-"
