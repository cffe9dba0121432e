"""Importance weights: estimates of the exact distribution from samples masked step by step.

    p       the model's own distribution of complete texts, end-of-sequence included
    Z       p(language), the probability that the model on its own writes a text of the language
    target  p(x) / Z on the language: the model conditioned on it
    q(x)    prod p(x_t | x_<t) / m_t, the distribution under the mask, whose ids have the mass m_t
    w(x)    prod m_t = p(x) / q(x), so E_q[w] = Z and E_q[w f] = Z E_target[f]

End-of-sequence is an id like any other, so its probability is part of p(x). Without end-of-sequence
ids, a text ends where nothing can follow it. The target is conditioned on ending within
`max_new_tokens` as well: a sequence that did not end has weight zero. No sequence is truncated
under `constraint.within(max_new_tokens - 1)`, which keeps one id for end-of-sequence. Without
end-of-sequence ids `within(max_new_tokens)` does the same, for another target: there a text also
ends where its ids are used up, as nothing can follow.

    E_target[f] ~ sum w_i f(x_i) / sum w_i

Source: Owen, *Monte Carlo theory, methods and examples*, 2013, chapter 9.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bpe_automata.decoding.matcher import Generation
from bpe_automata.errors import ArgumentError


class Estimate(NamedTuple):
    """value and its standard error, both float64, of the shape that f has for one sample."""

    value: np.ndarray
    standard_error: np.ndarray


class LogNormaliser(NamedTuple):
    """value: natural log of the estimate of Z, -inf if no sample has weight; standard_error: that
    of the log, inf for a single sample, or if no sample has weight."""

    value: float
    standard_error: float


def log_weights(generations: Sequence[Generation]) -> np.ndarray:
    """The natural logs of the weights, float64 [n]; -inf for a truncated text.

    Raises ArgumentError for a generation without a weight: one drawn greedily, with forced ids, or
    by rejection, whose samples are exact and need no weights.
    """
    found = []
    for index, generation in enumerate(generations):
        if generation.log_weight is None:
            raise ArgumentError(
                f"generation {index} has no weight: draw it with temperature > 0, forced=False and "
                "room for end-of-sequence (samples of `rejection` need none, they are exact)"
            )
        ended = generation.finish_reason == "complete"
        found.append(generation.log_weight if ended else -np.inf)
    return np.array(found, dtype=np.float64)


def normalised(log_weights: ArrayLike) -> np.ndarray:
    """w / sum(w), float64 [n]. Raises ArgumentError where all weights are zero, NaN or inf."""
    logs = _checked(log_weights)
    if logs.max() == -np.inf:
        raise ArgumentError(
            f"all {len(logs)} weights are zero, so they say nothing: no sequence ended (raise "
            "max_new_tokens, end-of-sequence included), or the model gave the language no mass"
        )
    weights: np.ndarray = np.exp(logs - logs.max())
    return weights / weights.sum()


def estimate(values: ArrayLike, log_weights: ArrayLike) -> Estimate:
    """The self-normalised estimate of the target's mean.

    values: [n] or [n, ...], f of each sample; log_weights: [n]. The standard error is that of the
    delta method, sqrt(sum W_i^2 (f_i - value)^2) with normalised weights W, for independent
    samples: after resampling it is too small. Raises ArgumentError.
    """
    weights = normalised(log_weights)
    found = np.asarray(values, dtype=np.float64)
    if found.shape[:1] != weights.shape:
        raise ArgumentError(f"{len(weights)} weights for values of shape {found.shape}")
    # A sample of weight zero does not count, even if its value is NaN.
    found, weights = found[weights > 0], weights[weights > 0]
    value = np.tensordot(weights, found, axes=1)
    spread = np.tensordot(weights**2, (found - value) ** 2, axes=1)
    return Estimate(np.asarray(value), np.sqrt(spread))


def effective_sample_size(log_weights: ArrayLike) -> float:
    """(sum w)^2 / sum w^2 (Kong 1992): from 1, where one sample has all the weight, to n; 0 if all
    weights are zero. Raises ArgumentError."""
    logs = _checked(log_weights)
    if logs.max() == -np.inf:
        return 0.0
    weights = np.exp(logs - logs.max())
    return float(weights.sum() ** 2 / (weights**2).sum())


def log_normaliser(log_weights: ArrayLike) -> LogNormaliser:
    """log of the mean weight, an estimate of log Z; the mean itself is unbiased.

    Its standard error is that of the mean, divided by the mean (delta method), and holds for
    independent samples, not after resampling. Raises ArgumentError.
    """
    logs = _checked(log_weights)
    if logs.max() == -np.inf:
        return LogNormaliser(-np.inf, np.inf)
    weights = np.exp(logs - logs.max())
    mean, n = weights.mean(), len(weights)
    error = weights.std(ddof=1) / np.sqrt(n) / mean if n > 1 else np.inf
    return LogNormaliser(float(logs.max() + np.log(mean)), float(error))


def distribution(generations: Sequence[Generation]) -> dict[tuple[int, ...], float]:
    """ids -> its estimated probability under the target; they add up to 1. Raises ArgumentError."""
    weights = normalised(log_weights(generations))
    found: dict[tuple[int, ...], float] = {}
    for generation, weight in zip(generations, weights.tolist(), strict=True):
        if weight:
            found[generation.ids] = found.get(generation.ids, 0.0) + weight
    return found


def _checked(log_weights: ArrayLike) -> np.ndarray:
    logs = np.asarray(log_weights, dtype=np.float64)
    if logs.ndim != 1 or not len(logs) or not (logs < np.inf).all():
        raise ArgumentError(
            f"log weights are one vector of numbers or -inf, not {logs.tolist()!r:.60}"
        )
    return logs
