"""The law of each decoding method on a trie, and how far apart two laws are. All in nats.

Free: P(path) is the product of the model's own probabilities. Masked: at each step the model's
probabilities are renormalised over the ids that the automaton allows.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from experiments.study.token_trie import Automaton, TokenTrie


def masked_steps(trie: TokenTrie, log_probs: np.ndarray, alive: np.ndarray) -> np.ndarray:
    """float64[n]: log-probability of each node's id, renormalised over its living siblings.

    `log_probs`: float64[n], the model's own; `alive`: bool[n]; -inf where not alive.
    """
    nodes = np.flatnonzero(alive)
    nodes = nodes[nodes > 0]
    total = np.full(len(trie), -np.inf)
    np.logaddexp.at(total, trie.parent[nodes], log_probs[nodes])
    result = np.full(len(trie), -np.inf)
    result[0] = 0.0
    result[nodes] = log_probs[nodes] - total[trie.parent[nodes]]
    return result


def along_paths(trie: TokenTrie, steps: np.ndarray) -> np.ndarray:
    """float64[n]: the sum of `steps` from the root to each node; `steps[0]` must be 0."""
    total = steps.copy()
    order = np.argsort(trie.depth, kind="stable")
    ends = np.cumsum(np.bincount(trie.depth))
    for first, last in pairwise(ends):
        nodes = order[first:last]
        total[nodes] += total[trie.parent[nodes]]
    return total


def per_answer(leaves: np.ndarray, answer_of: np.ndarray, paths: np.ndarray, n: int) -> np.ndarray:
    """float64[n]: log of the summed probability of the leaves of each of `n` answers.

    `leaves`: int64[k] nodes; `answer_of`: int64[k]; `paths`: float64, log-probability per node.
    """
    total = np.full(n, -np.inf)
    np.logaddexp.at(total, answer_of, paths[leaves])
    return total


def normalised(log_weights: np.ndarray) -> np.ndarray:
    """exp(log_weights), scaled to sum 1."""
    return np.exp(log_weights - np.logaddexp.reduce(log_weights))


def total_variation(p: np.ndarray, q: np.ndarray) -> float:
    """max over events |p(A) - q(A)| = 1/2 sum |p - q|."""
    return float(np.abs(p - q).sum() / 2)


def kl_divergence(p: np.ndarray, log_q: np.ndarray) -> float:
    """KL(p || q) in nats; `log_q` keeps tiny probabilities exact. Not below 0 for rounding."""
    on = p > 0
    return max(0.0, float(np.sum(p[on] * (np.log(p[on]) - log_q[on]))))


@dataclass(frozen=True)
class Size:
    """An automaton in numbers.

    `steps`: states that still have to read an id. `forced`: those of them with one option only.
    `expected_steps`, `expected_forced`: per answer written, under the method's own law.
    """

    states: int
    transitions: int
    steps: int
    forced: int
    expected_steps: float
    expected_forced: float


def size_of(automaton: Automaton, trie: TokenTrie, alive: np.ndarray, paths: np.ndarray) -> Size:
    """`paths`: float64[n], log-probability of each node under the method's own law."""
    options = np.bincount(trie.parent[1:][alive[1:]], minlength=len(trie))
    reached = np.where(options > 0, np.exp(paths), 0.0)
    degrees = [len(out) for out in automaton.edges if out]
    return Size(
        automaton.n_states,
        automaton.n_transitions,
        len(degrees),
        degrees.count(1),
        float(reached.sum()),
        float(reached[options == 1].sum()),
    )
