"""What schemas share, segments or linked parts, against none: hit share and speed-up.

Each schema of Glaiveai2K (`--schemas`: of other JSON lines) is built whole, with each tokenizer:

    none     no segments
    alone    a cache that knows nothing: what one schema shares with itself
    shared   one cache for all schemas, in a random order: it knows the earlier ones
    again    the same cache, which knows this schema too
    disk     a new cache that reads from disk what `shared` wrote

Eager: the rows of all configurations. Written: the automaton with all its edges, for languages
where that is at most `MOST_EDGES`. The variants take turns at each schema. Rows and languages are
compared, and a difference makes the exit code 1.

Linked: from the schema to all masks along an instance, on demand and without segments, by a process
that knows no schema (none), the earlier ones (shared), or this one too (again): see
`linked_segments`. The masks must be equal and hold the ids of the instance, or else the exit code
is 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TypeVar

import numpy as np

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
from experiments.article.table2_series import Source, item_of, sources_of
from experiments.laws.exact_measure import shown
from experiments.run import config
from experiments.run.config import option
from experiments.run.executors import FAILURE, Cell, Row, measured
from experiments.run.measuring import Run, progress
from experiments.schemas import linked_segments
from experiments.schemas.inputs import SCHEMAS, SMOKE_SCHEMAS
from experiments.schemas.linked_segments import SegmentError
from experiments.schemas.segments_report import readme, render
from experiments.shared.resources import timed

__all__ = ["readme", "render"]

VERSION = 3
TOKENIZERS = ("smollm2", "mistral-v1", "llama-3")
MOST_EDGES = 30_000
FEW_TEXTS = 16
"""Eager only for text automata of so few states: where added tokens can be read in a string of all
Unicode, there are some 100,000 configurations."""
CHARACTERS = "\n 01289:,\"{}[]'_-.aeZ"
_WARM = r'\{"a":"[a-z]*","b":(0|1[0-9]*)\}'
T = TypeVar("T")
Advance = Callable[[], None]


@dataclass(frozen=True)
class Config(config.Config):
    """Which schemas, with which tokenizers."""

    schemas: Path = option(SCHEMAS, "folder or file of JSON lines of schemas with instances")
    n: int = option(60, "segments: how many schemas, drawn by lot")
    tokenizers: tuple[str, ...] = option(TOKENIZERS, "names or paths")


SMOKE = Config(schemas=SMOKE_SCHEMAS, n=2, tokenizers=("smollm2",))


def measure(run: Run[Config]) -> None:
    """One row for each tokenizer and schema, one more if the schema has an instance, and one for
    each tokenizer's table of merges."""
    sources = sources_of(run.config.schemas, run.config.n, run.config.seed)
    walked = [source for source in sources if source.instances]
    names = run.config.tokenizers
    of = {name: [merges_key(name), *(key_of(name, source) for source in sources)] for name in names}
    todo = {name: {*run.expect(keys)} for name, keys in of.items()}
    linked = {name: {*run.expect(linked_key(name, one) for one in walked)} for name in names}
    with progress() as bar:
        task = bar.add_task("segments", total=len(names) * (len(sources) + len(walked)))
        advance = partial(bar.advance, task)
        for name in names:
            if todo[name]:
                _tokenizer(run, name, todo[name], sources, advance)
            if linked[name]:
                _linked(run, name, linked[name], walked, advance)


def key_of(name: str, source: Source) -> str:
    """Of a row."""
    return f"{shown(name)} {source.id}"


def linked_key(name: str, source: Source) -> str:
    """Of the row of the same schema, linked."""
    return f"{key_of(name, source)}, linked"


def merges_key(name: str) -> str:
    """Of the row of a tokenizer's merges."""
    return f"{shown(name)}: merges"


def _tokenizer(
    run: Run[Config], name: str, missing: set[str], sources: Sequence[Source], advance: Advance
) -> None:
    """The rows that are missing of one tokenizer."""
    tokenizer = Tokenizer.load(name)
    if merges_key(name) in missing:
        run.add(merges_key(name), {"tokenizer": shown(name), "merges": merges(tokenizer)})
    _put_into(SegmentCache(), tokenizer, compile_regex(_WARM))  # loads the kernels
    cache = SegmentCache(max_bytes=1_000_000_000)
    todo = {key_of(name, one): one for one in sources}
    _in_order(run, name, todo, missing, partial(_row, tokenizer, cache), advance)


def _linked(
    run: Run[Config], name: str, missing: set[str], sources: Sequence[Source], advance: Advance
) -> None:
    """The same of linked schemas."""
    todo = {linked_key(name, one): one for one in sources}
    with linked_segments.worker(name) as process:
        row = partial(linked_segments.row_of, process, Tokenizer.load(name))
        _in_order(run, name, todo, missing, row, advance)


def _in_order(
    run: Run[Config],
    name: str,
    todo: dict[str, Source],
    missing: set[str],
    row: Callable[[Source, bool], Row],
    advance: Advance,
) -> None:
    """The rows that are missing. Each must be measured where the schemas before are known, so one
    that has a row already is only learnt: row(schema, True)."""
    last = max((number for number, key in enumerate(todo, 1) if key in missing), default=0)
    for key, source in islice(todo.items(), last):
        if key in missing:
            found = measured(Cell(key, row, (source, False)))
            run.add(key, {"tokenizer": shown(name), "id": source.id} | found)
        else:
            row(source, True)
        advance()


def _row(tokenizer: Tokenizer, cache: SegmentCache, source: Source, learn: bool) -> Row:
    """Of one schema; `refused` if this package raises an error. learn: only put it into the cache.
    Raises SegmentError."""
    item = item_of(source)
    if item.dfa is None:
        return {"refused": True, FAILURE: item.failure}
    if learn:
        _put_into(cache, tokenizer, item.dfa)
        return {}
    row: Row = {"states": item.dfa.n_states, "compile": item.seconds}
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
