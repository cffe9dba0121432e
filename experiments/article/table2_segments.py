"""The one place where Table 2 knows of the cache of segments."""

from __future__ import annotations

from bpe_automata import Tokenizer
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.constructions import CartesianMerge
from bpe_automata.constructions.segments_cache import SegmentCache as Cache

__all__ = ["Cache", "engine_with"]


def engine_with(tokenizer: Tokenizer, dfa: ByteDFA, cache: Cache) -> CartesianMerge:
    """An engine whose rows come out of the cache where it has them, and go into it."""
    return CartesianMerge(tokenizer, dfa, tokenizer.eos_ids, segments=cache)
