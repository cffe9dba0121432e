"""The rows of the experiment on schemas as tables, and its figure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from experiments.run.executors import Row
from experiments.run.report import Report
from experiments.run.tables import Table
from experiments.schemas import comparison_figure
from experiments.schemas.comparison_rows import Unit, disagreements, judged_of, units_of, wrongs
from experiments.schemas.engines import OURS
from experiments.schemas.histogram import Histogram

QUANTILES = (0.5, 0.9, 0.99, 0.999, 1.0)
_SHOWN = 12
"""Lines of a list that may be long."""


def render(rows: Sequence[Row], manifest: Row) -> Report:
    """Tables, a figure, and what is wrong of this package."""
    units, config = units_of(rows, manifest), manifest["config"]
    total = len(judged_of(rows))
    of_schemas = [] if config["regexes"] else [explained(units), labels(rows)]
    others = [costs(units), refusals(units), *of_schemas, goals(units)]
    tables = [outcomes(units, total, manifest), *(table for table in others if table.rows)]
    drawn = comparison_figure.draw(units, manifest)
    found = wrongs(units)
    more = [f"and {len(found) - _SHOWN} more"] if len(found) > _SHOWN else []
    return Report(
        f"{'Regexes' if config['regexes'] else 'Schemas'}: {data_of(manifest)}",
        tables,
        [drawn] if drawn else [],
        facts_of(units, rows, manifest),
        [*found[:_SHOWN], *more],
    )


def data_of(manifest: Row) -> str:
    """The name of the folder or the file."""
    config = manifest["config"]
    return str(config["regexes"] or config["schemas"])


def facts_of(units: Sequence[Unit], rows: Sequence[Row], manifest: Row) -> Row:
    """What the README says: seconds and shares of each engine with each tokenizer."""
    judged = judged_of(rows)
    return {
        "cases": len(judged),
        "instances": sum(len(row["labels"]) for row in judged),
        "minutes": round(manifest["wall_seconds"] / 60),
        "peer_seconds": manifest["config"]["peer_seconds"],
        "engines": [facts_of_unit(unit, manifest) for unit in units],
    }


def facts_of_unit(unit: Unit, manifest: Row) -> Row:
    """Of one line; seconds are None where nothing compiled."""
    compiling = unit.seconds("compile")
    quantiles = {"p50": compiling.quantile(0.5), "p99": compiling.quantile(0.99)}
    quantiles["max"] = compiling.largest if compiling.n else math.nan
    return {
        "engine": unit.engine,
        "version": manifest.get("engine_versions", {}).get(unit.engine, ""),
        "tokenizer": unit.tokenizer,
        "cases": len(unit.rows),
        "compiled": len(unit.compiled),
        "valid": len(list(unit.texts(True))),
        "valid_rejected": len(unit.rejected()),
        "invalid": len(list(unit.texts(False))),
        "invalid_accepted": len(unit.let_through()),
        "reasons": dict(unit.reasons().most_common()),
        "compile_seconds": {k: None if math.isnan(s) else s for k, s in quantiles.items()},
    }


def outcomes(units: Sequence[Unit], total: int, manifest: Row) -> Table:
    """What became of the cases, and what was wrong among the compiled ones."""
    lines = []
    for unit in units:
        good = list(unit.texts(True))
        bad = list(unit.texts(False))
        lines.append(
            [
                unit.name,
                f"{len(unit.rows)}",
                share(len(unit.compiled), len(unit.rows)),
                f"{unit.count('refused', 'invalid')}",
                f"{unit.count('unsatisfiable')}",
                f"{unit.count('too large', 'over time', 'over memory')}",
                f"{unit.count('failed', 'crashed')}",
                f"{len(unit.rejected())} of {len(good)}",
                f"{len(unit.let_through())} of {len(bad)}",
                f"{len({i for i, _ in [*unit.rejected(), *unit.let_through()]})}",
            ]
        )
    columns = ["", "cases", "compiled", "refused", "empty", "too large", "failed"]
    columns += ["valid\nrejected", "invalid\naccepted", "cases with\neither"]
    notes = [*circumstances(units, total, manifest), *meanings(manifest["config"])]
    return Table("What became of them", columns, lines, notes)


def circumstances(units: Sequence[Unit], total: int, manifest: Row) -> list[str]:
    """What a reader must know before the tables."""
    config = manifest["config"]
    lines = [f"{total} of {manifest.get('cases', '?')} cases, style {config['whitespace']}"]
    short = [f"{u.name} {len(u.rows)}" for u in units if len(u.rows) < total]
    if short:
        lines.append(
            "cases come in one random order; of it an engine whose time was up "
            f"({config['peer_seconds']:g} s) did the first: {'; '.join(short)}"
        )
    lines += [f"missing: {name}: {why}" for name, why in manifest.get("missing", {}).items()]
    known = manifest.get("engine_versions", {}).items()
    versions = ", ".join(f"{name} {found}" for name, found in known if found)
    wall = f"measured in {manifest['wall_seconds']:g} s"
    return [*lines, f"versions: {versions}; {manifest['cores']} cores; {wall}"]


def meanings(config: Row) -> list[str]:
    """Of the columns."""
    return [
        f"too large: over a budget of its own, {config['case_seconds']:g} s or "
        f"{config['case_mb']:g} MB (for compiling, and again for all the texts of a case)",
        "valid and invalid: as jsonschema judges, formats included; texts by json.dumps"
        if not config["regexes"]
        else "texts: those that come with the regexes, all valid",
    ]


def share(part: int, whole: int) -> str:
    """A count, and in percent."""
    return f"{part} ({100 * part / whole:.1f} %)" if whole else "0"


def costs(units: Sequence[Unit]) -> Table:
    """Seconds, by percentile, and memory."""
    lines = []
    for unit in units:
        for what, histogram in timings(unit).items():
            shown = [duration(histogram.quantile(q)) for q in QUANTILES]
            memory = f"{unit.peak_mb():.0f}" if what == "compile" else ""
            lines.append([f"{unit.name}: {what}", f"{histogram.n}", *shown, memory])
    names = [f"p{100 * q:g}" for q in QUANTILES[:-1]]
    notes = [
        "compile: the engine's own compiling of a case, of the cases that compiled; to first mask: "
        "with the first mask; mask: before each of the first ids of valid texts, the tokenizer's "
        "own ids; states seen before are among them",
        "MB (10^6 bytes): the most resident memory of the process, its tokenizer included",
    ]
    return Table("What it costs", ["", "n", *names, "max", "MB"], lines, notes)


def timings(unit: Unit) -> dict[str, Histogram]:
    """What is timed, by name."""
    return {
        "compile": unit.seconds("compile"),
        "to first mask": unit.seconds("compile", "first"),
        "mask": unit.masks(),
    }


def duration(seconds: float | None) -> str:
    """With a unit, three digits."""
    if seconds is None or math.isnan(seconds):
        return "-"
    for unit, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= unit or name == "us":
            return f"{seconds / unit:.3g} {name}"
    return "-"


def refusals(units: Sequence[Unit]) -> Table:
    """Why cases are not compiled: by keyword, where an engine names it."""
    lines = []
    for unit in units:
        counts = unit.refusals().most_common()
        shown = ", ".join(f"{why} {n}" for why, n in counts[: 2 * _SHOWN])
        rest = sum(n for _, n in counts[2 * _SHOWN :])
        lines.append([unit.name, shown + (f", others {rest}" if rest else "") or "none"])
    return Table("Refused, by keyword or message", ["", "how often"], lines)


def explained(units: Sequence[Unit]) -> Table:
    """Why this package rejects valid instances."""
    ours = [unit for unit in units if unit.engine == OURS]
    reasons: Counter[str] = Counter()
    for unit in ours:
        reasons |= unit.reasons()
    lines = [[why, *(f"{u.reasons()[why]}" for u in ours)] for why, _ in reasons.most_common()]
    notes = [
        "order: another order of members is accepted; number spelling: another text of the same "
        "number is; depth: it is accepted by the same schema compiled with more nesting"
    ]
    columns = ["valid instances rejected", *(unit.name for unit in ours)]
    return Table("Why this package rejects valid instances", columns, lines, notes)


def labels(rows: Sequence[Row]) -> Table:
    """Where the data and `jsonschema` say different things."""
    found = disagreements(rows)
    lines = [[case, f"{k}", _verdict(said), _verdict(judged)] for case, k, said, judged in found]
    total = sum(len(row["labels"]) for row in judged_of(rows))
    notes = [f"{len(found)} of {total} instances; the judge is followed"]
    columns = ["case", "instance", "data", "jsonschema"]
    return Table("Labels that jsonschema does not confirm", columns, lines[: 2 * _SHOWN], notes)


def _verdict(verdict: bool | None) -> str:
    return {True: "valid", False: "invalid", None: "cannot say"}[verdict]


def goals(units: Sequence[Unit]) -> Table:
    """What this package sets out to keep."""
    lines = []
    for unit in units:
        if unit.engine != OURS:
            continue
        compiling = unit.seconds("compile")
        lines += [
            [f"{unit.name}: invalid accepted", f"{len(unit.let_through())}", "0"],
            [f"{unit.name}: valid rejected, unexplained", f"{len(unit.unexplained())}", "0"],
            [f"{unit.name}: compile p99", duration(compiling.quantile(0.99)), "1 s"],
            [f"{unit.name}: compile max", duration(compiling.largest), "10 s"],
            [f"{unit.name}: memory, MB", f"{unit.peak_mb():.0f}", "1000"],
        ]
    return Table("Goals", ["", "found", "at most"], lines)
