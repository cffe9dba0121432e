"""What the canonical automaton of a tokenizer is made of, and what it costs."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bpe_automata import Tokenizer
from bpe_automata.constructions import canonical_automaton

LONG = 5.0
"""A time is not taken again once that took so many seconds."""


def facts(tokenizer: Tokenizer, source: object, repeats: int) -> dict[str, Any]:
    """Sizes; and seconds to build with warm kernels and nothing in the cache, and to load what
    that left there (the best of `repeats`; reading the tokenizer's file, `source`, is not counted).

    hypotheses: of the pretokenizer; rectangles: merges that forbid some pair; forbidden: share of
    forbidden pairs among all pairs of reachable tokens; unreachable: ordinary tokens that BPE never
    makes.
    """
    automaton = canonical_automaton(tokenizer)
    description, reachable = tokenizer.description, automaton.derivation.reachable
    added = {token.id for token in description.added}
    ordinary = [i for i, t in enumerate(description.tokens) if t is not None and i not in added]
    return {
        "ids": tokenizer.n_ids,
        "added": len(added),
        "hypotheses": int(automaton.pipeline.boundaries.n),
        "rectangles": len(automaton.derivation.proper),
        "forbidden": automaton.geometry.forbidden_share(),
        "unreachable": sum(not reachable[i] for i in ordinary),
        **timings(source, repeats),
    }


def timings(source: object, repeats: int) -> dict[str, float]:
    """Seconds to build and to load from the cache."""
    build: list[float] = []
    load: list[float] = []
    while len(build) < repeats and sum(build) < LONG:
        with empty_cache():
            build.append(_seconds(Tokenizer.load(source)))
            load.append(_seconds(Tokenizer.load(source)))
    return {"build": min(build), "load": min(load)}


def _seconds(tokenizer: Tokenizer) -> float:
    started = time.perf_counter()
    canonical_automaton(tokenizer)
    return time.perf_counter() - started


@contextmanager
def empty_cache() -> Iterator[None]:
    """An own, empty folder as the package's cache."""
    before = os.environ.get("BPE_AUTOMATA_CACHE")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["BPE_AUTOMATA_CACHE"] = folder
        try:
            yield
        finally:
            if before is None:
                del os.environ["BPE_AUTOMATA_CACHE"]
            else:
                os.environ["BPE_AUTOMATA_CACHE"] = before
