"""Every way to make a token out of two tokens: the merges of a vocabulary that lists none.

Two libraries merge by looking up the *joined* text of two neighbours: sentencepiece takes the pair
whose piece has the highest score, tiktoken the pair whose token has the lowest rank. Their merge
table is the list of all splits of all tokens, ordered by score or rank.

**The order among the splits of one token does not matter.** Let A and B be two runs of BPE that
differ only in that order, and w a shortest text on which they part. They part at a step where both
merge some token P, at different places and by different splits. A span that is being merged into P
was touched by nothing outside it, so what happened in it is what happens on P alone. If P is
shorter than w, A and B agree on P alone, hence on the split. If P is w, one pair is left and there
is no choice.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bpe_automata.kernels.bpe import find_splits
from bpe_automata.kernels.watch import watched


def all_splits(vocabulary: Mapping[bytes, int]) -> np.ndarray:
    """int32 [m, 3]: (left, right, made) for each split of a token into two tokens, token by token,
    in the order of the vocabulary."""
    ids = np.fromiter(vocabulary.values(), dtype=np.int32, count=len(vocabulary))
    start = np.zeros(len(vocabulary) + 1, dtype=np.int64)
    np.cumsum(np.fromiter(map(len, vocabulary), dtype=np.int64), out=start[1:])
    data = np.frombuffer(b"".join(vocabulary), np.uint8)
    rows: np.ndarray = ids[watched(find_splits, data, start)]
    return rows


def sort_by(rows: np.ndarray, order: np.ndarray) -> np.ndarray:
    """The rows by `order` (one number per id, least first) of the token that they make."""
    ranked: np.ndarray = rows[np.argsort(order[rows[:, 2]], kind="stable")]
    return ranked
