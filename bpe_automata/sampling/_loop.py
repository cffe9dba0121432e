"""Decoding with any model that gives logits.

Each id takes one uniform number from the generator, even where only one id is possible and the
model is not called. So a seed gives the same text with and without forced ids.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bpe_automata.decoding.constraint import Constraint
from bpe_automata.decoding.matcher import Generation, Matcher
from bpe_automata.errors import ModelError
from bpe_automata.sampling._logits import (
    Model,
    checked,
    draw,
    has_ended,
    log_probabilities,
    only_the_end_follows,
)


def decode(
    model: Model,
    constraint: Constraint,
    prompt: Sequence[int] = (),
    *,
    max_new_tokens: int = 128,
    temperature: float = 1.0,
    seed: int | np.random.Generator | None = None,
    forced: bool = False,
    close: bool = False,
) -> Generation:
    """A text of the constraint, drawn id by id from the model's distribution under the mask.

    model: called with the ids so far, prompt first, see `Model`. prompt: the ids before the text.
    max_new_tokens: end-of-sequence included. temperature: 0 takes the likeliest id. forced: do not
    call the model where only one id is possible; the ids are the same. close: keep to texts of at
    most `max_new_tokens` ids, end-of-sequence not counted (see `Constraint.within`). The longest of
    them leave no room for end-of-sequence, so they are complete but have no weight. For weights,
    give `constraint.within(max_new_tokens - 1)` instead, if there are end-of-sequence ids.

    `log_weight` of the result is None if the distribution of some id was not seen (forced ids) or
    not followed (temperature 0), or if the ids ran out before end-of-sequence was read, as the
    model was then not asked whether it would have ended there.

    Raises PromptError, LogitsError, ArgumentError, BudgetTooSmallError and, if the model raises,
    ModelError from that.
    """
    prompt, max_new_tokens, temperature = checked(prompt, max_new_tokens, temperature)
    limited = constraint.within(max_new_tokens) if close else constraint
    run = Run(model, limited.matcher(prompt), prompt, temperature, np.random.default_rng(seed))
    while not run.matcher.is_finished and len(run.matcher.ids) < max_new_tokens:
        run.step(forced)
    return run.result(constraint)


class Run:
    """One sequence in progress. It owns its matcher."""

    def __init__(
        self,
        model: Model,
        matcher: Matcher,
        prompt: Sequence[int],
        temperature: float,
        rng: np.random.Generator,
    ) -> None:
        self.model, self.matcher, self.prompt = model, matcher, tuple(prompt)
        self.temperature, self.rng = temperature, rng
        self.log_weight: float | None = 0.0 if temperature else None
        self.passes = self.forced = 0

    def step(self, forced: bool) -> None:
        """Read one more id."""
        allowed = self.matcher.mask()
        u = self.rng.random()
        if forced and np.count_nonzero(allowed) == 1:
            self.forced += 1
            self.log_weight = None
            self.matcher.advance(int(np.argmax(allowed)))
            return
        self.matcher.advance(self.drawn(allowed, u)[0])

    def drawn(self, allowed: np.ndarray, u: float) -> tuple[int, float, np.ndarray]:
        """(the next id, the natural log of the mass of all allowed ids, the natural logs of the
        model's distribution). allowed: bool [n_ids]; u: see `draw`."""
        self.passes += 1
        logits = asked(self.model, self.prompt, self.matcher.ids)
        log_p = log_probabilities(logits, len(allowed), self.temperature)
        token, log_mass = draw(log_p, allowed, u, greedy=not self.temperature)
        if self.log_weight is not None:
            self.log_weight += log_mass
        return token, log_mass, log_p

    def result(self, constraint: Constraint) -> Generation:
        """The result of the run."""
        return generation(
            constraint,
            self.matcher,
            self.prompt,
            log_weight=self.log_weight if has_ended(self.matcher, constraint) else None,
            passes=self.passes,
            forced=self.forced,
        )


def asked(model: Model, prompt: Sequence[int], ids: Sequence[int]) -> np.ndarray:
    """The model's logits after the prompt and what was generated. Raises ModelError."""
    try:
        return model((*prompt, *ids))
    except Exception as error:
        raise ModelError(tuple(ids), f"{type(error).__name__}: {error}") from error


def generation(
    constraint: Constraint,
    matcher: Matcher,
    prompt: Sequence[int],
    *,
    log_weight: float | None = None,
    passes: int | None = None,
    forced: int | None = None,
) -> Generation:
    """The `Generation` of the ids that a matcher has read."""
    ids = tuple(token for token in matcher.ids if token not in constraint.eos_ids)
    return Generation(
        constraint.tokenizer.decode(ids, prompt),
        ids,
        matcher.is_accepting,
        "complete" if only_the_end_follows(matcher, constraint) else "truncated",
        log_weight=log_weight,
        passes=passes,
        forced=forced,
    )


def weighted_generation(
    constraint: Constraint,
    matcher: Matcher,
    prompt: Sequence[int],
    log_weight: float,
    passes: int | None = None,
) -> Generation:
    """The result with its weight, which is zero (-inf) for a sequence that has not ended: its text
    may be complete, but the model was never asked whether it would end there."""
    weight = log_weight if has_ended(matcher, constraint) else -np.inf
    return generation(constraint, matcher, prompt, log_weight=weight, passes=passes)
