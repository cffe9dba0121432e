"""Which pairs of tokens may stand side by side inside one pretoken (design 2, pair lemma).

A token sequence inside a pretoken is BPE's output iff each of its adjacent pairs is canonical.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from bpe_automata.reference.bpe import Ranks, bpe
from bpe_automata.tokenizer.derivation import Derivation

FOREVER = float("inf")


def is_canonical(tokens: Sequence[int], symbols: Sequence[Sequence[int]], ranks: Ranks) -> bool:
    """BPE of the concatenation gives the tokens back; `symbols`: the base symbols of each."""
    return bpe([symbol for spelled in symbols for symbol in spelled], ranks) == list(tokens)


def breaks_by_spines(left: int, right: int, derivation: Derivation, ranks: Ranks) -> bool:
    """Some merge (u, v) of rank m has u on the right spine of `left` and v on the left spine of
    `right`, both alive at m. Equal ranks go left to right, so v may be used up at m itself.

    These are all pairs that are broken, unless merges are tied: see `constructions.ties`."""
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
