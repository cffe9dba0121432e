"""Figure 6 drawn: how preprocessing times and mask times are distributed over the schemas."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.article_distribution import shown
from experiments.figures import finish
from experiments.optional import require

Row = dict[str, Any]

CURVES = {
    "outlines_core": ("outlines-core (index)", "#d1495b", "-"),
    "lift_index": ("lift, all masks", "#edae49", "-"),
    "alone_first": ("CartesianMerge to its first mask, BPE alone", "#00798c", "-"),
    "canonical_first": ("the same, complete tokenizer", "#00798c", ":"),
    "masks": ("CartesianMerge, a mask, complete tokenizer", "#7fc4cc", "-"),
}
PUBLISHED = {
    0.687: "Outlines’ preprocessing,\npublished mean 0.687 s",
    27.3: "relevant states,\npublished mean 27.3 s",
    0.00153: "a mask,\npublished mean 0.00153 s",
}
"""Seconds: means that the article gives for function-calling schemas with Mistral-7B."""


def draw(rows: Sequence[Row], folder: Path) -> list[Path]:
    """Write `figure6.png` and `figure6.pdf`; returns the paths."""
    require("matplotlib").use("Agg")
    pyplot = require("matplotlib.pyplot")
    pyplot.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False})
    figure, axes = pyplot.subplots(figsize=(9.6, 5.2), layout="constrained")
    for key, (label, color, line) in CURVES.items():
        seconds = np.sort(shown(rows, key))
        if len(seconds):
            share = np.arange(len(seconds) + 1) / len(seconds)
            seconds = np.insert(seconds, 0, seconds[0])
            text = f"{label}: mean {_short(float(seconds[1:].mean()))} s"
            axes.step(seconds, share, line, where="post", color=color, label=text, linewidth=2)
    for mean, text in PUBLISHED.items():
        axes.axvline(mean, color="#999999", linestyle="--", linewidth=1)
        place = {"ha": "right", "va": "bottom", "rotation": 90, "fontsize": 8, "color": "#666666"}
        axes.text(mean * 0.97, 0.02, text, **place)
    axes.set_xscale("log")
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("seconds (log scale)")
    axes.set_ylabel("share that takes at most so long")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.22), ncols=2, frameon=False, fontsize=9)
    return finish(figure, headline(rows), note(rows), folder, "figure6")


def headline(rows: Sequence[Row]) -> str:
    """The message, with the numbers of these rows."""
    alone, complete = (shown(rows, key) for key in ("alone_first", "canonical_first"))
    if not complete:
        return "Figure 6. Preprocessing and masks: nothing was measured"
    means = [_short(float(np.mean(seconds))) for seconds in (alone, complete)]
    return (
        "Figure 6. Function-calling schemas: CartesianMerge makes its first mask on average\n"
        f"after {means[0]} s with BPE alone, after {means[1]} s with the complete tokenizer"
    )


def note(rows: Sequence[Row]) -> str:
    """What was measured, and what failed."""
    ours = [row["name"] for row in rows if "ours" in row["failures"]]
    theirs = sum("outlines_core" in row["failures"] for row in rows)
    return (
        f"{len(rows)} schemas, {len(shown(rows, 'masks')):,} masks, Mistral-7B-v0.1. BPE alone: "
        "without byte fallback, as in the article; all but outlines-core: the package.\n"
        f"Failures: {len(ours)} ours, {theirs} of outlines-core. Dashed: means "
        "that the article gives, on another machine.\n"
        "Of Figures 2 to 6 of the article neither number nor caption was at hand: the numbers are "
        "ours."
    )


def _short(seconds: float) -> str:
    return f"{seconds:.2g}"
