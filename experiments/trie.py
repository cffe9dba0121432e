"""The trie of all sequences of ids that a few acyclic automata can read, and the distributions of
decoding methods on it.

A language model looks at the whole sequence of ids, not at a state, so its probabilities live on
the nodes of this trie and not on the states of the automata. Free: the probability of a path is the
product of the model's own. Masked: at each step these are renormalised over the ids that the
automaton allows. Logarithms and divergences are in nats.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from bpe_automata._token_automata.automaton import TokenAutomaton
from bpe_automata.errors import BudgetExceededError

Row = dict[str, Any]


class Walker(Protocol):
    """An acyclic automaton over ids whose states are numbers, asked for one by one."""

    @property
    def start(self) -> int:
        """The state before any id."""

    def out(self, state: int) -> Mapping[int, int]:
        """The ids that a state can read, with the states they lead to."""


@dataclass(frozen=True)
class Automaton:
    """`edges[q]`: the ids that state q can read, with the states they lead to; `start`: a state."""

    start: int
    edges: tuple[dict[int, int], ...]

    def out(self, state: int) -> Mapping[int, int]:
        return self.edges[state]

    @property
    def n_states(self) -> int:
        return len(self.edges)

    @property
    def n_transitions(self) -> int:
        return sum(len(out) for out in self.edges)


class Tree(Protocol):
    """Nodes with parents before their children; node 0 is the root. It may grow at its end."""

    @property
    def parent(self) -> Sequence[int] | np.ndarray:
        """Of each node (root: -1)."""

    @property
    def token(self) -> Sequence[int] | np.ndarray:
        """The id that leads from its parent to each node (root: -1)."""

    @property
    def depth(self) -> Sequence[int] | np.ndarray:
        """Ids from the root to each node."""


def ids_to(tree: Tree, node: int) -> list[int]:
    """The ids from the root to a node."""
    found = []
    while node > 0:
        found.append(int(tree.token[node]))
        node = int(tree.parent[node])
    return found[::-1]


@dataclass(frozen=True)
class TokenTrie:
    """Nodes with parents before their children; node 0 is the root, the empty sequence.

    `parent`: int64[n], the node that an id was added to (root: -1).
    `token`: int64[n], that id (root: -1).
    `depth`: int64[n], length of the sequence.
    `states`: int64[n, a], the state of each automaton after the sequence, -1 if it cannot read it.
    """

    parent: np.ndarray
    token: np.ndarray
    depth: np.ndarray
    states: np.ndarray

    def __len__(self) -> int:
        return len(self.parent)

    def ids(self, node: int) -> list[int]:
        """The sequence that `node` stands for."""
        return ids_to(self, node)

    def inner(self) -> np.ndarray:
        """int64[k]: the nodes that have a child, ascending. Only these need the model."""
        return np.unique(self.parent[1:])

    def leaves(self) -> np.ndarray:
        """int64[k]: the nodes without a child, ascending; the complete answers, where the trie is
        whole."""
        return np.setdiff1d(np.arange(len(self)), self.inner())

    def alive(self, automaton: int) -> np.ndarray:
        """bool[n]: the sequences that automaton number `automaton` can read."""
        return self.states[:, automaton] >= 0


def automaton_of(explored: TokenAutomaton) -> Automaton:
    """The adjacency of an explicit automaton."""
    edges: list[dict[int, int]] = [{} for _ in explored.states()]
    for source, token, target in explored.transitions():
        edges[source][token] = target
    return Automaton(explored.start, tuple(edges))


def unroll(automata: Sequence[Walker], max_nodes: int = 200_000) -> TokenTrie:
    """The trie of { w : at least one of `automata` can read w }, in depth-first preorder.

    The automata must be acyclic and trimmed. Raises `BudgetExceededError` above `max_nodes`.
    """
    nodes: list[tuple[int, int, int, tuple[int, ...]]] = []
    todo = [(-1, -1, 0, tuple(automaton.start for automaton in automata))]
    while todo:
        node, here = len(nodes), todo.pop()
        nodes.append(here)
        if node + len(todo) > max_nodes:
            advice = "the answers have too many tokenizations; make them shorter or fewer"
            raise BudgetExceededError("trie nodes", max_nodes, advice)
        # A stack: the last one that is put on it comes first.
        for token, states in reversed(children(automata, here[3])):
            todo.append((node, token, here[2] + 1, states))
    parent, token_, depth, states_ = (np.array(column) for column in zip(*nodes, strict=True))
    return TokenTrie(parent, token_, depth, states_)


def children(
    automata: Sequence[Walker], states: tuple[int, ...]
) -> list[tuple[int, tuple[int, ...]]]:
    """(id, next states), ascending by id; a state of -1 reads nothing."""
    outs = [a.out(q) if q >= 0 else {} for a, q in zip(automata, states, strict=True)]
    ids = sorted({token for out in outs for token in out})
    return [(token, tuple(out.get(token, -1) for out in outs)) for token in ids]


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


def size_of(automaton: Automaton, trie: TokenTrie, alive: np.ndarray, paths: np.ndarray) -> Row:
    """An automaton in numbers. steps: states that still have to read an id; forced: those of them
    with one option only; expected_steps, expected_forced: per answer written, under the method's
    own distribution. `paths`: float64[n], log-probability of each node under it."""
    options = np.bincount(trie.parent[1:][alive[1:]], minlength=len(trie))
    reached = np.where(options > 0, np.exp(paths), 0.0)
    degrees = [len(out) for out in automaton.edges if out]
    return {
        "states": automaton.n_states,
        "transitions": automaton.n_transitions,
        "steps": len(degrees),
        "forced": degrees.count(1),
        "expected_steps": float(reached.sum()),
        "expected_forced": float(reached[options == 1].sum()),
    }
