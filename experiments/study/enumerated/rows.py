"""One case of the study with a listed language: all distributions, exactly or with a bound on what
is missing, and what a few weighted particles give.

The latter is simulated on a trie whose log-probabilities are known:

- *importance*: n sequences drawn under the mask, each with the weight p / q that
  `bpe_automata.sampling.weighted` gives it; one of them is taken in proportion to the weights;
- *SMC*: the same with resampling on the way, as in `bpe_automata.sampling._smc`: systematic, where
  the effective sample size is below half of n.

The distribution of the sequence that is taken is the mean, over many such populations, of their
weighted distributions. An open node is treated as if the rest of its only answer had probability
1; the row says how often that happens.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np

from bpe_automata import Tokenizer
from bpe_automata._decoding.matcher import Healing
from bpe_automata.errors import BudgetExceededError
from experiments.answers.cases import StudyCase, chat_format, prompt_text
from experiments.answers.distributions import (
    Aims,
    Explored,
    distributions,
    explore,
    tv_between,
)
from experiments.answers.logprobs import PROBE, pick_reader
from experiments.answers.methods import Posed, Poser
from experiments.answers.trie import along_paths, masked_steps, unroll
from experiments.run import config
from experiments.run.config import option
from experiments.run.executors import Row
from experiments.shared import models

PARTICLES = (8, 32)
"""Of the populations that are weighted."""


@dataclass(frozen=True)
class Config(config.Config):
    """Which cases under which models, how exactly, and how many samples."""

    models: tuple[str, ...] = option(
        ("smollm2", "gemma-3-270m"), "smollm2, gemma-3-270m, local folders, hub ids"
    )
    cases: tuple[str, ...] = option((), "names or families of cases, all if empty")
    temperatures: tuple[float, ...] = option((0.5, 1.0, 1.5), "what logits are divided by")
    slack: float = option(1e-3, "most probability of a distribution that may stay unassigned")
    unread: float = option(0.05, "most probability of paths that are not followed to their end")
    most_nodes: int = option(1500, "most forward positions per case")
    populations: int = option(1000, "weighted populations per estimate")
    large: int | None = option(1, "larger languages, which are sampled, of each family; none: all")
    samples: int = option(64, "samples per method of a larger language")
    longest: int = option(64, "ids of such a sample")
    batch: int = option(64, "such samples at a time")
    device: Literal["auto", "cpu", "cuda"] = option("auto", "where the models run")
    dtype: Literal["float32", "bfloat16", "float64"] = option("float32", "of the weights")

    def draws(self) -> int:
        """The number of the temperature at which anything is sampled: the one nearest to 1."""
        return min(range(len(self.temperatures)), key=lambda k: abs(self.temperatures[k] - 1))


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


@dataclass(frozen=True)
class Opened:
    """A model with what is made once for it."""

    loaded: models.LoadedModel
    poser: Poser
    reader: Any

    def prompt_ids(self, case: StudyCase) -> list[int]:
        """What the model reads before its answer."""
        return self.loaded.prompt_ids(prompt_text(case, self.loaded.name, self.added()))

    def added(self) -> frozenset[str]:
        """The added tokens: the marks of a chat format are among them."""
        return frozenset(token.content for token in self.loaded.tokenizer.description.added)


@lru_cache(maxsize=1)
def opened(source: str, device: str, dtype: str) -> Opened:
    """Raises what `load_model` raises."""
    loaded = models.opened(source, device, dtype)
    reader = pick_reader(loaded.model, loaded.prompt_ids("The"), PROBE)
    return Opened(loaded, Poser(loaded.tokenizer, loaded.eos_ids), reader)


def model_row(config: Config, source: str) -> Row:
    """Which model it is, by hash."""
    ready = opened(source, config.device, config.dtype)
    return {
        "kind": "model",
        "source": source,
        **ready.loaded.provenance(),
        "dtype": config.dtype,
        "reader": ready.reader.__name__,
        "chat_format": chat_format(ready.loaded.name, ready.added()),
    }


def finite_row(config: Config, source: str, case: StudyCase) -> Row:
    """All that is said of one case under one model."""
    ready = opened(source, config.device, config.dtype)
    ids = ready.prompt_ids(case)
    posed, found = explored(config, ready, ready.poser.posed(ids, case.answers))
    n = len(case.answers)
    right = [case.answers.index(answer) for answer in case.truth]
    methods = tuple(posed.walkers)
    each = {
        str(temperature): distributions(found, heat, methods, n, right, posed.unsure)
        for heat, temperature in enumerate(config.temperatures)
    }
    row = {
        "kind": "finite",
        **described(source, case),
        "prompt_tokens": len(ids),
        "nodes": len(found.trie),
        "asked": found.asked,
        "canonical_tokens": canonical_tokens(posed, ready.loaded.tokenizer),
        "absent": posed.absent,
        "as_lift": [m for m in methods[1:] if is_lift(found, methods.index(m))],
        "healing": given_back(posed.healing),
        "temperatures": each,
        "draws_at": config.temperatures[config.draws()],
        "draws": draws(config, found, methods, n, row_seed(config, source, case)),
    }
    if posed.healing:
        row["healing"]["temperatures"] = unhealed(config, ready, ids, case, each)
    return row


def described(source: str, case: StudyCase) -> Row:
    """What was asked."""
    texts = ("name", "family", "base", "style", "boundary", "prompt")
    answers = {"answers": list(case.answers), "truth": list(case.truth)}
    return {"model": source, **{name: getattr(case, name) for name in texts}, **answers}


def given_back(healing: Healing | None) -> Row | None:
    """What was given back of the prompt, if anything was."""
    if healing is None:
        return None
    text = healing.text.decode("utf-8", "replace")
    return {"given_back": len(healing.given_back), "text": text, "reason": healing.reason}


def row_seed(config: Config, source: str, case: StudyCase) -> list[int]:
    """Of all that is drawn for one row, whatever was drawn before it."""
    return [config.seed, zlib.crc32(f"{source}/{case.name}".encode())]


def explored(config: Config, ready: Opened, posed: Posed) -> tuple[Posed, Explored]:
    """The trie of a question, as far as it matters; a method of others that reached no answer is
    absent from both. Raises BudgetExceededError where the lift or canonical reached none."""
    tokenizer = ready.loaded.tokenizer

    def spelled(token: int, before: int | None) -> bytes:
        return tokenizer.text_bytes((token,), () if before is None else (before,))

    found = explore(
        ready.reader(ready.loaded.model, posed.prompt_ids),
        list(posed.walkers.values()),
        posed.answers,
        spelled,
        posed.prompt_ids[-1],
        np.array(config.temperatures),
        Aims(config.slack, config.unread, config.most_nodes, config.draws()),
    )
    return reached(posed, found, config.most_nodes)


def reached(posed: Posed, found: Explored, most_nodes: int) -> tuple[Posed, Explored]:
    """Without the methods that reached no answer. Raises BudgetExceededError for our own."""
    walkers, absent, columns = {}, dict(posed.absent), []
    for column, (method, walker) in enumerate(posed.walkers.items()):
        alive = found.trie.alive(column)
        if (found.complete & alive).any():
            walkers[method] = walker
            columns.append(column)
        elif method in ("lift", "canonical"):
            advice = f"no answer was reached by {method}; raise --most-nodes"
            raise BudgetExceededError("forward positions", most_nodes, advice)
        elif (found.open & alive).any():
            absent[method] = f"reached no answer in {most_nodes} forward positions"
        else:
            absent[method] = "can write no answer, it has dead ends alone"
    trie = replace(found.trie, states=found.trie.states[:, columns])
    return replace(posed, walkers=walkers, absent=absent), replace(found, trie=trie)


def canonical_tokens(posed: Posed, tokenizer: Tokenizer) -> list[int]:
    """Ids in the canonical tokenization of each answer; the model does not matter for these."""
    trie = unroll([posed.walkers["canonical"]])
    texts = {tokenizer.text_bytes(trie.ids(k), posed.prompt_ids[-1:]): k for k in trie.leaves()}
    return [int(trie.depth[texts[answer]]) for answer in posed.answers]


def is_lift(found: Explored, column: int) -> bool:
    """Does a method allow what the lift allows?"""
    return np.array_equal(found.trie.alive(column), found.trie.alive(0))


def draws(
    config: Config, found: Explored, methods: Sequence[str], n: int, seed: Sequence[int]
) -> Row:
    """By method, kind and number of particles: the distribution of what one takes of a population.
    Methods that allow what the lift allows are left out."""
    rng = np.random.default_rng(seed)
    result: Row = {}
    for column, method in enumerate(methods):
        if column and is_lift(found, column):
            continue
        scores = found.scores[config.draws()]
        populations = Populations(found, scores, found.trie.alive(column), n)
        kinds = {"importance": populations.importance, "smc": populations.smc}
        result[method] = {
            kind: {str(k): _estimate(draw(k, config.populations, rng)) for k in PARTICLES}
            for kind, draw in kinds.items()
        }
    return result


def _estimate(made: Estimated) -> Row:
    """error: half the sum of the standard errors, which the error of a total variation distance to
    this distribution does not exceed on average."""
    return {"law": made.distribution.tolist(), "error": float(made.error.sum() / 2)}


def unhealed(config: Config, ready: Opened, ids: list[int], case: StudyCase, healed: Row) -> Row:
    """By temperature: what the free distribution and the lift are if the prompt's last ids stay,
    against the free distribution with them given back. slack: how far either may be from exact, at
    most."""
    _, found = explored(config, ready, ready.poser.unhealed(ids, case.answers))
    result = {}
    for heat, temperature in enumerate(config.temperatures):
        own = distributions(found, heat, ("lift",), len(case.answers), ())
        distribution, reference = own["methods"]["lift"], healed[str(temperature)]["free"]
        result[str(temperature)] = {
            "free": own["free"],
            "lift": distribution["law"],
            "slack": own["free_slack"] + distribution["slack"] / 2,
            "tv_free": tv_between(own["free"], reference),
            "tv_lift": tv_between(distribution["law"], reference),
        }
    return result
