"""The rows of the experiment on masks as tables, and what the README says of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from experiments.run.executors import Row
from experiments.run.readme import wrapped
from experiments.run.report import Report, without_paths
from experiments.run.statistics import quantile
from experiments.run.tables import Table, markdown
from experiments.serving.masks_cases import BATCHES, REGEXES
from experiments.serving.masks_figure import figures
from experiments.serving.masks_numbers import (
    SHARES,
    Answer,
    Measured,
    all_measured,
    by_tokenizer,
    firsts,
    pooled,
    quantiles,
    shared,
    shown_of,
)
from experiments.shared.more_engines import OURS, WITHIN

QUANTILES = "p50 / p90 / p99 / max"
MEANINGS = (
    "canonical, within, lift: of this package; canonical admits nothing but the tokenizer's own "
    f"ids, within is canonical with at most {WITHIN} ids to the end of the text",
    "times: the lesser of wall time and CPU time of the process (all its threads), called from "
    "Python, into a packed buffer; of constraints the median over rounds at each place",
    "first mask: from the regex or the text of the schema; cold: each place of a text for the "
    "first time, the constraint new, the tokenizer as `bpe-automata warm NAME` prepares it; "
    "warm: a second session of the same constraint along the same texts (of llguidance the same "
    "one, reset, for its copies do not share what it has learned); advance: reading an id, the "
    "first time",
    "batch: 64 known places in one call, wall time, median; wide: in "
    f"{', '.join(BATCHES['wide'])}; mixed: in {', '.join(BATCHES['mixed'])}; the engines' own "
    "calls for batches with all cores (glrmask and outlines_core have none: one after the other)",
    "MB: 10^6 bytes resident; engine: what it added to a process that has Python, this package and "
    "the loaded tokenizer (xgrammar brings torch along); on top: what the most demanding "
    "constraint took at its highest",
    "own calls: llguidance unsafe_compute_mask_ptr, xgrammar fill_next_token_bitmask, glrmask "
    "fill_mask, outlines_core write_mask_into, this package Matcher.mask, batch_masks; addresses "
    "and tensors of the buffer are made beforehand",
)


def render(rows: Sequence[Row], manifest: Row) -> Report:
    """Tables, figure and facts of the rows."""
    groups = by_tokenizer(all_measured(rows, manifest.get("peers", {})))
    tables = [
        table
        for tokenizer, measured in groups.items()
        for table in (
            _constraints(tokenizer, measured, manifest),
            _schemas(tokenizer, measured, manifest),
            _each(tokenizer, measured, "Cold masks, µs: p50 / p99 / max", _cold),
            _each(tokenizer, measured, "To the first mask, ms", _first),
        )
        if table.rows
    ]
    facts = {"tokenizers": {name: _facts(measured) for name, measured in groups.items()}}
    named = _named(manifest)
    wrong = [
        line for measured in groups.values() for one in measured for line in _wrong(one, named)
    ]
    title = "Masks: the first one, and each one after it"
    return Report(title, [*tables, *_refused(groups)], figures(groups, manifest), facts, wrong)


def _constraints(tokenizer: str, measured: Sequence[Measured], manifest: Row) -> Table:
    columns = ["engine", "answered", "texts\nrefused", f"first mask, ms\n{QUANTILES}"]
    columns += [f"cold, µs\n{QUANTILES}", f"warm, µs\n{QUANTILES}", f"advance, µs\n{QUANTILES}"]
    columns += [*(f"batch, µs\n{name}" for name in BATCHES), "engine\nMB", "on top\nMB"]
    lines = []
    for one in measured:
        answers = one.constraints
        asked = len(answers) + sum(name in _named(manifest) for name in one.refused)
        masks = (_several(pooled(answers, kind, None)) for kind in ("cold", "warm", "advance"))
        lines.append(
            [
                one.name,
                f"{len(answers)} of {asked}",
                f"{sum(len(answer.stopped) for answer in answers.values())}",
                _several(firsts(answers, None), 1e-3),
                *masks,
                *(_batch(one.batches.get(name)) for name in BATCHES),
                f"{one.start['engine_mb']:.0f}",
                f"{max((answer.peak_mb for answer in answers.values()), default=0):.0f}",
            ]
        )
    config = manifest["config"]
    notes = [
        f"{config['rounds']} rounds; an answer of more than {config['seconds']:g} s, or of more "
        f"than {config['mb']:g} MB, is a refusal; after {config['patience']:g} s an engine is "
        "asked no more; what stands right of `answered` is over what an engine answered",
        *MEANINGS,
    ]
    return Table(f"Constraints, {tokenizer}", columns, lines, notes)


def _named(manifest: Row) -> Sequence[str]:
    names: Sequence[str] = manifest.get("constraints", ())
    return names


def _schemas(tokenizer: str, measured: Sequence[Measured], manifest: Row) -> Table:
    title = f"Schemas of MaskBench, {tokenizer}"
    if manifest.get("no_schemas"):
        notes = [without_paths(str(manifest["no_schemas"]))]
        return Table(title, ["engine"], [["none were measured"]], notes)
    only = shared(measured)
    columns = ["engine", "compiled", "texts\nrefused", "masks", f"first mask, ms\n{QUANTILES}"]
    columns += [f"cold, µs\n{QUANTILES}", f"warm, µs\n{QUANTILES}", f"advance, µs\n{QUANTILES}"]
    columns += [
        "all that it answers:\nfirst mask, ms",
        "cold, µs",
        "held",
        "process\nMB",
        "of which\nheld",
    ]
    lines = []
    for one in measured:
        came = len(one.schemas) + sum(name not in _named(manifest) for name in one.refused)
        stopped = sum(len(answer.stopped) for answer in one.schemas.values())
        kinds = [pooled(one.schemas, kind, only) for kind in ("cold", "warm", "advance")]
        lines.append(
            [
                one.name,
                f"{len(one.schemas)} of {came}",
                f"{stopped} of {stopped + sum(len(a.texts) for a in one.schemas.values())}",
                f"{len(kinds[0]):,}",
                _several(firsts(one.schemas, only), 1e-3),
                *map(_several, kinds),
                _several(firsts(one.schemas, None), 1e-3),
                _several(pooled(one.schemas, "cold", None)),
                *_held(one),
            ]
        )
    config = manifest["config"]
    notes = [
        f"{config['n']} of the {manifest['schemas']} schemas that have a valid instance, in a "
        f"random order; an engine begins none after {config['patience']:g} s; one round",
        f"masks, and the four columns right of it: over the {len(only)} texts which every engine "
        "that came to their schema compiled and read to the end",
        "texts refused: valid instances as `json.dumps` writes them, of which an engine does not "
        "let the tokenizer's own ids pass (this package: where the properties come in another "
        "order than the schema's)",
        "process: resident once so many schemas were kept alive together, their texts read",
    ]
    return Table(title, columns, lines, notes)


def _held(one: Measured) -> list[str]:
    if one.held is None:
        return ["", "", ""]
    added = one.held["process_mb"] - one.start["process_mb"] - one.start["engine_mb"]
    return [f"{one.held['held']}", f"{one.held['process_mb']:.0f}", f"{max(0, added):.0f}"]


def _each(
    tokenizer: str, measured: Sequence[Measured], title: str, cell: Callable[[Answer], str]
) -> Table:
    """A line for each constraint."""
    names = dict.fromkeys(name for one in measured for name in one.constraints)

    def shown(one: Measured, name: str) -> str:
        if name in one.constraints:
            return cell(one.constraints[name])
        return "refused" if name in one.refused else "not asked"

    lines = [[name, *(shown(one, name) for one in measured)] for name in names]
    notes = ["of fewer than 100 masks, p99 is the longest; *: a text was stopped on the way"]
    notes += [f"{name}: `{REGEXES[name][0]}`" for name in names if name in REGEXES]
    columns = ["constraint", *(one.engine for one in measured)]
    return Table(f"{title}, {tokenizer}", columns, lines, notes if cell is _cold else ())


def _cold(answer: Answer) -> str:
    cold = pooled({"": answer}, "cold", None)
    if not cold:
        return "refused" if answer.stopped else ""
    shown = " / ".join(number(quantile(cold, share)) for share in (0.5, 0.99, 1.0))
    return f"{shown} *" if answer.stopped else shown


def _first(answer: Answer) -> str:
    return number(answer.first / 1e3)


def _refused(groups: dict[str, list[Measured]]) -> list[Table]:
    """What an engine did not compile in time, and texts that it does not let pass."""
    found: dict[tuple[str, str], list[str]] = {}
    for tokenizer, measured in groups.items():
        for one in measured:
            for name, why in one.refused.items():
                found.setdefault((one.engine, without_paths(why)), []).append(
                    f"{tokenizer}: {name}"
                )
            for name, answer in (*one.constraints.items(), *one.schemas.items()):
                if answer.stopped:
                    why = "texts stopped on the way"
                    found.setdefault((one.engine, why), []).append(f"{tokenizer}: {name}")
    lines = [[engine, _few(names), why] for (engine, why), names in found.items()]
    columns = ["engine", "constraints and schemas", "why"]
    return [Table("What was refused", columns, lines)] if lines else []


def _few(names: Sequence[str]) -> str:
    shown = ", ".join(names[:8])
    return f"{shown} and {len(names) - 8} more" if len(names) > 8 else shown


def _wrong(one: Measured, named: Sequence[str]) -> list[str]:
    """This package may refuse no constraint, unless it takes too long, and stop no text of one."""
    if one.engine not in OURS:
        return []
    refused = {name: why for name, why in one.refused.items() if name in named}
    found = {name: why for name, why in refused.items() if not why.startswith("over ")}
    found |= {name: "a text was stopped" for name, a in one.constraints.items() if a.stopped}
    return [f"{one.engine}, {one.tokenizer}, {name}: {why}" for name, why in found.items()]


def _facts(measured: Sequence[Measured]) -> list[Row]:
    """Microseconds at SHARES; None where there is nothing."""
    only = shared(measured)
    return [
        {
            "name": one.name,
            "engine": one.engine,
            "answered": len(one.constraints),
            "first": quantiles(firsts(one.constraints, None)),
            **{
                kind: quantiles(pooled(one.constraints, kind, None))
                for kind in ("cold", "warm", "advance")
            },
            "schemas": {
                "came": len(one.schemas),
                "texts": len(only),
                "first": quantiles(firsts(one.schemas, only)),
                "cold": quantiles(pooled(one.schemas, "cold", only)),
                "cold_all": quantiles(pooled(one.schemas, "cold", None)),
            },
            "each": {
                name: quantiles(pooled({"": a}, "cold", None))
                for name, a in one.constraints.items()
            },
            "batches": {k: us if isinstance(us, float) else None for k, us in one.batches.items()},
            "engine_mb": one.start["engine_mb"],
            "held": one.held and [one.held["held"], one.held["process_mb"]],
        }
        for one in measured
    ]


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
    columns = "engine", "first mask, ms", "new mask, µs", "99 of 100 within", "known mask, µs"
    table = [
        [
            one["name"],
            _picked(one["first"], (0,), 1e-3),
            _picked(one["cold"], (0,)),
            _picked(one["cold"], (2,)),
            _picked(one["warm"], (0,)),
        ]
        for one in lines
    ]
    return markdown(columns, table)


def _whole(tokenizer: str, lines: Sequence[Row]) -> str:
    columns = ["engine", "first mask, ms", "cold, µs", "warm, µs", "64 at once, µs"]
    columns += ["schemas: first mask, ms", "cold, µs", "MB", "with schemas kept"]
    table = []
    for one in lines:
        schemas = one["schemas"]
        cells = [
            one["name"],
            _picked(one["first"], (0, 3), 1e-3),
            _picked(one["cold"], (0, 2, 3)),
            _picked(one["warm"], (0, 2)),
            number(one["batches"].get("wide")) or "-",
            _picked(schemas["first"], (0, 2), 1e-3),
            _picked(schemas["cold"], (0, 2, 3)),
            f"{one['engine_mb']:.0f}",
            f"{one['held'][1]:,.0f} ({one['held'][0]})" if one["held"] else "-",
        ]
        table.append(cells)
    n, texts = max(one["answered"] for one in lines), lines[0]["schemas"]["texts"]
    told = wrapped(
        f"`python -m experiments masks`, here with {tokenizer} ([all](paper_figures/masks.md)): "
        f"{n} constraints, and {texts} texts of MaskBench schemas. *First mask*: from the regex or "
        "the schema, p50 and max, of schemas p50 and p99; *cold*: each place of a text for the "
        "first time, the constraint new, the tokenizer prepared by `bpe-automata warm`, p50, p99 "
        "and max; *warm*: again, p50 and p99; *64 at once*: a batch of known wide places; *MB*: "
        "what the engine adds to a process; *with schemas kept*: that process, with so many "
        "compiled schemas alive. Engines that take long "
        "are asked no more after some seconds, and have fewer."
    )
    return f"{told}\n\n{markdown(columns, table)}"


def _picked(values: Sequence[float | None], which: Sequence[int], factor: float = 1.0) -> str:
    picked = [values[k] for k in which]
    return ", ".join(number(v * factor) for v in picked if v is not None) or "-"


def _several(values: Sequence[float], factor: float = 1.0) -> str:
    """At SHARES."""
    return (
        " / ".join(number(quantile(values, share) * factor) for share in SHARES) if values else ""
    )


def _batch(value: float | str | None) -> str:
    return number(value) if isinstance(value, float) else "-"


def number(value: float | None) -> str:
    """Three digits; nothing of None and nan."""
    if value is None or value != value:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
