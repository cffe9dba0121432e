"""Whole-sequence rejection: write freely, keep what the language holds.

    X ~ p,  kept iff X in L,    so X | kept ~ p( . | L),  exactly

A try is given up at the first id that no text of the language goes on with, which changes nothing
but the time. On average 1 / p(L) tries are needed for one sample: for languages that the model
writes anyway, or as the truth that other methods are held against.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bpe_automata.arguments import at_least
from bpe_automata.decoding.constraint import Constraint
from bpe_automata.decoding.generation import Generation
from bpe_automata.decoding.matcher import Matcher
from bpe_automata.sampling.arguments import checked
from bpe_automata.sampling.ends import has_ended
from bpe_automata.sampling.logits import Model, log_probabilities
from bpe_automata.sampling.loop import asked, generation


@dataclass(frozen=True)
class Rejections:
    """generations: exact samples, independent, without weights; tries: sequences that were begun;
    truncated: tries that were still in the language after `max_new_tokens`, so not kept; passes:
    calls of the model in all; wanted: samples asked for."""

    generations: tuple[Generation, ...]
    tries: int
    truncated: int
    passes: int
    wanted: int

    @property
    def probability(self) -> float:
        """An unbiased estimate of Z (see `weights`): kept / tries where the tries were used up,
        else (n - 1) / (tries - 1), since the last try is a kept one by design (Haldane 1945). 1
        sample wanted and found tells nothing: NaN."""
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
    """`n` exact samples of the model's law conditioned on the language, or as many as `max_tries`
    tries give: fewer are no less exact.

    For model, prompt, max_new_tokens and seed see `decode`; for the law see `weights`. The law of
    temperature T is the model's own at that temperature. Raises PromptError, LogitsError,
    ArgumentError, and ModelError if the model raises.
    """
    prompt, max_new_tokens, temperature = checked(prompt, max_new_tokens, temperature, greedy=False)
    n, max_tries = at_least(1, n, "n"), at_least(1, max_tries, "max_tries")
    rng = np.random.default_rng(seed)
    kept: list[Generation] = []
    tries = truncated = passes = 0
    start = constraint.matcher(prompt)
    while len(kept) < n and tries < max_tries:
        tries += 1
        attempt = _Attempt(model, constraint, start.copy(), prompt)
        while attempt.goes_on(max_new_tokens):
            attempt.step(temperature, rng)
        passes += attempt.passes
        if attempt.has_ended:
            kept.append(generation(constraint, attempt.matcher, prompt, passes=attempt.passes))
        elif not attempt.rejected:
            truncated += 1
    return Rejections(tuple(kept), tries, truncated, passes, n)


class _Attempt:
    """One sequence that the model writes freely."""

    def __init__(
        self, model: Model, constraint: Constraint, matcher: Matcher, prompt: Sequence[int]
    ) -> None:
        self.model, self.constraint, self.matcher = model, constraint, matcher
        self.prompt, self.rejected, self.passes = tuple(prompt), False, 0

    @property
    def has_ended(self) -> bool:
        """Is it a complete sequence of the language?"""
        return not self.rejected and has_ended(self.matcher, self.constraint)

    def goes_on(self, max_new_tokens: int) -> bool:
        """Has it neither left the language, nor ended, nor run out of ids?"""
        room = len(self.matcher.ids) < max_new_tokens
        return room and not self.rejected and not self.has_ended

    def step(self, temperature: float, rng: np.random.Generator) -> None:
        """Draw one id out of all."""
        self.passes += 1
        logits = asked(self.model, self.prompt, self.matcher.ids)
        law = np.exp(log_probabilities(logits, self.constraint.n_ids, temperature))
        token = int(np.searchsorted(np.cumsum(law), rng.random(), side="right"))
        # Beyond the tokenizer's ids lies the padding of the logits, which is never allowed.
        if self.matcher.allows(token):
            self.matcher.advance(token)
        else:
            self.rejected = True
