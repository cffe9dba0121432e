"""The figure of texts that are not canonical: a panel per kind of text, against temperature."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from experiments.run.executors import Row
from experiments.run.files import require
from experiments.run.report import Figure
from experiments.study.spontaneous_shares import of_texts, texts_of

COLORS, MARKS = ("#00798c", "#d1495b", "#edae49", "#66a182"), ("o", "s", "^", "D")
ACROSS, APART = 5, 0.025
LABELS = {
    "prose": "English prose",
    "chat": "answers to questions",
    "json": "JSON",
    "table": "tables of spaces, tabs",
    "dates": "dates and numbers",
    "names": "lists of names",
    "russian": "Russian",
    "chinese": "Chinese",
    "arabic": "Arabic",
}


def figure(rows: Sequence[Row], names: Mapping[str, str], chosen: Row, facts: Row) -> Figure:
    """names: what models are called, by their names in the rows."""
    require("matplotlib").use("Agg")
    pyplot = require("matplotlib.pyplot")
    style = {"font.size": 10, "axes.spines.top": False, "axes.spines.right": False}
    with pyplot.rc_context(style):
        drawn = _panels(pyplot, rows, names, chosen)
    note = (
        f"{chosen['texts']} texts of at most {chosen['tokens']} tokens each, drawn freely; bars: "
        "intervals of 95 % (Clopper and Pearson)."
    )
    return Figure("spontaneous", drawn, headline(facts), note)


def _panels(pyplot: Any, rows: Sequence[Row], names: Mapping[str, str], chosen: Row) -> Any:
    """One for each kind of text."""
    kinds = chosen["kinds"]
    across = min(ACROSS, len(kinds))
    down = math.ceil(len(kinds) / across)
    drawn, grid = pyplot.subplots(
        down,
        across,
        figsize=(max(8.0, 2.5 * across), 2.6 * down + 1.2),
        sharex=True,
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    for place, axes in enumerate(grid.flat):
        if place >= len(kinds):
            axes.axis("off")
            continue
        _panel(axes, rows, names, kinds[place], chosen["temperatures"])
        if place + across >= len(kinds):
            axes.set_xlabel("temperature")
            axes.tick_params(labelbottom=True)
    marks = grid[0, 0].get_legend_handles_labels()
    drawn.legend(*marks, frameon=False, fontsize=10, loc="upper right")
    drawn.supylabel("texts that are not canonical, %", fontsize=10)
    return drawn


def _panel(
    axes: Any, rows: Sequence[Row], names: Mapping[str, str], kind: str, heats: Sequence[float]
) -> None:
    for number, (name, label) in enumerate(names.items()):
        found = [(heat, texts_of(rows, name, heat, kind)) for heat in heats]
        points = [(heat, of_texts(texts)) for heat, texts in found if texts]
        if not points:
            continue
        places = [heat + APART * (number - (len(names) - 1) / 2) for heat, _ in points]
        shares = [share.share * 100 for _, share in points]
        low = [(share.share - share.low) * 100 for _, share in points]
        high = [(share.high - share.share) * 100 for _, share in points]
        style = {"color": COLORS[number % 4], "marker": MARKS[number % 4], "markersize": 5}
        axes.errorbar(places, shares, [low, high], capsize=2, linewidth=1.4, label=label, **style)
    axes.set_title(LABELS.get(kind, kind), loc="left", fontsize=11)
    axes.set_ylim(-3, 103)
    axes.set_xticks(list(heats), [f"{heat:g}" for heat in heats])
    axes.grid(axis="y", color="#eeeeee")
    axes.set_axisbelow(True)


def headline(facts: Row) -> str:
    """The message, with the numbers of these rows, at temperature 1 where all were measured. Kinds
    of text differ more than models do, so it says that the numbers are averages."""
    models = facts["models"]
    first, *others = models.values()
    heats = [heat for heat in first if all(heat in other for other in others)]
    if not heats:
        return "How often models leave their tokenizer's own tokenization"
    heat = "1" if "1" in heats else heats[-1]
    what = ", averaged over these kinds of text" if len(facts["kinds"]) > 1 else ""
    said = [
        f"{label}: {own[heat]['texts']['share'] * 100:.0f} %{what}" for label, own in models.items()
    ]
    first = f"At temperature {heat}, texts that are not in their tokenizer's own ids"
    return "\n".join([first, *said])
