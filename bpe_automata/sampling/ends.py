"""What all faithful samplers share: their arguments, where a sequence ends, what it gives back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bpe_automata.decoding.constraint import Constraint
from bpe_automata.decoding.generation import Generation
from bpe_automata.decoding.matcher import Matcher
from bpe_automata.errors import ArgumentError
from bpe_automata.sampling.loop import generation


def check_arguments(n: int, max_new_tokens: int, temperature: float) -> None:
    """Raises ArgumentError. There is no law to be faithful to at temperature 0."""
    if n < 1:
        raise ArgumentError(f"{n} samples were asked for: give 1 or more")
    if max_new_tokens < 0:
        raise ArgumentError(f"max_new_tokens {max_new_tokens} is negative")
    if not 0 < temperature < np.inf:
        raise ArgumentError(
            f"temperature {temperature} is not over 0: there is no law to draw from"
        )


def has_ended(matcher: Matcher, eos_ids: Sequence[int]) -> bool:
    """Was end-of-sequence read or, where there is none, can nothing follow? As
    `Matcher.is_finished`, but a mask is computed only where it decides."""
    if eos_ids:
        return bool(matcher.ids) and matcher.ids[-1] in eos_ids
    return matcher.is_accepting and matcher.is_finished


def weighted_generation(
    constraint: Constraint,
    matcher: Matcher,
    prompt: Sequence[int],
    log_weight: float,
    passes: int | None = None,
) -> Generation:
    """The result with its weight, which is zero (-inf) for a sequence that has not ended: its text
    may be complete, but the model was never asked whether it would end there."""
    ended = has_ended(matcher, constraint.eos_ids)
    weight = log_weight if ended else -np.inf
    return generation(constraint, matcher, prompt, log_weight=weight, passes=passes)
