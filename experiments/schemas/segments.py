"""What Vegas segments save where token automata are written out: parts found, and time.

Each schema of Glaiveai2K (`--schemas`: of other JSON lines) whose token automaton has at most
`MOST_EDGES` transitions is written out, with each tokenizer:

    none     by the engine, without segments
    alone    by `Segments` that know nothing: what one schema shares with itself
    shared   by `Segments` for all schemas, in a random order: they know the earlier ones
    again    by the same, which know this schema too

The variants follow one another at each schema, after an engine that is not measured: what it finds
out of the tokenizer all of them know. The minimal automata must be equal, or else the exit code is
1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pandas as pd

from bpe_automata import Segments, TokenAutomaton, Tokenizer, compile_regex
from bpe_automata._automata.dfa import ByteDFA
from bpe_automata._constructions.cartesian_merge import CartesianMerge
from bpe_automata._constructions.explicit import explore
from bpe_automata.errors import BpeAutomataError, BudgetExceededError
from experiments.article.table2_series import Source, item_of, sources_of
from experiments.laws.exact_measure import shown
from experiments.run import config
from experiments.run.config import option
from experiments.run.executors import FAILURE, Cell, Row, measured
from experiments.run.measuring import Run, progress
from experiments.run.readme import wrapped
from experiments.run.report import Report
from experiments.run.tables import (
    Column,
    Group,
    Table,
    count,
    fixed,
    frame,
    median,
    percent,
    scaled,
    table,
    total,
)
from experiments.schemas.inputs import SCHEMAS, SMOKE_SCHEMAS
from experiments.shared.resources import timed
from experiments.statistics import median as median_of

VERSION = 4
TOKENIZERS = ("smollm2", "mistral-v1")
MOST_EDGES = 30_000
VARIANTS = ("none", "alone", "shared", "again")
_WARM = r'\{"a":(true|false|null),"b":(0|1[0-9]{0,2})\}'


class SegmentError(BpeAutomataError):
    """What was put together is wrong: the message says how."""


@dataclass(frozen=True)
class Config(config.Config):
    """Which schemas, with which tokenizers."""

    schemas: Path = option(SCHEMAS, "folder or file of JSON lines of schemas with instances")
    n: int = option(200, "segments: how many schemas, drawn by lot")
    tokenizers: tuple[str, ...] = option(TOKENIZERS, "names or paths")


SMOKE = Config(schemas=SMOKE_SCHEMAS, n=4, tokenizers=("smollm2",))


def measure(run: Run[Config]) -> None:
    """One row for each tokenizer and schema. Each must be measured where the schemas before are
    known, so one that has a row already is only learnt."""
    sources = sources_of(run.config.schemas, run.config.n, run.config.seed)
    keyed = {
        name: {f"{shown(name)} {source.id}": source for source in sources}
        for name in run.config.tokenizers
    }
    missing = {*run.expect(key for keys in keyed.values() for key in keys)}
    with progress() as bar:
        task = bar.add_task("segments", total=len(keyed) * len(sources))
        for name, of in keyed.items():
            if not missing.intersection(of):
                continue
            segments = Segments(Tokenizer.load(name))
            _variants(Segments(segments.tokenizer), compile_regex(_WARM))  # loads the kernels
            for key, source in of.items():
                if key in missing:
                    found = measured(Cell(key, _row, (segments, source)))
                    run.add(key, {"tokenizer": shown(name), "id": source.id} | found)
                else:
                    _row(segments, source)
                bar.advance(task)


def _row(segments: Segments, source: Source) -> Row:
    """Of one schema, empty if its automaton is too large; `refused` if this package raises another
    error. Raises SegmentError."""
    item = item_of(source)
    if item.dfa is None:
        return {"refused": True, FAILURE: item.failure}
    try:
        return _variants(segments, item.dfa)
    except SegmentError:
        raise
    except BudgetExceededError:
        return {}
    except BpeAutomataError as error:
        return {"refused": True, FAILURE: f"{type(error).__name__}: {error}"}


def _variants(segments: Segments, dfa: ByteDFA) -> Row:
    """Each on the schema, in the order of `VARIANTS`: what it is, and what it took."""
    tokenizer = segments.tokenizer
    _explored(tokenizer, dfa)
    seconds, whole = timed(partial(_explored, tokenizer, dfa))
    right, row = whole.minimised(), {"none": {"seconds": seconds} | _sizes(whole)}
    for name, own in zip(VARIANTS[1:], (Segments(tokenizer), segments, segments), strict=True):
        before = own.made, own.found
        seconds, found = timed(partial(own.automaton, dfa, 10 * MOST_EDGES))
        counts = {"made": own.made - before[0], "found": own.found - before[1]}
        row[name] = {"seconds": seconds} | counts | _sizes(found)
        if not found.minimised().identical(right):
            raise SegmentError(f"put together, the automaton differs: {found.equivalent(whole)}")
    return row


def _explored(tokenizer: Tokenizer, dfa: ByteDFA) -> TokenAutomaton:
    engine = CartesianMerge(tokenizer, dfa, tokenizer.eos_ids)
    return explore(engine, engine.initial(), MOST_EDGES)


def _sizes(automaton: TokenAutomaton) -> Row:
    return {"edges": automaton.n_transitions, "states": automaton.n_states}


# ---------------------------------------------------------------- what the rows say


def render(rows: Sequence[Row], manifest: Row) -> Report:
    """wrong: where an automaton is another one with segments."""
    done = _done(rows)
    failed = [row for row in rows if row.get(FAILURE) and not row.get("refused")]
    speed_ups = [
        {"tokenizer": tokenizer, "n": own["id"].nunique()}
        | {name: median_of([*of["faster"]]) for name, of in own.groupby("variant", sort=False)}
        | {f"{name} found": _share_found(of) for name, of in own.groupby("variant", sort=False)}
        for tokenizer, own in done.groupby("tokenizer", sort=False)
    ]
    return Report(
        "Segments",
        [_speed(done, len({row.get("id") for row in rows}), manifest)],
        facts={"speed_ups": speed_ups},
        wrong=[f"{row['key']}: {row[FAILURE]}" for row in failed],
    )


def _done(rows: Sequence[Row]) -> pd.DataFrame:
    """A row for each tokenizer, schema and variant. faster: how many times, compared with none."""
    found = [
        {"tokenizer": row["tokenizer"], "id": row["id"], "variant": name, **row[name]}
        | {"faster": row["none"]["seconds"] / row[name]["seconds"]}
        for row in rows
        if "again" in row
        for name in VARIANTS
    ]
    fields = ["tokenizer", "id", "variant", "seconds", "faster", "made", "found", "edges", "states"]
    return frame(found) if found else pd.DataFrame(columns=fields)


def _speed(done: pd.DataFrame, n_schemas: int, manifest: Row) -> Table:
    columns = [
        Column("what", _what),
        Column("n", count),
        Column("ms", median("seconds"), scaled(1e3, fixed(2))),
        Column("sum, s", total("seconds"), fixed(2)),
        Column("speed-up", _with_segments(median("faster")), fixed(2), ""),
        Column("speed-up\nof the sum", _with_segments(_ratio_of_sums), fixed(2), ""),
        Column("slower", _with_segments(lambda own: (own["faster"] < 1).mean()), percent(), ""),
        Column("parts\nmade", _with_segments(total("made")), fixed(0), ""),
        Column("parts\nfound", _with_segments(_share_found), percent(), ""),
        Column("transitions", total("edges"), fixed(0)),
    ]
    notes = [
        f"of {n_schemas} schemas those whose automaton has at most {MOST_EDGES:,} transitions; "
        "none: written out without segments; alone: with segments that know nothing; shared: with "
        "those of all schemas before; again: with those of this very schema, too",
        "medians over schemas; speed-up: median of the ratio to none; slower: share of schemas "
        "where it costs more than none; parts found: of those that are put together, the share "
        "that was known; transitions: of all automata together, before they are minimised",
        f"measured in {manifest['wall_seconds']:g} s",
    ]
    lines = done.groupby(["tokenizer", "variant"], sort=False)
    return table("Automata of function calls, written out", lines, columns, notes)


def _what(own: Group) -> str:
    tokenizer, variant = own[["tokenizer", "variant"]].iloc[0]
    return tokenizer if variant == "none" else f"- {variant}"


def _ratio_of_sums(own: Group) -> float:
    return float((own["seconds"] * own["faster"]).sum() / own["seconds"].sum())


def _with_segments(of: Callable[[Group], float]) -> Callable[[Group], float | None]:
    """Not of the lines that the others are compared with."""
    return lambda own: None if own["variant"].iloc[0] == "none" else of(own)


def _share_found(own: Group) -> float:
    made, found = (float(own[name].sum()) for name in ("made", "found"))
    return found / (made + found) if made + found else 0.0


def readme(facts: Row) -> str:
    """How many times faster than without segments, and how many parts are found."""
    lines = [
        f"| {own['tokenizer']} | "
        + " | ".join(f"{own[name]:.2f} ({own[f'{name} found']:.0%})" for name in VARIANTS[1:])
        + " |"
        for own in facts["speed_ups"]
    ]
    n = max((own["n"] for own in facts["speed_ups"]), default=0)
    said = (
        f"`python -m experiments segments`, {n} function calls, medians, by what is known; in "
        "brackets the share of the parts that were found ([table](paper_figures/segments.md)):"
    )
    columns = "| times faster than without | nothing | the schemas before | this very schema |"
    return "\n".join([wrapped(said), "", columns, "|:--|--:|--:|--:|", *lines])
