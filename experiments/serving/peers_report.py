"""The tables and the figure of peers: what each engine costs, and what it lets pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle
from typing import Any

import pandas as pd

from experiments.engines.named import OURS
from experiments.run.executors import FAILURE, Row
from experiments.run.files import require
from experiments.run.readme import wrapped
from experiments.run.report import Figure, Report, panels, without_paths
from experiments.run.tables import (
    Column,
    Group,
    Table,
    highest,
    markdown,
    part,
    table,
    total,
    values,
)
from experiments.run.tables import median as median_of
from experiments.show import duration, fixed, is_missing, scaled, three, whole
from experiments.statistics import clopper_pearson, median, quantile

TITLE = "Engines side by side: what masks cost, and which ids they admit"
EXACT = ("canonical", "explicit")
LISTED = "explicit"
"""It writes out what only small languages can be written out of: what it cannot answer is not taken
from the others, and its medians are over what it can."""
_TIMES = (
    "canonical: the tokenizer's own ids; explicit: the same, written out while compiling; lift: "
    "any ids; within: canonical with a limit of ids",
    "came up: seconds from a loaded tokenizer to a first mask. A peer's own packages are imported "
    "on this clock and are in its MB; Python, numpy, numba and this package are there before, in "
    "the process of every engine. MB: 10^6 bytes resident: of the process before, what the engine "
    "added, and what the most demanding constraint took on top",
    "compile, first mask: medians over constraints of each one's median; cold masks: along the own "
    "ids of texts of the language; warm: again, in new sessions; median and 99 % over all masks",
    "genlm-control answers with lists of ids: writing these as bits is on its clock",
    "one process for each engine and tokenizer, one thread, called from Python, which takes at "
    "least a microsecond",
)
_ADMITS = (
    "own ids blocked: texts of the language of whose own ids one, or the end, was not allowed; "
    "completed: other texts that could be read to the end",
    "other ids admitted: sequences that spell a text of the language, are not `encode` of it, and "
    "could be read to the end",
    "small languages, ids summed over all prefixes, by `bpe_automata.reference`: own ids missing, "
    "ids that lead to no text, and other ids; prefixes: how many could be read",
)


# ---------------------------------------------------------------- rows


def asked_of(rows: Sequence[Row], versions: dict[str, str]) -> pd.DataFrame:
    """The rows of engines that came up, failures left out, each with

    name, label: the engine with its version, and with the tokenizer too; failed: how many
    constraints of this engine and tokenizer are failures; blocked, completed: how many texts;
    to_first: median seconds from the regex to its first mask; shared_...: seconds and MB of
    constraints that all engines but LISTED answered (of engines that answered any), else missing.
    """
    came_up = {(row["engine"], row["tokenizer"]) for row in rows if "ready" in row}
    exams = [row for row in rows if "constraint" in row]
    failed = Counter((row["engine"], row["tokenizer"]) for row in exams if row.get(FAILURE))
    common, found = _common(exams), list[Row]()
    for row in rows:
        unit = (row.get("engine"), row.get("tokenizer"))
        if row.get(FAILURE) or unit not in came_up:
            continue
        name = " ".join(filter(None, (row["engine"], versions.get(row["engine"]))))
        made: Row = {"name": name, "label": f"{name}, {row['tokenizer']}", "failed": failed[unit]}
        if "constraint" in row:
            made |= {what: len(row[what]) for what in ("blocked", "completed")}
            both = zip(row["compile"], row["first"], strict=True)
            times = {what: median(row[what]) for what in ("compile", "first")}
            times |= {"to_first": median([compiling + first for compiling, first in both])}
            times |= {"cold": row["cold"], "warm": row["warm"], "peak": row["peak_mb"]}
            made["to_first"] = times["to_first"]
            if row["constraint"] in common[row["tokenizer"]]:
                made |= {f"shared_{what}": value for what, value in times.items()}
        found.append(row | made)
    return pd.DataFrame(found, dtype=object)


def _common(exams: Sequence[Row]) -> dict[str, set[str]]:
    answered: dict[str, dict[str, set[str]]] = {}
    for row in exams:
        if not row.get(FAILURE):
            engines = answered.setdefault(row["tokenizer"], {})
            engines.setdefault(row["engine"], set()).add(row["constraint"])
    found = {}
    for tokenizer, engines in answered.items():
        listed = engines.pop(LISTED, set())
        found[tokenizer] = set.intersection(*engines.values()) if engines else listed
    return found


def units(asked: pd.DataFrame) -> Iterator[Group]:
    """The rows of each engine and tokenizer."""
    if len(asked):
        yield from (group for _, group in asked.groupby(["engine", "tokenizer"], sort=False))


def keeps(unit: Group) -> bool:
    """Were all of the tokenizer's own ids allowed, where they were looked for?"""
    return not any(total(what)(unit) for what in ("blocked", "missing"))


def exact(asked: pd.DataFrame) -> list[str]:
    """Engines that keep to the tokenizer's own ids, with every tokenizer: they allow all of them,
    and admitted nothing else that was offered."""
    found: dict[str, bool] = {}
    for unit in units(asked):
        if total("offered")(unit):
            engine = unit["engine"].iloc[0]
            is_exact = keeps(unit) and not total("admitted")(unit)
            found[engine] = found.get(engine, True) and is_exact
    return [engine for engine, is_exact in found.items() if is_exact]


# ---------------------------------------------------------------- tables


def render(rows: Sequence[Row], manifest: Row) -> Report:
    """Tables, figure and facts of the rows."""
    asked = asked_of(rows, manifest.get("peers", {}))
    tables = [_times(asked), _admits(asked), *_unanswered(rows), *_first_masks(asked)]
    facts = {"asked": [_facts(unit) for unit in units(asked)], "exact": exact(asked)}
    return Report(TITLE, tables, figures(asked), facts, [*wrong(asked), *lost(rows)])


def wrong(asked: pd.DataFrame) -> list[str]:
    """What must not be said of the engines of this package."""
    names = ("blocked", "completed", "missing", "impossible", "unreached")
    return [
        f"{unit['label'].iloc[0]}: {name} {n}"
        for unit in units(asked)
        if (engine := unit["engine"].iloc[0]) in OURS
        for name in (*names, *(("admitted", "other") if engine in EXACT else ()))
        if (n := total(name)(unit))
    ]


def lost(rows: Sequence[Row]) -> list[str]:
    """What the engines of this package did not answer. An automaton may be too large for `explicit`
    to write out; it may not crash."""
    return [
        f"{row['key']}: {why}"
        for row in rows
        if (why := row.get(FAILURE)) and row.get("engine") in OURS
        if row["engine"] != LISTED or why.startswith("crashed")
    ]


def _times(asked: pd.DataFrame) -> Table:
    over = (
        "answered: constraints, of all; what stands right of it is over the n = "
        f"{medians_over(asked)} that all engines answered (of engines that answered any; "
        f"{LISTED} is over those of them that it answered, for it can only answer small ones)"
    )
    columns = [
        Column("engine, tokenizer", "label"),
        Column("came up\ns", highest("ready"), three),
        Column("process before\nMB", highest("process_mb"), fixed(0)),
        Column("engine\nMB", highest("engine_mb"), fixed(0)),
        Column("answered", lambda unit: f"{_answered(unit)} of {_answered(unit, True)}"),
        Column("compile\nms", median_of("shared_compile"), scaled(1e3), ""),
        Column("first mask\nms", median_of("shared_first"), scaled(1e3), ""),
        Column("cold µs\nmedian", median_of("shared_cold"), scaled(1e6), ""),
        Column("\n99 %", _p99("shared_cold"), scaled(1e6), ""),
        Column("warm µs\nmedian", median_of("shared_warm"), scaled(1e6), ""),
        Column("\n99 %", _p99("shared_warm"), scaled(1e6), ""),
        Column("on top\nMB", highest("shared_peak"), fixed(0), ""),
    ]
    lines = ((None, unit) for unit in units(asked))
    return table("Times and memory", lines, columns, (over, *_TIMES))


def _answered(unit: Group, failures_too: bool = False) -> int:
    answered = len(values(unit, "constraint"))
    return answered + (int(unit["failed"].iloc[0]) if failures_too else 0)


def _p99(field: str) -> Callable[[Group], float]:
    return lambda unit: quantile(values(unit, field), 0.99)


def _admits(asked: pd.DataFrame) -> Table:
    columns = [
        Column("engine, tokenizer", "label"),
        Column("own ids\nblocked", part("blocked", "inside")),
        Column("outside\ncompleted", part("completed", "outside")),
        Column("other ids\nadmitted", part("admitted", "offered")),
        Column("own ids\nmissing", total("missing"), whole),
        Column("ids to\nno text", total("impossible"), whole),
        Column("other\nids", total("other"), whole),
        Column("prefixes", _prefixes),
    ]
    lines = ((None, unit) for unit in units(asked))
    return table("What is allowed", lines, columns, (*_ADMITS, *_named(asked)))


def _prefixes(unit: Group) -> str:
    prefixes = total("places")(unit)
    return f"{prefixes - total('unreached')(unit)} of {prefixes}"


def _named(asked: pd.DataFrame) -> list[str]:
    """Which constraints the texts that went wrong are of."""
    found: dict[str, list[str]] = {}
    for unit in units(asked):
        for what in ("blocked", "completed"):
            if what in unit:
                for row in unit[unit[what].fillna(0) > 0].itertuples():
                    where = f"{row.tokenizer}: {row.constraint}"
                    found.setdefault(f"{row.engine}, {what}", []).append(where)
    return [f"{engine}: {', '.join(where)}" for engine, where in found.items()]


def _unanswered(rows: Sequence[Row]) -> list[Table]:
    failed = [row for row in rows if row.get(FAILURE)]
    if not failed:
        return []
    shown = pd.DataFrame(
        {
            "head": ", ".join(filter(None, (row.get("engine"), row.get("tokenizer")))),
            "constraint": row.get("constraint", "all"),
            "why": without_paths(row[FAILURE]),
        }
        for row in failed
    )
    columns = [
        Column("engine, tokenizer", "head"),
        Column("constraints", lambda group: ", ".join(group["constraint"])),
        Column("why", "why"),
    ]
    note = "all: the engine did not come up"
    groups = shown.groupby(["head", "why"], sort=False)
    return [table("What was not answered", groups, columns, [note])]


def _first_masks(asked: pd.DataFrame) -> list[Table]:
    """One for each tokenizer, with a column for each engine."""
    made = []
    for tokenizer, group in asked.groupby("tokenizer", sort=False) if len(asked) else ():
        columns = [Column("constraint", "constraint")]
        for engine in group["engine"].unique():
            columns.append(Column(engine, _to_first_of(engine), scaled(1e3), ""))
        note = "medians; compiling included; empty where it was refused or not in time"
        title = f"From a regex to its first mask, ms, {tokenizer}"
        exams = group.dropna(subset=["constraint"]) if "constraint" in group else group[:0]
        lines = exams.groupby("constraint", sort=False) if len(exams) else ()
        made.append(table(title, lines, columns, [note]))
    return made


def _to_first_of(engine: str) -> Callable[[Group], Any]:
    return lambda group: median(values(group[group["engine"] == engine], "to_first"))


def _facts(unit: Group) -> Row:
    """Numbers for the README; None for what there is none of."""
    times = {"to_first_mask_ms": 1e3 * median(values(unit, "shared_to_first"))}
    for name in ("cold", "warm"):
        seconds = values(unit, f"shared_{name}")
        times[f"{name}_us"] = 1e6 * median(seconds)
        times[f"{name}_99_us"] = 1e6 * quantile(seconds, 0.99)
    sums = ("blocked", "inside", "completed", "admitted", "offered")
    return {
        "name": unit["name"].iloc[0],
        "tokenizer": unit["tokenizer"].iloc[0],
        **{name: None if is_missing(value) else value for name, value in times.items()},
        "constraints": len(values(unit, "shared_compile")),
        "engine_mb": highest("engine_mb")(unit),
        **{name: total(name)(unit) for name in sums},
    }


def readme(facts: Row) -> str:
    """What the README says of it: the first tokenizer's lines. What masks cost it says elsewhere,
    of fewer engines."""
    asked = facts["asked"]
    if not asked:
        return ""
    tokenizer = asked[0]["tokenizer"]
    lines = [
        [
            found["name"],
            f"{found['blocked']} of {found['inside']}",
            f"{found['admitted']} of {found['offered']}",
        ]
        for found in asked
        if found["tokenizer"] == tokenizer
    ]
    told = wrapped(
        f"`python -m experiments peers`, tokenizer {tokenizer} ([times](paper_figures/peers.md)): "
        "*own ids blocked*: texts of the language whose `encode` an engine does not let through; "
        "*others*: sequences of ids that spell such a text and are not its `encode`, of those "
        "offered, which it lets through."
    )
    return f"{told}\n\n{markdown(('engine', 'own ids blocked', 'others'), lines)}"


def medians_over(asked: pd.DataFrame) -> str:
    """Over how many constraints medians are, by tokenizer where that differs."""
    found: dict[str, int] = {}
    for unit in units(asked):
        tokenizer, is_listed = unit["tokenizer"].iloc[0], unit["engine"].iloc[0] == LISTED
        if _answered(unit) and (not is_listed or tokenizer not in found):
            found[tokenizer] = len(values(unit, "shared_compile"))
    if len(set(found.values())) < 2:
        return str(next(iter(found.values()), 0))
    return ", ".join(f"{n} ({tokenizer})" for tokenizer, n in found.items())


# ---------------------------------------------------------------- the figure


ADMITS, KEEPS = "#d1495b", "#00798c"
MARKERS = "os^Dvp"
SPREAD = 0.6
"""What the tokenizers of an engine share, where engines are 1 apart."""


Mark = tuple[float, float, float]
"""A value, and from where to where its line goes."""


def figures(asked: pd.DataFrame) -> list[Figure]:
    """The one figure, with a line for each engine; none where no engine was asked anything."""
    shown = [u for u in units(asked) if values(u, "shared_cold") and total("offered")(u)]
    if not shown:
        return []
    names = list(dict.fromkeys(unit["name"].iloc[0] for unit in shown))
    size = (10.5, 1.9 + 0.42 * len(names))
    figure, ((*axes,),) = panels(1, 3, size, "x", sharey=True, width_ratios=(1, 1, 0.8))
    _panel(axes[0], shown, _to_first, "from a regex to its first mask", log=True)
    _panel(axes[1], shown, _at_new, "a mask at a new prefix", log=True)
    _panel(axes[2], shown, _admitted, "other ids that are admitted, %", log=False)
    axes[0].set_yticks(range(len(names)), names)
    axes[0].invert_yaxis()
    _legend(axes[2], _markers(shown))
    every = pd.concat(shown)
    note = (
        f"n = {medians_over(every)} constraints that all engines answered; "
        f"{total('offered')(every):,} sequences "
        "of ids offered (of all constraints that an engine answered), which spell a text of the "
        f"language and are not `encode` of it. {LISTED}: over those that it answered.\n"
        "Marks: medians over constraints, over masks, and shares; lines: least to most, median to "
        "99th of 100, 95 % intervals (Clopper and Pearson).\n"
        "Hollow: blocks some of the tokenizer's own ids. Times on log scales. This package: "
        f"{', '.join(e for e in OURS if e in {*every['engine']})}."
    )
    return [Figure("peers", figure, headline(every), note)]


def headline(asked: pd.DataFrame) -> str:
    """The message, with the names of these rows."""
    n, keeping = asked["engine"].nunique(), exact(asked)
    if not keeping:
        return f"Each of {n} engines admits ids that are not the tokenizer's, or blocks some"
    return (
        f"{len(keeping)} of {n} engines admitted the tokenizer's own ids, all of them and "
        f"none else:\n{', '.join(keeping)}"
    )


def _to_first(unit: Group) -> Mark:
    each = values(unit, "shared_to_first")
    return median(each), min(each), max(each)


def _at_new(unit: Group) -> Mark:
    middle = median_of("shared_cold")(unit)
    return middle, middle, _p99("shared_cold")(unit)


def _admitted(unit: Group) -> Mark:
    admitted, offered = total("admitted")(unit), total("offered")(unit)
    low, high = clopper_pearson(admitted, offered, 0.05)
    return 100 * admitted / offered, 100 * low, 100 * high


def _markers(shown: Sequence[Group]) -> dict[str, str]:
    tokenizers = dict.fromkeys(unit["tokenizer"].iloc[0] for unit in shown)
    return dict(zip(tokenizers, cycle(MARKERS), strict=False))


def _panel(
    axes: Any, shown: Sequence[Group], mark: Callable[[Group], Mark], label: str, log: bool
) -> None:
    names = list(dict.fromkeys(unit["name"].iloc[0] for unit in shown))
    markers = _markers(shown)
    for unit in shown:
        tokenizer, (value, low, high) = unit["tokenizer"].iloc[0], mark(unit)
        step = list(markers).index(tokenizer) - (len(markers) - 1) / 2
        y = names.index(unit["name"].iloc[0]) + SPREAD * step / len(markers)
        color = ADMITS if total("admitted")(unit) else KEEPS
        axes.plot([low, high], [y, y], color=color, linewidth=1)
        style = {"color": color, "marker": markers[tokenizer], "s": 26, "zorder": 3}
        axes.scatter([value], [y], **style | ({} if keeps(unit) else {"facecolor": "white"}))
    if log:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(require("matplotlib.ticker").LogLocator(base=100))
        axes.xaxis.set_major_formatter(lambda seconds, _: duration(seconds))
        axes.minorticks_off()
    axes.set_xlabel(label)
    axes.tick_params(axis="y", length=0)


def _legend(axes: Any, markers: dict[str, str]) -> None:
    for label, color in (("admits some", ADMITS), ("admits none", KEEPS)):
        axes.plot([], [], color=color, linewidth=4, label=label)
    for tokenizer, marker in markers.items():
        axes.scatter([], [], color="#888888", marker=marker, label=tokenizer)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8, frameon=False)
