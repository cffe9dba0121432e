"""Segments shared between schemas, against none: hit share and speed-up.

Each schema of Glaiveai2K (`--schemas`: of other JSON lines) is built whole, with each tokenizer:

    none     no segments
    alone    a cache that knows nothing: what one schema shares with itself
    shared   one cache for all schemas, in a random order: it knows the earlier ones
    again    the same cache, which knows this schema too
    disk     a new cache that reads from disk what `shared` wrote

Eager: the rows of all configurations. Written: the automaton with all its edges, for languages
where that is at most `MOST_EDGES`. The variants take turns at each schema. Rows and languages are
compared, and a difference makes the exit code 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
import pandas as pd

from bpe_automata import Tokenizer, compile_regex
from bpe_automata._automata.dfa import ByteDFA
from bpe_automata._constructions.canonical import canonical_automaton
from bpe_automata._constructions.cartesian_merge import CartesianMerge, ProductState
from bpe_automata._constructions.explicit import explore
from bpe_automata._constructions.segments_cache import SegmentCache
from bpe_automata._constructions.segments_eager import (
    SharedRelevance,
    all_configurations,
    assembled,
    prepared,
)
from bpe_automata._constructions.segments_joints import neighbours
from bpe_automata._token_automata.automaton import TokenAutomaton
from bpe_automata.errors import BpeAutomataError, BudgetExceededError
from experiments.article.table2_series import Item, Source, item_of, sources_of
from experiments.laws.exact_measure import shown
from experiments.run import config
from experiments.run.config import option
from experiments.run.executors import FAILURE, Cell, Row, measured
from experiments.run.measuring import Run, progress
from experiments.run.readme import wrapped
from experiments.run.report import Report
from experiments.run.statistics import median as median_of
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

VERSION = 2
TOKENIZERS = ("smollm2", "mistral-v1", "llama-3")
MOST_EDGES = 30_000
FEW_TEXTS = 16
"""Eager only for text automata of so few states: where added tokens can be read in a string of all
Unicode, there are some 100,000 configurations."""
CHARACTERS = "\n 01289:,\"{}[]'_-.aeZ"
_WARM = r'\{"a":"[a-z]*","b":(0|1[0-9]*)\}'
T = TypeVar("T")


class SegmentError(BpeAutomataError):
    """What was measured is wrong: the message says how."""


@dataclass(frozen=True)
class Config(config.Config):
    """Which schemas, with which tokenizers."""

    schemas: Path = option(SCHEMAS, "folder or file of JSON lines of schemas with instances")
    n: int = option(60, "segments: how many schemas, drawn by lot")
    tokenizers: tuple[str, ...] = option(TOKENIZERS, "names or paths")


SMOKE = Config(schemas=SMOKE_SCHEMAS, n=2, tokenizers=("smollm2",))


def measure(run: Run[Config]) -> None:
    """One row for each tokenizer and schema, and one for each tokenizer's table of merges."""
    sources = sources_of(run.config.schemas, run.config.n, run.config.seed)
    of = {name: [key_of(name, source) for source in sources] for name in run.config.tokenizers}
    todo = {name: {*run.expect([merges_key(name), *keys])} for name, keys in of.items()}
    with progress() as bar:
        task = bar.add_task("segments", total=len(todo) * len(sources))
        for name, missing in todo.items():
            if missing:
                _tokenizer(run, name, missing, sources, partial(bar.advance, task))


def key_of(name: str, source: Source) -> str:
    """Of a row."""
    return f"{shown(name)} {source.id}"


def merges_key(name: str) -> str:
    """Of the row of a tokenizer's merges."""
    return f"{shown(name)}: merges"


def _tokenizer(
    run: Run[Config],
    name: str,
    missing: set[str],
    sources: Sequence[Source],
    advance: Callable[[], None],
) -> None:
    """The rows that are missing of one tokenizer. The shared cache must know the schemas before
    each, so what has a row already is only put into the cache."""
    tokenizer = Tokenizer.load(name)
    if merges_key(name) in missing:
        run.add(merges_key(name), {"tokenizer": shown(name), "merges": merges(tokenizer)})
    _put_into(SegmentCache(), tokenizer, compile_regex(_WARM))  # loads the kernels
    cache = SegmentCache(max_bytes=1_000_000_000)
    to_do = len(missing - {merges_key(name)})
    for source in sources:
        if not to_do:
            return
        item, key = item_of(source), key_of(name, source)
        if key not in missing:
            if item.dfa is not None:
                _put_into(cache, tokenizer, item.dfa)
        else:
            to_do -= 1
            run.add(key, measured(Cell(key, _row, (shown(name), tokenizer, item, cache))))
        advance()


def _row(name: str, tokenizer: Tokenizer, item: Item, cache: SegmentCache) -> Row:
    """Of one schema; `refused` if this package raises an error. Raises SegmentError."""
    row: Row = {"tokenizer": name, "id": item.source.id}
    if item.dfa is None:
        return row | {"refused": True, FAILURE: item.failure}
    row |= {"states": item.dfa.n_states, "compile": item.seconds}
    try:
        return row | _measured(tokenizer, item.dfa, cache)
    except SegmentError:
        raise
    except BpeAutomataError as error:
        return row | {"refused": True, FAILURE: f"{type(error).__name__}: {error}"}


def _put_into(cache: SegmentCache, tokenizer: Tokenizer, dfa: ByteDFA) -> None:
    """What measuring a schema leaves there."""
    engine = _engine(tokenizer, dfa)
    with suppress(BpeAutomataError):
        if _is_eager(tokenizer):
            prepared(engine, engine.initial(), cache)
        explore(engine, engine.initial(), MOST_EDGES)
        assembled(engine, engine.initial(), cache)


def merges(tokenizer: Tokenizer) -> dict[str, Row]:
    """What each of some characters merges with; see `segments_joints`."""
    canonical, found = canonical_automaton(tokenizer), {}
    for character in CHARACTERS:
        near = neighbours(canonical, character)
        found[character] = {"left": near.left, "right": near.right, "alone": near.alone}
    return found


def _measured(tokenizer: Tokenizer, dfa: ByteDFA, cache: SegmentCache) -> Row:
    """All variants of one schema, in turns; those that take too much are left out."""
    row: Row = {"eager": {}, "written": {}}
    if _is_eager(tokenizer):
        row["eager"] = _eager(partial(_engine, tokenizer, dfa), cache)
    with suppress(BudgetExceededError):
        row["written"] = _written(partial(_engine, tokenizer, dfa), cache)
    return row


def _engine(tokenizer: Tokenizer, dfa: ByteDFA) -> CartesianMerge:
    return CartesianMerge(tokenizer, dfa, tokenizer.eos_ids)


def _is_eager(tokenizer: Tokenizer) -> bool:
    return len(canonical_automaton(tokenizer).pipeline.text.next) <= FEW_TEXTS


def _eager(make: Callable[[], CartesianMerge], cache: SegmentCache) -> Row:
    plain = make()
    seconds, nodes = timed(lambda: all_configurations(plain, plain.initial()))

    def checked(engine: CartesianMerge, known: SegmentCache, _: int) -> Row:
        shared = SharedRelevance(engine, known)
        for q, text, number in nodes:
            one = shared.readable(engine.tables.state_pair(q, text), number)
            other = plain.relevance.readable(plain.tables.state_pair(q, text), number)
            if not all(map(np.array_equal, one, other)):
                raise SegmentError("rows differ with and without segments")
        return {}

    none = {"seconds": seconds, "nodes": len(nodes)}
    return {"none": none} | _variants(make, cache, prepared, checked)


def _written(make: Callable[[], CartesianMerge], cache: SegmentCache) -> Row:
    """Raises BudgetExceededError where they are too large."""
    plain = make()
    seconds, whole = timed(lambda: explore(plain, plain.initial(), MOST_EDGES))

    def checked(_: CartesianMerge, __: SegmentCache, found: TokenAutomaton) -> Row:
        if (difference := found.equivalent(whole)) is not None:
            raise SegmentError(f"put together, the automaton differs: {difference}")
        return _sizes(found)

    none = {"seconds": seconds} | _sizes(whole)
    return {"none": none} | _variants(make, cache, assembled, checked)


def _sizes(automaton: TokenAutomaton) -> Row:
    return {"edges": automaton.n_transitions, "states": automaton.n_states}


def _variants(
    make: Callable[[], CartesianMerge],
    cache: SegmentCache,
    build: Callable[[CartesianMerge, ProductState, SegmentCache], T],
    checked: Callable[[CartesianMerge, SegmentCache, T], Row],
) -> Row:
    """A row of each; made: rows that were not in the cache."""
    row: Row = {}
    later = SegmentCache(on_disk=True)
    for name, known in {
        "alone": SegmentCache(),
        "shared": cache,
        "again": cache,
        "disk": later,
    }.items():
        if known is later:
            cache.save()
        engine, before = make(), known.counts.made + known.counts.apart
        seconds, found = timed(partial(build, engine, engine.initial(), known))
        made = known.counts.made + known.counts.apart - before
        row[name] = {"seconds": seconds, "made": made} | checked(engine, known, found)
    return row


# What is said of the rows.

_VARIANTS = ("alone", "shared", "again", "disk")
_KINDS = {"eager": "rows of all configurations", "written": "written out"}
"""What the README says of them."""


def render(rows: Sequence[Row], manifest: Row) -> Report:
    """wrong: where segments changed a row or a language."""
    done = measured_of(rows)
    of_merges = [_merged(row) for row in rows if "merges" in row]
    failed = [row for row in rows if row.get(FAILURE) and not row.get("refused")]
    speed_ups = [
        {"tokenizer": tokenizer, "kind": kind, "n": own["id"].nunique()}
        | {name: median_of([*own[own["variant"] == name]["faster"]]) for name in _VARIANTS}
        for (tokenizer, kind), own in done.groupby(["tokenizer", "kind"], sort=False)
    ]
    return Report(
        "Segments",
        [_speed(done, manifest), *of_merges],
        facts={"schemas": len({r["id"] for r in rows if "written" in r}), "speed_ups": speed_ups},
        wrong=[f"{row['key']}: {row[FAILURE]}" for row in failed],
    )


def measured_of(rows: Sequence[Row]) -> pd.DataFrame:
    """A row for each tokenizer, kind and variant of each schema. faster: how many times, compared
    with no segments."""
    found = [
        {"tokenizer": row["tokenizer"], "id": row["id"], "kind": kind, "variant": variant}
        | {"seconds": one["seconds"], "faster": row[kind]["none"]["seconds"] / one["seconds"]}
        | {"made": one.get("made"), "nodes": row[kind]["none"].get("nodes")}
        for row in rows
        if "written" in row
        for kind in _KINDS
        for variant, one in row[kind].items()
    ]
    fields = ["tokenizer", "id", "kind", "variant", "seconds", "faster", "made", "nodes"]
    return frame(found) if found else pd.DataFrame(columns=fields)


def _compared(of: Callable[[Group], float | None]) -> Callable[[Group], float | None]:
    """Not of the lines without segments."""
    return lambda own: None if own["variant"].iloc[0] == "none" else of(own)


def _what(own: Group) -> str:
    tokenizer, kind, variant = own[["tokenizer", "kind", "variant"]].iloc[0]
    return f"{tokenizer}, {kind}" if variant == "none" else f"- {variant}"


def _ratio_of_sums(own: Group) -> float:
    return float((own["seconds"] * own["faster"]).sum() / own["seconds"].sum())


def _share_made(own: Group) -> float | None:
    nodes = total("nodes")(own)
    return total("made")(own) / nodes if nodes else None


def _speed(done: pd.DataFrame, manifest: Row) -> Table:
    columns = [
        Column("what", _what),
        Column("n", count),
        Column("ms", median("seconds"), scaled(1e3, fixed(2))),
        Column("sum, s", total("seconds"), fixed(2)),
        Column("speed-up", _compared(median("faster")), fixed(2), ""),
        Column("speed-up\nof the sum", _compared(_ratio_of_sums), fixed(2), ""),
        Column("slower", _compared(lambda own: (own["faster"] < 1).mean()), percent(), ""),
        Column("rows made", _compared(_share_made), percent(), ""),
    ]
    notes = [
        "none: no segments; alone: an empty cache for each schema; shared: one cache for all; "
        "again: it knows this very schema; disk: a new cache that reads what the other wrote",
        "eager: the rows of all configurations; written: the automaton with all edges, where it is "
        "small",
        "medians over schemas; speed-up: median of the ratio; slower: share of schemas where it "
        "costs more than none; rows made: of the configurations, those whose row was not there",
        f"measured in {manifest['wall_seconds']:g} s",
    ]
    lines = done.groupby(["tokenizer", "kind", "variant"], sort=False)
    return table("Segments shared between schemas", lines, columns, notes)


def _merged(row: Row) -> Table:

    def shown(side: str) -> Callable[[Group], str]:
        return lambda own: "nothing" if own["alone"].iloc[0] else _visible(own[side].iloc[0])

    lines = [{"character": character} | found for character, found in row["merges"].items()]
    columns = [
        Column("character", "character", repr),
        Column("merges to the left with", shown("left")),
        Column("merges to the right with", shown("right")),
    ]
    note = "ASCII only; ␣: a space; nothing: in no merge at all, with no byte."
    return table(f"What merges with what: {row['tokenizer']}", frame(lines), columns, [note])


def _visible(characters: str) -> str:
    """With spaces and controls to be seen."""
    shown = "".join(repr(c)[1:-1] if c < " " else c for c in characters)
    return shown.replace(" ", "␣") or "none"


def readme(facts: Row) -> str:
    """How many times faster than without segments."""
    lines = [
        f"| {own['tokenizer']}, {_KINDS[own['kind']]} | {own['alone']:.2f} | {own['shared']:.2f} "
        f"| {own['again']:.2f} |"
        for own in facts["speed_ups"]
    ]
    said = (
        f"`python -m experiments segments`, {facts['schemas']} function calls, medians, by what "
        "the cache knows ([table](paper_figures/segments.md)):"
    )
    columns = "| times faster than without | nothing | the schemas before | this very schema |"
    return "\n".join([wrapped(said), "", columns, "|:--|--:|--:|--:|", *lines])
