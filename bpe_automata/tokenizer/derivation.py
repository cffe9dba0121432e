"""How BPE makes each token, and whether the merge table is proper.

`birth` is the rank of a token's last merge. A table is proper when birth(u) < m and birth(v) < m
for every merge (u, v) of rank m between reachable tokens; only then do merges happen in the order
of their ranks, which the pair lemma rests on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bpe_automata.errors import ImproperMergeTableError
from bpe_automata.kernels.bpe import derive_all, merge_all
from bpe_automata.kernels.hashing import build_table
from bpe_automata.tokenizer.description import Description


@dataclass(frozen=True)
class Derivation:
    """left, right, birth: int32 [n_ids], parts and rank of each token's last merge (-1: none);
    reachable: bool [n_ids], BPE on the token's own bytes gives the token;
    slots, values: hash table from left * n_ids + right to rank; made: int32 [m]."""

    left: np.ndarray
    right: np.ndarray
    birth: np.ndarray
    reachable: np.ndarray
    slots: np.ndarray
    values: np.ndarray
    made: np.ndarray


def derive(description: Description) -> Derivation:
    """Run BPE on every token. Raises ImproperMergeTableError."""
    merges, n_ids = description.merges, description.n_ids
    slots, values = build_table(merges[:, 0].astype(np.int64) * n_ids + merges[:, 1])
    made = np.ascontiguousarray(merges[:, 2])
    starts, symbols = _base_symbols(description)
    left, right, birth, reachable = derive_all(starts, symbols, slots, values, made)
    _check_proper(description, birth, reachable)
    return Derivation(left, right, birth, reachable, slots, values, made)


def bpe(derivation: Derivation, symbols: list[int]) -> list[int]:
    """BPE of one piece, given as the ids of its base symbols."""
    work = np.array(symbols, dtype=np.int32)
    ranks = np.empty(len(work), dtype=np.int32)
    n, *_ = merge_all(
        work,
        ranks,
        len(work),
        derivation.slots,
        derivation.values,
        derivation.made,
        len(derivation.birth),
    )
    return work[:n].tolist()


def _base_symbols(description: Description) -> tuple[np.ndarray, np.ndarray]:
    """CSR of each token's base symbols; none for a token that holds an unknown symbol."""
    if description.byte_level:
        return _byte_symbols(description)
    spelled = [_characters(description, token) for token in description.tokens]
    starts = np.cumsum([0, *map(len, spelled)]).astype(np.int32)
    return starts, np.array([s for row in spelled for s in row], dtype=np.int32)


def _byte_symbols(description: Description) -> tuple[np.ndarray, np.ndarray]:
    base = np.full(256, -1, dtype=np.int32)
    for symbol, number in description.base.items():
        base[symbol[0]] = number
    tokens = [token or b"" for token in description.tokens]
    symbols = base[np.frombuffer(b"".join(tokens), dtype=np.uint8)]
    lengths = np.array([len(token) for token in tokens], dtype=np.int64)
    owner = np.repeat(np.arange(len(tokens)), lengths)
    broken = np.zeros(len(tokens), dtype=bool)
    broken[owner[symbols < 0]] = True
    lengths[broken] = 0
    starts = np.zeros(len(tokens) + 1, dtype=np.int32)
    np.cumsum(lengths, out=starts[1:])
    return starts, symbols[~broken[owner]]


def _characters(description: Description, token: bytes | None) -> list[int]:
    text = (token or b"").decode("utf-8", "surrogatepass")
    symbols = [description.base.get(c.encode("utf-8", "surrogatepass"), -1) for c in text]
    return [] if -1 in symbols else symbols


def _check_proper(description: Description, birth: np.ndarray, reachable: np.ndarray) -> None:
    left, right = description.merges[:, 0], description.merges[:, 1]
    ranks = np.arange(len(left))
    late = (birth[left] >= ranks) | (birth[right] >= ranks)
    wrong = np.flatnonzero(late & reachable[left] & reachable[right])
    if not len(wrong):
        return
    rank = int(wrong[0])
    part = left[rank] if birth[left[rank]] >= rank else right[rank]
    spell = description.tokens
    raise ImproperMergeTableError(
        f"merge {rank} ({spell[left[rank]]!r} + {spell[right[rank]]!r}) uses {spell[part]!r}, "
        f"which is only made by the later merge {int(birth[part])}; {len(wrong)} merge(s) are so. "
        "Such a table has no canonical automaton of this kind: reorder the merges or retrain"
    )
