"""What is said of the speed-up: the tables, figure, facts and README sentence of its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pandas as pd

from experiments.run.executors import Row
from experiments.run.report import Figure, panels
from experiments.run.tables import (
    Column,
    Table,
    count,
    fixed,
    frame,
    highest,
    median,
    percent,
    records,
    scaled,
    several,
    table,
    total,
    values,
    whole,
)
from experiments.statistics import median as median_of
from experiments.statistics import median_interval

TITLE = "Speed-up while writing under schemas"
LEVEL = 0.95
ALL = "all"
"""The name of all families together."""
WAYS = {"canonical forced": "canonical", "lift forced": "lift", "chop": "lift"}
"""Each way that knows ids, and the way without that it is held against. `chop` may write another
text than that one, and is compared by seconds for each id."""
TITLES = {"canonical forced": "canonical", "lift forced": "lift", "chop": "lift, chop (heuristic)"}
ALL_WAYS = {
    "lift": "lift, every id asked for",
    "lift forced": "lift, forced ids in one pass",
    "chop": TITLES["chop"],
    "canonical": "canonical, every id asked for",
    "canonical forced": "canonical, forced ids in one pass",
}
LENGTHS = (1, 2, 4, 8, 16)


def written(rows: pd.DataFrame) -> pd.DataFrame:
    """A row for each text of each way, with these ratios within its cell:

    saved: the share of the ids for which the model was not asked (of forced ids these are the steps
    with one option; `chop` appends ids at other steps too); wall: seconds an id, as a multiple of
    those without known ids; against_lift: seconds for each byte of text, as a multiple of those of
    the lift, which asks the model for every id. whole, model, masks, drawing: ms an id.
    """
    found = []
    for row in records(rows):
        ways = row["ways"]
        each = {way: one["seconds"] / one["ids"] for way, one in ways.items()}
        per_byte = {way: one["seconds"] / max(1, one["bytes"]) for way, one in ways.items()}
        for way, one in ways.items():
            shared = {"family": row["family"], "schema": row["schema"]}
            parts = {part: 1e3 * one[part] / one["ids"] for part in ("model", "masks")}
            parts["whole"] = 1e3 * each[way]
            parts["drawing"] = parts["whole"] - parts["model"] - parts["masks"]
            ratios = {
                "bytes_an_id": one["bytes"] / one["ids"],
                "saved": 1 - one["passes"] / one["ids"],
                "wall": each[way] / each[WAYS[way]] if way in WAYS else None,
                "against_lift": per_byte[way] / per_byte["lift"],
            }
            found.append(shared | {"way": way} | one | parts | ratios)
    return frame(found)


def middle(found: Sequence[float]) -> Row:
    """value: the median; low, high: an interval that holds the true median with a probability of
    at least LEVEL, None where there are too few values (fewer than 6); n."""
    low, high = median_interval(found, 1 - LEVEL) or (None, None)
    return {"value": median_of(found), "low": low, "high": high, "n": len(found)}


def over_schemas(texts: pd.DataFrame, field: str) -> Row:
    """The `middle` over schemas of the mean over the seeds of each."""
    return middle([*texts.groupby(["family", "schema"], sort=False)[field].mean()])


def families(texts: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """The texts of each family, and of all."""
    yield from texts.groupby("family", sort=False)
    yield ALL, texts.assign(family=ALL)


def of_ways(texts: pd.DataFrame, ways: dict[str, str]) -> Iterator[tuple[str, pd.DataFrame]]:
    """The texts of each of the ways, in this order."""
    return ((way, texts[texts["way"] == way]) for way in ways)


def in_runs(texts: pd.DataFrame, least: int) -> float:
    """The share of all ids that were known in runs of at least so many."""
    ids = sum(values(texts, "ids"))
    return sum(run for run in values(texts, "runs") if run >= least) / ids if ids else float("nan")


def _middle(field: str) -> Callable[[pd.DataFrame], Any]:
    return lambda texts: over_schemas(texts, field)["value"]


def _ends(field: str) -> Callable[[pd.DataFrame], list[float] | None]:
    def of(texts: pd.DataFrame) -> list[float] | None:
        found = over_schemas(texts, field)
        return None if found["low"] is None else [found["low"], found["high"]]

    return of


def _to(format_: Callable[[float], str]) -> Callable[[Sequence[float]], str]:
    return several(format_, " to ")


def tables(rows: pd.DataFrame, manifest: Row) -> list[Table]:
    """By family; lengths of runs; all ways against the lift."""
    texts = written(rows)
    return [_by_family(texts, notes(rows, manifest)), _lengths(texts), _parts(texts)]


def _by_family(texts: pd.DataFrame, notes: Sequence[str]) -> Table:
    columns = [
        Column("family, constraint", lambda g: f"{g['family'].iloc[0]}, {TITLES[_way(g)]}"),
        Column("texts", count),
        Column("complete", total("ended")),
        Column("ids a text", median("ids"), "{:g}".format),
        Column("passes\nsaved", _middle("saved"), percent(1)),
        Column("95 %", _ends("saved"), _to(scaled(100, fixed(1)))),
        Column("wall time,\nwith / without", _middle("wall"), fixed(2)),
        Column("95 %", _ends("wall"), _to(fixed(2))),
    ]
    groups = [group for _, some in families(texts) for group in of_ways(some, TITLES)]
    return table("Forced ids by family of schemas", groups, columns, notes)


def _way(texts: pd.DataFrame) -> str:
    return str(texts["way"].iloc[0])


def notes(rows: pd.DataFrame, manifest: Row) -> list[str]:
    """What was measured, and how."""
    made, over = manifest["config"], manifest.get("passed_over", {})
    reasons = [
        f"{name}: " + ", ".join(f"{why} {n}" for why, n in found.items())
        for name, found in over.items()
        if found
    ]
    alike = {m: sum(same[m] for same in rows["same"]) for m in ("canonical", "lift")}
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


def _lengths(texts: pd.DataFrame) -> Table:

    def of(least: int) -> Callable[[pd.DataFrame], float]:
        return lambda group: in_runs(group, least)

    columns = [
        Column("constraint", lambda group: TITLES[_way(group)]),
        Column("ids", total("ids"), whole),
        Column("runs", lambda group: len(values(group, "runs")), whole),
        Column("mean", _mean_run, fixed(2)),
        Column("longest", lambda group: highest("runs")(group) or 0),
        *(Column(f"ids in runs\nof {least} or more", of(least), percent(1)) for least in LENGTHS),
    ]
    note = "a run: the ids that are known at once and go through the model in one pass"
    return table("Lengths of forced runs", of_ways(texts, TITLES), columns, [note])


def _mean_run(texts: pd.DataFrame) -> float | None:
    runs = values(texts, "runs")
    return sum(runs) / len(runs) if runs else None


def _own(texts: pd.DataFrame) -> str:
    ended = texts[texts["ended"].astype(bool)]
    return f"{ended['own'].map(bool).sum()} of {len(ended)}"


def _parts(texts: pd.DataFrame) -> Table:
    """Where the time of each way goes, and its time against the lift's."""
    columns = [
        Column("way", lambda group: ALL_WAYS[_way(group)]),
        Column("ids a text", median("ids"), "{:g}".format),
        Column(
            "bytes an id", lambda group: median_of([*(group["bytes"] / group["ids"])]), fixed(2)
        ),
        Column("ms an id", median("whole"), fixed(2)),
        *(Column(part, median(part), fixed(2)) for part in ("model", "masks", "drawing")),
        Column("to prepare, ms", median("prepared"), scaled(1e3, fixed(1))),
        Column("own ids", _own),
        Column("wall time a byte,\nagainst the lift", _middle("against_lift"), fixed(2)),
        Column("95 %", _ends("against_lift"), _to(fixed(2))),
    ]
    notes = [
        "medians over texts; masks: initial state, masks, what is known, steps, all made anew for "
        "each text; to prepare: the constraint, from the automaton of its schema",
        "own ids: texts that are complete with the ids that `encode` gives them, of all that are "
        "complete",
        "against the lift: wall time for each byte of text, as a multiple of that of the lift "
        "which asks for every id, in the same cell; texts differ",
    ]
    return table("All ways, where their time goes", of_ways(texts, ALL_WAYS), columns, notes)


def wrong(rows: pd.DataFrame, manifest: Row) -> list[str]:
    """Complete texts under the canonical constraint with other ids than `encode` gives."""
    return [
        f"{row['key']}, {way}: {row['ways'][way]['text']!r} is not tokenized as `encode` does"
        for row in records(rows)
        for way in ("canonical", "canonical forced")
        if row["ways"][way]["own"] is False
    ]


def facts(rows: pd.DataFrame, manifest: Row) -> Row:
    """By family and way: `saved`, `wall` (see `middle`); the model, and how many texts."""
    found = {
        name: {
            way: {field: over_schemas(texts, field) for field in ("saved", "wall")}
            for way, texts in of_ways(some, WAYS)
        }
        for name, some in families(written(rows))
    }
    known = {"model": manifest.get("model"), "device": manifest.get("device")}
    return known | {"texts": len(rows), "families": found}


def readme(facts: Row) -> str:
    """What forced ids save by each constraint."""
    if not facts:
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
    return _with_ends(found["saved"], scaled(100, fixed(0)), " %")


def _times(found: Row) -> str:
    return _with_ends(found["wall"], fixed(2))


def _with_ends(found: Row, format_: Callable[[float], str], unit: str = "") -> str:
    shown = format_(found["value"]) + unit
    if found["low"] is None:
        return shown
    return f"{shown} [{_to(format_)([found['low'], found['high']])}]"


# The figure of the speed-up: what forced ids save, schema by schema, and how long their runs are.

STYLE: dict[str, tuple[str, str, str]] = {
    "canonical forced": ("canonical: its own", "#00798c", "o"),
    "lift forced": ("lift: any tokenization", "#d1495b", "s"),
    "chop": ("lift with chop (heuristic)", "#9a9a9a", ""),
}
"""Way: name in the legend, color, marker."""
HOLLOW = "lift forced"
PAIRED = ("canonical forced", HOLLOW)
"""The ways that are shown for each schema; where they are the same, the second is around the
first."""
LONGEST = 32
"""The last length of a run that is shown."""
_LINE, _GAP = 0.14, 1.2
"""Inches of a schema; room between families, in schemas."""


def figures(rows: pd.DataFrame, manifest: Row) -> list[Figure]:
    """The one figure."""
    texts = written(rows)
    heights = _heights(texts)
    size = (12, 2.2 + _LINE * (heights.max() - heights.min()))
    drawn, ((saved, wall, runs),) = panels(1, 3, size, "x", width_ratios=(1, 1, 0.9))
    _pairs(saved, texts, heights, "saved", 100)
    saved.set_xlabel("forward passes saved (%)")
    _pairs(wall, texts, heights, "wall", 1)
    wall.set_xlabel("wall time with forced ids / without")
    wall.axvline(1, color="#bbbbbb", linewidth=1, zorder=0)
    wall.set_yticklabels([])
    _runs(runs, texts)
    for way, (label, color, marker) in STYLE.items():
        inside = {"markerfacecolor": "white" if way == HOLLOW else color}
        runs.plot([], [], f"{marker}--", color=color, label=label, **inside)
    runs.legend(frameon=False)
    return [Figure("speedup", drawn, _headline(texts), _note(rows, manifest))]


def _headline(texts: pd.DataFrame) -> str:
    own, lift, _ = (over_schemas(some, "saved")["value"] for _, some in of_ways(texts, WAYS))
    return (
        f"Under a schema, the tokenizer's own ids leave {100 * own:.0f} % of the forward passes "
        f"out; any tokenization, {100 * lift:.0f} %"
    )


def _note(rows: pd.DataFrame, manifest: Row) -> str:
    own, lift = (_by_schema(written(rows), way, "saved") for way in PAIRED)
    return (
        f"{manifest.get('model')} on {manifest.get('device')}, {manifest['config']['dtype']}; "
        f"n = {len(own)} schemas, {len(rows)} texts of each way, of at most "
        f"{manifest['config']['most_ids']} ids. A line: one schema, both ways joined; canonical "
        f"saves more in {(own > lift).sum()}, less in {(own < lift).sum()}. Dashed: medians over "
        "schemas.\nWall time: the same text in the same process; of chop, seconds an id against "
        "the lift without it. Right: all families together."
    )


def _by_schema(texts: pd.DataFrame, way: str, field: str) -> pd.Series[float]:
    """The mean over the seeds of each schema."""
    return texts[texts["way"] == way].groupby(["family", "schema"], sort=False)[field].mean()


def _heights(texts: pd.DataFrame) -> pd.Series[float]:
    """Where the line of each schema is: families one below the other with room between them, in
    each the schema on top of which canonical saves most."""
    heights, last = [], 0.0
    for _, saved in _by_schema(texts, PAIRED[0], "saved").groupby("family", sort=False):
        heights.append(last - saved.rank(method="first", ascending=False))
        last = heights[-1].min() - _GAP
    return pd.concat(heights)


def _pairs(
    axes: Any, texts: pd.DataFrame, heights: pd.Series[float], field: str, factor: float
) -> None:
    """A line per schema with a mark for each way, and the median of each way over all."""
    found = [factor * _by_schema(texts, way, field)[heights.index] for way in PAIRED]
    axes.hlines(heights, *found, color="#cccccc", linewidth=1.5, zorder=1)
    for way, x in zip(PAIRED, found, strict=True):
        _, color, marker = STYLE[way]
        inside, size, order = ("white", 44, 2) if way == HOLLOW else (color, 20, 3)
        style = {"facecolor": inside, "edgecolor": color, "s": size, "zorder": order}
        axes.scatter(x, heights, marker=marker, **style)
    for way, some in of_ways(texts, WAYS):
        median = factor * over_schemas(some, field)["value"]
        axes.axvline(median, color=STYLE[way][1], linestyle="--", linewidth=1, zorder=0)
    middles = heights.groupby("family", sort=False).mean()
    names = [
        f"{name}\n(n = {n})" for name, n in heights.groupby("family", sort=False).size().items()
    ]
    axes.set_yticks(middles, names)
    axes.set_ylim(heights.min() - 1, heights.max() + 1)
    axes.tick_params(axis="y", length=0)


def _runs(axes: Any, texts: pd.DataFrame) -> None:
    """The share of all ids in runs of at least so many ids."""
    lengths = range(1, LONGEST + 1)
    for way, some in of_ways(texts, TITLES):
        shares, color = [100 * in_runs(some, least) for least in lengths], STYLE[way][1]
        axes.step(lengths, shares, where="mid", color=color, linewidth=2)
    axes.set_xscale("log", base=2)
    axes.set_xticks([1, 2, 4, 8, 16, 32], ["1", "2", "4", "8", "16", "32"])
    axes.set_xlabel("ids in a run, at least (log scale)")
    axes.set_ylabel("ids in such runs (% of all)")
    axes.set_ylim(0, 1.3 * max(1.0, axes.get_ylim()[1]))  # room for the legend
    axes.grid(axis="y", color="#eeeeee")
