"""The rows of the experiment on masks as tables and a figure, and what the README says of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from experiments.engines.named import OURS, WITHIN
from experiments.run.executors import Row
from experiments.run.readme import wrapped
from experiments.run.report import Figure, Report, panels, without_paths
from experiments.run.tables import (
    Column,
    Group,
    Table,
    highest,
    markdown,
    quantiles,
    records,
    several,
    table,
    total,
    values,
)
from experiments.serving.masks_child import (
    BATCH,
    BATCHES,
    CONSTRAINT,
    CONSTRAINTS,
    ENGINE,
    KINDS,
    SCHEMA,
)
from experiments.show import duration, fixed, is_missing, scaled, three, whole
from experiments.statistics import quantile

TITLE = "Masks: the first one, and each one after it"
SHARES = (0.5, 0.9, 0.99, 1.0)
SHOWN = "llama-3"
"""The tokenizer whose numbers stand for all, where it was measured."""
QUANTILES = "p50 / p90 / p99 / max"
MEANINGS = (
    "canonical, within, lift: this package; canonical admits the tokenizer's own ids alone, within "
    f"is canonical with at most {WITHIN} ids to the end of the text, lift admits any ids",
    "times: the lesser of wall time and CPU time of the process, called from Python, into a packed "
    "buffer; of constraints the median over rounds at each prefix",
    "first mask: from the regex or the text of the schema; cold: each prefix of a text for the "
    "first time, the constraint new, the tokenizer as `bpe-automata warm NAME` prepares it; "
    "warm: a second session along the same texts (of llguidance the same one, reset, for its "
    "copies do not share what it has learned); advance: reading an id, the first time",
    "batch: 64 known prefixes in one call, wall time, median; wide: in "
    f"{', '.join(BATCHES['wide'])}; mixed: in {', '.join(BATCHES['mixed'])}; the engines' own "
    "calls with all cores (glrmask and outlines_core have none: one after the other)",
    "MB: 10^6 bytes resident; engine: what it added to a process that has Python, this package and "
    "the loaded tokenizer (xgrammar brings torch along); on top: what the most demanding "
    "constraint took",
    "own calls: llguidance unsafe_compute_mask_ptr, xgrammar fill_next_token_bitmask, glrmask "
    "fill_mask, outlines_core write_mask_into, this package Matcher.mask, batch_masks",
)


def units(answers: pd.DataFrame, *whats: str) -> Iterator[tuple[Any, Group]]:
    """The rows of each engine, of one tokenizer; whats: of these sorts alone."""
    chosen = answers[answers["what"].isin(whats)] if whats else answers
    yield from chosen.groupby("engine", sort=False)


def shared_texts(answers: pd.DataFrame) -> int:
    """Of one tokenizer: how many texts of schemas all engines read that came to them."""
    return max((total("shared_texts")(unit) for _, unit in units(answers)), default=0)


def shown_of(names: Iterable[str]) -> str:
    """Of these tokenizers, SHOWN or the first."""
    every = list(names)
    return SHOWN if SHOWN in every else every[0]


# ---------------------------------------------------------------- tables


def report(answers: pd.DataFrame, manifest: Row) -> Report:
    """Tables, figure and facts; answers: see `masks.answers_of`."""
    groups = dict([*answers.groupby("tokenizer", sort=False)]) if len(answers) else {}
    tables = [
        table
        for tokenizer, group in groups.items()
        for table in (
            _constraints(tokenizer, group, manifest),
            _schemas(tokenizer, group, manifest),
            _each(tokenizer, group, "Cold masks, µs: p50 / p99 / max", _cold, _notes(group)),
            _each(tokenizer, group, "To the first mask, ms", _first, ()),
        )
        if table.rows
    ]
    facts = {"tokenizers": {name: _facts(group) for name, group in groups.items()}}
    tables += _refused(answers)
    return Report(TITLE, tables, figures(groups), facts, _wrong(answers))


def _quantiles(name: str, field: str, factor: float = 1.0) -> Column:
    return Column(name, quantiles(field, *SHARES), several(scaled(factor)), "")


def _constraints(tokenizer: str, answers: pd.DataFrame, manifest: Row) -> Table:
    columns = [
        Column("engine", "label"),
        Column("answered", lambda unit: _answered(unit, CONSTRAINT)),
        Column("texts\nrefused", total("stopped")),
        _quantiles(f"first mask, ms\n{QUANTILES}", "first", 1e-3),
        *(_quantiles(f"{kind}, µs\n{QUANTILES}", kind) for kind in KINDS),
        *(Column(f"batch, µs\n{name}", _batch(name), three) for name in BATCHES),
        Column("engine\nMB", highest("engine_mb"), fixed(0)),
        Column("on top\nMB", highest("peak_mb"), fixed(0), "0"),
    ]
    config = manifest["config"]
    notes = [
        f"{config['rounds']} rounds; an answer of more than {config['seconds']:g} s, or of more "
        f"than {config['mb']:g} MB, is a refusal; after {config['patience']:g} s an engine is "
        "asked no more; what stands right of `answered` is over what an engine answered",
        *MEANINGS,
    ]
    lines = units(answers, ENGINE, CONSTRAINT, BATCH)
    return table(f"Constraints, {tokenizer}", lines, columns, notes)


def _answered(unit: Group, what: str) -> str:
    asked = int((unit["what"] == what).sum())
    return f"{len(values(unit, 'first'))} of {asked}"


def _batch(name: str) -> Callable[[Group], float | None]:
    return lambda unit: highest("us")(unit[unit["name"] == f"{BATCH}: {name}"])


def _schemas(tokenizer: str, answers: pd.DataFrame, manifest: Row) -> Table:
    title = f"Schemas of MaskBench, {tokenizer}"
    if manifest.get("no_schemas"):
        notes = [without_paths(str(manifest["no_schemas"]))]
        return Table(title, ["engine"], [["none were measured"]], notes)
    columns = [
        Column("engine", "label"),
        Column("compiled", lambda unit: _answered(unit, SCHEMA)),
        Column("texts\nrefused", _stopped_of),
        Column("masks", lambda unit: len(values(unit, "shared_cold")), whole),
        _quantiles(f"first mask, ms\n{QUANTILES}", "shared_first", 1e-3),
        *(_quantiles(f"{kind}, µs\n{QUANTILES}", f"shared_{kind}") for kind in KINDS),
        _quantiles("all that it answers:\nfirst mask, ms", "first", 1e-3),
        _quantiles("cold, µs", "cold"),
        Column("held", highest("held"), whole, ""),
        Column("process\nMB", lambda unit: (_held(unit) or [None])[-1], fixed(0), ""),
        Column("of which\nheld", _held_alone, fixed(0), ""),
    ]
    config = manifest["config"]
    notes = [
        f"{config['n']} of the {manifest['schemas']} schemas that have a valid instance, in a "
        f"random order; an engine begins none after {config['patience']:g} s; one round",
        f"masks, and the four columns right of it: over the {shared_texts(answers)} texts which "
        "every engine that came to their schema compiled and read to the end",
        "texts refused: valid instances as `json.dumps` writes them, of which an engine does not "
        "let the tokenizer's own ids pass (this package: where the properties come in another "
        "order than the schema's)",
        "process: resident once so many schemas were kept alive together, their texts read",
    ]
    return table(title, units(answers, ENGINE, SCHEMA), columns, notes)


def _stopped_of(unit: Group) -> str:
    stopped = total("stopped")(unit)
    return f"{stopped} of {stopped + total('passed')(unit)}"


def _held(unit: Group) -> list[Any] | None:
    """[most schemas that were kept alive together, MB of the process then]."""
    most = highest("held")(unit)
    if most is None:
        return None
    return [most, unit.loc[unit["held"] == most, "held_mb"].iloc[0]]


def _held_alone(unit: Group) -> float | None:
    if (held := _held(unit)) is None:
        return None
    before = highest("process_mb")(unit) + highest("engine_mb")(unit)
    return max(0.0, held[1] - before)


def _each(
    tokenizer: str,
    answers: pd.DataFrame,
    title: str,
    cell: Callable[[Row], str],
    notes: Sequence[str],
) -> Table:
    """A line for each constraint, a column for each engine."""

    def of(engine: str) -> Callable[[Group], str]:
        def shown(group: Group) -> str:
            own = records(group[group["engine"] == engine])
            if not own:
                return "not asked"
            return "refused" if not is_missing(own[0].get("refused")) else cell(own[0])

        return shown

    columns = [Column("constraint", "name")]
    columns += [Column(engine, of(engine)) for engine in answers["engine"].unique()]
    lines = answers[answers["what"] == CONSTRAINT].groupby("name", sort=False)
    return table(f"{title}, {tokenizer}", lines, columns, notes)


def _notes(answers: pd.DataFrame) -> list[str]:
    names = answers[answers["what"] == CONSTRAINT]["name"].unique()
    return [
        "of fewer than 100 masks, p99 is the longest; *: a text was stopped on the way",
        *(
            f"{name}: `{case.source['regex']}`"
            for name, case in CONSTRAINTS.items()
            if name in {*names} and "regex" in case.source
        ),
    ]


def _cold(answer: Row) -> str:
    cold = answer["cold"]
    if not cold:
        return "refused" if answer["stopped"] else ""
    shown = " / ".join(three(quantile(cold, share)) for share in (0.5, 0.99, 1.0))
    return f"{shown} *" if answer["stopped"] else shown


def _first(answer: Row) -> str:
    return three(answer["first"] / 1e3)


def _refused(answers: pd.DataFrame) -> list[Table]:
    """What an engine did not compile in time, and texts that it does not let pass."""
    found = []
    for row in records(answers):
        where = {"engine": row["engine"], "where": f"{row['tokenizer']}: {row['name']}"}
        if not is_missing(row.get("refused")):
            found.append(where | {"why": without_paths(row["refused"])})
        elif row.get("stopped"):
            found.append(where | {"why": "texts stopped on the way"})
    columns = [
        Column("engine", "engine"),
        Column("constraints and schemas", lambda group: _few([*group["where"]])),
        Column("why", "why"),
    ]
    if not found:
        return []
    groups = pd.DataFrame(found).groupby(["engine", "why"], sort=False)
    return [table("What was refused", groups, columns)]


def _few(names: Sequence[str]) -> str:
    shown = ", ".join(names[:8])
    return f"{shown} and {len(names) - 8} more" if len(names) > 8 else shown


def _wrong(answers: pd.DataFrame) -> list[str]:
    """This package may refuse no constraint, unless it takes too long, and stop no text of one."""
    found = []
    for row in records(answers):
        if row["engine"] in OURS and row["what"] == CONSTRAINT:
            head = f"{row['engine']}, {row['tokenizer']}, {row['name']}"
            why = row.get("refused") or ""
            if why and not why.startswith("over "):
                found.append(f"{head}: {why}")
            elif row.get("stopped"):
                found.append(f"{head}: a text was stopped")
    return found


# ---------------------------------------------------------------- the README


def _at_shares(group: Group, field: str) -> list[float | None]:
    found = quantiles(field, *SHARES)(group)
    return [*found] if found else [None] * len(SHARES)


def _facts(answers: pd.DataFrame) -> list[Row]:
    """Of one tokenizer: microseconds at SHARES by engine; None where there is nothing."""
    return [_facts_of(str(engine), unit, shared_texts(answers)) for engine, unit in units(answers)]


def _facts_of(engine: str, unit: Group, texts: int) -> Row:
    constraints = unit[unit["what"] == CONSTRAINT].dropna(subset=["first"])
    schemas = unit[unit["what"] == SCHEMA].dropna(subset=["first"])
    batches = records(unit[unit["what"] == BATCH])
    return {
        "name": unit["label"].iloc[0],
        "engine": engine,
        "answered": len(constraints),
        **{field: _at_shares(constraints, field) for field in ("first", *KINDS)},
        "schemas": {
            "came": len(schemas),
            "texts": texts,
            "first": _at_shares(schemas, "shared_first"),
            "cold": _at_shares(schemas, "shared_cold"),
            "cold_all": _at_shares(schemas, "cold"),
        },
        "each": {
            str(name): _at_shares(group, "cold")
            for name, group in constraints.groupby("name", sort=False)
        },
        "batches": {
            row["name"].removeprefix(f"{BATCH}: "): None if is_missing(row.get("us")) else row["us"]
            for row in batches
        },
        "engine_mb": highest("engine_mb")(unit),
        "held": _held(unit),
    }


def readme(facts: Row) -> dict[str, str]:
    """A line per engine, of one tokenizer: all of it, and in short."""
    every = facts["tokenizers"]
    if not every:
        return {}
    tokenizer = shown_of(every)
    return {
        "masks": _whole(tokenizer, every[tokenizer]),
        "masks in short": _short(every[tokenizer]),
    }


def _short(lines: Sequence[Row]) -> str:
    columns = {
        "engine": lambda one: one["name"],
        "first mask, ms": lambda one: _at(one["first"], (0,), 1e-3),
        "new mask, µs": lambda one: _at(one["cold"], (0,)),
        "99 of 100 within": lambda one: _at(one["cold"], (2,)),
        "known mask, µs": lambda one: _at(one["warm"], (0,)),
    }
    return _markdown(columns, lines)


def _whole(tokenizer: str, lines: Sequence[Row]) -> str:
    columns = {
        "engine": lambda one: one["name"],
        "first mask, ms": lambda one: _at(one["first"], (0, 3), 1e-3),
        "cold, µs": lambda one: _at(one["cold"], (0, 2, 3)),
        "warm, µs": lambda one: _at(one["warm"], (0, 2)),
        "64 at once, µs": lambda one: _at([one["batches"].get("wide")], (0,)),
        "schemas: first mask, ms": lambda one: _at(one["schemas"]["first"], (0, 2), 1e-3),
        "schemas: cold, µs": lambda one: _at(one["schemas"]["cold"], (0, 2, 3)),
        "MB": lambda one: f"{one['engine_mb']:.0f}",
        "with schemas kept": lambda one: (
            f"{one['held'][1]:,.0f} ({one['held'][0]})" if one["held"] else "-"
        ),
    }
    n, texts = max(one["answered"] for one in lines), lines[0]["schemas"]["texts"]
    told = wrapped(
        f"`python -m experiments masks`, here with {tokenizer} ([all](paper_figures/masks.md)): "
        f"{n} constraints, and {texts} texts of MaskBench schemas. *First mask*: from the regex or "
        "the schema, p50 and max, of schemas p50 and p99; *cold*: each prefix of a text for the "
        "first time, the constraint new, the tokenizer prepared by `bpe-automata warm`, p50, p99 "
        "and max; *warm*: again, p50 and p99; *64 at once*: a batch of known wide prefixes; *MB*: "
        "what the engine adds to a process; *with schemas kept*: that process, with so many "
        "compiled schemas alive. Engines that take long "
        "are asked no more after some seconds, and have fewer."
    )
    return f"{told}\n\n{_markdown(columns, lines)}"


def _markdown(columns: Mapping[str, Callable[[Row], str]], lines: Sequence[Row]) -> str:
    return markdown([*columns], [[cell(one) for cell in columns.values()] for one in lines])


def _at(us: Sequence[float | None], which: Sequence[int], factor: float = 1.0) -> str:
    picked = [us[k] for k in which]
    return ", ".join(three(v * factor) for v in picked if v is not None) or "-"


# ---------------------------------------------------------------- the figure


STYLE: dict[str, tuple[str, str, float]] = {
    "outlines_core": ("outlines-core", "#6a4c93", 1.4),
    "xgrammar": ("xgrammar", "#d1495b", 1.4),
    "glrmask": ("glrmask", "#5b5b5b", 1.4),
    "llguidance": ("llguidance", "#edae49", 1.8),
    "lift": ("this package: any ids (lift)", "#7fc4cc", 1.8),
    "canonical": ("this package: own ids (canonical)", "#00798c", 2.6),
}
"""Name, color, width; later ones are drawn on top."""
TICKS = {1: "0", 2: "p50", 10: "p90", 100: "p99", 1000: "p99.9"}
PANELS = {
    "a cold mask of a constraint": (CONSTRAINT, "cold"),
    "a cold mask of a schema": (SCHEMA, "shared_cold"),
    "from a schema to its first mask": (SCHEMA, "shared_first"),
}
"""A row of panels each: of what, and which microseconds."""


def figures(groups: Mapping[str, pd.DataFrame]) -> list[Figure]:
    """How many take longer than so much: a column for each tokenizer, a line for each engine."""
    if not groups:
        return []
    every = pd.concat(groups.values())
    has_schemas = ((every["what"] == SCHEMA) & every["first"].notna()).any()
    shown = [(label, *of) for label, of in PANELS.items() if has_schemas or of[0] == CONSTRAINT]
    size, heights = (1.2 + 3.1 * len(groups), 1.7 + 2.3 * len(shown)), [0.2, *(1 for _ in shown)]
    figure, grid = panels(1 + len(shown), len(groups), size, "both", height_ratios=heights)
    for line, (label, what, field) in zip(grid[1:], shown, strict=True):
        for axes, (tokenizer, answers) in zip(line, groups.items(), strict=True):
            own = {str(e): values(unit, field) for e, unit in units(answers, what)}
            for engine in STYLE:
                if engine in {*answers["engine"]}:
                    _line(axes, own.get(engine, []), engine)
            axes.set_title(tokenizer, loc="left", fontsize=10)
            axes.set_xlabel(label, fontsize=9)
        _scale(line)
    _legend(grid[0])
    n = max(fact["answered"] for group in groups.values() for fact in _facts(group))
    note = (
        f"Cumulative: p99 is what 99 of 100 do not exceed; logarithmic. {n} constraints, each "
        "engine over those that it answers; schemas of MaskBench, over texts that all engines "
        "which came to them read. Cold: each prefix of a text for the first time, the constraint "
        "new, the tokenizer known. Headline: the engines that answered all constraints."
    )
    return [Figure("masks", figure, headline(groups), note)]


def headline(groups: Mapping[str, pd.DataFrame]) -> str:
    """The message, with the numbers of one tokenizer, of the engines that answered every
    constraint."""
    tokenizer = shown_of(groups)
    engines = _facts(groups[tokenizer])
    n = max(one["answered"] for one in engines)
    p99 = {
        one["engine"]: one["cold"][SHARES.index(0.99)]
        for one in engines
        if one["engine"] in STYLE and one["answered"] == n
    }
    shown = [f"{duration(us / 1e6)} {name}" for name, us in p99.items() if us is not None]
    told = f"Of 100 masks at new prefixes of constraints ({tokenizer}), 99 take at most"
    return f"{told}\n{', '.join(shown)}"


def _line(axes: Any, us: list[float], engine: str) -> None:
    """Each value, by the share of those that are not smaller."""
    name, color, width = STYLE[engine]
    n, ordered = len(us), sorted(us)
    heights = [n / (n - k) for k in range(n)]
    axes.plot(ordered, heights, color=color, linewidth=width, label=name, drawstyle="steps-post")


def _scale(line: Sequence[Any]) -> None:
    """Panels side by side have the same scale."""
    for axes in line:
        axes.set_xscale("log")
        axes.set_yscale("log")
    low, high = zip(*(axes.get_xlim() for axes in line), strict=True)
    top = max(axes.get_ylim()[1] for axes in line)
    for axes in line:
        axes.set_yticks(list(TICKS), list(TICKS.values()))
        axes.minorticks_off()
        axes.set_xlim(min(low), max(high))
        axes.set_ylim(0.9, top)
        axes.xaxis.set_major_formatter(lambda us, _: _power(us))
        axes.tick_params(axis="x", labelsize=8)


def _power(us: float) -> str:
    """Microseconds, a power of ten, with a unit."""
    factor, unit = (1e6, "s") if us >= 1e5 else (1e3, "ms") if us >= 100 else (1, "µs")
    return f"{us / factor:.10g} {unit}"


def _legend(line: Sequence[Any]) -> None:
    """In the room above the panels."""
    for axes in line:
        axes.axis("off")
    for name, color, width in reversed(STYLE.values()):
        line[0].plot([], [], color=color, linewidth=width, label=name)
    place = {"loc": "center left", "bbox_to_anchor": (0, 0.5), "borderaxespad": 0}
    legend = line[0].legend(ncols=3, frameon=False, fontsize=9, **place)
    legend.set_in_layout(False)
