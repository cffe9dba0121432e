"""The part of the trie of all tokenizations that matters, found with the model, best first.

The trie of an answer of twenty letters has tens of thousands of nodes, and nearly all of them have
next to no probability under any method. A node is *open* as long as the model was not asked what
follows it. Open nodes are asked in order of what they leave uncertain, until

    1   under each method, the probability of ending in an open node from which several answers can
        still come is below `laws` (where only one can, the method's law needs no more);
    2   the model's own probability of all open nodes, relative to that of the complete answers, is
        below `laws`;
    3   at the temperature of the draws, the probability of ending in any open node is below
        `paths`, under each method

or `most_nodes` were asked. What is left is known exactly, and stands beside each law as its slack.
Small tries are thereby summed up completely.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from experiments.study.token_trie import TokenTrie, Walker, children
from experiments.study.tree_logprobs import Reader, scores

Spelled = Callable[[int, int | None], bytes]
"""(id, the id before it, None at the beginning of the prompt) -> the bytes that it adds."""

ROUND = 64
"""Most nodes that the model is asked about at a time."""


@dataclass(frozen=True)
class Aims:
    """See above. draws: number of the temperature in which 3 holds."""

    laws: float
    paths: float
    most_nodes: int
    draws: int = 0


@dataclass(frozen=True)
class Explored:
    """`trie.states[:, m]`: of method m.

    scores: float64 [t, n], log-probability of each node's id at each temperature; complete: bool
    [n], the node is an answer; open: bool [n]; answer: int64 [n], the only answer that can come of
    the node, -1 where several can; asked: how many nodes the model was asked about.
    """

    trie: TokenTrie
    scores: np.ndarray
    complete: np.ndarray
    open: np.ndarray
    answer: np.ndarray
    asked: int


def explore(
    reader: Reader,
    walkers: Sequence[Walker],
    answers: Sequence[bytes],
    spelled: Spelled,
    last: int,
    heats: np.ndarray,
    aims: Aims,
) -> Explored:
    """last: the prompt's last id; heats: float64 [t], temperatures. Raises PromptError."""
    tree = _Growing(walkers, answers, spelled, last, heats)
    asked = 0
    while asked < aims.most_nodes:
        chosen = tree.urgent(aims)[: aims.most_nodes - asked]
        if not len(chosen):
            break
        tree.expand(chosen, reader)
        asked += len(chosen)
    return tree.frozen(asked)


class _Growing:
    """The nodes so far. free: float64 [n, t], log-probability of each under the model; masked:
    float64 [n, methods, t], under each method, -inf where that cannot read it."""

    def __init__(
        self,
        walkers: Sequence[Walker],
        answers: Sequence[bytes],
        spelled: Spelled,
        last: int,
        heats: np.ndarray,
    ) -> None:
        self._walkers, self._spelled, self._last, self._heats = walkers, spelled, last, heats
        self._only = _only_answers(answers)
        self._whole = frozenset(answers)
        self.parent, self.token, self.depth = [-1], [-1], [0]
        self._text = [b""]
        self._states = [tuple(walker.start for walker in walkers)]
        self._scores = [np.zeros((1, len(heats)))]
        self.free = np.zeros((1, len(heats)))
        self.masked = np.zeros((1, len(walkers), len(heats)))
        self.open, self.complete = np.ones(1, dtype=bool), np.zeros(1, dtype=bool)
        self.answer = np.array([self._only[b""]])

    def urgent(self, aims: Aims) -> np.ndarray:
        """The open nodes to be asked next, ascending; none where all aims are met."""
        nodes = np.flatnonzero(self.open)
        methods, own = np.exp(self.masked[nodes]), np.exp(self.free[nodes])
        total = np.exp(self.free[self.complete]).sum(axis=0)
        total = np.where(total > 0, total, own.sum(axis=0))
        several = self.answer[nodes] < 0
        parts = [
            methods.max(axis=(1, 2)) * several / aims.laws,
            (own / np.where(total > 0, total, 1.0)).max(axis=1) / aims.laws,
            methods[:, :, aims.draws].max(axis=1) / aims.paths,
        ]
        urgency = np.max(parts, axis=0)
        order = np.argsort(urgency)
        left = np.cumsum(urgency[order])
        chosen = order[left > 1][-ROUND:]
        return np.sort(nodes[chosen])

    def expand(self, nodes: np.ndarray, reader: Reader) -> None:
        """Ask the model what follows these nodes, and add what can."""
        each = [children(self._walkers, self._states[node]) for node in nodes.tolist()]
        logits = reader.logits(self, nodes)
        rows = np.repeat(np.arange(len(nodes)), [len(found) for found in each])
        tokens = np.array([token for found in each for token, _ in found], dtype=np.int64)
        steps = scores(logits, rows, tokens, self._heats).T
        states = [after for found in each for _, after in found]
        parents = nodes[rows]
        self._measure(parents, steps, np.array(states).reshape(len(states), len(self._walkers)))
        for parent, token, after in zip(parents.tolist(), tokens.tolist(), states, strict=True):
            self._add(parent, token, after)
        self.open[nodes] = False
        new = self._text[len(self.open) :]
        complete = np.array([text in self._whole for text in new], dtype=bool)
        self.complete = np.concatenate([self.complete, complete])
        self.open = np.concatenate([self.open, ~complete])
        self.answer = np.concatenate([self.answer, [self._only[text] for text in new]])

    def _measure(self, parents: np.ndarray, steps: np.ndarray, states: np.ndarray) -> None:
        """Probabilities of new nodes. steps: [k, t]; states: [k, methods]."""
        kept = np.where(states[:, :, None] >= 0, steps[:, None, :], -np.inf)
        left = np.full((len(self.parent), *kept.shape[1:]), -np.inf)
        np.logaddexp.at(left, parents, kept)
        with np.errstate(invalid="ignore"):
            renormalised = np.where(kept > -np.inf, kept - left[parents], -np.inf)
        self._scores.append(steps)
        self.free = np.concatenate([self.free, self.free[parents] + steps])
        self.masked = np.concatenate([self.masked, self.masked[parents] + renormalised])

    def _add(self, parent: int, token: int, states: tuple[int, ...]) -> None:
        before = self.token[parent] if parent else self._last
        self.parent.append(parent)
        self.token.append(token)
        self.depth.append(self.depth[parent] + 1)
        self._text.append(self._text[parent] + self._spelled(token, before))
        self._states.append(states)

    def frozen(self, asked: int) -> Explored:
        """As arrays."""
        columns = (self.parent, self.token, self.depth, self._states)
        trie = TokenTrie(*(np.array(column) for column in columns))
        steps = np.concatenate(self._scores).T
        return Explored(trie, steps, self.complete, self.open, self.answer, asked)


def _only_answers(answers: Sequence[bytes]) -> dict[bytes, int]:
    """Each beginning of an answer -> the number of the only answer that it begins, else -1."""
    found: dict[bytes, int] = {}
    for number, answer in enumerate(answers):
        for end in range(len(answer) + 1):
            begun = answer[:end]
            found[begun] = -1 if found.get(begun, number) != number else number
    return found
