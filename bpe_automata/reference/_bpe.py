"""Byte pair encoding: while some adjacent pair is in the merge table, merge the leftmost pair of
least rank.

Source: Sennrich, Haddow & Birch 2016, in the variant with ranks that `tokenizers` runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np

from bpe_automata.tokenizer.derivation import Derivation
from bpe_automata.tokenizer.description import Description
from bpe_automata.tokenizer.pipeline import Pipeline

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
        ranked = [(ranks[pair][0], at) for at, pair in enumerate(pairs) if pair in ranks]
        if not ranked:
            return tokens
        _, at = min(ranked)
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


# The pair lemma: a token sequence inside a pretoken is what BPE makes iff each of its adjacent
# pairs is canonical.

FOREVER = float("inf")


def is_canonical(tokens: Sequence[int], symbols: Sequence[Sequence[int]], ranks: Ranks) -> bool:
    """Does BPE of the concatenation give the tokens back? `symbols`: the base symbols of each."""
    return bpe([symbol for spelled in symbols for symbol in spelled], ranks) == list(tokens)


def breaks_by_spines(left: int, right: int, derivation: Derivation, ranks: Ranks) -> bool:
    """Is there a merge (u, v) of rank m with u on the right spine of `left` and v on the left spine
    of `right`, both alive at m? Equal ranks go left to right, so v may be used up at m itself.

    This is true of all pairs that are broken, unless merges are tied: see `canonical.geometry`."""
    for u, u_birth, u_end in _spine(left, derivation.right, derivation.birth):
        for v, v_birth, v_end in _spine(right, derivation.left, derivation.birth):
            rank, _ = ranks.get((u, v), (FOREVER, -1))
            if u_birth < rank < u_end and v_birth < rank <= v_end and rank < FOREVER:
                return True
    return False


def _spine(token: int, part: np.ndarray, birth: np.ndarray) -> Iterator[tuple[int, float, float]]:
    """(node, its birth, the birth of the node above it), from the top down."""
    end = FOREVER
    while token >= 0:
        yield token, float(birth[token]), end
        token, end = int(part[token]), float(birth[token])


# The readings of one text by the boundary hypotheses, of which exactly one survives.


def readings(pipeline: Pipeline, text: str) -> list[tuple[int, ...]]:
    """For each reading of `text` that survives to its end: the positions (character indexes) where
    it puts a boundary, 0 included. Added tokens are read as text. Text with a character that no
    token spells has no reading."""
    boundaries = pipeline.boundaries
    alive: list[tuple[int, tuple[int, ...]]] = [(0, ())]
    for position, character in enumerate(text):
        atom = pipeline.alphabet.atom(character)
        if atom < 0:
            return []
        steps = boundaries.follow[:, :, pipeline.coarse[atom], :]
        alive = [
            (int(after), (*cuts, position) if boundary else cuts)
            for hypothesis, cuts in alive
            for boundary in (0, 1)
            for after in np.flatnonzero(steps[boundary, hypothesis])
        ]
    return [cuts for hypothesis, cuts in alive if boundaries.ends[hypothesis]]
