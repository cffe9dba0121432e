"""Merge tables of vocabularies that list none: all ways to make a token out of two tokens.

Two libraries merge by looking up the *joined* text of two neighbours: sentencepiece takes the pair
whose piece has the highest score, tiktoken the pair whose token has the lowest rank. Their merge
table consists of all splits of all tokens, ordered by score or rank.

**The order among the splits of one token does not matter.** Let A and B be two runs of BPE that
differ only in that order, and w a shortest text on which they differ. They differ first at a step
where both make some token P, at different positions and by different splits. No merge has crossed
the edges of a span that is being merged into P, so the merges inside it are those of P alone. If P
is shorter than w, A and B agree on P alone, hence on the split. If P is w, only one pair remains,
so there is no choice.

**Equal scores** are merges of one rank: sentencepiece takes the leftmost pair (see
`canonical.geometry`). The frequent case is runs of one character, whose pieces all have one
score (Llama and Mistral give their runs of spaces -1e9). The leftmost pair is merged, whatever it
makes, so a run grows from its left end:

    ▁▁▁▁▁  ->  [▁▁]▁▁▁  ->  [▁▁▁]▁▁  ->  [▁▁▁▁]▁  ->  [▁▁▁▁▁]

No proper table of ranks does the same (proper: merges in the order of the ranks), but another table
has the same results: it joins halves to powers of two, then adds smaller powers to greater ones.
`run_merges` makes that table and proves it equal, or returns None:

- sentencepiece reads a run like a stack machine, and once the longest run M is a token, no merge
  uses it: result(n) = [M] + result(n - M) for n >= M.
- The table is proper, so a sequence of its tokens is its result iff each adjacent pair is. The
  pairs in result(n) all occur in result(n') for some n' <= 2M.
- So equality for n <= 2M, which is checked, is equality for all n.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from bpe_automata._budget import check


def all_splits(vocabulary: Mapping[bytes, int]) -> np.ndarray:
    """int32 [m, 3]: (left, right, made) for each split of a token into two tokens, token by token,
    in the order of the vocabulary."""
    rows = list[tuple[int, int, int]]()
    for token, made in vocabulary.items():
        check()
        for cut in range(1, len(token)):
            left = vocabulary.get(token[:cut])
            if left is not None and (right := vocabulary.get(token[cut:])) is not None:
                rows.append((left, right, made))
    return np.array(rows, dtype=np.int32).reshape(-1, 3)


def sort_by(rows: np.ndarray, order: np.ndarray) -> np.ndarray:
    """The rows, sorted by `order` (one number per id) of the token that they make."""
    ranked: np.ndarray = rows[np.argsort(order[rows[:, 2]], kind="stable")]
    return ranked


def rank_by_score(
    rows: np.ndarray, scores: np.ndarray, texts: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """(merges, tied) of a `Description`, for merging the highest score first, then the leftmost.

    rows: int32 [m, 3], from `all_splits`; scores: float [n_ids]; texts: how each id is written."""
    replaced = np.zeros(len(scores), dtype=bool)
    for pieces in _same_score(rows, scores):
        runs = _run_rows(rows, scores, pieces, texts)
        if runs is not None:
            rows = np.concatenate([rows[~np.isin(rows[:, 2], pieces)], runs])
            replaced[pieces] = True
    merges = sort_by(rows, -scores)
    made = merges[:, 2]
    tied = np.zeros(len(merges), dtype=bool)
    tied[1:] = (scores[made[1:]] == scores[made[:-1]]) & ~replaced[made[1:]]
    return merges, tied


def _same_score(rows: np.ndarray, scores: np.ndarray) -> list[list[int]]:
    """The groups of two or more ids that merges make and that have the same score."""
    made = np.unique(rows[:, 2])
    _, group, counts = np.unique(scores[made], return_inverse=True, return_counts=True)
    return [made[group == number].tolist() for number in np.flatnonzero(counts > 1)]


def _run_rows(
    rows: np.ndarray, scores: np.ndarray, pieces: list[int], texts: Sequence[str]
) -> np.ndarray | None:
    """The merges of `run_merges` for pieces that are runs; None if they are not equivalent: for
    other pieces, and for runs that other merges use before all runs are merged."""
    if len({c for number in pieces for c in texts[number]}) > 1:
        return None
    uses = np.isin(rows[:, 0], pieces) | np.isin(rows[:, 1], pieces)
    early = uses & (scores[rows[:, 2]] >= scores[pieces[0]]) & ~np.isin(rows[:, 2], pieces)
    by_length = {len(texts[number]): number for number in pieces}
    parts = rows[np.isin(rows[:, 2], pieces), :2].ravel().tolist()
    outside = [number for number in parts if number not in pieces]
    if early.any() or any(len(texts[number]) > 1 for number in outside):
        return None
    by_length.update((len(texts[number]), number) for number in outside)
    merges = run_merges(set(by_length))
    if merges is None:
        return None
    made = [(by_length[a], by_length[b], by_length[a + b]) for a, b in merges]
    return np.array(made, dtype=np.int32).reshape(-1, 3)


# ---------------------------------------------------------------- runs of one character

Merge = tuple[int, int]
"""Lengths of the left and right part."""


def run_merges(lengths: set[int]) -> list[Merge] | None:
    """Merges in order of rank for runs of these lengths (1 among them); None where the proper table
    of this form differs from `leftmost_first`."""
    reachable = {n for n in lengths if leftmost_first(n, lengths) == [n]}
    merges = _binary(reachable)
    ranks = {merge: rank for rank, merge in enumerate(merges)}
    for n in range(1, 2 * max(reachable) + 1):
        if _by_rank(n, ranks) != leftmost_first(n, lengths):
            return None
    return merges


def leftmost_first(n: int, lengths: set[int]) -> list[int]:
    """The lengths that a run of `n` characters is merged to, while two neighbours make one of
    `lengths`, leftmost pair first."""
    parts = [1] * n
    at = 0
    while at < len(parts) - 1:
        if parts[at] + parts[at + 1] in lengths:
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
            at = max(at - 1, 0)
        else:
            at += 1
    return parts


def _binary(lengths: set[int]) -> list[Merge]:
    """Powers of two from halves; then each other length from itself without its lowest bit, in
    descending order of that bit."""
    doubled = [(n // 2, n // 2) for n in sorted(lengths) if n > 1 and n & (n - 1) == 0]
    others = [(n & -n, n) for n in lengths if n & (n - 1)]
    added = [(n - low, low) for low, n in sorted(others, key=lambda pair: (-pair[0], pair[1]))]
    return [(a, b) for a, b in doubled + added if a in lengths and b in lengths]


def _by_rank(n: int, ranks: Mapping[Merge, int]) -> list[int]:
    """The lengths that a run of `n` characters is merged to by the ranks."""
    parts = [1] * n
    while True:
        listed = [(ranks[pair], at) for at, pair in enumerate(pairwise(parts)) if pair in ranks]
        if not listed:
            return parts
        _, at = min(listed)
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
