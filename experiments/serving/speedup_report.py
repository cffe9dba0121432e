"""The rows of the speed-up as tables, facts and a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from experiments.run.executors import Row
from experiments.run.statistics import median
from experiments.run.tables import Table
from experiments.serving.speedup_summary import (
    ALL,
    LEVEL,
    WAYS,
    Middle,
    against_lift,
    by_schema,
    each,
    families,
    in_runs,
    middle,
    saved,
    wall,
)

TITLES = {"canonical forced": "canonical", "lift forced": "lift", "chop": "lift, chop (heuristic)"}
LENGTHS = (1, 2, 4, 8, 16)


def tables(rows: Sequence[Row], manifest: Row) -> list[Table]:
    """By family; lengths of runs; all ways against the lift."""
    return [by_family(rows, manifest), lengths(rows), parts(rows)]


def by_family(rows: Sequence[Row], manifest: Row) -> Table:
    """A line per family and way."""
    lines = [
        _line(f"{name}, {title}", way, some)
        for name, some in families(rows).items()
        for way, title in TITLES.items()
        if some
    ]
    columns = [
        "family, constraint",
        "texts",
        "complete",
        "ids a text",
        "passes\nsaved",
        "95 %",
        "wall time,\nwith / without",
        "95 %",
    ]
    return Table("Forced ids by family of schemas", columns, lines, notes(rows, manifest))


def _line(title: str, way: str, rows: Sequence[Row]) -> list[str]:
    written = [row["ways"][way] for row in rows]
    passes, seconds = (middle(by_schema(rows, number(way))) for number in (saved, wall))
    return [
        title,
        str(len(written)),
        str(sum(one["ended"] for one in written)),
        f"{median([one['ids'] for one in written]):g}",
        f"{100 * passes.value:.1f} %",
        _interval(passes, 100, 1),
        f"{seconds.value:.2f}",
        _interval(seconds, 1, 2),
    ]


def _interval(found: Middle, factor: float, digits: int) -> str:
    if found.low is None or found.high is None:
        return "-"
    return f"{factor * found.low:.{digits}f} to {factor * found.high:.{digits}f}"


def notes(rows: Sequence[Row], manifest: Row) -> list[str]:
    """What was measured, and how."""
    made, over = manifest["config"], manifest.get("passed_over", {})
    reasons = [
        f"{name}: " + ", ".join(f"{why} {n}" for why, n in found.items())
        for name, found in over.items()
        if found
    ]
    alike = {m: sum(row["same"][m] for row in rows) for m in ("canonical", "lift")}
    return [
        f"{manifest.get('model')} on {manifest.get('device')}, {made['dtype']}, temperature "
        f"{made['temperature']:g}, at most {made['most_ids']} ids a text, end of sequence included",
        f"medians over schemas, with exact intervals of the sign test ({100 * LEVEL:.0f} %; none "
        "with fewer than 6 schemas); all ways of a cell follow each other in one warm process, in "
        "an order that rotates, each with masks of its own, the prompt read before the clock",
        "with / without: the same text with forced ids fed in one pass, and with the model asked "
        f"for each id; the ids are the same in {alike['canonical']} (canonical) and "
        f"{alike['lift']} (lift) of {len(rows)} texts",
        "chop: what llguidance appends, under the masks of the lift; it may write another text, so "
        "its time is for each id, against the lift without it",
        *([f"passed over on the way: {'; '.join(reasons)}"] if reasons else []),
        *filter(None, [manifest.get("note")]),
    ]


def lengths(rows: Sequence[Row]) -> Table:
    """The distribution of the lengths of runs, all families together."""
    lines = [_lengths(title, way, rows) for way, title in TITLES.items() if rows]
    columns = ["constraint", "ids", "runs", "mean", "longest"]
    columns += [f"ids in runs\nof {least} or more" for least in LENGTHS]
    note = "a run: the ids that are known at once and go through the model in one pass"
    return Table("Lengths of forced runs", columns, lines, [note])


def _lengths(title: str, way: str, rows: Sequence[Row]) -> list[str]:
    runs = [run for row in rows for run in row["ways"][way]["runs"]]
    return [
        title,
        f"{sum(row['ways'][way]['ids'] for row in rows):,}",
        f"{len(runs):,}",
        f"{sum(runs) / len(runs):.2f}" if runs else "-",
        str(max(runs, default=0)),
        *(f"{100 * in_runs(rows, way, least):.1f} %" for least in LENGTHS),
    ]


def parts(rows: Sequence[Row]) -> Table:
    """Where the time of each way goes, and its time against the lift's."""
    ways = {"lift": "lift, every id asked for", "lift forced": "lift, forced ids in one pass"}
    ways |= {"chop": TITLES["chop"], "canonical": "canonical, every id asked for"}
    ways |= {"canonical forced": "canonical, forced ids in one pass"}
    lines = [_parts(title, way, rows) for way, title in ways.items() if rows]
    columns = ["way", "ids a text", "bytes an id", "ms an id", "model", "masks", "drawing"]
    columns += ["to prepare, ms", "own ids", "wall time a byte,\nagainst the lift", "95 %"]
    return Table(
        "All ways, where their time goes",
        columns,
        lines,
        [
            "medians over texts; masks: initial state, masks, what is known, steps, all made anew "
            "for each text; to prepare: the constraint, from the automaton of its schema",
            "own ids: texts that are complete with the ids that `encode` gives them, of all that "
            "are complete",
            "against the lift: wall time for each byte of text, as a multiple of that of the lift "
            "which asks for every id, in the same cell; texts differ",
        ],
    )


def _parts(title: str, way: str, rows: Sequence[Row]) -> list[str]:
    written = [row["ways"][way] for row in rows]
    whole, model, masks = (
        [1e3 * each(row, way, part) for row in rows] for part in ("seconds", "model", "masks")
    )
    drawing = [w - m - k for w, m, k in zip(whole, model, masks, strict=True)]
    ratio = middle(by_schema(rows, against_lift(way)))
    ended = [one for one in written if one["ended"]]
    return [
        title,
        f"{median([one['ids'] for one in written]):g}",
        f"{median([one['bytes'] / one['ids'] for one in written]):.2f}",
        *(f"{median(raw):.2f}" for raw in (whole, model, masks, drawing)),
        f"{1e3 * median([one['prepared'] for one in written]):.1f}",
        f"{sum(bool(one['own']) for one in ended)} of {len(ended)}",
        f"{ratio.value:.2f}",
        _interval(ratio, 1, 2),
    ]


def wrong(rows: Sequence[Row]) -> list[str]:
    """Complete texts under the canonical constraint with other ids than `encode` gives."""
    return [
        f"{row['key']}, {way}: {row['ways'][way]['text']!r} is not tokenized as `encode` does"
        for row in rows
        for way in ("canonical", "canonical forced")
        if row["ways"][way]["own"] is False
    ]


def facts(rows: Sequence[Row], manifest: Row) -> Row:
    """By family and way: `saved`, `wall` (see `Middle`); lengths of runs; the model."""
    found = {
        name: {
            way: {
                "saved": asdict(middle(by_schema(some, saved(way)))),
                "wall": asdict(middle(by_schema(some, wall(way)))),
            }
            for way in WAYS
        }
        for name, some in families(rows).items()
        if some
    }
    known = {"model": manifest.get("model"), "device": manifest.get("device")}
    return known | {"texts": len(rows), "families": found}


def sentence(facts: Row) -> str:
    """For the README, of `facts`."""
    if not facts["families"]:
        return "(not measured)"
    found, families = facts["families"][ALL], len(facts["families"]) - 1
    own, lift, chop = (found[way] for way in ("canonical forced", "lift forced", "chop"))
    return (
        f"Under schemas of {families} families ({own['saved']['n']} in all), {facts['model']} on "
        f"{facts['device']} is not asked for {_percent(own)} of the ids by the canonical automaton "
        f"and for {_percent(lift)} by the lift ({_percent(chop)} with the published heuristic); "
        f"the same texts take {_times(own)} and {_times(lift)} times as long as without (medians "
        "over schemas, with exact intervals of 95 %; [tables](paper_figures/speedup.md), `python "
        "-m experiments run speedup`)."
    )


def _percent(found: Row) -> str:
    shown = Middle(**found["saved"])
    return f"{100 * shown.value:.0f} %" + _in_brackets(shown, 100, 0)


def _times(found: Row) -> str:
    shown = Middle(**found["wall"])
    return f"{shown.value:.2f}" + _in_brackets(shown, 1, 2)


def _in_brackets(found: Middle, factor: float, digits: int) -> str:
    return "" if found.low is None else f" [{_interval(found, factor, digits)}]"
