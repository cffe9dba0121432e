"""How preprocessing times and mask times are distributed over the schemas, drawn."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

import numpy as np

from experiments.article.canvas import in_lines, subplots
from experiments.article.costs import shown
from experiments.article.mistral import MISTRAL
from experiments.run.executors import Row
from experiments.run.report import Figure
from experiments.run.statistics import median, quantile
from experiments.run.tables import Table

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
"""Seconds: means of the article's Table 2, for function-calling schemas with Mistral-7B."""
NAME = "mask_times"
_WIDTH = 9.6


def draw(rows: Sequence[Row], what: str) -> Figure:
    """The figure; what: the regexes are of."""
    figure, grid = subplots(1, 1, figsize=(_WIDTH, 5.2))
    axes = grid[0, 0]
    for key, (label, color, line) in CURVES.items():
        seconds = np.sort(shown(rows, key))
        if len(seconds):
            share = np.arange(len(seconds) + 1) / len(seconds)
            seconds = np.insert(seconds, 0, seconds[0])
            text = f"{label}: mean {_short(float(seconds[1:].mean()))} s"
            axes.step(seconds, share, line, where="post", color=color, label=text, linewidth=2)
    for mean, text in PUBLISHED.items():
        axes.axvline(mean, color="#999999", linestyle="--", linewidth=1)
        # Far enough to the left of the fastest one that its label is clear of the curves.
        left = mean * (0.5 if mean == min(PUBLISHED) else 0.9)
        axes.text(left, 0.04, text, ha="right", va="bottom", fontsize=8, color="#666666")
    axes.set_xscale("log")
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("seconds (log scale)")
    axes.set_ylabel("share that takes at most so long")
    handles, labels = axes.get_legend_handles_labels()
    place = {"loc": "upper center", "bbox_to_anchor": (0.5, 1.22), "ncols": 2}
    axes.legend(handles, labels, frameon=False, fontsize=9, **place)
    head = in_lines(headline(rows, what), _WIDTH)
    return Figure(NAME, figure, head, note(rows))


def table(rows: Sequence[Row]) -> Table:
    """The same in numbers."""
    numbers = ("mean", "median", "p99", "most")
    lines = [
        [CURVES[key][0], *(_short(found[name]) for name in numbers), f"{found['n']:,}"]
        for key, found in summaries(rows).items()
    ]
    columns = ["seconds", "mean", "median", "99 of 100", "most", "n"]
    means = ", ".join(text.replace("\n", " ") for text in PUBLISHED.values())
    published = f"published, other schemas on another machine: {means}"
    return Table("Preprocessing and mask times", columns, lines, [published])


def summaries(rows: Sequence[Row]) -> dict[str, Row]:
    """mean, median, p99, most: seconds of each curve that has any; n: how many."""
    found = {key: shown(rows, key) for key in CURVES}
    return {
        key: {
            "mean": fmean(seconds),
            "median": median(seconds),
            "p99": quantile(seconds, 0.99),
            "most": max(seconds),
            "n": len(seconds),
        }
        for key, seconds in found.items()
        if seconds
    }


def headline(rows: Sequence[Row], what: str) -> str:
    """The message, with the numbers of these rows."""
    alone, complete = (shown(rows, key) for key in ("alone_first", "canonical_first"))
    if not complete:
        return "Preprocessing and masks: nothing was measured"
    return (
        f"{what}: CartesianMerge makes its first mask on average\n"
        f"after {_short(fmean(alone))} s with BPE alone, after {_short(fmean(complete))} s with "
        "the complete tokenizer"
    )


def note(rows: Sequence[Row]) -> str:
    """What was measured, and what failed."""
    ours = sum("ours" in row["failures"] for row in rows)
    theirs = sum("outlines_core" in row["failures"] for row in rows)
    return (
        f"{len(rows)} regexes, {len(shown(rows, 'masks')):,} masks, each once; tokenizer: "
        f"{MISTRAL}. BPE alone: without byte fallback, as in the article; all but outlines-core: "
        f"the package.\nFailures: {ours} ours, {theirs} of outlines-core. Dashed: means "
        f"that the article's Table 2 gives, on another machine."
    )


def _short(seconds: float) -> str:
    return f"{seconds:.2g}"
