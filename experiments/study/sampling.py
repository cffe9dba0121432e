"""Samples from each method, to hold against its exact law.

Constrained samples go through the real `Matcher`, step by step, over cached log-probabilities.
Free samples are drawn from the model without any constraint; those that spell an answer are kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bpe_automata import Constraint
from bpe_automata.errors import BpeAutomataError
from experiments.study.path_measures import along_paths
from experiments.study.token_trie import TokenTrie


class SamplerMismatchError(BpeAutomataError):
    """The matcher and the explored automaton disagree: a bug of the library, not of the input."""


@dataclass(frozen=True)
class Step:
    """What can follow a node. `row`: the packed mask seen there; `cumulated`: float64[k]."""

    row: np.ndarray
    children: np.ndarray
    cumulated: np.ndarray


class ConstrainedSampler:
    """Draws answers through a matcher: mask, renormalise, choose, advance.

    `automaton`: the number in `trie.states` of the automaton that the matcher must agree with.
    """

    def __init__(
        self, constraint: Constraint, prompt: list[int], trie: TokenTrie, automaton: int
    ) -> None:
        self._matcher = constraint.matcher(prefix=prompt)
        self._buffer = np.zeros((1, (constraint.n_ids + 31) // 32), dtype=np.int32)
        self._trie, self._alive = trie, trie.alive(automaton)
        self._memo: dict[int, Step] = {}

    def draw(self, log_probs: np.ndarray, rng: np.random.Generator) -> int:
        """One answer, as a leaf of the trie. The matcher is rolled back to the prompt after it."""
        node = depth = 0
        while (step := self._step(node, log_probs)) is not None:
            place = int(np.searchsorted(step.cumulated, rng.random(), side="right"))
            node = int(step.children[min(place, len(step.children) - 1)])
            self._matcher.advance(int(self._trie.token[node]))
            depth += 1
        self._matcher.rollback(depth)
        return node

    def _step(self, node: int, log_probs: np.ndarray) -> Step | None:
        """The options at `node` by the matcher's mask of this moment; None if complete."""
        if self._matcher.is_accepting:
            return None
        self._matcher.mask(self._buffer, 0)
        step = self._memo.get(node)
        if step is None:
            step = self._memo[node] = self._read(node, log_probs)
        elif not np.array_equal(step.row, self._buffer[0]):
            raise SamplerMismatchError(f"two masks for the ids {self._trie.ids(node)}")
        return step

    def _read(self, node: int, log_probs: np.ndarray) -> Step:
        """Decode the mask in the buffer; it must allow the node's living children, no others."""
        row = self._buffer[0].copy()
        allowed = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))
        children = np.flatnonzero((self._trie.parent == node) & self._alive)
        if not np.array_equal(allowed, np.sort(self._trie.token[children])):
            message = f"after {self._trie.ids(node)} the mask allows {allowed.tolist()[:20]}"
            raise SamplerMismatchError(f"{message}, the automaton has other edges")
        weights = np.exp(log_probs[children] - log_probs[children].max())
        return Step(row, children, np.cumsum(weights) / weights.sum())


@dataclass(frozen=True)
class FreeSamples:
    """`passing`: int64[n], how many trials went through each node; `trials`: of how many."""

    passing: np.ndarray
    trials: int


def sample_free(
    trie: TokenTrie, log_probs: np.ndarray, wanted: int, rng: np.random.Generator
) -> FreeSamples:
    """Unconstrained trials, until at least `wanted` of them spell an answer.

    None are made if they would not fit 64 bits (a random model may never write an answer).

    The answers may be so unlikely that billions of trials are needed. They are not drawn one by
    one: the number of trials that take each edge out of a node is multinomial, so all trials are
    split down the trie at once, which has the same law. The rest of each node leaves the trie and
    is rejected. When to stop depends on how many were accepted, not on which, so the accepted ones
    are independent draws from the law of the answers.
    """
    total, trials = np.zeros(len(trie), dtype=np.int64), 0
    leaves = trie.leaves()
    mass = float(np.exp(along_paths(trie, log_probs)[leaves]).sum())
    if mass < wanted / 2**60:
        return FreeSamples(total, 0)
    while (missing := wanted - int(total[leaves].sum())) > 0:
        count = int(np.ceil(missing / mass))
        total += _split(trie, log_probs, count, rng)
        trials += count
    return FreeSamples(total, trials)


def _split(
    trie: TokenTrie, log_probs: np.ndarray, count: int, rng: np.random.Generator
) -> np.ndarray:
    """int64[n]: how many of `count` trials pass through each node."""
    passing = np.zeros(len(trie), dtype=np.int64)
    passing[0] = count
    for node in trie.inner():
        children = np.flatnonzero(trie.parent == node)
        shares = np.exp(log_probs[children])
        rest = max(0.0, 1.0 - float(shares.sum()))
        shares = np.append(shares, rest) / (shares.sum() + rest)
        passing[children] = rng.multinomial(passing[node], shares)[:-1]
    return passing
