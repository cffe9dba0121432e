"""The table and the figure of throughput."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from experiments.run.executors import FAILURE, Row
from experiments.run.files import require
from experiments.run.report import Figure, Report
from experiments.run.statistics import median, median_interval
from experiments.run.tables import Table, markdown

GOAL, GOAL_BATCH = 0.97, 64
"""Of the throughput without a constraint; at this batch, and nothing is asked of others."""
COLORS = {"canonical": "#00798c", "lift": "#d1495b"}
MARKERS = "os^Dv"
DEVICES = {"cpu": "CPU", "cuda": "GPU"}
"""What they are called in titles."""


def render(rows: Sequence[Row], manifest: Row) -> Report:
    """Table, figure and facts of the rows."""
    good = [row for row in rows if not row.get(FAILURE)]
    where = " and ".join(DEVICES[device] for device in dict.fromkeys(r["device"] for r in good))
    title = f"Throughput of sampling under masks, on a {where}" if good else "Throughput"
    facts = {"rows": [_facts(row) for row in good], "where": where, "goal": GOAL}
    table = Table(title, _COLUMNS, [_line(row) for row in good], _notes(good, manifest))
    return Report(title, [table], _figures(good, manifest), facts)


def ratios(row: Row) -> list[float]:
    """Throughput under the constraint, of that without, in each round."""
    return [free / own for free, own in zip(row["free"], row["constrained"], strict=True)]


def ends(row: Row) -> tuple[float, float]:
    """The 95 % interval of the median ratio; all of it where there are less than six rounds."""
    values = ratios(row)
    return median_interval(values) or (min(values), max(values))


def readme(facts: Row) -> str:
    """What the README says of it: of the largest batch."""
    if not facts["rows"]:
        return ""
    batch = max(row["batch"] for row in facts["rows"])
    told = (
        f"Sampling {batch} texts at a time on a {facts['where']}, tokens per second under masks "
        "beside the same loop without (`python -m experiments throughput`):"
    )
    lines = []
    for row in facts["rows"]:
        low, high = row["interval"]
        shown = f"{100 * row['ratio']:.1f} % ({100 * low:.1f} to {100 * high:.1f})"
        if row["batch"] == batch:
            lines.append([row["dtype"], row["language"], row["method"], shown])
    columns = "dtype", "language", "method", "of the throughput without"
    return f"{told}\n\n{markdown(columns, lines)}"


def _facts(row: Row) -> Row:
    names = ("device", "dtype", "batch", "language", "method")
    found = {name: row[name] for name in names}
    return found | {
        "free": _per_second(row, "free"),
        "constrained": _per_second(row, "constrained"),
        "ratio": median(ratios(row)),
        "interval": list(ends(row)),
        "rounds": len(row["free"]),
    }


def _per_second(row: Row, name: str) -> float:
    """Tokens per second, the median over rounds."""
    return float(row["batch"] * row["length"] / median(row[name]))


_COLUMNS = (
    "device, dtype",
    "batch",
    "language",
    "method",
    "free\ntokens/s",
    "constrained\ntokens/s",
    "ratio",
    "from",
    "to",
    f"at least {GOAL:.0%}\nat batch {GOAL_BATCH}",
    "first time\nratio",
    "masks of a step\nms",
)


def _line(row: Row) -> list[str]:
    low, high = ends(row)
    middle = median(ratios(row))
    met = "yes" if middle >= GOAL else "NO"
    return [
        f"{DEVICES[row['device']]}, {row['dtype']}",
        str(row["batch"]),
        row["language"],
        row["method"],
        f"{_per_second(row, 'free'):,.1f}",
        f"{_per_second(row, 'constrained'):,.1f}",
        *(f"{100 * value:.1f} %" for value in (middle, low, high)),
        met if row["batch"] == GOAL_BATCH else "",
        f"{100 * row['cold'][0] / row['cold'][1]:.1f} %",
        f"{1e3 * median(row['masks']):.3g}" if row["masks"] else "",
    ]


def _notes(rows: Sequence[Row], manifest: Row) -> list[str]:
    if not rows:
        return []
    rounds = sorted({len(row["free"]) for row in rows})
    models = [value for name, value in manifest.items() if name.startswith("model_")]
    said = dict.fromkeys(f"{made['model']} on {made['device']}. {made['note']}" for made in models)
    return [
        f"{rows[0]['length']} ids of each sample after one prompt, which is read once; n = "
        f"{', '.join(map(str, rounds))} rounds; ratio: the median over rounds of the ratio within "
        "a round; from, to: order statistics that hold the median with 95 % (all rounds, where "
        "there are less than six)",
        "the time of a batch begins before the model reads the prompt, under masks and without",
        "first time: in a round before these, with constraints that no text was followed by, after "
        "a batch under another one (kernels are loaded); later rounds have seen the texts of "
        "earlier ones; masks of a step: moving all matchers of the "
        "batch on and packing their masks, alone; in the loop that is done while the model reads",
        *said,
    ]


def _figures(rows: Sequence[Row], manifest: Row) -> list[Figure]:
    """Ratio by batch; a panel for each dtype."""
    if not rows:
        return []
    require("matplotlib").use("Agg")
    pyplot = require("matplotlib.pyplot")
    dtypes = list(dict.fromkeys(row["dtype"] for row in rows))
    size = {"figsize": (4 + 3 * max(2, len(dtypes)), 4.6), "sharey": True, "squeeze": False}
    with pyplot.rc_context({"axes.spines.top": False, "axes.spines.right": False}):
        figure, axes = pyplot.subplots(1, len(dtypes), layout="constrained", **size)
    for panel, dtype in zip(axes[0], dtypes, strict=True):
        _panel(panel, dtype, [row for row in rows if row["dtype"] == dtype])
    axes[0][0].set_ylabel("throughput under masks, of that without (%)")
    axes[0][-1].legend(fontsize=8, frameon=False)
    devices = ", ".join(DEVICES[device] for device in dict.fromkeys(r["device"] for r in rows))
    note = (
        f"{devices}; {manifest['config']['model']}; n = {max(len(row['free']) for row in rows)} "
        "rounds: medians of the ratio within a round, lines: 95 % intervals. Dashed: the goal, at "
        f"batch {GOAL_BATCH}."
    )
    return [Figure("throughput", figure, _headline(rows, devices), note)]


def _headline(rows: Sequence[Row], devices: str) -> str:
    most = max(row["batch"] for row in rows)
    found = [median(ratios(row)) for row in rows if row["batch"] == most]
    low, high = (f"{100 * value:.1f}" for value in (min(found), max(found)))
    return f"At batch {most} masks leave {low} to {high} % of the throughput ({devices})"


def _panel(axes: Any, dtype: str, rows: Sequence[Row]) -> None:
    batches = sorted({row["batch"] for row in rows})
    kinds = list(dict.fromkeys((row["language"], row["method"]) for row in rows))
    markers = dict(zip(dict.fromkeys(language for language, _ in kinds), MARKERS, strict=False))
    for number, (language, method) in enumerate(kinds):
        for row in rows:
            if (row["language"], row["method"]) != (language, method):
                continue
            x = batches.index(row["batch"]) + 0.12 * (number - (len(kinds) - 1) / 2)
            line = [100 * value for value in ends(row)]
            axes.plot([x, x], line, color=COLORS[method], linewidth=1)
            style = {"color": COLORS[method], "marker": markers[language], "zorder": 3}
            axes.scatter([x], [100 * median(ratios(row))], s=30, **style)
        axes.scatter([], [], label=f"{language}, {method}", **style)
    if GOAL_BATCH in batches:
        x = batches.index(GOAL_BATCH)
        goal = [100 * GOAL, 100 * GOAL]
        axes.plot([x - 0.5, x + 0.5], goal, color="#888888", linewidth=1, linestyle="--")
    axes.set_xticks(range(len(batches)), batches)
    axes.set_xlim(-0.5, len(batches) - 0.5)
    axes.set_xlabel("samples at a time")
    axes.set_title(dtype, loc="left", fontsize=10)
    axes.grid(axis="y", color="#eeeeee")
    axes.set_axisbelow(True)
