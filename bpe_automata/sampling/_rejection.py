"""Rejection sampling, of whole sequences and of single ids. For whole sequences: generate freely,
and keep a sequence that is in the language.

    X ~ p,  kept iff X in L,    so X | kept ~ p( . | L),  exactly

A try stops at the first id after which it cannot be in the language; this only saves time. One
sample takes 1 / p(L) tries on average, so the method suits languages that the model writes anyway,
and serves as the ground truth for other methods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bpe_automata._arguments import at_least
from bpe_automata.decoding.constraint import Constraint
from bpe_automata.decoding.matcher import Generation, Matcher
from bpe_automata.sampling._logits import (
    Model,
    checked,
    has_ended,
    log_probabilities,
    piece,
)
from bpe_automata.sampling._loop import asked, generation, weighted_generation


@dataclass(frozen=True)
class Rejections:
    """generations: exact, independent samples without weights; tries: how many sequences were
    begun; truncated: how many of them could still have been in the language after
    `max_new_tokens`, and were not kept; passes: calls of the model in all; wanted: how many samples
    were asked for."""

    generations: tuple[Generation, ...]
    tries: int
    truncated: int
    passes: int
    wanted: int

    @property
    def probability(self) -> float:
        """An unbiased estimate of Z (see `_weights`): kept / tries if the tries were used up, else
        (n - 1) / (tries - 1), since the last try is always a kept one (Haldane 1945). NaN if n was
        1 and the sample was found, as there is no such estimate."""
        kept = len(self.generations)
        if kept < self.wanted:
            return kept / self.tries
        return (kept - 1) / (self.tries - 1) if kept > 1 else float("nan")


def rejection(
    model: Model,
    constraint: Constraint,
    prompt: Sequence[int] = (),
    *,
    n: int = 1,
    max_new_tokens: int = 128,
    temperature: float = 1.0,
    seed: int | np.random.Generator | None = None,
    max_tries: int = 10_000,
) -> Rejections:
    """`n` exact samples of the model's distribution conditioned on the language, or as many as
    `max_tries` tries give, which are just as exact.

    For model, prompt, max_new_tokens and seed see `decode`; for the distribution see `_weights`.
    temperature: over 0; the model's own distribution is then the one at that temperature. Raises
    PromptError, LogitsError, ArgumentError, and ModelError if the model raises.
    """
    prompt, max_new_tokens, temperature = checked(prompt, max_new_tokens, temperature, greedy=False)
    n, max_tries = at_least(1, n, "n"), at_least(1, max_tries, "max_tries")
    rng = np.random.default_rng(seed)
    kept: list[Generation] = []
    tries = truncated = passes = 0
    start = constraint.matcher(prompt)
    while len(kept) < n and tries < max_tries:
        tries += 1
        matcher, inside, begun = start.copy(), True, passes
        while inside and len(matcher.ids) < max_new_tokens and not has_ended(matcher, constraint):
            passes += 1
            logits = asked(model, prompt, matcher.ids)
            distribution = np.exp(log_probabilities(logits, constraint.n_ids, temperature))
            token = int(np.searchsorted(np.cumsum(distribution), rng.random(), side="right"))
            # Beyond the tokenizer's ids lies the padding of the logits, which is never allowed.
            inside = matcher.allows(token)
            if inside:
                matcher.advance(token)
        if inside and has_ended(matcher, constraint):
            kept.append(generation(constraint, matcher, prompt, passes=passes - begun))
        elif inside:
            truncated += 1
    return Rejections(tuple(kept), tries, truncated, passes, n)


# Adaptive rejection, per token: ask about single ids instead of computing a mask.
#
# Draw an id from the model's distribution; if it is not allowed, remove it and draw from the rest,
# until one is allowed. That one has the distribution p( . | allowed), as under a mask. The mass of
# all allowed ids is not computed, but it can be estimated. With S the ids not drawn yet,
#
#     m = p(allowed) = p(allowed ids drawn so far) + p(allowed ids in S)
#
# Stop at any time, draw one more id y from S, and take
#
#     M = p(allowed ids drawn so far) + p(S) [y allowed]
#
# Given everything drawn before, y is allowed with probability p(allowed ids in S) / p(S). So
# E[M | the draws before y] = m, whichever id was allowed first: M is unbiased, and its product over
# the steps is a proper weight (Naesseth, Lindsten, Schoen 2019, *Elements of Sequential Monte
# Carlo*). It is at most 1, and above 0 where any id with mass is allowed.
#
# Source: Lipkin et al. 2025, *Fast Controlled Generation from Language Models with Adaptive
# Weighted Rejection Sampling*, for the method; the estimate and its proof are written out here.


class Found(NamedTuple):
    """token: the first allowed id, None if no id with any mass is allowed; mass: the estimate M;
    tested: how many ids were tested."""

    token: int | None
    mass: float
    tested: int


@dataclass(frozen=True)
class Adaptive:
    """generations: independent weighted samples; tested: how many ids were tested in all, where
    masks would have tested every id at each step; passes: calls of the model in all."""

    generations: tuple[Generation, ...]
    tested: int
    passes: int


def adaptive(
    model: Model,
    constraint: Constraint,
    prompt: Sequence[int] = (),
    *,
    n: int = 1,
    max_new_tokens: int = 128,
    temperature: float = 1.0,
    seed: int | np.random.Generator | None = None,
    accepts: int = 1,
) -> Adaptive:
    """`n` samples with weights, drawn without masks. This pays where testing one id is far cheaper
    than a mask: with the naive engine, and with the lift while little is cached. The canonical
    engine computes and caches masks anyway, so with it this is for comparison.

    accepts: how many allowed ids are drawn at each step before y (see above); more of them make the
    weights less noisy. For the other arguments see `decode`, for the distribution `_weights`.
    Raises PromptError, LogitsError, ArgumentError, and ModelError if the model raises.
    """
    prompt, max_new_tokens, temperature = checked(prompt, max_new_tokens, temperature, greedy=False)
    n, accepts = at_least(1, n, "n"), at_least(1, accepts, "accepts")
    rng = np.random.default_rng(seed)
    start = constraint.matcher(prompt)
    found: list[Generation] = []
    tested = passes = 0
    for _ in range(n):
        matcher, log_weight, begun = start.copy(), 0.0, passes
        while len(matcher.ids) < max_new_tokens and not has_ended(matcher, constraint):
            passes += 1
            logits = asked(model, prompt, matcher.ids)
            distribution = np.exp(log_probabilities(logits, constraint.n_ids, temperature))
            step = _advance(matcher, distribution, rng, accepts)
            tested += step.tested
            if step.token is None:
                break
            log_weight += float(np.log(step.mass))
        found.append(weighted_generation(constraint, matcher, prompt, log_weight, passes - begun))
    return Adaptive(tuple(found), tested, passes)


def _advance(
    matcher: Matcher, distribution: np.ndarray, rng: np.random.Generator, accepts: int
) -> Found:
    """Read one more id, if there is one."""
    step = first_allowed(
        distribution, without_replacement(distribution, rng), matcher.allows, accepts
    )
    if step.token is not None:
        matcher.advance(step.token)
    return step


def first_allowed(
    distribution: np.ndarray,
    order: Iterator[int],
    allows: Callable[[int], bool],
    accepts: int = 1,
) -> Found:
    """The first allowed id and the estimate of the allowed mass.

    distribution: float64 [n], adding up to at most 1; order: the ids with any mass, drawn without
    replacement; accepts: allowed ids to draw before y.
    """
    remaining = distribution.copy()
    token, mass, tested, count = None, 0.0, 0, 0
    for drawn in order:
        tested += 1
        allowed = allows(drawn)
        if count == accepts:  # this is y
            mass += float(remaining.sum()) if allowed else 0.0
            break
        remaining[drawn] = 0.0
        if allowed:
            token, count = drawn if token is None else token, count + 1
            mass += float(distribution[drawn])
    return Found(token, mass, tested)


def without_replacement(distribution: np.ndarray, rng: np.random.Generator) -> Iterator[int]:
    """The ids with any mass, each drawn from the distribution of those not drawn yet. Lazy; one
    uniform number each."""
    remaining = distribution.copy()
    while True:
        cumulative = np.cumsum(remaining)
        if not cumulative[-1] > 0:
            return
        drawn = int(piece(cumulative, rng.random()))
        yield drawn
        remaining[drawn] = 0.0
