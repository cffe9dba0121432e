"""The speed rows as tables."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.run.cells import Row
from experiments.run.tables import Table
from experiments.serving.speed_goals import (
    along_walks,
    goals,
    of_kind,
    pooled,
    ratio,
    ratios,
    to_first_mask,
)
from experiments.shared.timing import median, quantile

ENGINES = ("canonical", "lift", "outlines_core", "llguidance", "glrmask")
INEXACT = "lift, outlines_core, llguidance, glrmask admit other tokenizations than the own one"


def tables(rows: Sequence[Row], manifest: Row) -> list[Table]:
    """All that have rows, and the goals."""
    found = [once(rows), to_mask(rows, manifest), masks(rows), peer_masks(rows)]
    return [*(table for table in found if table.rows), summary(rows, manifest)]


def once(rows: Sequence[Row]) -> Table:
    """What is paid once per process or machine."""
    lines = []
    for row in of_kind(rows, "build"):
        lines.append(_times("canonical automaton, from a loaded file", row["whole"]))
        lines += [_times(f"  {name}", seconds) for name, seconds in row["parts"].items()]
    for row in of_kind(rows, "load"):
        lines += [_times(f"reading {kind}", seconds) for kind, seconds in row["files"].items()]
    for row in of_kind(rows, "classes"):
        lines.append(_times("pipeline, character classes asked for the first time", [row["asked"]]))
        lines.append(_times("pipeline, character classes from the disk", [row["disk"]]))
    for row in of_kind(rows, "start"):
        lines.append(_times("second start of a process, to its first mask", row["wall"]))
        lines += [_times(f"  {name}", seconds) for name, seconds in row["parts"].items()]
    for row in of_kind(rows, "kernels"):
        lines.append(_times("kernels: loading them all from the disk", [row["load"]]))
        made = [] if row["compile"] is None else [row["compile"]]
        lines.append(_times("kernels: compiling them all", made))
    notes = [note for row in of_kind(rows, "memory") for note in _memory_notes(row)]
    return Table("Once", ["what", "median", "least", "n"], lines, notes)


def _times(name: str, values: Sequence[float]) -> list[str]:
    if not values:
        return [name, "skipped", "-", "0"]
    return [name, seconds(median(values)), seconds(min(values)), str(len(values))]


def _memory_notes(row: Row) -> list[str]:
    stages = ", ".join(f"{name} {_mb(value)}" for name, value in row["stages"].items())
    torch = "torch IS imported" if row["torch"] else "torch is not imported"
    return [
        f"resident memory of a process after each stage: {stages}; peak {_mb(row['peak'])}",
        f"in that process {torch}",
    ]


def _mb(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.0f} MB"


def to_mask(rows: Sequence[Row], manifest: Row) -> Table:
    """One line per regex: every engine's time to its first mask."""
    lines = []
    for row in of_kind(rows, "regex"):
        times = [_cell(row, engine) for engine in ENGINES]
        parts = [row["name"], str(row["dfa_states"]), seconds(median(row["regex_seconds"]))]
        lines.append([*parts, *times, _ratio(ratio(row)), _ratio(ratio(row, "lift"))])
    columns = ["regex", "DFA\nstates", "DFA\nalone", *ENGINES]
    columns += ["outlines /\ncanonical", "outlines /\nlift"]
    notes = [
        "medians; outlines_core: its index alone; all others: to the first mask, in a buffer",
        f"{INEXACT}; glrmask's masks hold no end of sequence",
        *_ratio_notes(rows),
        *_disagreements(rows),
        *(f"{name}: {why}" for name, why in manifest.get("missing_peers", {}).items()),
        *_failures(rows),
    ]
    return Table("From a regex to its first mask", columns, lines, notes)


def _cell(row: Row, engine: str) -> str:
    result = row["engines"].get(engine)
    if result is None:
        return "-"
    return "refused" if result["failure"] else seconds(to_first_mask(row, engine))


def _ratio(value: float) -> str:
    return "-" if value != value else f"{value:.1f}"


def _ratio_notes(rows: Sequence[Row]) -> list[str]:
    found = ratios(rows)
    if not found:
        return ["outlines_core was not measured"]
    below = [f"{name} ({value:.1f})" for name, value in found.items() if value < 10]
    return [
        f"times faster than outlines_core.Index: median {median(list(found.values())):.1f}, "
        f"least {min(found.values()):.1f}; below 10: {', '.join(below) or 'none'}"
    ]


def _disagreements(rows: Sequence[Row]) -> list[str]:
    """Inexact engines mostly agree on the ordinary ids of the first mask; where not, it is said."""
    notes = []
    for row in of_kind(rows, "regex"):
        ids = {e: row["engines"][e]["ids"] for e in ENGINES[1:] if e in row["engines"]}
        known = {engine: n for engine, n in ids.items() if n is not None}
        if known and max(known.values()) - min(known.values()) > 0:
            shown = ", ".join(f"{engine} {n}" for engine, n in known.items())
            notes.append(f"ordinary ids in the first mask of {row['name']!r} differ: {shown}")
    return notes


def _failures(rows: Sequence[Row]) -> list[str]:
    found = [
        (r["name"], e, v["failure"])
        for r in of_kind(rows, "regex")
        for e, v in r["engines"].items()
    ]
    found += [
        (r["name"], e, v["failure"]) for r in of_kind(rows, "masks") for e, v in r["peers"].items()
    ]
    return [f"{engine} on {name!r}: {why}" for name, engine, why in found if why]


def masks(rows: Sequence[Row]) -> Table:
    """One line per regex: masks at new and at known states, and steps."""
    lines = [
        _mask_line(row["name"], [row[key] for key in _MASK_KEYS]) for row in of_kind(rows, "masks")
    ]
    if lines:
        lines.append(_mask_line("all", [pooled(rows, key) for key in _MASK_KEYS]))
    columns = ["regex", "new\nstates", "new:\nmedian", "new:\n90%", "new:\nmax"]
    columns += ["known:\nengine", "known:\nMatcher", "advance"]
    notes = [
        "new: the first time that a constraint is in a state, into a packed int32 buffer",
        "known: again, median; engine.mask alone, and Matcher.mask into a packed int32 buffer",
        "along random ids, each allowed one alike likely",
        "states that differ in their last id alone share a row, so the median over new states is "
        "mostly that of shared rows; see 90% and max for rows made anew",
    ]
    return Table("Our masks (canonical)", columns, lines, notes)


_MASK_KEYS = ("first", "known_engine", "known_matcher", "advance")


def _mask_line(name: str, raw: Sequence[Sequence[float]]) -> list[str]:
    new, engine, matcher, advance = raw
    figures = (median(new), quantile(new, 0.9), max(new, default=float("nan")))
    others = (median(engine), median(matcher), median(advance))
    return [name, str(len(new)), *map(seconds, (*figures, *others))]


def peer_masks(rows: Sequence[Row]) -> Table:
    """All regexes: masks as they come along the same ids, ours and others'."""
    lines = [
        [
            name,
            str(len(raw)),
            seconds(median(raw)),
            *(seconds(quantile(raw, q)) for q in (0.9, 0.99, 1.0)),
        ]
        for name, raw in along_walks(rows).items()
        if raw
    ]
    notes = [
        "each engine starts afresh with each regex; ours mixes new and known states here",
        "llguidance, glrmask: inexact, other masks; outlines_core makes all masks with its index",
    ]
    columns = ["engine", "masks", "median", "90%", "99%", "max"]
    return Table("Masks along the same ids", columns, lines, notes)


def summary(rows: Sequence[Row], manifest: Row) -> Table:
    """Each goal, what was measured, and whether it is met."""
    lines = [goal.described() for goal in goals(rows)]
    load, peers = manifest["load_average"][0], manifest.get("peers", {})
    notes = [
        f"{manifest['cores']} cores, load average {load:.1f} to begin with: on a busy machine "
        "times are longer, and ratios of short ones vary from run to run",
        ", ".join(f"{name} {number}" for name, number in peers.items()),
    ]
    return Table("Goals", ["goal", "asked", "measured", "met"], lines, [*filter(None, notes)])


def seconds(value: float) -> str:
    """With a unit that suits: "1.23 ms"; "-" for nan."""
    if value != value:
        return "-"
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if value * factor >= 1:
            return f"{value * factor:.3g} {unit}"
    return f"{value * 1e6:.2f} µs"
