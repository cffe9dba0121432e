"""The tables of the experiment on segments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from experiments.run.executors import FAILURE, Row
from experiments.run.readme import wrapped
from experiments.run.report import Report
from experiments.run.statistics import median
from experiments.run.tables import Table

_VARIANTS = ("alone", "shared", "again", "disk")
_KINDS = {"eager": "rows of all nodes", "written": "written out"}
"""What the README says of them."""


def render(rows: Sequence[Row], manifest: Row) -> Report:
    """wrong: where segments changed a row or a language."""
    done = [row for row in rows if "written" in row]
    of_merges = [merged(row) for row in rows if "merges" in row]
    failed = [row for row in rows if row.get(FAILURE) and not row.get("refused")]
    return Report(
        "Segments",
        [speed(done, manifest), *of_merges],
        facts={"schemas": len({row["id"] for row in done}), "speed_ups": [*speed_ups(done)]},
        wrong=[f"{row['key']}: {row[FAILURE]}" for row in failed],
    )


def speed_ups(rows: Sequence[Row]) -> Iterator[Row]:
    """Medians over schemas of the ratio to no segments."""
    for name in dict.fromkeys(row["tokenizer"] for row in rows):
        for kind in _KINDS:
            done = [row[kind] for row in rows if row["tokenizer"] == name and row[kind]]
            if done:
                found = {variant: median(ratios(variant, done)) for variant in _VARIANTS}
                yield {"tokenizer": name, "kind": kind, "n": len(done)} | found


def ratios(variant: str, done: Sequence[Row]) -> list[float]:
    """How many times faster than without segments, of each schema."""
    return [row["none"]["seconds"] / row[variant]["seconds"] for row in done]


def speed(rows: Sequence[Row], manifest: Row) -> Table:
    """Medians over schemas; a speed-up is the median over schemas of the ratio to `none`."""
    lines = []
    for name in dict.fromkeys(row["tokenizer"] for row in rows):
        own = [row for row in rows if row["tokenizer"] == name]
        for kind in _KINDS:
            done = [row[kind] for row in own if row[kind]]
            if done:
                lines.append(_none(f"{name}, {kind}", done))
                lines += [_variant(variant, done) for variant in _VARIANTS]
    notes = (
        "none: no segments; alone: an empty cache for each schema; shared: one cache for all, as "
        "the schemas before have left it; again: it knows this very schema; disk: a new cache that "
        "reads what the other wrote. Rows made: of the nodes, those whose row was not there.",
        "eager: the rows of all nodes; written: the automaton with all edges, where it is small. "
        "Medians over schemas; speed-up: median of the ratio; slower: share of schemas where it "
        "costs more than none.",
        f"measured in {manifest['wall_seconds']:g} s",
    )
    columns = (
        "what",
        "n",
        "ms",
        "sum, s",
        "speed-up",
        "speed-up\nof the sum",
        "slower",
        "rows made",
    )
    return Table("Segments shared between schemas", columns, lines, notes)


def _none(label: str, done: Sequence[Row]) -> tuple[str, ...]:
    seconds = [row["none"]["seconds"] for row in done]
    return label, str(len(done)), _ms(median(seconds)), f"{sum(seconds):.2f}", "", "", "", ""


def _variant(variant: str, done: Sequence[Row]) -> tuple[str, ...]:
    own = [row[variant]["seconds"] for row in done]
    base = [row["none"]["seconds"] for row in done]
    faster = ratios(variant, done)
    made = sum(row[variant]["made"] for row in done)
    nodes = sum(row["none"].get("nodes", 0) for row in done)
    return (
        f"- {variant}",
        str(len(done)),
        _ms(median(own)),
        f"{sum(own):.2f}",
        f"{median(faster):.2f}",
        f"{sum(base) / sum(own):.2f}",
        f"{sum(r < 1 for r in faster) / len(faster):.0%}",
        f"{made / nodes:.0%}" if nodes else "",
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


def readme(facts: Row) -> str:
    """How many times faster than without segments."""
    lines = [
        f"| {own['tokenizer']}, {_KINDS[own['kind']]} | {own['alone']:.2f} | {own['shared']:.2f} "
        f"| {own['again']:.2f} |"
        for own in facts["speed_ups"]
    ]
    said = (
        f"`python -m experiments segments`, {facts['schemas']} function calls, medians, by what "
        "the cache knows ([table](paper_figures/segments.md)):"
    )
    columns = "| times faster than without | nothing | the schemas before | this very schema |"
    return "\n".join([wrapped(said), "", columns, "|:--|--:|--:|--:|", *lines])
