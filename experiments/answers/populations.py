"""What a few weighted particles give, simulated on a trie whose log-probabilities are known.

- *importance*: n sequences drawn under the mask, each with the weight p / q that
  `bpe_automata.sampling.weighted` gives it; one of them is taken in proportion to the weights;
- *SMC*: the same with resampling on the way, as in `bpe_automata.sampling._smc`: systematic, where
  the effective sample size is below half of n.

The distribution of the sequence that is taken is the mean, over many such populations, of their
weighted distributions. An open node is treated as if the rest of its only answer had probability 1;
a row of the study says how often that happens.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from experiments.answers.distributions import Explored
from experiments.trie import along_paths, masked_steps

PARTICLES = (8, 32)
"""Of a population."""
THRESHOLD = 0.5
"""Resample where the effective sample size is below this share of the particles."""
LOWEST = -1e300
"""A log weight that stands for -inf where differences are taken."""


class Estimated(NamedTuple):
    """distribution: float64 [n], the mean over populations; error: float64 [n], its standard
    error."""

    distribution: np.ndarray
    error: np.ndarray


class _Families(NamedTuple):
    """The children of each parent side by side. number: int64 [nodes], of a parent's family;
    children: int64 [k]; cumulated: float64 [k], the family's number + cumulated probability;
    last: int64 [families], the place of the last child."""

    number: np.ndarray
    children: np.ndarray
    cumulated: np.ndarray
    last: np.ndarray


class Populations:
    """Populations of one method at one temperature. scores: float64 [nodes], log-probabilities of
    the model; alive: bool [nodes], what the method allows; n: number of answers."""

    def __init__(self, found: Explored, scores: np.ndarray, alive: np.ndarray, n: int) -> None:
        self._found, self._alive, self._n, self._scores = found, alive, n, scores
        self._steps = masked_steps(found.trie, scores, alive)
        self._ends = alive & (found.complete | found.open)

    def importance(self, particles: int, count: int, rng: np.random.Generator) -> Estimated:
        """`count` populations of independent particles."""
        leaves = np.flatnonzero(self._ends)
        paths = along_paths(self._found.trie, self._steps)[leaves]
        own = along_paths(self._found.trie, self._scores)[leaves]
        drawn = _draw(np.exp(paths), (count, particles), rng)
        return self._estimated(leaves[drawn], (own - paths)[drawn])

    def smc(self, particles: int, count: int, rng: np.random.Generator) -> Estimated:
        """`count` populations that are resampled on their way."""
        nodes = np.zeros((count, particles), dtype=np.int64)
        weights = np.zeros((count, particles))
        while (going := ~self._stops[nodes]).any():
            weights += np.where(going, self._log_left[nodes], 0.0)
            poor = _effective(weights) < THRESHOLD * particles
            if poor.any():
                chosen = _systematic(weights[poor], rng)
                nodes[poor] = np.take_along_axis(nodes[poor], chosen, axis=1)
                level = np.logaddexp.reduce(weights[poor], axis=1) - np.log(particles)
                weights[poor] = level[:, None]
            going = ~self._stops[nodes]
            nodes[going] = self._next(nodes[going], rng)
        return self._estimated(nodes, weights)

    @cached_property
    def _log_left(self) -> np.ndarray:
        """float64 [nodes]: log of the mass that the mask leaves, of nodes that do not stop."""
        nodes = np.flatnonzero(self._alive)[1:]
        left = np.full(len(self._alive), -np.inf)
        np.logaddexp.at(left, self._found.trie.parent[nodes], self._scores[nodes])
        return left

    @cached_property
    def _stops(self) -> np.ndarray:
        """bool [nodes]: nothing that is alive follows."""
        return np.isneginf(self._log_left)

    @cached_property
    def _families(self) -> _Families:
        nodes = np.flatnonzero(self._alive)[1:]
        parents = self._found.trie.parent[nodes]
        order = np.argsort(parents, kind="stable")
        nodes, parents = nodes[order], parents[order]
        having, first, family = np.unique(parents, return_index=True, return_inverse=True)
        number = np.zeros(len(self._alive), dtype=np.int64)
        number[having] = np.arange(len(having))
        total = np.concatenate([[0.0], np.cumsum(np.exp(self._steps[nodes]))])
        within = np.minimum(total[1:] - total[first][family], 1.0)
        last = np.append(first[1:], len(nodes)) - 1
        return _Families(number, nodes, family + within, last)

    def _next(self, nodes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """One step of each particle."""
        families = self._families
        family = families.number[nodes]
        place = np.searchsorted(families.cumulated, family + rng.random(len(nodes)), side="right")
        # The cumulated probability of a last child may have been rounded to below 1.
        return families.children[np.minimum(place, families.last[family])]

    def _estimated(self, nodes: np.ndarray, log_weights: np.ndarray) -> Estimated:
        """nodes, log_weights: [populations, particles]."""
        answers = self._found.answer[nodes]
        usable = np.where(self._ends[nodes] & (answers >= 0), log_weights, -np.inf)
        highest = usable.max(axis=1, keepdims=True)
        weights = np.exp(usable - np.maximum(highest, LOWEST))
        total = weights.sum(axis=1, keepdims=True)
        shares = weights / np.where(total > 0, total, 1.0)
        distributions = np.zeros((len(nodes), self._n))
        np.add.at(distributions, (np.arange(len(nodes))[:, None], np.maximum(answers, 0)), shares)
        return Estimated(
            distributions.mean(axis=0), distributions.std(axis=0) / np.sqrt(len(distributions))
        )


def _draw(distribution: np.ndarray, shape: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    """Indices drawn from a distribution that may be a little off 1."""
    total = np.cumsum(distribution)
    found = np.searchsorted(total, rng.random(shape) * total[-1], side="right")
    return np.minimum(found, len(distribution) - 1)


def _effective(log_weights: np.ndarray) -> np.ndarray:
    """float64 [populations]: (sum w)^2 / sum w^2."""
    weights = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))
    return weights.sum(axis=1) ** 2 / (weights**2).sum(axis=1)


def _systematic(log_weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """int64 [populations, particles]: who goes on."""
    weights = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))
    total = np.cumsum(weights, axis=1)
    total /= total[:, -1:]
    count, n = weights.shape
    points = (np.arange(n) + rng.random((count, 1))) / n
    row = np.arange(count)[:, None]
    found = np.searchsorted((total + row).ravel(), (points + row).ravel(), side="right")
    return np.minimum(found.reshape(count, n) - row * n, n - 1)
