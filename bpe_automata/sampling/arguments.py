"""What every loop looks at before the model is asked anything: its arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bpe_automata.arguments import at_least, number, sequence_of_ids
from bpe_automata.errors import ArgumentError


def checked(
    prompt: Sequence[int], max_new_tokens: int, temperature: float, *, greedy: bool = True
) -> tuple[tuple[int, ...], int, float]:
    """The three as they are meant. greedy: may the temperature be 0? Raises ArgumentError."""
    return (
        sequence_of_ids(prompt),
        at_least(0, max_new_tokens, "max_new_tokens"),
        checked_temperature(temperature, greedy=greedy),
    )


def checked_temperature(temperature: Any, *, greedy: bool = True) -> float:
    """0 (if `greedy`) <= temperature < inf. Raises ArgumentError."""
    found = number(temperature, "temperature")
    if not 0 <= found < np.inf:
        raise ArgumentError(f"temperature {found} is not 0 or more, and finite")
    if not found and not greedy:
        raise ArgumentError("temperature 0 has no law to draw from: give one over 0")
    return found
