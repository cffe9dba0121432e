"""Weighted texts of several languages after one prompt, on one trie: the model reads each sequence
of ids once, whichever method comes by and however often.

    trie = ReadTrie(reader, lift, prompt, temperature)
    texts = draw(Walk(trie, canonical), 1024, 1, longest=64, seed=3)

draws 1,024 populations of one text, which is what independent samples are: text k takes one number
of `shared.batched.uniform(seed, k, ...)` for each id, and is the one that `sample_batch` draws with
these, but for the rounding of the model's own arithmetic. In populations of several texts this is
sequential Monte Carlo, as `bpe_automata.sampling.smc` has it:

    w <- w m_t                       m_t: the mass that the mask leaves, before anything is drawn
    resample if ESS(w) < n / 2       within a population of n, systematically
    x_t ~ p( . | x_<t) under the mask
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from bpe_automata._kernels.bits import members
from bpe_automata.errors import ArgumentError, LogitsError
from bpe_automata.sampling._smc import resample
from bpe_automata.sampling._weights import effective_sample_size, log_normaliser, normalised
from experiments.logprobs import Reader, scores
from experiments.shared.batched import Language, uniform
from experiments.trie import ids_to

ROUND = 64
"""Most nodes that the model reads at a time."""
THRESHOLD = 0.5
"""Resample where the effective sample size is below this share of a population."""


class Weighted(NamedTuple):
    """ids: of a text; log_weight: natural log of the mass that the masks left, of a population's
    text that of the population; -inf for what was cut off."""

    ids: tuple[int, ...]
    log_weight: float


class ReadTrie:
    """An `trie.Tree` that grows as texts are drawn, with what the model expects at its
    nodes. Of that only the ids that the lift allows are kept; every other language of the trie
    allows a part of these."""

    def __init__(
        self, reader: Reader, lift: Language, prompt: Sequence[int], temperature: float
    ) -> None:
        self.parent, self.token, self.depth = [-1], [-1], [0]
        self.prompt = tuple(prompt)
        self._reader, self._temperature = reader, temperature
        self._children: dict[tuple[int, int], int] = {}
        self._log_probs: dict[int, np.ndarray] = {}
        self.lift = Walk(self, lift)

    def __len__(self) -> int:
        """How many nodes the model has read."""
        return len(self._log_probs)

    def child(self, node: int, token: int) -> int:
        """The node after an id; it is made where there is none yet."""
        found = self._children.setdefault((node, token), len(self.parent))
        if found == len(self.parent):
            self.parent.append(node)
            self.token.append(token)
            self.depth.append(self.depth[node] + 1)
        return found

    def read(self, nodes: Iterable[int]) -> None:
        """Ask the model what follows these nodes, where it was not asked before. Raises
        LogitsError."""
        new = np.array(sorted({*nodes} - self._log_probs.keys()), dtype=np.int64)
        for first in range(0, len(new), ROUND):
            part = new[first : first + ROUND]
            ids = [self.lift.allowed(node) for node in part.tolist()]
            sizes = [len(one) for one in ids]
            rows = np.repeat(np.arange(len(part)), sizes)
            logits = self._reader.logits(self, part)
            (found,) = scores(logits, rows, np.concatenate(ids), [self._temperature])
            if np.isnan(found).any():
                raise LogitsError("the model's logits are nan, or inf")
            each = np.split(found, np.cumsum(sizes)[:-1])
            self._log_probs |= zip(part.tolist(), each, strict=True)

    def log_probs(self, node: int, ids: np.ndarray) -> np.ndarray:
        """float64 [k], nats: of these ids (int64 [k], ascending) after a node that was read. Raises
        ArgumentError for an id that the lift does not allow."""
        known = self.lift.allowed(node)
        places = np.minimum(np.searchsorted(known, ids), len(known) - 1)
        if (strange := ids[known[places] != ids]).size:
            raise ArgumentError(f"id {strange[0]} is allowed where the lift does not allow it")
        return self._log_probs[node][places]


class _Step(NamedTuple):
    """What a mask leaves at a node. ids: int64 [k]; log_mass: natural log of their probability;
    cumulated: float64 [k], their probabilities up to each, 1 at the end."""

    ids: np.ndarray
    log_mass: float
    cumulated: np.ndarray


class Walk:
    """A language on a trie: its matchers at the nodes, and what its masks leave there. The language
    has no end-of-sequence: a text ends where nothing can follow it."""

    def __init__(self, trie: ReadTrie, language: Language) -> None:
        self.trie = trie
        self._matchers: dict[int, Any] = {0: language.matcher(trie.prompt)}
        self._bits = np.zeros((1, (language.n_ids + 31) // 32), dtype=np.int32)
        self._allowed: dict[int, np.ndarray] = {}
        self._steps: dict[int, _Step] = {}

    def allowed(self, node: int) -> np.ndarray:
        """int64 [k], ascending: the ids that can follow."""
        if node not in self._allowed:
            self._bits[:] = 0
            self._matcher(node).mask(self._bits, 0)
            self._allowed[node] = members(self._bits[0]).astype(np.int64)
        return self._allowed[node]

    def is_whole(self, node: int) -> bool:
        """Is the text complete, so that nothing can follow?"""
        return not len(self.allowed(node)) and bool(self._matcher(node).is_accepting)

    def step(self, node: int) -> _Step:
        """Of a node that was read, where something can follow. Raises LogitsError."""
        if node not in self._steps:
            ids = self.allowed(node)
            logs = self.trie.log_probs(node, ids)
            log_mass = float(np.logaddexp.reduce(logs))
            if log_mass == -np.inf:
                raise LogitsError(f"the model gives no mass to any of the {len(ids)} ids allowed")
            cumulated = np.cumsum(np.exp(logs - log_mass))
            self._steps[node] = _Step(ids, log_mass, cumulated / cumulated[-1])
        return self._steps[node]

    def _matcher(self, node: int) -> Any:
        if node not in self._matchers:
            found = self._matcher(self.trie.parent[node]).copy()
            found.advance(self.trie.token[node])
            self._matchers[node] = found
        return self._matchers[node]


def draw(walk: Walk, n: int, size: int, longest: int, seed: int) -> list[list[Weighted]]:
    """`n` independent populations of `size` texts of at most `longest` ids; the mean weight of each
    is an unbiased estimate of Z. Raises LogitsError, and ArgumentError for a language that is no
    part of the lift."""
    nodes, logs = np.zeros((n, size), dtype=np.int64), np.zeros((n, size))
    uniforms = np.array([uniform(seed, k, longest) for k in range(n * size)]).reshape(n, size, -1)
    streams = [np.random.default_rng((seed, k, size)) for k in range(n)]
    for step in range(longest):
        goes_on = _by_node(nodes, lambda node: len(walk.allowed(node)) > 0).astype(bool)
        if not goes_on.any():
            break
        walk.trie.read(nodes[goes_on].tolist())
        logs[goes_on] += _by_node(nodes[goes_on], lambda node: walk.step(node).log_mass)
        for k in np.flatnonzero(goes_on.any(axis=1)).tolist():
            if 0 < effective_sample_size(logs[k]) < THRESHOLD * size:
                nodes[k] = nodes[k][resample(normalised(logs[k]), "systematic", streams[k])]
                logs[k] = log_normaliser(logs[k]).value
        _advance(walk, nodes, uniforms[:, :, step])
    whole = _by_node(nodes, walk.is_whole).astype(bool)
    logs = np.where(whole, logs, -np.inf)
    return [
        [Weighted(tuple(ids_to(walk.trie, node)), log) for node, log in zip(*each, strict=True)]
        for each in zip(nodes.tolist(), logs.tolist(), strict=True)
    ]


def _by_node(nodes: np.ndarray, of: Any) -> np.ndarray:
    """float64, of the shape of `nodes`: a function of each, called once for equal ones."""
    each, place = np.unique(nodes, return_inverse=True)
    return np.array([of(node) for node in each.tolist()], dtype=np.float64)[place]


def _advance(walk: Walk, nodes: np.ndarray, uniforms: np.ndarray) -> None:
    """Each text that can go on reads one more id: min { i : p(ids up to i) > number }."""
    for node in np.unique(nodes).tolist():
        if not len(walk.allowed(node)):
            continue
        here, (ids, _, cumulated) = np.nonzero(nodes == node), walk.step(node)
        found = np.searchsorted(cumulated, uniforms[here], side="right")
        nodes[here] = [walk.trie.child(node, token) for token in ids[found].tolist()]
