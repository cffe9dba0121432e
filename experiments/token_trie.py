"""The trie of all id sequences that a few acyclic automata can read.

A language model looks at the whole sequence of ids, not at a state, so its probabilities live on
the nodes of this trie and not on the states of the automata that spanned it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bpe_automata.errors import BudgetExceededError
from bpe_automata.token_automata import TokenAutomaton


@dataclass(frozen=True)
class Automaton:
    """`edges[q]`: the ids that state q can read, with the states they lead to; `start`: a state."""

    start: int
    edges: tuple[dict[int, int], ...]

    @property
    def n_states(self) -> int:
        return len(self.edges)

    @property
    def n_transitions(self) -> int:
        return sum(len(out) for out in self.edges)


@dataclass(frozen=True)
class TokenTrie:
    """Nodes in depth-first preorder; node 0 is the root, the empty sequence.

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
        """int64[k]: the nodes without a child, ascending: the complete answers."""
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


def unroll(automata: Sequence[Automaton], max_nodes: int = 200_000) -> TokenTrie:
    """The trie of { w : at least one of `automata` can read w }.

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
        for token, states in _children(automata, here[3]):
            todo.append((node, token, here[2] + 1, states))
    parent, token_, depth, states_ = (np.array(column) for column in zip(*nodes, strict=True))
    return TokenTrie(parent, token_, depth, states_)


def _children(
    automata: Sequence[Automaton], states: tuple[int, ...]
) -> list[tuple[int, tuple[int, ...]]]:
    """(id, next states) in descending order of id, so that a stack pops them in ascending order."""
    outs = [a.edges[q] if q >= 0 else {} for a, q in zip(automata, states, strict=True)]
    ids = sorted({token for out in outs for token in out}, reverse=True)
    return [(token, tuple(out.get(token, -1) for out in outs)) for token in ids]
