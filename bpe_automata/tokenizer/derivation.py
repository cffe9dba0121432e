"""The derivation of each token: the one merge that makes it.

At most one of the merges that make a token is ever carried out. What happens inside a stretch of
text whose edges no merge crosses does not depend on the text around it, so two tokens that merge
anywhere also merge when their bytes stand alone, and there only one last merge can happen. All
other listed merges are dead.

A table is proper when each derivation uses only tokens made by merges of lower rank. A derivation
(u, v) whose rank is not above those of its parts is late: encoders carry it out as soon as both
parts exist, before anything else. So derivations fall into epochs, by the greatest rank needed so
far: encoders finish each epoch before the next, but within one they go from left to right, not by
rank. `proper` orders the derivations so that parts come first, with (u, v) right after the later
of its parts; `canonical.geometry` treats the cases where encoders do otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bpe_automata._budget import check
from bpe_automata._kernels.hashing import build_table
from bpe_automata._kernels.words import merge_each
from bpe_automata.tokenizer.alphabet import LAST_CODE_POINT
from bpe_automata.tokenizer.description import Description


class Merges(NamedTuple):
    """slots int64, values int32: hash table from left * n_ids + right to the row of a merge; made,
    rank int32 [rows]: the token that it makes, and its rank; n_ids."""

    slots: np.ndarray
    values: np.ndarray
    made: np.ndarray
    rank: np.ndarray
    n_ids: int


@dataclass(frozen=True)
class Derivation:
    """left, right: int32 [n_ids], the two parts of each token, -1 if no merge makes it; birth:
    int32 [n_ids], the first index in `proper` of the epoch of its derivation (-1: none);
    reachable: bool [n_ids], BPE on the token's own bytes gives the token; proper: int32 [k, 3],
    (left, right, made) of the derivations, parts before what is made of them; epoch: int32 [k],
    the greatest rank needed for each, ascending; late: bool [k], has a part of the same epoch.

    starts: int32 [n_ids + 1] and symbols: int32, the base symbols of each token (CSR); listed: all
    merges of the table."""

    left: np.ndarray
    right: np.ndarray
    birth: np.ndarray
    reachable: np.ndarray
    proper: np.ndarray
    epoch: np.ndarray
    late: np.ndarray
    starts: np.ndarray
    symbols: np.ndarray
    listed: Merges

    def base_symbols(self, token: int) -> list[int]:
        """The base symbols of one token."""
        return self.symbols[self.starts[token] : self.starts[token + 1]].tolist()


def derive(description: Description) -> Derivation:
    """Run BPE on every token."""
    merges, n_ids = description.merges, description.n_ids
    slots, values = build_table(merges[:, 0].astype(np.int64) * n_ids + merges[:, 1])
    made = np.ascontiguousarray(merges[:, 2])
    listed = Merges(slots, values, made, description.ranks, n_ids)
    starts, symbols = _base_symbols(description)
    merged = symbols.copy()
    size, left, right, row = merge_each(starts, merged, *listed)
    whole = np.flatnonzero(size == 1)
    reachable = np.zeros(n_ids, dtype=bool)
    reachable[whole] = merged[starts[whole]] == whole
    tokens = np.flatnonzero(reachable & (row >= 0)).astype(np.int32)
    rank = np.where(row >= 0, np.append(listed.rank, np.int32(-1))[row], np.int32(-1))
    epoch, depth = _epochs(tokens, left, right, rank)
    tokens = tokens[np.lexsort((row[tokens], depth[tokens], epoch[tokens]))]
    birth = np.full(n_ids, -1, dtype=np.int32)
    birth[tokens] = np.searchsorted(epoch[tokens], epoch[tokens])
    return Derivation(
        left=np.where(birth >= 0, left, -1).astype(np.int32),
        right=np.where(birth >= 0, right, -1).astype(np.int32),
        birth=birth,
        reachable=reachable,
        proper=np.stack([left[tokens], right[tokens], tokens], axis=1),
        epoch=epoch[tokens],
        late=depth[tokens] > 0,
        starts=starts,
        symbols=symbols,
        listed=listed,
    )


def _epochs(
    tokens: np.ndarray, left: np.ndarray, right: np.ndarray, rank: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(int32 [n_ids], int32 [n_ids]): the greatest rank needed for each token (-1 for a base
    symbol), and how many late merges in a row made it."""
    epoch, depth = rank.copy(), np.zeros(len(rank), dtype=np.int32)
    while True:
        check()
        parts = np.stack([left[tokens], right[tokens]])
        latest = epoch[parts].max(axis=0)
        late = latest >= rank[tokens]
        deeper = np.where(epoch[parts] == latest, depth[parts], 0).max(axis=0) + 1
        after, steps = np.maximum(rank[tokens], latest), np.where(late, deeper, 0)
        if np.array_equal(after, epoch[tokens]) and np.array_equal(steps, depth[tokens]):
            return epoch, depth
        epoch[tokens], depth[tokens] = after, steps


def bpe(derivation: Derivation, symbols: list[int]) -> list[int]:
    """BPE of one pretoken, given as the ids of its base symbols."""
    work, starts = np.array(symbols, dtype=np.int32), np.array([0, len(symbols)], dtype=np.int32)
    size, *_ = merge_each(starts, work, *derivation.listed)
    return work[: size[0]].tolist()


def _base_symbols(description: Description) -> tuple[np.ndarray, np.ndarray]:
    """(starts, symbols): the base symbols of each token (CSR), none if one of them is unknown."""
    if description.byte_level:
        base = np.full(256, -1, dtype=np.int32)
        for symbol, number in description.base.items():
            base[symbol[0]] = number
        tokens = [token or b"" for token in description.tokens]
        letters = np.frombuffer(b"".join(tokens), dtype=np.uint8)
        return _complete(base[letters], np.array(list(map(len, tokens)), dtype=np.int64))
    base = np.full(LAST_CODE_POINT + 1, -1, dtype=np.int32)
    for symbol, number in description.base.items():
        base[ord(symbol.decode("utf-8", "surrogatepass"))] = number
    own = set(description.byte_tokens.values())
    spelled = (b"" if n in own else t or b"" for n, t in enumerate(description.tokens))
    texts = [token.decode("utf-8", "surrogatepass") for token in spelled]
    points = "".join(texts).encode("utf-32-le", "surrogatepass")
    letters = np.frombuffer(points, dtype=np.uint32)
    starts, symbols = _complete(base[letters], np.array(list(map(len, texts)), dtype=np.int64))
    return _with_byte_tokens(starts, symbols, list(description.byte_tokens.values()))


def _complete(symbols: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(starts, symbols): the symbols of each token, none for one with an unknown symbol (-1)."""
    owner = np.repeat(np.arange(len(lengths)), lengths)
    broken = np.zeros(len(lengths), dtype=bool)
    broken[owner[symbols < 0]] = True
    lengths[broken] = 0
    starts = np.zeros(len(lengths) + 1, dtype=np.int32)
    np.cumsum(lengths, out=starts[1:])
    return starts, symbols[~broken[owner]]


def _with_byte_tokens(
    starts: np.ndarray, symbols: np.ndarray, byte_tokens: list[int]
) -> tuple[np.ndarray, np.ndarray]:
    """The same, where each byte token is its own base symbol."""
    lengths = np.diff(starts)
    order = sorted(byte_tokens)
    symbols = np.insert(symbols, starts[order], order)
    lengths[order] = 1
    return np.cumsum([0, *lengths.tolist()]).astype(np.int32), symbols.astype(np.int32)
