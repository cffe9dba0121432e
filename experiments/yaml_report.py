"""The rows of `yaml_schemas` as tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from experiments.distortion_report import shown_path
from experiments.runner import Options, write_atomically
from experiments.tables import Table
from experiments.yaml_files import OUTCOMES, UNEXPLAINED, WRONG

Row = dict[str, Any]

_SHARES = (("median", 0.5), ("p90", 0.9), ("max", 1.0))


def render(rows: Sequence[Row], manifest: Row, options: Options) -> None:
    """Print the tables and write them: to the paper's folder if all schemas were taken."""
    tables = [statuses(rows, manifest), costs(rows), files(rows), reasons(rows)]
    for table in tables:
        table.print()
    home = options.figures if options.n is None else options.folder
    text = "\n".join(["# YAML schemas\n", *(table.markdown() for table in tables)])
    write_atomically(home / "yaml_schemas.md", text)
    print(f"rows: {shown_path(options.folder)}; table: {shown_path(home / 'yaml_schemas.md')}")
    for row in rows:
        for failure in row["failures"][:3]:
            print(f"{row['id']}: {failure['why']}: {failure['text'][:300]!r}")


def wrong(rows: Sequence[Row]) -> int:
    """Texts that are accepted and should not be, drawn or from files; and files rejected for no
    reason."""
    bad = sum(row["files"].count(outcome) for row in rows for outcome in (WRONG, UNEXPLAINED))
    return int(bad) + sum(len(row["failures"]) for row in rows)


def statuses(rows: Sequence[Row], manifest: Row) -> Table:
    """How many schemas were compiled, and what the walks gave."""
    counts = Counter(row["status"] for row in rows)
    lines = [[status, f"{count}"] for status, count in counts.most_common()]
    lines += [
        ["random texts", f"{sum(row['walks'] for row in rows):,}"],
        ["their characters", f"{sum(row.get('characters', 0) for row in rows):,}"],
        ["not loaded, or not valid", f"{sum(len(row['failures']) for row in rows)}"],
    ]
    config = manifest["config"]
    notes = [
        f"depth {config['depth']}; too large: over {config['max_states']:,} states in any one step",
        "each text goes through yaml.safe_load and jsonschema",
        f"measured in {manifest['wall_seconds']} s",
    ]
    if not manifest["complete"]:
        notes.insert(0, "INCOMPLETE: not all schemas were measured")
    return Table("SchemaStore's schemas of YAML files", ["", "number"], lines, notes)


def costs(rows: Sequence[Row]) -> Table:
    """Seconds of all, sizes of the compiled ones."""
    done = [row for row in rows if row["status"] == "compiled"]
    kinds = (
        ("CPU seconds, compiled", [row["seconds"] for row in done], "{:.2f}"),
        ("CPU seconds, all", [row["seconds"] for row in rows], "{:.2f}"),
        ("states", [row["states"] for row in done], "{:,.0f}"),
        ("MB", [row["mb"] for row in done], "{:.1f}"),
    )
    lines = [
        [name, *(shape.format(_share(values, share)) for _, share in _SHARES)]
        for name, values, shape in kinds
    ]
    peak = max((row["peak_mb"] for row in done), default=0)
    notes = [f"one process for all of them; its memory rose to {peak:,.0f} MB at most"]
    return Table("What they cost", ["", *(name for name, _ in _SHARES)], lines, notes)


def files(rows: Sequence[Row]) -> Table:
    """What became of the files of the compiled schemas."""
    counts = Counter(outcome for row in rows for outcome in row["files"])
    lines = [[name, f"{counts[name]}"] for name in OUTCOMES if counts[name]]
    notes = ["each was loaded and written again in the pinned style, keys in its own order"]
    return Table("The files that come with them", ["", "files"], lines, notes)


def reasons(rows: Sequence[Row]) -> Table:
    """Why the others were not compiled."""
    others = [row for row in rows if row["status"] != "compiled"]
    counts = Counter((row["status"], row.get("keyword") or "-") for row in others)
    lines = [[f"{status}: {word}", f"{count}"] for (status, word), count in counts.most_common()]
    return Table("Not compiled", ["status: keyword", "schemas"], lines)


def _share(values: Sequence[float], share: float) -> float:
    ordered = sorted(values) or [0.0]
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
