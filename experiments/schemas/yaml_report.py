"""The rows of `yaml_schemas` as tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from experiments.run.executors import FAILURE, Row
from experiments.run.readme import wrapped
from experiments.run.report import Report
from experiments.run.statistics import quantile
from experiments.run.tables import Table
from experiments.schemas.yaml_files import ACCEPTED, NUMBER, ORDER, OUTCOMES, UNEXPLAINED, WRONG

COMPILED = "compiled"
_SHARES = {"median": 0.5, "p90": 0.9, "max": 1.0}
_SHOWN = 20


def render(rows: Sequence[Row], manifest: Row) -> Report:
    """wrong: texts that are accepted and should not be, drawn or from files; files rejected for no
    reason; schemas that could not be measured."""
    done = [row for row in rows if not row.get(FAILURE)]
    tables = [statuses(done, manifest), costs(done), files(done), reasons(done)]
    failed = [f"{row['key']}: {row[FAILURE]}" for row in rows if row.get(FAILURE)]
    found = [*wrongs(done), *failed]
    return Report("YAML schemas", tables, facts=facts_of(done), wrong=found[:_SHOWN])


def wrongs(rows: Sequence[Row]) -> list[str]:
    """What is wrong of this package."""
    found = [
        f"{row['id']}: {failure['why']}: {failure['text'][:300]!r}"
        for row in rows
        for failure in row["failures"]
    ]
    return found + [
        f"{row['id']}: file {k}: {outcome}"
        for row in rows
        for k, outcome in enumerate(row["files"])
        if outcome in (WRONG, UNEXPLAINED)
    ]


def facts_of(rows: Sequence[Row]) -> Row:
    """What the README says."""
    outcomes = Counter(outcome for row in rows for outcome in row["files"])
    return {
        "schemas": len(rows),
        "statuses": dict(Counter(row["status"] for row in rows).most_common()),
        "texts": sum(row["walks"] for row in rows),
        "wrong_texts": sum(len(row["failures"]) for row in rows),
        "files": sum(outcomes.values()),
        "accepted": sum(outcomes[outcome] for outcome in (ACCEPTED, ORDER, NUMBER)),
        "wrong_files": outcomes[WRONG] + outcomes[UNEXPLAINED],
    }


def statuses(rows: Sequence[Row], manifest: Row) -> Table:
    """How many schemas were compiled, and what the walks gave."""
    counts = Counter(row["status"] for row in rows)
    lines = [[status, f"{count}"] for status, count in counts.most_common()]
    lines += [
        ["random texts", f"{sum(row['walks'] for row in rows):,}"],
        ["their characters", f"{sum(row.get('characters', 0) for row in rows):,}"],
        ["not loaded, or not valid", f"{sum(len(row['failures']) for row in rows)}"],
    ]
    notes = ["each text goes through yaml.safe_load and jsonschema"]
    if "depth" in manifest:
        most = f"over {manifest['max_states']:,} states in any one step"
        notes.insert(0, f"depth {manifest['depth']}; too large: {most}")
    notes.append(f"measured in {manifest['wall_seconds']:g} s")
    return Table("SchemaStore's schemas of YAML files", ["", "number"], lines, notes)


def costs(rows: Sequence[Row]) -> Table:
    """Seconds of all, sizes of the compiled ones."""
    done = [row for row in rows if row["status"] == COMPILED]
    kinds = (
        ("CPU seconds, compiled", [row["seconds"] for row in done], "{:.2f}"),
        ("CPU seconds, all", [row["seconds"] for row in rows], "{:.2f}"),
        ("states", [row["states"] for row in done], "{:,.0f}"),
        ("MB", [row["mb"] for row in done], "{:.1f}"),
    )
    lines = [
        [name, *(shape.format(quantile(values, share)) for share in _SHARES.values())]
        for name, values, shape in kinds
        if values
    ]
    peak = max((row["peak_mb"] for row in done), default=0)
    notes = [f"a process compiles many of them; the memory of one rose to {peak:,.0f} MB at most"]
    return Table("What they cost", ["", *_SHARES], lines, notes)


def files(rows: Sequence[Row]) -> Table:
    """What became of the files of the compiled schemas."""
    counts = Counter(outcome for row in rows for outcome in row["files"])
    lines = [[name, f"{counts[name]}"] for name in OUTCOMES if counts[name]]
    notes = ["each was loaded and written again in the pinned style, keys in its own order"]
    return Table("The files that come with them", ["", "files"], lines, notes)


def reasons(rows: Sequence[Row]) -> Table:
    """Why the others were not compiled."""
    others = [row for row in rows if row["status"] != COMPILED]
    counts = Counter((row["status"], row.get("keyword") or "-") for row in others)
    lines = [[f"{status}: {word}", f"{count}"] for (status, word), count in counts.most_common()]
    return Table("Not compiled", ["status: keyword", "schemas"], lines)


def readme(facts: Row) -> str:
    """One paragraph."""
    compiled = facts["statuses"].get(COMPILED, 0)
    return wrapped(
        f"`python -m experiments yaml_schemas`: of {facts['schemas']} schemas of SchemaStore with "
        f"YAML files {compiled} compile. Of {facts['texts']:,} texts drawn from them "
        f"{facts['wrong_texts']} are not loaded or not valid; of {facts['files']} files "
        f"{facts['accepted']} are accepted, and {facts['wrong_files']} accepted or rejected for no "
        "good reason ([table](paper_figures/yaml_schemas.md))."
    )
