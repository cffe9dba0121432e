"""The numbers of the speed experiment that the README has."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.run.cells import Row
from experiments.serving.speed_goals import along_walks, goals, of_kind, ratios
from experiments.shared.timing import median, quantile

WIDE = ("500 of ASCII", "line of 500")
"""Regexes with a row of its own at each count."""


def facts(rows: Sequence[Row]) -> Row:
    """goals: as `Goal.described`; faster: ratios to outlines_core's index; new: median ms of a mask
    at a new state, by wide regex; start: median seconds by part; kernels: seconds to compile them
    all; along: [median, 99 %] of a mask in µs, by engine. Without what was not measured."""
    starts = [row["parts"] for row in of_kind(rows, "start")]
    return {
        "goals": [goal.described() for goal in goals(rows)],
        "faster": list(ratios(rows).values()),
        "new": {
            row["name"]: 1e3 * median(row["first"])
            for row in of_kind(rows, "masks")
            if row["name"] in WIDE and row["first"]
        },
        "start": {name: median(raw) for parts in starts for name, raw in parts.items()},
        "kernels": next((row["compile"] for row in of_kind(rows, "kernels")), None),
        "along": {
            engine: [1e6 * median(raw), 1e6 * quantile(raw, 0.99)]
            for engine, raw in along_walks(rows).items()
            if raw
        },
    }


def said(facts: Row) -> str:
    """For the README, of `facts`: the table of goals, and where time goes."""
    table = [["goal", "asked", "measured", "met"], [":--", "--:", "--:", "--:"], *facts["goals"]]
    lines = [f"| {' | '.join(_bold(cell) for cell in row)} |" for row in table]
    sentences = [*_wide(facts["new"]), *_start(facts), *_peers(facts["along"])]
    return "\n".join(lines) + "\n\n" + " ".join(sentences)


def _bold(cell: str) -> str:
    return "**no**" if cell == "NO" else cell


def _wide(new: dict[str, float]) -> list[str]:
    shown = " and ".join(f"{ms:.2g} ms for `{name}`" for name, ms in new.items())
    what = "A wide counted repeat makes a row anew at each count, and a mask takes"
    return [f"{what} {shown} (medians)."] if new else []


def _start(facts: Row) -> list[str]:
    parts, found = facts["start"], []
    if parts:
        shown = ", ".join(f"{name} {seconds:.2g} s" for name, seconds in parts.items())
        found.append(f"Of the second start: {shown}.")
    if facts["kernels"]:
        found.append(
            f"Compiling all kernels takes {facts['kernels']:.0f} s, once, at installation."
        )
    return found


def _peers(along: dict[str, list[float]]) -> list[str]:
    """Each engine's masks along the same ids."""
    if len(along) < 2:
        return []
    shown = ", ".join(f"{name} {mid:,.0f} and {high:,.0f}" for name, (mid, high) in along.items())
    return [f"A mask along the same ids, median and 99 of 100, in µs: {shown}."]
