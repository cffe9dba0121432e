"""What the rows of the experiment `segments` say: how much faster, and where the time goes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pandas as pd

from experiments.run.executors import FAILURE, Row
from experiments.run.readme import wrapped
from experiments.run.report import Report
from experiments.run.statistics import median as median_of
from experiments.run.tables import (
    Column,
    Group,
    Table,
    count,
    fixed,
    frame,
    median,
    percent,
    scaled,
    table,
    total,
)
from experiments.schemas.linked_segments import PARTS, REPEATS

_KNOWN = ("alone", "shared", "again")
_KINDS = {
    "eager": "rows of all configurations",
    "written": "written out",
    "linked": "linked, with all masks of a text",
}
"""What the README says of them."""


def render(rows: Sequence[Row], manifest: Row) -> Report:
    """wrong: where a row, a language or a mask is another one with what is shared."""
    done = measured_of(rows)
    of_merges = [_merged(row) for row in rows if "merges" in row]
    failed = [row for row in rows if row.get(FAILURE) and not row.get("refused")]
    speed_ups = [
        {"tokenizer": tokenizer, "kind": kind, "n": own["id"].nunique()}
        | {name: median_of([*of["faster"]]) for name, of in own.groupby("variant", sort=False)}
        for (tokenizer, kind), own in done.groupby(["tokenizer", "kind"], sort=False)
    ]
    return Report(
        "Segments",
        [_speed(done, manifest), _spent(done), *of_merges],
        facts={"schemas": len({r["id"] for r in rows if "written" in r}), "speed_ups": speed_ups},
        wrong=[f"{row['key']}: {row[FAILURE]}" for row in failed],
    )


def measured_of(rows: Sequence[Row]) -> pd.DataFrame:
    """A row for each tokenizer, kind and variant of each schema. faster: how many times, compared
    with the variant `none`."""
    found = [
        {"tokenizer": row["tokenizer"], "id": row["id"], "kind": kind, "variant": variant}
        | {"seconds": one["seconds"], "faster": row[kind]["none"]["seconds"] / one["seconds"]}
        | {"made": one.get("made"), "nodes": row[kind]["none"].get("nodes")}
        | {part: one.get(part) for part in ("masks_made", "kernels", *PARTS)}
        for row in rows
        for kind in _KINDS
        for variant, one in row.get(kind, {}).items()
    ]
    fields = ["tokenizer", "id", "kind", "variant", "seconds", "faster", "made", "nodes"]
    fields += ["masks_made", "kernels", *PARTS]
    return frame(found) if found else pd.DataFrame(columns=fields)


def _compared(of: Callable[[Group], float | None]) -> Callable[[Group], float | None]:
    """Not of the lines that the others are compared with."""
    return lambda own: None if own["variant"].iloc[0] == "none" else of(own)


def _what(own: Group) -> str:
    tokenizer, kind, variant = own[["tokenizer", "kind", "variant"]].iloc[0]
    return f"{tokenizer}, {kind}" if variant == "none" else f"- {variant}"


def _ratio_of_sums(own: Group) -> float:
    return float((own["seconds"] * own["faster"]).sum() / own["seconds"].sum())


def _share_made(own: Group) -> float | None:
    nodes = total("nodes")(own)
    return total("made")(own) / nodes if nodes else None


def _speed(done: pd.DataFrame, manifest: Row) -> Table:
    columns = [
        Column("what", _what),
        Column("n", count),
        Column("ms", median("seconds"), scaled(1e3, fixed(2))),
        Column("sum, s", total("seconds"), fixed(2)),
        Column("speed-up", _compared(median("faster")), fixed(2), ""),
        Column("speed-up\nof the sum", _compared(_ratio_of_sums), fixed(2), ""),
        Column("slower", _compared(lambda own: (own["faster"] < 1).mean()), percent(), ""),
        Column("rows made", _compared(_share_made), percent(), ""),
    ]
    notes = [
        "eager: the rows of all configurations; written: the automaton with all edges, where it is "
        "small; none: no segments; alone: an empty cache of segments for each schema; shared: one "
        "cache for all; again: it knows this very schema; disk: a new cache that reads what the "
        "other wrote",
        "linked: to link a schema that has an instance, and all masks along that; none: by a "
        "process that has used the tokenizer, but knows no schema; shared: it knows the schemas "
        "before; again: this very schema too",
        "medians over schemas; speed-up: median of the ratio; slower: share of schemas where it "
        "costs more than none; rows made: of the configurations, those whose row was not there",
        f"measured in {manifest['wall_seconds']:g} s",
    ]
    lines = done.groupby(["tokenizer", "kind", "variant"], sort=False)
    return table("Shared between schemas", lines, columns, notes)


def _spent(done: pd.DataFrame) -> Table:
    linked = done[done["kind"] == "linked"]
    columns = [
        Column("what", _what),
        Column("n", count),
        Column("masks", median("masks_made"), fixed(0)),
        *(Column(f"{part}, ms", median(part), scaled(1e3, fixed(2))) for part in PARTS),
    ]
    notes = [
        "link: the automaton of the schema; constraint: of that and the tokenizer; first: its "
        "first mask; further: all other masks, and reading the ids between them",
        f"medians over schemas, of each the median of {REPEATS} forks; at most "
        f"{max(linked['kernels'], default=0)} kernels were loaded within the clock",
    ]
    lines = linked.groupby(["tokenizer", "kind", "variant"], sort=False)
    return table("Linked: where the time goes", lines, columns, notes)


def _merged(row: Row) -> Table:

    def shown(side: str) -> Callable[[Group], str]:
        return lambda own: "nothing" if own["alone"].iloc[0] else _visible(own[side].iloc[0])

    lines = [{"character": character} | found for character, found in row["merges"].items()]
    columns = [
        Column("character", "character", repr),
        Column("merges to the left with", shown("left")),
        Column("merges to the right with", shown("right")),
    ]
    note = "ASCII only; ␣: a space; nothing: in no merge at all, with no byte."
    return table(f"What merges with what: {row['tokenizer']}", frame(lines), columns, [note])


def _visible(characters: str) -> str:
    """With spaces and controls to be seen."""
    shown = "".join(repr(c)[1:-1] if c < " " else c for c in characters)
    return shown.replace(" ", "␣") or "none"


def readme(facts: Row) -> str:
    """How many times faster than without segments."""
    lines = [
        f"| {own['tokenizer']}, {_KINDS[own['kind']]} | "
        + " | ".join(f"{own[name]:.2f}" if name in own else "-" for name in _KNOWN)
        + " |"
        for own in facts["speed_ups"]
    ]
    said = (
        f"`python -m experiments segments`, {facts['schemas']} function calls, medians, by what "
        "the cache of segments, or the process that links, knows "
        "([table](paper_figures/segments.md)):"
    )
    columns = "| times faster than without | nothing | the schemas before | this very schema |"
    return "\n".join([wrapped(said), "", columns, "|:--|--:|--:|--:|", *lines])
