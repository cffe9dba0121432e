"""The distributions of all methods over the answers of one case, from the part of the trie of all
tokenizations that matters, and how far each is from the free distribution.

At temperature T the model's probability of a sequence is the product of softmax(logits / T) over
its ids.

- *free*: each answer summed over all its tokenizations, given that the model writes an answer
  (where no other target of `targets` is named);
- a method's distribution: each step renormalised over the ids that the method allows;
- a method's *weighted* distribution: what self-normalised importance weights or SMC converge to,
  the model given the sequences that the method can write. For the lift that is the free
  distribution; for canonical it is the free distribution given canonical ids.

Errors are total variation distances to the free distribution, and they are taken apart so:

    TV(lift) = [TV(lift) - TV(canonical)] + [TV(canonical) - TV(weighted)] + TV(weighted)
                 tokenization, may be < 0     myopia of masking, may be < 0    rest

where "weighted" is canonical with weights. The rest is the effect of the free mass that is not
canonical, which no method over canonical ids can have.

The outcomes are the answers and *no answer*: the probability that a method loses in dead ends is
that of the latter, which is 0 under the free distribution. It counts in the distance; the
divergence KL(free || distribution) has no term of it. Weighted distributions lose nothing: a
sequence that is no answer has weight 0. The lift and canonical have no dead ends.

The trie of an answer of twenty letters has tens of thousands of nodes, and nearly all of them have
next to no probability under any method, so it is searched best first. A node is *open* until the
model has been asked what follows it. Open nodes are asked in order of what they leave uncertain,
until either `most_nodes` were asked or

    1   under each method, the probability of ending in an open node from which several answers can
        still come is below `distributions` (where only one can, the method's distribution is
        already known);
    2   the model's own probability of all open nodes, relative to that of the complete answers, is
        below `distributions`;
    3   at the temperature of the draws, the probability of ending in any open node is below
        `paths`, under each method.

How much is left open is known exactly, and stands beside each distribution as its slack. Small
tries are thereby summed up completely. Then the model is asked what it expects after complete
answers, the likeliest first, until the others are, relative to all of them, below `distributions`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.answers.targets import COMPLETE, PREFIX, Targets, Vocabulary
from experiments.logprobs import Reader, scores
from experiments.run.executors import Row
from experiments.trie import (
    TokenTrie,
    Walker,
    along_paths,
    children,
    kl_divergence,
    masked_steps,
    normalised,
    per_answer,
    total_variation,
)

Spelled = Callable[[int, int | None], bytes]
"""(id, the id before it, None at the beginning of the prompt) -> the bytes that it adds."""

ROUND = 64
"""Most nodes that the model is asked about at a time."""


@dataclass(frozen=True)
class Aims:
    """See above. draws: number of the temperature in which 3 holds."""

    distributions: float
    paths: float
    most_nodes: int
    draws: int = 0


@dataclass(frozen=True)
class Explored:
    """`trie.states[:, m]`: of method m.

    scores: float64 [t, n], log-probability of each node's id at each temperature; complete: bool
    [n], the node is an answer; open: bool [n]; answer: int64 [n], the only answer that can come of
    the node, -1 where several can; asked: how many nodes the model was asked about; targets: see
    there; unended: float64 [t], log-probability of the complete answers after which it was not.
    """

    trie: TokenTrie
    scores: np.ndarray
    complete: np.ndarray
    open: np.ndarray
    answer: np.ndarray
    asked: int
    targets: Targets
    unended: np.ndarray


def explore(
    reader: Reader,
    walkers: Sequence[Walker],
    answers: Sequence[bytes],
    spelled: Spelled,
    last: int,
    temperatures: np.ndarray,
    aims: Aims,
    vocabulary: Vocabulary,
) -> Explored:
    """last: the prompt's last id; temperatures: float64 [t]. Raises PromptError."""
    tree = _Growing(walkers, answers, spelled, last, temperatures, vocabulary)
    asked = 0
    while len(chosen := tree.urgent(aims)[: aims.most_nodes - asked]):
        tree.expand(chosen, reader)
        asked += len(chosen)
    likely = tree.likely_answers(aims.distributions)
    for k in range(0, len(likely), ROUND):
        tree.end(np.sort(likely[k : k + ROUND]), reader)
    return tree.frozen(asked + len(likely))


class _Growing:
    """The nodes so far. free: float64 [n, t], log-probability of each under the model; masked:
    float64 [n, methods, t], under each method, -inf where that cannot read it."""

    def __init__(
        self,
        walkers: Sequence[Walker],
        answers: Sequence[bytes],
        spelled: Spelled,
        last: int,
        temperatures: np.ndarray,
        vocabulary: Vocabulary,
    ) -> None:
        self._walkers, self._spelled, self._last = walkers, spelled, last
        self._temperatures = temperatures
        self._targets = Targets(vocabulary, answers, len(temperatures))
        self._only = _only_answers(answers)
        self._whole = frozenset(answers)
        self.parent, self.token, self.depth = [-1], [-1], [0]
        self._text = [b""]
        self._states = [tuple(walker.start for walker in walkers)]
        self._scores = [np.zeros((1, len(temperatures)))]
        self.free = np.zeros((1, len(temperatures)))
        self.masked = np.zeros((1, len(walkers), len(temperatures)))
        self.open, self.complete = np.ones(1, dtype=bool), np.zeros(1, dtype=bool)
        self.answer = np.array([self._only[b""]])
        self._ended = np.zeros(0, dtype=np.int64)

    def urgent(self, aims: Aims) -> np.ndarray:
        """The open nodes to be asked next, ascending; none where all aims are met."""
        nodes = np.flatnonzero(self.open)
        methods, own = np.exp(self.masked[nodes]), np.exp(self.free[nodes])
        total = np.exp(self.free[self.complete]).sum(axis=0)
        total = np.where(total > 0, total, own.sum(axis=0))
        several = self.answer[nodes] < 0
        parts = [
            methods.max(axis=(1, 2)) * several / aims.distributions,
            (own / np.where(total > 0, total, 1.0)).max(axis=1) / aims.distributions,
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
        steps = self._read(logits, nodes, rows, tokens, whole=False).T
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

    def _read(
        self, logits: Any, nodes: np.ndarray, rows: np.ndarray, tokens: np.ndarray, whole: bool
    ) -> np.ndarray:
        """Log-probabilities, float64 [t, k], of id tokens[i] after node nodes[rows[i]]. On the way
        the nodes are added to the targets. whole: they are complete answers."""
        wanted = self._targets.wanted([self._text[node] for node in nodes.tolist()], whole)
        every_row = np.concatenate([rows, wanted.rows])
        found = scores(
            logits, every_row, np.concatenate([tokens, wanted.tokens]), self._temperatures
        )
        steps, last = np.split(found, [len(rows)], axis=1)
        self._targets.add(wanted, self.free[nodes[wanted.rows]].T + last, whole)
        return steps

    def likely_answers(self, left_out: float) -> np.ndarray:
        """The complete answers, the likeliest first, without those whose probability is, taken
        together, below that share of all, at each temperature."""
        nodes = np.flatnonzero(self.complete)
        own = np.exp(self.free[nodes] - np.logaddexp.reduce(self.free[nodes], axis=0))
        shares = own.max(axis=1) if len(nodes) else np.zeros(0)
        order = np.argsort(-shares)
        rest = np.cumsum(shares[order][::-1])[::-1]
        return nodes[order[rest > left_out]]

    def end(self, nodes: np.ndarray, reader: Reader) -> None:
        """Ask the model for end-of-sequence after these nodes, which are complete answers."""
        none = np.empty(0, dtype=np.int64)
        self._read(reader.logits(self, nodes), nodes, none, none, whole=True)
        self._ended = np.concatenate([self._ended, nodes])

    def _measure(self, parents: np.ndarray, steps: np.ndarray, states: np.ndarray) -> None:
        """Probabilities of new nodes. steps: [k, t]; states: [k, methods]."""
        allowed = np.where(states[:, :, None] >= 0, steps[:, None, :], -np.inf)
        mass = np.full((len(self.parent), *allowed.shape[1:]), -np.inf)
        np.logaddexp.at(mass, parents, allowed)
        with np.errstate(invalid="ignore"):
            renormalised = np.where(allowed > -np.inf, allowed - mass[parents], -np.inf)
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
        silent = self.complete.copy()
        silent[self._ended] = False
        unended = np.logaddexp.reduce(self.free[silent], axis=0, initial=-np.inf)
        targets = self._targets
        return Explored(trie, steps, self.complete, self.open, self.answer, asked, targets, unended)


def _only_answers(answers: Sequence[bytes]) -> dict[bytes, int]:
    """Each beginning of an answer -> the number of the only answer that it begins, else -1."""
    found: dict[bytes, int] = {}
    for number, answer in enumerate(answers):
        for end in range(len(answer) + 1):
            begun = answer[:end]
            found[begun] = -1 if found.get(begun, number) != number else number
    return found


ROUNDING = 1e-9
"""Probability that is taken for none."""
Probabilities = Sequence[float] | np.ndarray
"""A distribution in the order of the answers."""


def distributions(
    found: Explored,
    number: int,
    methods: Sequence[str],
    n: int,
    right: Sequence[int],
    unsure: Collection[str] = (),
) -> Row:
    """All that is known at one temperature. number: its place among them; methods: names of
    `states`' columns, "lift" first; n: number of answers; right: the numbers of those that are
    right; unsure: methods that may run into a dead end.

    slack: probability of a method's distribution that is not assigned to an answer, or that a dead
    end may still take from it where the method is `unsure`; unread: of ending in a node that was
    not asked; lost: of a dead end."""
    own = along_paths(found.trie, found.scores[number])
    mass = per_leaf(found, found.complete, own, n)
    free = normalised(mass)
    result: Row = {
        "free": free.tolist(),
        "log10_mass": float(np.logaddexp.reduce(mass) / np.log(10)),
        "free_slack": _slack(found, own, np.ones(len(own), dtype=bool)),
        "targets": _targets(found, number, mass, own),
        **judged(free, free, right, ""),
        "methods": {},
    }
    for column, method in enumerate(methods):
        alive = found.trie.alive(column)
        ends = alive & (found.complete | found.open)
        steps = masked_steps(found.trie, found.scores[number], alive)
        paths = along_paths(found.trie, steps)
        logs = per_leaf(found, ends, paths, n)
        lost = 1.0 - _sum(paths[ends])
        lost = lost if lost > ROUNDING else 0.0
        undecided = ends & ((found.answer < 0) | (found.open & (method in unsure)))
        written = per_leaf(found, found.complete & alive, own, n)
        limit = normalised(written)
        with np.errstate(divide="ignore"):
            limit_logs = np.log(limit)
        result["methods"][method] = {
            "slack": _sum(paths[undecided]),
            "unread": _sum(paths[alive & found.open]),
            "lost": lost,
            "law": np.exp(logs).tolist(),
            "tv": tv_between(free, np.exp(logs), lost),
            "kl": _finite(kl_divergence(free, logs)),
            **judged(np.exp(logs), free, right, ""),
            "share": float(np.exp(np.logaddexp.reduce(written) - np.logaddexp.reduce(mass))),
            "weighted": limit.tolist(),
            "weighted_tv": total_variation(free, limit),
            "weighted_kl": _finite(kl_divergence(free, limit_logs)),
            "weighted_slack": _slack(found, own, alive),
            **judged(limit, free, right, "weighted_"),
        }
    return result


def _targets(found: Explored, number: int, mass: np.ndarray, own: np.ndarray) -> Row:
    """The free distribution under the other targets. mass: float64 [n], log-probability of each
    answer as a sequence. slack: how far the distribution may be from exact, at most: what may be
    missing, relative to what is there. At 1 nothing is known of it, and the mass is a bound
    alone."""
    open_mass = np.logaddexp.reduce(own[found.open], initial=-np.inf)
    unended = np.logaddexp(open_mass, found.unended[number])
    logs = {
        PREFIX: (np.logaddexp(mass, found.targets.past[number]), open_mass),
        COMPLETE: (found.targets.ended[number], unended),
    }
    return {
        target: {
            "free": normalised(each).tolist(),
            "log10_mass": float(np.logaddexp.reduce(each) / np.log(10)),
            "slack": float(np.exp(min(0.0, missing - np.logaddexp.reduce(each)))),
        }
        for target, (each, missing) in logs.items()
    }


def per_leaf(found: Explored, leaves: np.ndarray, paths: np.ndarray, n: int) -> np.ndarray:
    """float64 [n]: log of the summed probability of those leaves (bool) whose answer is known."""
    nodes = np.flatnonzero(leaves & (found.answer >= 0))
    return per_answer(nodes, found.answer[nodes], paths, n)


def judged(distribution: np.ndarray, free: np.ndarray, right: Sequence[int], before: str) -> Row:
    """Probability of the right answers, whether the likeliest answer is one of them (None where
    nothing is known), and whether it is the free distribution's. before: the names of these."""
    best = int(np.argmax(distribution))
    known = bool(right)
    return {
        f"{before}p_right": float(distribution[list(right)].sum()) if known else None,
        f"{before}is_right": best in right if known else None,
        f"{before}same_answer": best == int(np.argmax(free)),
    }


def tv_between(p: Probabilities, q: Probabilities, lost: float = 0.0) -> float:
    """Total variation distance of two distributions in the order of the answers. lost: probability
    of no answer, under one of the two."""
    return total_variation(np.array(p), np.array(q)) + lost / 2


def _slack(found: Explored, own: np.ndarray, alive: np.ndarray) -> float:
    """The model's probability of open nodes, relative to that of the complete ones."""
    complete = np.logaddexp.reduce(own[found.complete & alive])
    return float(np.exp(np.logaddexp.reduce(own[found.open & alive]) - complete))


def _sum(log_values: np.ndarray) -> float:
    return float(np.exp(log_values).sum())


def _finite(value: float) -> float | None:
    """None for infinity: an answer that the model would give has probability 0, or what of it was
    found has, where a distribution has slack."""
    return value if np.isfinite(value) else None
