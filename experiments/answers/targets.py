"""Three events that "the model writes this answer" can mean, and how two of them follow from the
first. Answers are prefix-free.

- *sequence*: ids that spell exactly the answer come next, whatever comes after them. Each method of
  decoding chooses among such sequences;
- *prefix*: the text that the model writes begins with the answer, whatever comes after it. To the
  sequences come those whose last id goes past its end (`",` where the answer ends in a quote),
  which no mask admits;
- *complete*: ids that spell exactly the answer come next, then end-of-sequence.

    P(prefix)   = P(sequence) + sum over u, t of P(u) P(t | u)    the ids u spell a proper prefix of
                                                                 the answer, u and the id t spell
                                                                 the answer and more
    P(complete) = sum over w of P(w) P(end | w)                   w spells the answer

Every u must be a node of the trie of the answers: so every byte of theirs must have an id.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

SEQUENCE, PREFIX, COMPLETE = TARGETS = ("sequence", "prefix", "complete")


class Vocabulary:
    """Ids in the order of the text that they spell. spellings: the bytes of each id after another
    id; eos_ids: what ends a sequence, and spells nothing."""

    def __init__(self, spellings: Sequence[bytes], eos_ids: Sequence[int]) -> None:
        self.eos_ids, ends = np.array(eos_ids, dtype=np.int64), set(eos_ids)
        order = sorted(set(range(len(spellings))) - ends, key=spellings.__getitem__)
        self._ids = np.array(order, dtype=np.int64)
        self._spelled = [spellings[i] for i in order]

    def past(self, text: bytes) -> np.ndarray:
        """int64: the ids that spell `text` and more."""
        cut = text.rstrip(b"\xff")
        after = cut[:-1] + bytes([cut[-1] + 1]) if cut else None
        high = len(self._ids) if after is None else bisect_left(self._spelled, after)
        return self._ids[bisect_right(self._spelled, text) : high]


class Wanted(NamedTuple):
    """Log-probabilities to look up: of id tokens[i] (int64 [k]) after sequence number rows[i].
    Group g goes from first[g] to the first of the next one, or the end, and is of answer
    answers[g]; both int64 [groups]."""

    rows: np.ndarray
    tokens: np.ndarray
    answers: np.ndarray
    first: np.ndarray


class Targets:
    """Sums over all sequences that were read so far.

    past: float64 [t, answers], log-probability at each temperature of the sequences whose last id
    goes past the end of the answer; ended: float64 [t, answers], of the answer and then the end.
    """

    def __init__(
        self, vocabulary: Vocabulary, answers: Sequence[bytes], n_temperatures: int
    ) -> None:
        self._vocabulary, self._answers = vocabulary, answers
        self.past = np.full((n_temperatures, len(answers)), -np.inf)
        self.ended = self.past.copy()

    def wanted(self, texts: Sequence[bytes], whole: bool) -> Wanted:
        """After sequences that spell these texts: the ids that go past the end of an answer, or,
        where the texts are `whole` answers, those that end a sequence."""
        found = [
            (row, number, self._vocabulary.eos_ids if whole else self._past(answer, text))
            for row, text in enumerate(texts)
            for number, answer in enumerate(self._answers)
            if (answer == text if whole else answer.startswith(text))
        ]
        found = [part for part in found if len(part[2])]
        sizes = np.array([len(ids) for _, _, ids in found], dtype=np.int64)
        rows, answers = (np.array([p[k] for p in found], dtype=np.int64) for k in (0, 1))
        ids = [np.empty(0, dtype=np.int64), *(part[2] for part in found)]
        return Wanted(
            np.repeat(rows, sizes), np.concatenate(ids), answers, np.cumsum(sizes) - sizes
        )

    def _past(self, answer: bytes, text: bytes) -> np.ndarray:
        return self._vocabulary.past(answer[len(text) :])

    def add(self, wanted: Wanted, logs: np.ndarray, whole: bool) -> None:
        """logs: float64 [t, k], of sequences with the id that is looked up after them."""
        if len(wanted.first):
            sums = np.logaddexp.reduceat(logs, wanted.first, axis=1)
            total = self.ended if whole else self.past
            for temperature, column in zip(total, sums, strict=True):
                np.logaddexp.at(temperature, wanted.answers, column)
