"""Byte pair encoding: while some adjacent pair is in the merge table, merge the leftmost pair of
least rank.

Source: Sennrich, Haddow & Birch 2016, in the variant with ranks that `tokenizers` runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from bpe_automata.tokenizer import Description

Ranks = Mapping[tuple[int, int], tuple[int, int]]
"""(left, right) -> (rank, token made)."""


def merge_ranks(description: Description) -> dict[tuple[int, int], tuple[int, int]]:
    """The merge table of a tokenizer as a dict."""
    merges = zip(description.ranks.tolist(), description.merges.tolist(), strict=True)
    return {(left, right): (rank, made) for rank, (left, right, made) in merges}


def bpe(symbols: Sequence[int], ranks: Ranks) -> list[int]:
    """BPE of one pretoken, given as base symbols."""
    tokens = list(symbols)
    while True:
        pairs = list(pairwise(tokens))
        known = [(ranks[pair][0], at) for at, pair in enumerate(pairs) if pair in ranks]
        if not known:
            return tokens
        _, at = min(known)
        tokens[at : at + 2] = [ranks[pairs[at]][1]]


def base_symbols(description: Description, data: bytes) -> list[int] | None:
    """The base symbols that BPE starts from on these bytes; None if one is no token."""
    if description.byte_level:
        spelled = [bytes([byte]) for byte in data]
    else:
        spelled = [c.encode("utf-8") for c in data.decode("utf-8")]
    if any(symbol not in description.base for symbol in spelled):
        return None
    return [description.base[symbol] for symbol in spelled]
