"""The trie of all id sequences that a few acyclic automata can read.

A language model looks at the whole sequence of ids, not at a state, so its probabilities live on
the nodes of this trie and not on the states of the automata that spanned it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from bpe_automata.errors import BudgetExceededError
from bpe_automata.token_automata import TokenAutomaton


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
        found = []
        while node > 0:
            found.append(int(self.token[node]))
            node = int(self.parent[node])
        return found[::-1]

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
