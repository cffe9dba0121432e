"""The rows of the experiment on schemas as tables, and its figure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from experiments import schemas_figure
from experiments.distortion_report import shown_path
from experiments.runner import write_atomically
from experiments.schemas_histogram import Histogram
from experiments.schemas_options import OURS, SchemasOptions
from experiments.schemas_rows import Unit, disagreements, read_units, wrongs
from experiments.tables import Table

Row = dict[str, Any]

QUANTILES = (0.5, 0.9, 0.99, 0.999, 1.0)
_SHOWN = 12
"""Lines of a list that may be long."""


def render(options: SchemasOptions) -> list[str]:
    """Print the tables, write them, draw the figure. Returns what is wrong of this package."""
    units, manifest = read_units(options)
    tables = [outcomes(units, manifest), costs(units, manifest), refusals(units)]
    if not manifest["regexes"]:
        tables += [explained(units), labels(manifest)]
    tables = [table for table in (*tables, goals(units)) if table.rows]
    name = "schemas" if not manifest["regexes"] else "schemas-regexes"
    title = f"# {'Regexes' if manifest['regexes'] else 'Schemas'}: {manifest['data']}"
    text = "\n".join([title, "", *incomplete(units, manifest), *(t.markdown() for t in tables)])
    for table in tables:
        table.print()
    write_atomically(options.figures / f"{name}.md", text)
    saved = schemas_figure.draw(units, manifest, options.figures, name)
    print("tables and figure: " + ", ".join(map(shown_path, (options.figures, *saved))))
    found = wrongs(units)
    for line in found[:_SHOWN]:
        print(line)
    return found


def incomplete(units: Sequence[Unit], manifest: Row) -> list[str]:
    """What a reader must know before the tables."""
    total = len(manifest["chosen"])
    lines = [f"{total} of {manifest['cases']} cases, style {manifest['whitespace']}."]
    if not manifest["complete"]:
        lines.append("INCOMPLETE: the run was interrupted.")
    short = [f"{u.name} {len(u.rows)}" for u in units if len(u.rows) < total]
    if short:
        lines.append(
            "Cases come in one random order; of it an engine whose time was up "
            f"({manifest['peer_seconds']:g} s) did the first: {'; '.join(short)}."
        )
    lines += [f"Missing: {name}: {why}." for name, why in manifest.get("missing", {}).items()]
    versions = ", ".join(f"{k} {v}" for k, v in manifest["engine_versions"].items() if v)
    wall = manifest.get("wall_seconds")
    lines.append(f"Versions: {versions}. {manifest['cores']} cores; measured in {wall} s.")
    return [*(f"{line}\n" for line in lines)]


def outcomes(units: Sequence[Unit], manifest: Row) -> Table:
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
    limits = manifest["limits"]
    notes = [
        f"too large: over a budget of its own, {limits['seconds']:g} s or {limits['mb']:g} MB "
        "(for compiling, and again for all the texts of a case)",
        "valid and invalid: as jsonschema judges, formats included; texts by json.dumps"
        if not manifest["regexes"]
        else "texts: those that come with the regexes, all valid",
    ]
    return Table("What became of them", columns, lines, notes)


def share(part: int, whole: int) -> str:
    """A count, and in percent."""
    return f"{part} ({100 * part / whole:.1f} %)" if whole else "0"


def costs(units: Sequence[Unit], manifest: Row) -> Table:
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


def duration(seconds: float) -> str:
    """With a unit, three digits."""
    if math.isnan(seconds):
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


def labels(manifest: Row) -> Table:
    """Where the data and `jsonschema` say different things."""
    found = disagreements(manifest)
    lines = [[case, f"{k}", _verdict(said), _verdict(judged)] for case, k, said, judged in found]
    total = sum(map(len, manifest["labels"].values()))
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
