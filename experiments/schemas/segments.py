"""Segments shared between schemas, against none: hit share and speed-up.

Each schema of Glaiveai2K (`--schemas`: of other JSON lines) is decoded along a valid instance, or
else its shortest text, and built whole, with each tokenizer:

    none     no segments
    alone    a cache that knows nothing: what one schema shares with itself
    shared   one cache for all schemas, in a random order: what the earlier ones have left
    again    the same cache, which knows this schema: what is left to pay
    disk     a new cache that reads from disk what `shared` wrote

Lazy: an engine and the masks along the text. Eager: the rows of all nodes. Written: the automaton
with all its edges, for languages where that is at most `MOST_EDGES`. In turns at each schema; masks
and languages are compared, and a difference makes the exit code 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bpe_automata import Tokenizer, compile_regex
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.constructions import CartesianMerge, SegmentCache, canonical_automaton, explore
from bpe_automata.constructions.every_node import every_node
from bpe_automata.constructions.segments_eager import assembled
from bpe_automata.constructions.segments_joints import neighbours
from bpe_automata.constructions.segments_nodes import prepared
from bpe_automata.errors import BpeAutomataError, BudgetExceededError
from experiments.article.table2_inputs import Item, Source, item_of, sources_of
from experiments.laws.exact_options import shown
from experiments.run import config
from experiments.run.cells import FAILURE, Cell, Row, measured
from experiments.run.config import option
from experiments.run.measuring import Run, progress
from experiments.schemas import segments_report
from experiments.schemas.inputs import SCHEMAS, SMOKE_SCHEMAS
from experiments.shared.timing import timed

VERSION = 1
TOKENIZERS = ("smollm2", "mistral-v1", "llama-3")
MOST_EDGES = 30_000
MOST_MASKS = 60
FEW_TEXTS = 16
"""Eager only for text automata of so few states: where added tokens can be read in a string of all
Unicode, there are some 100,000 nodes."""
CHARACTERS = "\n 01289:,\"{}[]'_-.aeZ"
_WARM = r'\{"a":"[^"\\]*","b":(0|1[0-9]*)\}'


class SegmentError(BpeAutomataError):
    """What was measured is wrong: the message says how."""


@dataclass(frozen=True)
class Config(config.Config):
    """Which schemas, with which tokenizers."""

    schemas: Path = option(SCHEMAS, "folder or file of JSON lines of schemas with instances")
    n: int = option(60, "segments: how many schemas, drawn by lot")
    tokenizers: tuple[str, ...] = option(TOKENIZERS, "names or paths")


SMOKE = Config(schemas=SMOKE_SCHEMAS, n=2, tokenizers=("smollm2",))

render, readme = segments_report.render, segments_report.readme


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
    _measured(tokenizer, compile_regex(_WARM), "", SegmentCache())
    cache = SegmentCache(max_bytes=1_000_000_000)
    left = len(missing - {merges_key(name)})
    for source in sources:
        if not left:
            return
        item, key = item_of(source), key_of(name, source)
        if key not in missing:
            if item.dfa is not None:
                _put_into(cache, tokenizer, item.dfa, item.text)
        else:
            left -= 1
            run.add(key, measured(Cell(key, _row, (shown(name), tokenizer, item, cache))))
        advance()


def _row(name: str, tokenizer: Tokenizer, item: Item, cache: SegmentCache) -> Row:
    """Of one schema; `refused` if this package raises an error. Raises SegmentError."""
    row: Row = {"tokenizer": name, "id": item.source.id}
    if item.dfa is None:
        return row | {"refused": True, FAILURE: item.failure}
    row |= {"states": item.dfa.n_states, "compile": item.seconds}
    try:
        return row | _measured(tokenizer, item.dfa, item.text, cache)
    except SegmentError:
        raise
    except BpeAutomataError as error:
        return row | {"refused": True, FAILURE: f"{type(error).__name__}: {error}"}


def _put_into(cache: SegmentCache, tokenizer: Tokenizer, dfa: ByteDFA, text: str) -> None:
    """What measuring a schema leaves there."""
    ids = tokenizer.encode(text)[:MOST_MASKS]

    def engine() -> CartesianMerge:
        return CartesianMerge(tokenizer, dfa, tokenizer.eos_ids, segments=cache)

    with suppress(BpeAutomataError):
        _timed_masks(engine, ids)
        if _is_eager(tokenizer):
            _prepared(engine())
        one = engine()
        assembled(one, one.initial())


def merges(tokenizer: Tokenizer) -> dict[str, Row]:
    """What each of some characters merges with; see `segments_joints`."""
    canonical, found = canonical_automaton(tokenizer), {}
    for character in CHARACTERS:
        near = neighbours(canonical, character)
        found[character] = {"left": near.left, "right": near.right, "alone": near.alone}
    return found


def _measured(tokenizer: Tokenizer, dfa: ByteDFA, text: str, cache: SegmentCache) -> Row:
    """All variants of one schema, in turns."""
    ids = tokenizer.encode(text)[:MOST_MASKS]

    def engine(segments: SegmentCache | None = None) -> CartesianMerge:
        return CartesianMerge(tokenizer, dfa, tokenizer.eos_ids, segments=segments)

    row: Row = {"lazy": {}, "eager": {}, "written": {}}
    plain, masks = _timed_masks(engine, ids)
    row["lazy"]["none"] = {"seconds": plain}
    for name, segments in (("alone", SegmentCache()), ("shared", cache), ("again", cache)):
        before = vars(segments.counts).copy()
        seconds, found = _timed_masks(lambda s=segments: engine(s), ids)  # type: ignore[misc]
        _same(masks, found)
        row["lazy"][name] = {"seconds": seconds} | _more(before, segments)
    if _is_eager(tokenizer):
        row["eager"] = _eager(engine, cache)
    row["disk"] = _from_disk(engine, cache, ids)
    row["written"] = _written(engine, cache)
    return row


def _is_eager(tokenizer: Tokenizer) -> bool:
    return len(canonical_automaton(tokenizer).pipeline.text.next) <= FEW_TEXTS


def _eager(engine: Callable[..., CartesianMerge], cache: SegmentCache) -> Row:
    row: Row = {}
    seconds, nodes = timed(lambda: _every(engine()))
    row["none"] = {"seconds": seconds, "nodes": len(nodes)}
    for name, segments in (("alone", SegmentCache()), ("shared", cache), ("again", cache)):
        before = vars(segments.counts).copy()
        seconds, count = timed(lambda s=segments: _prepared(engine(s)))  # type: ignore[misc]
        if count < len(nodes):
            raise SegmentError(f"{count} nodes were prepared, of {len(nodes)}")
        row[name] = {"seconds": seconds} | _more(before, segments)
    return row


def _every(engine: CartesianMerge) -> list[Any]:
    return every_node(engine, engine.initial())


def _prepared(engine: CartesianMerge) -> int:
    return prepared(engine, engine.initial())


def _timed_masks(
    make: Callable[[], CartesianMerge], ids: list[int]
) -> tuple[float, list[np.ndarray]]:
    """Of an engine, and of its masks along the ids."""
    masks: list[np.ndarray] = []

    def along() -> None:
        engine = make()
        state = engine.initial()
        for token in ids:
            masks.append(engine.mask(state))
            state = engine.step(state, token)
        masks.append(engine.mask(state))

    return timed(along)[0], masks


def _same(one: list[np.ndarray], other: list[np.ndarray]) -> None:
    if not all(np.array_equal(a, b) for a, b in zip(one, other, strict=True)):
        raise SegmentError("masks differ with and without segments")


def _more(before: dict[str, int], cache: SegmentCache) -> Row:
    """Rows that were found, made and made apart since then."""
    after = vars(cache.counts)
    return {name: after[name] - before[name] for name in ("found", "made", "apart")}


def _from_disk(
    engine: Callable[[SegmentCache | None], CartesianMerge], cache: SegmentCache, ids: list[int]
) -> Row:
    """Lazy, in a new cache."""
    cache.save()
    later = SegmentCache(on_disk=True)
    seconds, _ = _timed_masks(lambda: engine(later), ids)
    return {"seconds": seconds} | _more(vars(SegmentCache().counts), later)


def _written(engine: Callable[[SegmentCache | None], CartesianMerge], cache: SegmentCache) -> Row:
    """The explicit automata, None where they are too large."""
    row: Row = {}
    try:
        plain = engine(None)
        seconds, whole = timed(lambda: explore(plain, plain.initial(), MOST_EDGES))
        row["none"] = {"seconds": seconds, "edges": whole.n_transitions, "states": whole.n_states}
        for name in ("shared", "again"):
            one = engine(cache)
            seconds, found = timed(lambda e=one: assembled(e, e.initial()))  # type: ignore[misc]
            sizes = {"edges": found.n_transitions, "states": found.n_states}
            row[name] = {"seconds": seconds} | sizes
            if (difference := found.equivalent(whole)) is not None:
                raise SegmentError(f"put together, the automaton differs: {difference}")
    except BudgetExceededError:
        return {}
    return row
