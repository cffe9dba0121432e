"""The tables of the experiment on segments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from experiments.distortion_report import shown_path
from experiments.runner import Options, write_atomically
from experiments.speed_timing import median
from experiments.tables import Table

Row = dict[str, Any]

_KINDS = {
    "lazy": ("alone", "shared", "again"),
    "eager": ("alone", "shared", "again"),
    "written": ("shared", "again"),
}


def render(rows: Sequence[Row], manifest: Row, options: Options) -> None:
    """Print the tables, and write them beside the paper's figures."""
    if not manifest["complete"]:
        print(f"incomplete: {manifest['rows']} of {manifest['rows_expected']} rows")
    tables = [speed(rows), *(merged(row) for row in rows if "merges" in row)]
    for table in tables:
        table.print()
    path = options.figures / "segments.md"
    write_atomically(path, "\n".join(table.markdown() for table in tables))
    print(f"table: {shown_path(path)} (measured in {manifest['wall_seconds']} s)")


def speed(rows: Sequence[Row]) -> Table:
    """Medians over schemas; a speed-up is the median over schemas of the ratio to `none`."""
    lines = []
    for name in dict.fromkeys(row["tokenizer"] for row in rows):
        own = [r for r in rows if r["tokenizer"] == name and "lazy" in r]
        for kind, variants in _KINDS.items():
            done = [r[kind] for r in own if r[kind]]
            if not done:
                continue
            lines.append(_none(f"{name}, {kind}", done))
            lines += [_variant(variant, done) for variant in variants]
            if kind == "lazy":
                both = [{"none": r["lazy"]["none"], "disk": r["disk"]} for r in own]
                lines.append(_variant("disk", both))
    failed = sum("failure" in row for row in rows)
    notes = (
        "none: no segments; alone: an empty cache for each schema; shared: one cache for all, as "
        "the schemas before have left it; again: it knows this very schema; disk: a new cache that "
        "reads what the other wrote. Rows hit: of those asked for; eager, no row of a segment that "
        "is known is asked for.",
        "lazy: an engine and the masks along one text; eager: the rows of all nodes; written: the "
        "automaton with all edges, where it is small. Medians over schemas; speed-up: median of "
        "the ratio; slower: share of schemas where it costs more than none.",
        f"{failed} schemas failed.",
    )
    columns = (
        "what",
        "n",
        "ms",
        "sum, s",
        "speed-up",
        "speed-up\nof the sum",
        "slower",
        "rows hit",
    )
    return Table("Segments shared between schemas", columns, lines, notes)


def _none(label: str, done: Sequence[Row]) -> tuple[str, ...]:
    seconds = [row["none"]["seconds"] for row in done]
    return label, str(len(done)), _ms(median(seconds)), f"{sum(seconds):.2f}", "", "", "", ""


def _variant(variant: str, done: Sequence[Row]) -> tuple[str, ...]:
    own = [row[variant]["seconds"] for row in done]
    base = [row["none"]["seconds"] for row in done]
    ratios = [b / s for b, s in zip(base, own, strict=True)]
    found = sum(row[variant].get("found", 0) for row in done)
    asked = found + sum(row[variant].get(k, 0) for row in done for k in ("made", "apart"))
    return (
        f"- {variant}",
        str(len(done)),
        _ms(median(own)),
        f"{sum(own):.2f}",
        f"{median(ratios):.2f}",
        f"{sum(base) / sum(own):.2f}",
        f"{sum(r < 1 for r in ratios) / len(ratios):.0%}",
        f"{found / asked:.0%}" if asked else "",
    )


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.2f}"


def _shown(characters: str) -> str:
    """With spaces and controls to be seen."""
    return "".join(repr(c)[1:-1] if c < " " else c for c in characters).replace(" ", "␣")


def merged(row: Row) -> Table:
    """What merges with what."""
    lines = [
        (
            repr(character),
            "nothing" if found["alone"] else _shown(found["left"]) or "none",
            "nothing" if found["alone"] else _shown(found["right"]) or "none",
        )
        for character, found in row["merges"].items()
    ]
    notes = ("ASCII only; ␣: a space; nothing: in no merge at all, with no byte.",)
    columns = ("character", "merges to the left with", "merges to the right with")
    return Table(f"What merges with what: {row['tokenizer']}", columns, lines, notes)
