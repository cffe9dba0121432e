"""Merges by score: pieces of the same score are merges of the same rank.

On equal scores sentencepiece takes the leftmost pair, and so do merges of one rank (see
`constructions.ties`). Runs of one character are the case that occurs most; where they have a table
of their own without ties (`tied_runs`), it takes their place, so that the merges can be replayed
one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bpe_automata.tokenizer.sources.splits import sort_by
from bpe_automata.tokenizer.sources.tied_runs import run_merges


def rank_by_score(
    rows: np.ndarray, scores: np.ndarray, texts: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """(merges, tied), as `Description` has them: taking the highest score, leftmost first.

    rows: int32 [m, 3]; scores: float [n_ids]; texts: what each id is written as."""
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
    """The groups of ids that merges make and that have one score."""
    made = np.unique(rows[:, 2])
    _, group, counts = np.unique(scores[made], return_inverse=True, return_counts=True)
    return [made[group == number].tolist() for number in np.flatnonzero(counts > 1)]


def _run_rows(
    rows: np.ndarray, scores: np.ndarray, pieces: list[int], texts: Sequence[str]
) -> np.ndarray | None:
    """The table of `tied_runs`, for the ids of the runs; None where it would not be the same: other
    pieces than runs, and such as are merged to others while there are runs left to merge."""
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
