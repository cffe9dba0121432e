"""Segments shared between schemas, against none: hit share and speed-up.

Each schema of Glaiveai2K (`--schemas`: another folder of JSON lines) is decoded along a valid
instance, or else its shortest text, and built whole, with each tokenizer (`--tokenizer`):

    none     no segments
    alone    a cache that knows nothing: what one schema shares with itself
    shared   one cache for all schemas, in a random order: what the earlier ones have left
    again    the same cache, which knows this schema: what is left to pay
    disk     a new cache that reads from disk what `shared` wrote

Lazy: an engine and the masks along the text. Eager: the rows of all nodes. Written: the automaton
with all its edges, for languages where that is at most `MOST_EDGES`. In turns at each schema; masks
and languages are compared, and a difference ends the run.

`--n`: how many schemas, drawn by lot.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bpe_automata import Tokenizer
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.constructions import CartesianMerge, SegmentCache, canonical_automaton, explore
from bpe_automata.constructions.every_node import every_node
from bpe_automata.constructions.segments_eager import assembled
from bpe_automata.constructions.segments_joints import neighbours
from bpe_automata.constructions.segments_nodes import prepared
from bpe_automata.errors import BpeAutomataError, BudgetExceededError
from experiments import segments_report
from experiments.exact_options import ALL
from experiments.forced_options import SCHEMAS, TOKENIZERS
from experiments.runner import ROOT, Options, Run, read_run
from experiments.speed_timing import timed
from experiments.table2_inputs import item_of, sources_of

Row = dict[str, Any]

SAMPLED = 60
MOST_EDGES = 30_000
MOST_MASKS = 60
FEW_TEXTS = 16
"""Eager only for text automata of so few states: where added tokens can be read in a string of all
Unicode, there are some 100,000 nodes."""
CHARACTERS = "\n 01289:,\"{}[]'_-.aeZ"
_WARM = r'\{"a":"[^"\\]*","b":(0|1[0-9]*)\}'


class SegmentError(Exception):
    """What was measured is wrong: the message says how. It ends the run."""


@dataclass(frozen=True)
class SegmentOptions(Options):
    """tokenizers: names or paths; schemas: folder of JSON lines."""

    tokenizers: tuple[str, ...] = TOKENIZERS
    schemas: Path = SCHEMAS

    @property
    def folder(self) -> Path:
        """One for the default, and one for each other choice."""
        given = [self.schemas.name] if self.schemas != SCHEMAS else []
        given += [Path(t).name for t in self.tokenizers] if self.tokenizers != TOKENIZERS else []
        return self.results / "-".join([self.name, *given])

    @property
    def figures(self) -> Path:
        """The paper shows the default."""
        default = self.folder == ROOT / "results" / self.name and self.n is None
        return ROOT / "paper_figures" if default else self.folder


def options_of(chosen: argparse.Namespace, common: Options) -> SegmentOptions:
    """`--tokenizer` and `--schemas` are options of other experiments too."""
    given = chosen.tokenizer
    names = TOKENIZERS if given in (None, ALL) else (given,)
    return SegmentOptions(**vars(common), tokenizers=names, schemas=chosen.schemas or SCHEMAS)


def run(options: Options) -> None:
    """Measure unless told to render only; then print the tables."""
    chosen = options if isinstance(options, SegmentOptions) else SegmentOptions(**vars(options))
    if not chosen.render_only:
        measure(chosen)
    segments_report.render(*read_run(chosen), chosen)


def measure(options: SegmentOptions) -> None:
    """One row for each tokenizer and schema, and one for each tokenizer's table of merges."""
    sources = sources_of(options.schemas, options.n or SAMPLED, options.seed)
    config = {"schemas": str(options.schemas.name), "tokenizers": list(options.tokenizers)}
    expected = len(options.tokenizers) * (len(sources) + 1)
    run_ = Run(options, config, {}, expected, time.perf_counter())
    for name in options.tokenizers:
        tokenizer = Tokenizer.load(name)
        run_.add({"tokenizer": name, "merges": merges(tokenizer)})
        _measured(tokenizer, _compiled(_WARM), "", SegmentCache())
        cache = SegmentCache(max_bytes=1_000_000_000)
        for source in sources:
            item = item_of(source)
            row: Row = {"tokenizer": name, "id": source.id}
            if item.dfa is None:
                run_.add(row | {"failure": item.failure})
                continue
            try:
                found = _measured(tokenizer, item.dfa, item.text, cache)
            except BpeAutomataError as error:
                found = {"failure": f"{type(error).__name__}: {error}"}
            run_.add(row | {"states": item.dfa.n_states, "compile": item.seconds} | found)


def merges(tokenizer: Tokenizer) -> dict[str, Row]:
    """What each of some characters merges with; see `segments_joints`."""
    canonical, found = canonical_automaton(tokenizer), {}
    for character in CHARACTERS:
        near = neighbours(canonical, character)
        found[character] = {"left": near.left, "right": near.right, "alone": near.alone}
    return found


def _compiled(regex: str) -> ByteDFA:
    from bpe_automata import compile_regex

    return compile_regex(regex)


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
    if len(canonical_automaton(tokenizer).pipeline.text.next) <= FEW_TEXTS:
        row["eager"] = _eager(engine, cache)
    row["disk"] = _from_disk(engine, cache, ids)
    row["written"] = _written(engine, cache)
    return row


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
