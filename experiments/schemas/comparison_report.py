"""The rows of the experiment on schemas as tables and a figure: what became of the cases, what was
wrong, and what it cost."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any

import pandas as pd

from experiments.run.executors import Row
from experiments.run.readme import wrapped
from experiments.run.report import Figure, panels
from experiments.run.tables import (
    Column,
    Group,
    Table,
    count,
    frame,
    markdown,
    records,
    several,
    table,
    total,
    values,
)
from experiments.schemas.comparison_worker import OURS, Histogram, of_rows
from experiments.schemas.judge import GAVE_UP, JUDGE, UNEXPLAINED
from experiments.shared.shown import in_lines
from experiments.show import duration, fixed, whole


def shown(source: str) -> str:
    """What a table calls a tokenizer: its name, or of a path the last part."""
    return Path(source).name


TITLE = "Schemas: what compiles, what is wrong, and what it costs"
QUANTILES = (0.5, 0.9, 0.99, 0.999, 1.0)
_SHOWN = 12
"""Lines of a list that may be long."""


# ---------------------------------------------------------------- rows


def judged(rows: pd.DataFrame) -> list[Row]:
    """What the judge said of each case (`accepted`), and what the data says (`labels`)."""
    return records(rows[rows["engine"] == JUDGE])


def cases_of(rows: pd.DataFrame, manifest: Row) -> pd.DataFrame:
    """The rows of engines, in the order of the config, joined with what the judge said:

    name: engine and tokenizer; valid, invalid: how many texts are, where the judge can say;
    rejected, let_through: which valid ones were not accepted, and which invalid ones were; why:
    the reasons, and unexplained: which texts have none; refusal: why the case is not compiled;
    masked: it is, and masks were made along its valid texts.
    """
    verdicts = {row["id"]: row.get("accepted") or [] for row in judged(rows)}
    config = manifest["config"]
    order = [(e, shown(t)) for e in config["engines"] for t in config["tokenizers"]]
    own = [row for row in records(rows) if (row["engine"], row["tokenizer"]) in order]
    own.sort(key=lambda row: order.index((row["engine"], row["tokenizer"])))
    return frame([row | _joined(row, verdicts.get(row["id"], [])) for row in own])


def _joined(row: Row, verdicts: Sequence[bool | None]) -> Row:
    """A schema that is said to be unsatisfiable accepts no text."""
    pairs = list(enumerate(zip(row.get("accepted") or (), verdicts, strict=False)))
    reasons = row.get("reasons") or {}
    is_compiled = row["status"] == "compiled"
    return {
        "name": f"{row['engine']}, {row['tokenizer']}",
        "valid": sum(verdict is True for _, (_, verdict) in pairs),
        "invalid": sum(verdict is False for _, (_, verdict) in pairs),
        "rejected": [k for k, (accepted, verdict) in pairs if verdict is True and not accepted],
        "let_through": [k for k, (accepted, verdict) in pairs if verdict is False and accepted],
        "why": list(reasons.values()),
        "unexplained": [int(k) for k, why in reasons.items() if why in (UNEXPLAINED, GAVE_UP)],
        "refusal": None if is_compiled else _refusal(row),
        "compile": row["compile"] if is_compiled else None,
        "to_first": row["compile"] + row["first"] if is_compiled else None,
        "masked": is_compiled and bool((row.get("masks") or {}).get("counts")),
    }


def _refusal(row: Row) -> str:
    if row["status"] != "refused":
        return f"({row['status']})"
    keyword: str | None = row.get("keyword")
    return keyword or _gist(row["message"])


def _gist(message: str) -> str:
    """A message without what is of one case only."""
    short = re.sub(r"[\"'`{\[(].*", "", message.split("\n")[0]).strip(" :,.")
    keys = re.search(r"Unimplemented keys: (.*)", message)
    return f"{short} {keys[1]}" if keys else short or message[:40]


def units(cases: pd.DataFrame) -> Iterator[tuple[str, Group]]:
    """Name and cases of each engine with each tokenizer."""
    if len(cases):
        yield from ((str(name), unit) for name, unit in cases.groupby("name", sort=False))


def of_ours(cases: pd.DataFrame) -> list[tuple[str, Group]]:
    """Of this package alone."""
    return [(name, unit) for name, unit in units(cases) if unit["engine"].iloc[0] == OURS]


def seconds(unit: Group, field: str) -> Histogram:
    """Of the cases that compiled; field "masks": of all masks along valid texts."""
    if field == "masks":
        return of_rows(values(unit, "masks"))
    made = Histogram()
    for value in values(unit, field):
        made.add(value)
    return made


def compared(cases: pd.DataFrame) -> list[tuple[str, ...]]:
    """Engines that are compared on the same cases: all of them, and those that came to the most
    cases, which their time did not stop."""
    n = Counter(values(cases, "engine"))
    thorough = tuple(engine for engine in n if n[engine] == max(n.values()))
    return [engines for engines in dict.fromkeys((tuple(n), thorough)) if len(engines) > 1]


def finished_by(engines: Sequence[str], cases: pd.DataFrame) -> pd.DataFrame:
    """Rows of these engines, of the cases that every one of them compiled and made masks of, with
    the same tokenizer."""
    own = cases[cases["engine"].isin(engines) & cases["masked"]]
    finished = own.groupby(["tokenizer", "id"])["engine"].transform("nunique")
    return own[finished == len(engines)]


def beside_peers(cases: pd.DataFrame) -> Iterator[tuple[str, str, Group, Group]]:
    """(peer, tokenizer, its rows, those of this package) of the cases that both finished."""
    for peer in dict.fromkeys(name for name in values(cases, "engine") if name != OURS):
        both = finished_by((OURS, peer), cases)
        for tokenizer, own in both.groupby("tokenizer", sort=False):
            is_ours = own["engine"] == OURS
            yield peer, str(tokenizer), own[~is_ours], own[is_ours]


FASTER_AT = (0.5, 0.9, 0.99)
"""A peer is called faster that is so at each of these percentiles, with each tokenizer."""


def faster(cases: pd.DataFrame, field: str) -> list[str]:
    """The peers that are faster than this package on the cases that both finished."""
    found: dict[str, bool] = {}
    for peer, _, its, ours in beside_peers(cases):
        theirs, own = seconds(its, field), seconds(ours, field)
        is_faster = all(theirs.quantile(q) < own.quantile(q) for q in FASTER_AT)
        found[peer] = found.get(peer, True) and is_faster
    return [peer for peer, is_faster in found.items() if is_faster]


def peak_mb(unit: Group) -> float:
    """Of the process, its tokenizer included; nan where it is not known."""
    found = [mb for name in ("peak_mb", "compiling_mb") for mb in values(unit, name) if mb]
    return max(found, default=math.nan)


def statuses(*names: str) -> Callable[[Group], int]:
    """How many cases ended so."""
    return lambda unit: int(unit["status"].isin(names).sum())


def texts(field: str) -> Callable[[Group], int]:
    """How many texts are in the lists of a field."""
    return lambda unit: len(values(unit, field))


def disagreements(rows: pd.DataFrame) -> list[tuple[str, int, bool, bool | None]]:
    """(case, text, what the data says, what the judge says) where these differ."""
    return [
        (row["id"], k, label, verdict)
        for row in judged(rows)
        for k, (label, verdict) in enumerate(
            zip(row["labels"], row.get("accepted") or (), strict=False)
        )
        if label is not verdict
    ]


def wrong(rows: pd.DataFrame, manifest: Row) -> list[str]:
    """Of this package: whatever must not be; the first ones, and how many more."""
    found = []
    for name, unit in of_ours(cases_of(rows, manifest)):
        for row in records(unit):
            case = row["id"]
            found += [f"{name}: invalid accepted: {case} #{k}" for k in row["let_through"]]
            found += [f"{name}: unexplained: {case} #{k}" for k in row["unexplained"]]
            if row.get("wrong_masks"):
                found.append(f"{name}: masks: {case} {row['wrong_masks'][0]}")
            if row["status"] in ("failed", "crashed"):
                found.append(f"{name}: {row['status']}: {case} {row['message']}")
    more = [f"and {len(found) - _SHOWN} more"] if len(found) > _SHOWN else []
    return [*found[:_SHOWN], *more]


# ---------------------------------------------------------------- tables


def tables(rows: pd.DataFrame, manifest: Row) -> list[Table]:
    """All that have a line, and the first one in any case."""
    cases = cases_of(rows, manifest)
    of_schemas = [] if manifest["config"]["regexes"] else [explained(cases), labels(rows)]
    others = [costs(cases), same_cases(cases), refusals(cases), *of_schemas, goals(cases)]
    return [outcomes(cases, rows, manifest), *(table for table in others if table.rows)]


def outcomes(cases: pd.DataFrame, rows: pd.DataFrame, manifest: Row) -> Table:
    """What became of the cases, and what was wrong among the compiled ones."""
    columns = [
        Column("", "name"),
        Column("cases", count),
        Column("compiled", _compiled),
        Column("refused", statuses("refused", "invalid")),
        Column("empty", statuses("unsatisfiable")),
        Column("too large", statuses("too large", "over time", "over memory")),
        Column("failed", statuses("failed", "crashed")),
        Column("valid\nrejected", _part("rejected", "valid")),
        Column("invalid\naccepted", _part("let_through", "invalid")),
        Column("cases with\neither", _with_either),
    ]
    notes = [*circumstances(cases, rows, manifest), *meanings(manifest["config"])]
    return table("What became of them", units(cases), columns, notes)


def _part(which: str, of: str) -> Callable[[Group], str]:
    return lambda unit: f"{texts(which)(unit)} of {total(of)(unit)}"


def _compiled(unit: Group) -> str:
    n = statuses("compiled")(unit)
    return f"{n} ({100 * n / len(unit):.1f} %)"


def _with_either(unit: Group) -> int:
    return int((unit["rejected"].map(bool) | unit["let_through"].map(bool)).sum())


def data_of(manifest: Row) -> str:
    """The name of the folder or the file."""
    config = manifest["config"]
    return str(config["regexes"] or config["schemas"])


def circumstances(cases: pd.DataFrame, rows: pd.DataFrame, manifest: Row) -> list[str]:
    """What a reader must know before the tables."""
    config, n = manifest["config"], len(judged(rows))
    lines = [
        f"{data_of(manifest)}: {n} of {manifest.get('cases', '?')} cases, style "
        f"{config['whitespace']}"
    ]
    short = [f"{name} {len(unit)}" for name, unit in units(cases) if len(unit) < n]
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


TIMED = {"compile": "compile", "to first mask": "to_first", "mask": "masks"}
"""What is timed: its name, and the field."""
FIRST = ("compile", "to first mask")
"""What is timed once a case."""


def costs(cases: pd.DataFrame) -> Table:
    """Seconds, by percentile, and memory."""
    lines = [
        {
            "what": f"{name}: {what}",
            "n": (timed := seconds(unit, field)).n,
            **{f"{100 * q:g}": timed.quantile(q) for q in QUANTILES},
            "mb": peak_mb(unit) if what == "compile" else None,
        }
        for name, unit in units(cases)
        for what, field in TIMED.items()
    ]
    columns = [
        Column("", "what"),
        Column("n", "n"),
        *(Column(f"p{100 * q:g}" if q < 1 else "max", f"{100 * q:g}", duration) for q in QUANTILES),
        Column("MB", "mb", fixed(0), ""),
    ]
    notes = [
        "compile: the engine's own compiling of a case, of the cases that compiled; to first mask: "
        "with the first mask; mask: before each of the first ids of valid texts, the tokenizer's "
        "own ids; states seen before are among them",
        "each engine on the cases that it compiled, which differ from engine to engine; the next "
        "table compares engines on the same cases",
        "MB (10^6 bytes): the most resident memory of the process, its tokenizer included",
    ]
    return table("What it costs", frame(lines), columns, notes)


def same_cases(cases: pd.DataFrame) -> Table:
    """Seconds of several engines, of the cases that all of them finished."""
    groups = [
        (name, unit.assign(compared=len(engines)))
        for engines in compared(cases)
        for _, own in finished_by(engines, cases).groupby("tokenizer", sort=False)
        for name, unit in units(own)
    ]
    columns = [
        Column("", "name"),
        Column("engines\ncompared", "compared"),
        Column("cases", count, whole),
        *(Column(f"{what}\np50 / p90 / max", _spread(TIMED[what], 0.5, 0.9, 1)) for what in FIRST),
        Column("masks", lambda unit: seconds(unit, "masks").n, whole),
        Column("mask\np50 / p90 / p99 / max", _spread("masks", 0.5, 0.9, 0.99, 1)),
    ]
    notes = [
        "only the cases that every one of the engines compared compiled within the limits and made "
        "masks of, with the same tokenizer: above all engines, then those alone that were given "
        "the time for every case; columns as in the table before, where each engine has the cases "
        "that it compiled itself",
        "an engine that rejects a valid text makes no masks after that, so numbers of masks differ",
    ]
    return table("What it costs, on the same cases", groups, columns, notes)


def _spread(field: str, *shares: float) -> Callable[[Group], str]:
    def of(unit: Group) -> str:
        timed = seconds(unit, field)
        return several(_duration)(timed.quantile(q) for q in shares)

    return of


def refusals(cases: pd.DataFrame) -> Table:
    """Why cases are not compiled: by keyword, where an engine names it."""
    columns = [Column("", "name"), Column("how often", _counted)]
    return table("Refused, by keyword or message", units(cases), columns)


def _counted(unit: Group) -> str:
    counts = Counter(values(unit, "refusal")).most_common()
    said = ", ".join(f"{why} {n}" for why, n in counts[: 2 * _SHOWN])
    rest = sum(n for _, n in counts[2 * _SHOWN :])
    return said + (f", others {rest}" if rest else "") or "none"


def explained(cases: pd.DataFrame) -> Table:
    """Why this package rejects valid instances."""
    counts = {name: Counter(values(unit, "why")) for name, unit in of_ours(cases)}
    most = reduce(or_, counts.values(), Counter[str]()).most_common()
    lines = [{"reason": why} | {name: n[why] for name, n in counts.items()} for why, _ in most]
    notes = [
        "order: another order of members is accepted; number spelling: another text of the same "
        "number is; too many "
        "states: the text, or its masks, need more than one automaton has room for"
    ]
    columns = [Column("valid instances rejected", "reason"), *(Column(n, n) for n in counts)]
    return table("Why this package rejects valid instances", frame(lines), columns, notes)


def labels(rows: pd.DataFrame) -> Table:
    """Where the data and `jsonschema` say different things."""
    found = disagreements(rows)
    lines = [[case, f"{k}", _verdict(said), _verdict(by)] for case, k, said, by in found]
    n = sum(len(row["labels"]) for row in judged(rows))
    notes = [f"{len(found)} of {n} instances; the judge is followed"]
    columns = ["case", "instance", "data", "jsonschema"]
    return Table("Labels that jsonschema does not confirm", columns, lines[: 2 * _SHOWN], notes)


def _verdict(verdict: bool | None) -> str:
    return {True: "valid", False: "invalid", None: "cannot say"}[verdict]


def goals(cases: pd.DataFrame) -> Table:
    """What this package sets out to keep."""
    lines = []
    for name, unit in of_ours(cases):
        compiling = seconds(unit, "compile")
        lines += [
            [f"{name}: invalid accepted", f"{texts('let_through')(unit)}", "0"],
            [f"{name}: valid rejected, unexplained", f"{texts('unexplained')(unit)}", "0"],
            [f"{name}: compile p99", _duration(compiling.quantile(0.99)), "1 s"],
            [f"{name}: compile max", _duration(compiling.largest), "10 s"],
            [f"{name}: memory, MB", f"{peak_mb(unit):.0f}", "1000"],
        ]
    return Table("Goals", ["", "found", "at most"], lines)


def _duration(value: float | None) -> str:
    return "-" if value is None or math.isnan(value) else duration(value)


# ---------------------------------------------------------------- the README


def facts(rows: pd.DataFrame, manifest: Row) -> Row:
    """What the README says: seconds and shares of each engine with each tokenizer."""
    said, cases = judged(rows), cases_of(rows, manifest)
    return {
        "cases": len(said),
        "instances": sum(len(row["labels"]) for row in said),
        "minutes": round(manifest["wall_seconds"] / 60),
        "peer_seconds": manifest["config"]["peer_seconds"],
        "engines": [
            _facts_of(unit, manifest.get("engine_versions", {})) for _, unit in units(cases)
        ],
        "masks_of_both": [
            {
                "engine": peer,
                "tokenizer": tokenizer,
                "cases": len(its),
                "seconds": _p50_p99(its),
                "seconds_of_this_package": _p50_p99(ours),
            }
            for peer, tokenizer, its, ours in beside_peers(cases)
        ],
    }


def _p50_p99(unit: Group) -> list[float]:
    """Of the masks."""
    return [seconds(unit, "masks").quantile(q) for q in (0.5, 0.99)]


def _facts_of(unit: Group, versions: Row) -> Row:
    """Of one line; seconds are None where nothing compiled."""
    compiling, engine = seconds(unit, "compile"), unit["engine"].iloc[0]
    quantiles = {"p50": compiling.quantile(0.5), "p99": compiling.quantile(0.99)}
    quantiles["max"] = compiling.largest if compiling.n else math.nan
    return {
        "engine": engine,
        "version": versions.get(engine, ""),
        "tokenizer": unit["tokenizer"].iloc[0],
        "cases": len(unit),
        "compiled": statuses("compiled")(unit),
        "valid": total("valid")(unit),
        "valid_rejected": texts("rejected")(unit),
        "invalid": total("invalid")(unit),
        "invalid_accepted": texts("let_through")(unit),
        "reasons": dict(Counter(values(unit, "why")).most_common()),
        "compile_seconds": {k: None if math.isnan(s) else s for k, s in quantiles.items()},
    }


def readme(facts: Row) -> str:
    """Of the first tokenizer; the tables have the others."""
    engines = facts.get("engines", [])
    if not engines:
        return ""
    first = engines[0]["tokenizer"]
    own = [engine for engine in engines if engine["tokenizer"] == first]
    columns = [f"engine, tokenizer {first}", "cases", "compiled", "invalid accepted"]
    columns += ["valid rejected", "compile p50, p99, max"]
    shown = markdown(columns, [_line(engine) for engine in own])
    masks = _masks(facts, first)
    return "\n\n".join([wrapped(_circumstances(facts, own)), shown, *masks])


def _masks(facts: Row, tokenizer: str) -> list[str]:
    """Those of peers beside this package's."""
    lines = [
        [
            both["engine"],
            f"{both['cases']:,}",
            *(", ".join(map(duration, both[s])) for s in ("seconds", "seconds_of_this_package")),
        ]
        for both in facts["masks_of_both"]
        if both["tokenizer"] == tokenizer
    ]
    if not lines:
        return []
    columns = ["engine", "cases", "its masks p50, p99", "this package's"]
    said = "Masks, on the cases that the engine and this package both compiled and made masks of:"
    return [said, markdown(columns, lines)]


def _circumstances(facts: Row, own: list[Row]) -> str:
    cases, instances = f"{facts['cases']:,}", f"{facts['instances']:,}"
    parts = [
        f"`python -m experiments schemas` ({facts['minutes']} minutes): the {cases} schemas of "
        f"MaskBench with {instances} instances, each engine in a process of its own, `jsonschema` "
        "as the judge. An instance is written by `json.dumps` without white space."
    ]
    short = [engine["engine"] for engine in own if engine["cases"] < facts["cases"]]
    if short:
        each = " each" if len(short) > 1 else ""
        parts.append(
            f"{' and '.join(short)} had {facts['peer_seconds']:g} s{each} and did the first cases "
            "of one random order."
        )
    parts.append("[The tables](paper_figures/schemas.md) have the rest.")
    return " ".join(parts)


def _line(engine: Row) -> list[str]:
    share = engine["compiled"] / engine["cases"] if engine["cases"] else 0
    reasons = ", ".join(f"{why} {n}" for why, n in engine["reasons"].items())
    rejected = f"{engine['valid_rejected']:,} of {engine['valid']:,}"
    return [
        f"{engine['engine']} {engine['version']}".strip(),
        f"{engine['cases']:,}",
        f"{share:.1%}",
        f"{engine['invalid_accepted']:,} of {engine['invalid']:,}",
        f"{rejected}: {reasons}" if reasons else rejected,
        ", ".join(map(_duration, engine["compile_seconds"].values())),
    ]


# ---------------------------------------------------------------- the figure


COLORS = {
    OURS: "#00798c",
    "llguidance": "#edae49",
    "xgrammar": "#d1495b",
    "outlines_core": "#6a4c93",
}
PERCENTILES = [k / 200 for k in range(200)] + [1 - 10 ** (-k / 20) for k in range(47, 100)]
"""Shares of 0 to 0.99999, closer to one another near the end."""
TICKS = {0.5: "p50", 0.9: "p90", 0.99: "p99", 0.999: "p99.9", 0.9999: "p99.99"}
_WIDTH = 11
PANELS = {"compile, to the first mask": "to_first", "mask": "masks"}


def figures(rows: pd.DataFrame, manifest: Row) -> list[Figure]:
    """Percentiles of compiling and of masks, on log scales: a column per quantity, a row per
    tokenizer; none where nothing compiled."""
    cases = cases_of(rows, manifest)
    compiled = cases[cases["status"] == "compiled"] if len(cases) else cases
    if not len(compiled):
        return []
    tokenizers = compiled["tokenizer"].unique()
    figure, grid = panels(
        len(tokenizers), 2, (_WIDTH, 1 + 3.4 * len(tokenizers)), "both", sharex="col"
    )
    for row, tokenizer in zip(grid, tokenizers, strict=True):
        here = cases[cases["tokenizer"] == tokenizer]
        for axes, (what, field) in zip(row, PANELS.items(), strict=True):
            for _, unit in units(here):
                _draw(axes, seconds(unit, field), unit["engine"].iloc[0])
            _scale(axes)
            axes.legend(frameon=False, fontsize=9, loc="lower right")
            axes.set_title(f"{tokenizer}: {what}", loc="left", fontsize=11)
        row[0].set_ylabel("seconds (log scale)")
    for axes in grid[-1]:
        axes.set_xlabel("percentile")
    return [Figure("schemas", figure, in_lines(headline(cases), _WIDTH), note(manifest))]


def _scale(axes: Any) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks([1 / (1 - share) for share in TICKS], list(TICKS.values()))
    axes.minorticks_off()


def _draw(axes: Any, histogram: Histogram, engine: str) -> None:
    """Quantiles as far as there are values beyond them."""
    shares = [share for share in PERCENTILES if (1 - share) * histogram.n >= 1]
    if shares:
        points = [(1 / (1 - share), histogram.quantile(share)) for share in shares]
        style = {"color": COLORS.get(engine, "#888888"), "linewidth": 1.6}
        axes.plot(*zip(*points, strict=True), label=f"{engine} ({histogram.n:,})", **style)
        axes.plot(histogram.n, histogram.largest, "o", color=style["color"], markersize=4)


def headline(cases: pd.DataFrame) -> str:
    """What this package got wrong, and who is faster, with the numbers of these rows."""
    ours = [unit for _, unit in of_ours(cases)]
    if not ours:
        return "Compiling and masking, by percentile"
    through = max(texts("let_through")(unit) for unit in ours)
    rows = max(len(unit) for unit in ours)
    done = min(statuses("compiled")(unit) for unit in ours)
    said = f"{OURS} compiled {done:,} of {rows:,} cases and accepted {through} invalid instances"
    if not any(True for _ in beside_peers(cases)):
        return said
    masks = _listed(faster(cases, "masks")) or "no other engine"
    compiling = _listed(faster(cases, "to_first")) or "none"
    return f"{said}.\nOn the same cases {masks} masked faster; {compiling} compiled faster"


def _listed(names: Sequence[str]) -> str:
    """One, two and three."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def note(manifest: Row) -> str:
    """What the lines are."""
    config, jobs = manifest["config"], manifest.get("jobs", "?")
    return (
        f"{data_of(manifest)}, style {config['whitespace']}. In brackets: how many cases, or "
        "masks; a dot: the largest. Masks: along the tokenizer's own ids of valid texts.\n"
        f"Lines: each engine on the cases that it compiles; {jobs} processes at a time. Headline: "
        "on the cases that the engine and this package both finished; faster is who is so at p50, "
        "p90 and p99 with each tokenizer."
    )
