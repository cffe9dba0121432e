"""Sequential Monte Carlo: many sequences at once, where those of low weight are replaced by copies
of others.

    w <- w m_t                       m_t: the mass of the ids in the mask, before one is drawn
    resample if ESS(w) < threshold n
    x_t ~ p( . | x_<t) under the mask

m_t does not depend on the id that is drawn after it, so weights change before the draw, and copies
made by resampling draw ids of their own at once. The mean weight at the end is an unbiased estimate
of Z, with and without resampling, and the weighted samples converge to the target (see `_weights`)
as their number grows. Sequences that have ended keep their weight, and take part in resampling.

Source: Del Moral, Doucet, Jasra, *Sequential Monte Carlo samplers*, 2006; for language models Lew
et al., *Sequential Monte Carlo Steering of Large Language Models using Probabilistic Programs*,
2023.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bpe_automata._arguments import at_least, number
from bpe_automata.decoding.constraint import Constraint
from bpe_automata.decoding.matcher import Generation, Matcher
from bpe_automata.errors import ArgumentError
from bpe_automata.sampling._logits import (
    Model,
    checked,
    draw,
    has_ended,
    log_probabilities,
    piece,
)
from bpe_automata.sampling._loop import asked, weighted_generation
from bpe_automata.sampling._weights import effective_sample_size, log_normaliser, normalised


@dataclass(frozen=True)
class Population:
    """generations: weighted samples; log_normaliser: natural log of the estimate of Z, -inf if no
    sequence ended; sizes: the effective sample size at each step, before resampling; resampled:
    the steps at which there was resampling; passes: calls of the model in all."""

    generations: tuple[Generation, ...]
    log_normaliser: float
    sizes: tuple[float, ...]
    resampled: tuple[int, ...]
    passes: int


def smc(
    model: Model,
    constraint: Constraint,
    prompt: Sequence[int] = (),
    *,
    particles: int = 32,
    max_new_tokens: int = 128,
    temperature: float = 1.0,
    seed: int | np.random.Generator | None = None,
    threshold: float = 0.5,
) -> Population:
    """A weighted population of `particles` sequences.

    threshold: resample where the effective sample size falls below that share of the particles; 0
    for never, 1 for nearly always. Sequences with the same ids share one call of the model; up to
    `particles` distributions, float64 [n_ids], are held at a time. For the other arguments see
    `decode`. Raises PromptError, LogitsError, ArgumentError, and ModelError if the model raises.
    """
    prompt, max_new_tokens, temperature = checked(prompt, max_new_tokens, temperature, greedy=False)
    particles = at_least(1, particles, "the number of samples")
    if not 0 <= number(threshold, "threshold") <= 1:
        raise ArgumentError(f"threshold {threshold} must be in 0 .. 1")
    rng = np.random.default_rng(seed)
    run = _Run(model, constraint, prompt, particles, temperature)
    sizes, resampled = [], []
    for step in range(max_new_tokens):
        if not run.running():
            break
        run.weigh()
        sizes.append(effective_sample_size(run.log_weights))
        if 0 < sizes[-1] < threshold * particles:
            run.resample(rng)
            resampled.append(step)
        run.draw(rng)
    generations = run.results()
    logs = np.array([generation.log_weight for generation in generations])
    found = log_normaliser(logs).value
    return Population(generations, found, tuple(sizes), tuple(resampled), run.passes)


def weighted(
    model: Model,
    constraint: Constraint,
    prompt: Sequence[int] = (),
    *,
    n: int = 1,
    max_new_tokens: int = 128,
    temperature: float = 1.0,
    seed: int | np.random.Generator | None = None,
) -> Population:
    """`n` independent samples under the mask with their weights: `smc` that never resamples."""
    return smc(
        model,
        constraint,
        prompt,
        particles=n,
        max_new_tokens=max_new_tokens,
        temperature=temperature,
        seed=seed,
        threshold=0.0,
    )


class _Distribution(NamedTuple):
    """log_p: float64 [n_ids]; allowed: bool [n_ids]; log_mass: that of the allowed ids."""

    log_p: np.ndarray
    allowed: np.ndarray
    log_mass: float


class _Run:
    """A population in progress: each particle has a matcher and a log weight."""

    def __init__(
        self,
        model: Model,
        constraint: Constraint,
        prompt: tuple[int, ...],
        particles: int,
        temperature: float,
    ) -> None:
        self.model, self.constraint, self.prompt = model, constraint, prompt
        self.temperature, self.passes = temperature, 0
        start = constraint.matcher(prompt)
        self.matchers = [start.copy() for _ in range(particles)]
        self.log_weights = np.zeros(particles)
        self._distributions: dict[tuple[int, ...], _Distribution] = {}

    def running(self) -> list[int]:
        """The particles that have neither ended nor lost all weight."""
        alive = np.flatnonzero(self.log_weights > -np.inf).tolist()
        return [k for k in alive if not has_ended(self.matchers[k], self.constraint)]

    def weigh(self) -> None:
        """Multiply each weight by the mass of the ids in the mask. A sequence loses its weight if
        the model gives none of these ids any mass."""
        self._distributions = {}
        for k in self.running():
            self.log_weights[k] += self._distribution(self.matchers[k]).log_mass

    def _distribution(self, matcher: Matcher) -> _Distribution:
        """The distribution of the next id under the mask. At each step, sequences with the same ids
        share one call of the model."""
        found = self._distributions.get(matcher.ids)
        if found is None:
            self.passes += 1
            logits = asked(self.model, self.prompt, matcher.ids)
            log_p = log_probabilities(logits, self.constraint.n_ids, self.temperature)
            allowed = matcher.mask()
            log_mass = float(np.logaddexp.reduce(log_p[allowed], initial=-np.inf))
            found = self._distributions[matcher.ids] = _Distribution(log_p, allowed, log_mass)
        return found

    def resample(self, rng: np.random.Generator) -> None:
        """Draw the particles anew by their weights, which all become the mean weight."""
        chosen = resample(normalised(self.log_weights), rng)
        self.matchers = [self.matchers[k].copy() for k in chosen.tolist()]
        self.log_weights[:] = log_normaliser(self.log_weights).value

    def draw(self, rng: np.random.Generator) -> None:
        """Each particle reads one more id."""
        for k in self.running():
            matcher = self.matchers[k]
            distribution = self._distribution(matcher)
            token, _ = draw(distribution.log_p, distribution.allowed, rng.random())
            matcher.advance(token)

    def results(self) -> tuple[Generation, ...]:
        pairs = zip(self.matchers, self.log_weights.tolist(), strict=True)
        return tuple(
            weighted_generation(self.constraint, matcher, self.prompt, weight)
            for matcher, weight in pairs
        )


# Resampling: n weighted particles become n of equal weight.
#
#     E[copies of particle i] = n W_i,  so no weighted mean changes on average
#
# There is one point in each n-th part of [0, 1), all at the same place in it ("systematic"). Each
# takes the particle whose interval it falls into; as they lie evenly, they add little noise.
#
# Source: Douc, Cappe, Moulines, *Comparison of Resampling Schemes for Particle Filtering*, 2005.


def resample(weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """int64 [n]: indices of the particles to copy, ascending; weights: [n], adding up to 1."""
    n = len(weights)
    return piece(np.cumsum(weights), (np.arange(n) + rng.random()) / n)
