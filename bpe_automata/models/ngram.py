"""An n-gram model that backs off.

    p(t | c_1 .. c_k) = (count(c_1 .. c_k t) + s p(t | c_2 .. c_k)) / (count(c_1 .. c_k) + s)
    p(t | before the shortest context) = 1 / V

s: the smoothing. Where a context was never seen the shorter one decides alone. With order 1 this is
additive smoothing, s / V for each id; in general it is the mean of a hierarchy of Dirichlet laws
(MacKay and Peto 1995). Every id has some mass everywhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from numbers import Real
from typing import NamedTuple

import numpy as np

from bpe_automata.arguments import integer
from bpe_automata.errors import ArgumentError
from bpe_automata.models.checks import known_ids
from bpe_automata.tokenizer import Tokenizer


class Followers(NamedTuple):
    """ids: int64, what came after a context; counts: float64, how often; total: their sum."""

    ids: np.ndarray
    counts: np.ndarray
    total: float


class NGramModel:
    """ids so far -> logits of the next id, float64 [n_ids]: natural logs of a law with full
    support. Only the last `order - 1` ids count; each must be known: raises
    TokenOutOfRangeError, ArgumentError. Make one with `train`."""

    def __init__(
        self, n_ids: int, order: int, smoothing: float, seen: dict[tuple[int, ...], Followers]
    ) -> None:
        self.n_ids, self.order, self.smoothing = n_ids, order, smoothing
        self._seen = seen

    @classmethod
    def train(
        cls,
        tokenizer: Tokenizer,
        texts: str | Iterable[str],
        order: int = 3,
        smoothing: float = 1.0,
    ) -> NGramModel:
        """Count the ids that `encode` makes of a text, or of several. Each text is followed by
        the tokenizer's first end-of-sequence id, if it has one.

        order: ids in an n-gram, at least 1; smoothing: over 0. Raises ArgumentError.
        """
        order = integer(order, "order")
        if order < 1 or not isinstance(smoothing, Real) or not 0 < smoothing < np.inf:
            raise ArgumentError(
                f"order {order} must be at least 1, smoothing {smoothing} over 0 and finite"
            )
        counts: dict[tuple[int, ...], Counter[int]] = {}
        for text in [texts] if isinstance(texts, str) else texts:
            ids = [*tokenizer.encode(text), *tokenizer.eos_ids[:1]]
            for at, token in enumerate(ids):
                for length in range(min(order - 1, at) + 1):
                    counts.setdefault(tuple(ids[at - length : at]), Counter())[token] += 1
        seen = {context: _followers(counter) for context, counter in counts.items()}
        return cls(tokenizer.n_ids, order, smoothing, seen)

    def __call__(self, ids: Sequence[int]) -> np.ndarray:
        ids = known_ids(ids, self.n_ids)
        law = np.full(self.n_ids, 1 / self.n_ids)
        for length in range(min(self.order - 1, len(ids)) + 1):
            found = self._seen.get(ids[len(ids) - length :])
            if found is None:
                break
            law *= self.smoothing
            law[found.ids] += found.counts
            law /= found.total + self.smoothing
        return np.log(law)


def _followers(counter: Counter[int]) -> Followers:
    ids = np.fromiter(counter.keys(), np.int64, len(counter))
    counts = np.fromiter(counter.values(), np.float64, len(counter))
    return Followers(ids, counts, float(counts.sum()))
