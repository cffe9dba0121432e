"""The growth rows as tables and as a figure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from experiments.article import growth_figure
from experiments.article.fork import DONE, MEMORY, TIME
from experiments.article.growth_families import ANYTHING, LETTERS
from experiments.article.growth_methods import CARTESIAN, DIRECT, EXPLICIT, LAZY, METHODS
from experiments.article.growth_series import SKIPPED
from experiments.article.mistral import name_of
from experiments.run.executors import FAILURE, Row
from experiments.run.readme import wrapped
from experiments.run.report import Report
from experiments.run.tables import Table

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
        [growth_figure.draw(cells, config)] if cells else [],
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
    seconds, memory = growth_figure.limits(config)
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
