"""Algorithm 3 against the rectangles: every pair of tokens of a table."""

from __future__ import annotations

from typing import Any

import numpy as np

from bpe_automata.constructions import Geometry
from bpe_automata.reference import AllTexts


def compared(texts: AllTexts, geometry: Geometry, seed: int, sampled: int) -> dict[str, Any]:
    """How many pairs the two say different things of: by row (`clear_followers`) and by column
    (`clear_predecessors`) of all pairs, and by `breaking_merge` on `sampled` random pairs, half of
    which are forbidden."""
    tokens = np.array(sorted(texts.delta), dtype=np.int64)
    reachable = np.flatnonzero(geometry.derivation.reachable)
    if not np.array_equal(tokens, reachable):
        return {"tokens": len(tokens), "differences": len(np.setxor1d(tokens, reachable))}
    allowed = allowed_rows(texts, tokens, geometry.n_words)
    whole = packed(tokens, geometry.n_words)
    followers = _followed(allowed, whole, tokens, geometry.clear_followers)
    before = transposed(allowed, tokens, geometry.n_words)
    predecessors = _followed(before, whole, tokens, geometry.clear_predecessors)
    trials = min(sampled, len(tokens) ** 2)
    wrong = broken(allowed, tokens, geometry, seed, trials)
    return {
        "tokens": len(tokens),
        "pairs": len(tokens) ** 2,
        "forbidden": len(tokens) ** 2 - int(np.bitwise_count(allowed.view(np.uint32)).sum()),
        "distinct_rows": len(np.unique(allowed, axis=0)),
        "differences": followers + predecessors + wrong,
        "by_row": followers,
        "by_column": predecessors,
        "by_merge": wrong,
        "sampled": trials,
    }


def packed(tokens: np.ndarray, n_words: int) -> np.ndarray:
    """int32 [n_words]: a bit for each of some ids."""
    flags = np.zeros(n_words * 32, dtype=np.bool_)
    flags[tokens] = True
    return np.packbits(flags, bitorder="little").view(np.int32)


def allowed_rows(texts: AllTexts, tokens: np.ndarray, n_words: int) -> np.ndarray:
    """int32 [k, n_words]: for each of the tokens what may follow it, packed by id."""
    known: dict[int, np.ndarray] = {}
    rows = np.empty((len(tokens), n_words), dtype=np.int32)
    for place, token in enumerate(tokens.tolist()):
        state = texts.delta[token]
        if state not in known:
            forbidden = np.array([*texts.forbidden[state]], dtype=np.int64)
            known[state] = packed(np.setdiff1d(tokens, forbidden), n_words)
        rows[place] = known[state]
    return rows


def transposed(rows: np.ndarray, tokens: np.ndarray, n_words: int) -> np.ndarray:
    """int32 [k, n_words]: for each of the tokens the ones whose row holds it, packed by id."""
    columns = np.empty_like(rows)
    for place, token in enumerate(tokens.tolist()):
        holds = rows[:, token // 32] >> (token % 32) & 1
        columns[place] = packed(tokens[holds.astype(np.bool_)], n_words)
    return columns


def _followed(rows: np.ndarray, whole: np.ndarray, tokens: np.ndarray, clear: Any) -> int:
    """In how many bits the rows differ from what `clear` leaves of all tokens."""
    differences = 0
    for place, token in enumerate(tokens.tolist()):
        bits = whole.copy()
        clear(token, bits)
        differences += int(np.bitwise_count((bits ^ rows[place]).view(np.uint32)).sum())
    return differences


def broken(
    allowed: np.ndarray, tokens: np.ndarray, geometry: Geometry, seed: int, trials: int
) -> int:
    """In how many of so many random pairs `breaking_merge` says something else."""
    rng = np.random.default_rng(seed)
    wrong = 0
    for trial in range(trials):
        place = int(rng.integers(len(tokens)))
        flags = np.unpackbits(allowed[place].view(np.uint8), bitorder="little").astype(np.bool_)
        among = tokens if trial % 2 else tokens[~flags[tokens]]
        if len(among):
            right = int(among[rng.integers(len(among))])
            breaks = geometry.breaking_merge(int(tokens[place]), right) >= 0
            wrong += breaks == flags[right]
    return int(wrong)
