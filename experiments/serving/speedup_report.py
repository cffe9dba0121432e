"""The rows of the speed-up as tables, facts and a sentence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from experiments.run.executors import Row
from experiments.run.files import require
from experiments.run.report import Figure
from experiments.run.statistics import median, median_interval
from experiments.run.tables import Table

# What the rows of the speed-up say: a number per schema, and medians over schemas.

LEVEL = 0.95
ALL = "all"
"""The name of all families together."""
WAYS = {
    "canonical forced": "canonical",
    "lift forced": "lift",
    "chop": "lift",
}
"""Each way that knows ids, and the way without that it is held against. `chop` may write another
text than that one, and is compared by seconds for each id."""


@dataclass(frozen=True)
class Middle:
    """value: the median; low, high: an interval that holds the true median with a probability of
    at least LEVEL, None where there are too few values (fewer than 6); n."""

    value: float
    low: float | None
    high: float | None
    n: int


def middle(values: Sequence[float]) -> Middle:
    """The median with its interval."""
    low, high = median_interval(values, 1 - LEVEL) or (None, None)
    return Middle(median(values), low, high, len(values))


def by_schema(rows: Sequence[Row], number: Callable[[Row], float]) -> list[float]:
    """A number of each row, the mean over the seeds of a schema."""
    found: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        found.setdefault((row["family"], row["schema"]), []).append(number(row))
    return [sum(values) / len(values) for values in found.values()]


def families(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """The rows of each family, and of all."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row["family"], []).append(row)
    return found | {ALL: list(rows)}


def saved(way: str) -> Callable[[Row], float]:
    """The share of the ids for which the model was not asked. Of forced ids these are the steps
    with one option; `chop` appends ids at other steps too."""
    return lambda row: 1 - row["ways"][way]["passes"] / row["ways"][way]["ids"]


def wall(way: str) -> Callable[[Row], float]:
    """Seconds an id, as a multiple of those without known ids in the same cell."""
    return lambda row: each(row, way, "seconds") / each(row, WAYS[way], "seconds")


def against_lift(way: str) -> Callable[[Row], float]:
    """Seconds for each byte of text, as a multiple of those of the lift, which asks the model for
    every id, in the same cell."""
    return lambda row: _per_byte(row, way) / _per_byte(row, "lift")


def each(row: Row, way: str, part: str) -> float:
    """Seconds of a part ("seconds": of all) for each id."""
    return float(row["ways"][way][part]) / row["ways"][way]["ids"]


def _per_byte(row: Row, way: str) -> float:
    written = row["ways"][way]
    return float(written["seconds"]) / max(1, written["bytes"])


def in_runs(rows: Sequence[Row], way: str, least: int) -> float:
    """The share of all ids that were known in runs of at least so many."""
    ids = sum(row["ways"][way]["ids"] for row in rows)
    long = sum(run for row in rows for run in row["ways"][way]["runs"] if run >= least)
    return long / ids if ids else float("nan")


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


# The figure of the speed-up: what forced ids save by family, and how long their runs are.

STYLE: dict[str, tuple[str, str, str, float]] = {
    "chop": ("lift with chop (heuristic)", "#9a9a9a", "D", 0.22),
    "lift forced": ("lift: any tokenization", "#d1495b", "s", 0.0),
    "canonical forced": ("canonical: its own", "#00798c", "o", -0.22),
}
"""Way: name in the legend, color, marker, how far below the middle of its line."""
LONGEST = 32
"""The last length of a run that is shown."""


def figures(rows: Sequence[Row], manifest: Row) -> list[Figure]:
    """The one figure; none without rows."""
    if not rows:
        return []
    require("matplotlib").use("Agg")
    pyplot = require("matplotlib.pyplot")
    some = families(rows)
    look = {"font.size": 10, "axes.spines.top": False, "axes.spines.right": False}
    with pyplot.rc_context(look):
        size = (12, 1.9 + 0.5 * len(some))
        drawn, axes = pyplot.subplots(
            1, 3, figsize=size, layout="constrained", width_ratios=[4, 4, 4]
        )
        _dots(axes[0], some, lambda way: lambda row: 100 * saved(way)(row))
        axes[0].set_xlabel("forward passes saved (%)")
        _dots(axes[1], some, wall)
        axes[1].set_xlabel("wall time with forced ids / without")
        axes[1].axvline(1, color="#bbbbbb", linewidth=1, zorder=0)
        axes[1].set_yticklabels([])
        _runs(axes[2], rows)
        handles, labels = axes[0].get_legend_handles_labels()
        axes[2].legend(handles[::-1], labels[::-1], frameon=False)
    return [Figure("speedup", drawn, headline(rows), _note(rows, manifest))]


def headline(rows: Sequence[Row]) -> str:
    """The message, with the numbers of these rows."""
    own, lift = (middle(by_schema(rows, saved(way))) for way in ("canonical forced", "lift forced"))
    return (
        f"Under a schema, the tokenizer's own ids leave {100 * own.value:.0f} % of the forward "
        f"passes out; any tokenization, {100 * lift.value:.0f} %"
    )


def _note(rows: Sequence[Row], manifest: Row) -> str:
    schemas = len(by_schema(rows, lambda row: 0.0))
    return (
        f"{manifest.get('model')} on {manifest.get('device')}, {manifest['config']['dtype']}; "
        f"n = {schemas} schemas, {len(rows)} texts of each way, of at most "
        f"{manifest['config']['most_ids']} ids. Medians over schemas, lines: exact "
        f"{100 * LEVEL:.0f} % intervals (sign test).\nWall time: the same text in the same process;"
        " of chop, seconds an id against the lift without it. Right: all families together."
    )


def _dots(
    axes: Any, some: dict[str, list[Row]], number: Callable[[str], Callable[[Row], float]]
) -> None:
    """A line per family, all of them last; a mark and an interval per way."""
    names = list(some)
    heights = [-k - 0.5 * (name == ALL) for k, name in enumerate(names)]
    for way, (label, color, marker, lower) in STYLE.items():
        found = [middle(by_schema(some[name], number(way))) for name in names]
        at = [height - lower for height in heights]
        axes.scatter(
            [one.value for one in found], at, s=36, color=color, marker=marker, label=label
        )
        for height, one in zip(at, found, strict=True):
            _bar_interval(axes, one, height, color)
    axes.set_yticks(heights, [f"{name}\n(n = {_schemas(some[name])})" for name in names])
    axes.axhline(heights[-1] + 0.75, color="#cccccc", linewidth=1)
    axes.set_ylim(heights[-1] - 0.5, 0.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color="#eeeeee")
    axes.set_axisbelow(True)


def _bar_interval(axes: Any, found: Middle, height: float, color: str) -> None:
    if found.low is not None:
        axes.plot([found.low, found.high], [height, height], color=color, linewidth=2, alpha=0.6)


def _schemas(rows: Sequence[Row]) -> int:
    return len({(row["family"], row["schema"]) for row in rows})


def _runs(axes: Any, rows: Sequence[Row]) -> None:
    """The share of all ids in runs of at least so many ids."""
    lengths = range(1, LONGEST + 1)
    for way, (_, color, _, _) in STYLE.items():
        shares = [100 * in_runs(rows, way, least) for least in lengths]
        axes.step(lengths, shares, where="mid", color=color, linewidth=2)
    axes.set_xscale("log", base=2)
    axes.set_xticks([1, 2, 4, 8, 16, 32], ["1", "2", "4", "8", "16", "32"])
    axes.set_xlabel("ids in a run, at least (log scale)")
    axes.set_ylabel("ids in such runs (% of all)")
    axes.set_ylim(0, 1.3 * max(1.0, axes.get_ylim()[1]))  # room for the legend
    axes.grid(color="#eeeeee")
