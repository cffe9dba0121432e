"""Merges by score where several pieces have the same score: a table of ranks that is equal.

On equal scores sentencepiece takes the leftmost pair. A table of ranks cannot say "leftmost of
these pieces", so tied pieces are put in some order, and this is exact where the order cannot be
seen: no two of the tied pieces overlap in a text, none is inside another, and what is made of one
has a lower score (so that merging one brings no merge that comes before the others). Runs of one
character are the case that occurs, and get a table of their own (`tied_runs`). Other ties are
refused.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from bpe_automata.budget import check
from bpe_automata.errors import UnsupportedTokenizerError
from bpe_automata.tokenizer.sources.splits import sort_by
from bpe_automata.tokenizer.sources.tied_runs import run_merges


def rank_by_score(rows: np.ndarray, scores: np.ndarray, texts: Sequence[str]) -> np.ndarray:
    """The merges in an order of ranks that is equal to taking the highest score, leftmost first.

    rows: int32 [m, 3]; scores: float [n_ids]; texts: what each id is written as.
    Raises UnsupportedTokenizerError for ties that no such order is equal to."""
    replaced: list[np.ndarray] = []
    for tied in _tied(rows, scores):
        _refuse_early_use(rows, scores, tied, texts)
        if _is_runs(tied, texts):
            rows, runs = _without(rows, tied), _run_rows(rows, tied, texts)
            replaced.append(runs)
        else:
            _refuse_overlaps({texts[number] for number in tied}, float(scores[tied[0]]))
    return sort_by(np.concatenate([rows, *replaced]), -scores)


def _tied(rows: np.ndarray, scores: np.ndarray) -> list[list[int]]:
    """The groups of ids that merges make and that have one score."""
    made = np.unique(rows[:, 2])
    _, group, counts = np.unique(scores[made], return_inverse=True, return_counts=True)
    return [made[group == number].tolist() for number in np.flatnonzero(counts > 1)]


def _is_runs(tied: list[int], texts: Sequence[str]) -> bool:
    """Are they all runs of the same character?"""
    return len({c for number in tied for c in texts[number]}) == 1


def _refuse_early_use(
    rows: np.ndarray, scores: np.ndarray, tied: list[int], texts: Sequence[str]
) -> None:
    """A piece made of a tied one must have a lower score; but the tied runs may make each other."""
    uses = np.isin(rows[:, 0], tied) | np.isin(rows[:, 1], tied)
    early = uses & (scores[rows[:, 2]] >= scores[tied[0]])
    if _is_runs(tied, texts):
        early &= ~np.isin(rows[:, 2], tied)
    for left, right, made in rows[early].tolist():
        part = left if left in tied else right
        raise UnsupportedTokenizerError(
            "SentencePiece scores",
            (texts[part], texts[made]),
            f"the second is made of the first, and its score is not lower; the first has the score "
            f"of {len(tied) - 1} other piece(s), so the result depends on their places in the text",
        )


def _without(rows: np.ndarray, made: list[int]) -> np.ndarray:
    kept: np.ndarray = rows[~np.isin(rows[:, 2], made)]
    return kept


def _run_rows(rows: np.ndarray, tied: list[int], texts: Sequence[str]) -> np.ndarray:
    """The table of `tied_runs`, for the ids of the runs."""
    by_length = {len(texts[number]): number for number in tied}
    parts = rows[np.isin(rows[:, 2], tied), :2].ravel().tolist()
    outside = [number for number in parts if number not in tied]
    by_length.update((len(texts[number]), number) for number in outside)
    merges = run_merges(set(by_length)) if all(len(texts[n]) == 1 for n in outside) else None
    if merges is None:
        raise UnsupportedTokenizerError(
            "SentencePiece scores",
            (texts[tied[0]][0], sorted(by_length)),
            "runs of this character of these lengths have one score, and no merge table has the "
            "results of merging them leftmost first",
        )
    made = [(by_length[a], by_length[b], by_length[a + b]) for a, b in merges]
    return np.array(made, dtype=np.int32).reshape(-1, 3)


def _refuse_overlaps(tied: set[str], score: float) -> None:
    begins: dict[str, set[str]] = defaultdict(set)
    for text in tied:
        check()
        for size in range(1, len(text) + 1):
            begins[text[:size]].add(text)
    for text in tied:
        check()
        for at in range(len(text)):
            ends = begins.get(text[at:], set()) if at else set()
            inside = {text[at:end] for end in range(at + 1, len(text) + 1)} & tied
            other = next(iter((ends | inside) - {text}), None)
            if other is not None:
                raise UnsupportedTokenizerError(
                    "SentencePiece scores",
                    (text, other),
                    f"both have the score {score:g} and they can overlap, so which one is merged "
                    "depends on their places in the text",
                )
