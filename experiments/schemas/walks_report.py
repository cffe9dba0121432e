"""The rows of `walks` as a table."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.laws.exact_measure import shown
from experiments.run.executors import FAILURE, Row
from experiments.run.readme import wrapped
from experiments.run.report import Report
from experiments.run.tables import Table
from experiments.schemas.walks_process import EXCUSES

STYLES = {"json": "JSON", "yaml": "YAML"}
_COUNTS = ("walks", "different", "ids", "characters", *EXCUSES)
_SHOWN = 20


def render(rows: Sequence[Row], manifest: Row) -> Report:
    """wrong: every walk that failed, and every schema whose walks could not be made."""
    done = [row for row in rows if "walks" in row]
    refused = [row for row in rows if "why_not" in row]
    sums = {style: sums_of([row for row in done if row["style"] == style]) for style in STYLES}
    wrong = [
        f"{row['id']}: {failure['why']}: {failure['text'][:300]!r}"
        for row in done
        for failure in row["failures"]
    ]
    wrong += [f"{row['key']}: {row[FAILURE]}" for row in rows if row.get(FAILURE)]
    facts = {
        "styles": sums,
        "refused": len(refused),
        "tokenizer": shown(manifest["config"]["tokenizer"]),
    }
    table = table_of(sums, refused, manifest)
    return Report("Walks", [table], facts=facts, wrong=wrong[:_SHOWN])


def sums_of(rows: Sequence[Row]) -> dict[str, int]:
    """Of the schemas of one style."""
    sums = {name: sum(row[name] for row in rows) for name in _COUNTS}
    return {"schemas": len(rows), **sums, "failed": sum(len(row["failures"]) for row in rows)}


def table_of(sums: dict[str, dict[str, int]], refused: Sequence[Row], manifest: Row) -> Table:
    """A line for each style."""
    config = manifest["config"]
    lines = [[style, *(f"{value:,}" for value in own.values())] for style, own in sums.items()]
    notes = [
        f"{shown(config['tokenizer'])}; others in place of {len(refused)} that were refused",
        "patterns: valid where ECMA-262 says what \\s, \\d, \\w and $ are, not by Python's re; "
        "rounding: valid by exact decimals, but not by the judge's floats (multipleOf)",
        f"measured in {manifest['wall_seconds']:g} s",
    ]
    walked, wanted = sum(own["schemas"] for own in sums.values()), manifest.get("wanted", 0)
    if walked < wanted:
        notes.insert(0, f"{wanted} schemas were wanted, {walked} were walked")
    columns = ["", "schemas", "walks", "different texts", "ids", "characters", *EXCUSES, "failed"]
    return Table("Random walks through the masks of schemas", columns, lines, notes)


def readme(facts: Row) -> str:
    """One sentence."""
    styles = facts["styles"]
    texts = " and ".join(
        f"{own['walks']:,} {STYLES[style]} texts of {own['schemas']} schemas"
        for style, own in styles.items()
    )
    failed = sum(own["failed"] for own in styles.values())
    excused = sum(own[excuse] for own in styles.values() for excuse in EXCUSES)
    return wrapped(
        f"`python -m experiments walks` writes at random under the masks: {texts}, each parsed and "
        f"validated. Wrong: {failed}; valid by ECMA-262's patterns or exact decimals only, which "
        f"the validator does not know: {excused} ([table](paper_figures/walks.md))."
    )
