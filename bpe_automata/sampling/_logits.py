"""From logits to one id; where a sequence ends; and the arguments that every loop checks.

draw(log p, allowed, u) = min { i allowed : p(allowed up to i) > u p(allowed) },  u in [0, 1)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from bpe_automata._arguments import at_least, number, sequence_of_ids
from bpe_automata._kernels.bits import clear_bits
from bpe_automata.decoding.constraint import Constraint
from bpe_automata.decoding.matcher import Matcher
from bpe_automata.errors import ArgumentError, LogitsError

Model: TypeAlias = Callable[[Sequence[int]], np.ndarray]
"""ids so far, prompt and generated -> the logits of the next id: floating or integer [V],
V >= n_ids. A torch tensor will do if numpy can read it: on the CPU, without gradient, not
bfloat16."""


def log_probabilities(logits: np.ndarray, n_ids: int, temperature: float = 1.0) -> np.ndarray:
    """Natural logs of the distribution of the next id, float64 [n_ids].

    logits: floating or integer [V]; where V > n_ids, the surplus ids have their share of the mass
    and are not in the result, so its exponentials may add up to less than 1. temperature: finite,
    over 0, or 0 for a greedy choice (the distribution is then that of temperature 1). Raises
    LogitsError, ArgumentError.
    """
    temperature = checked_temperature(temperature)
    found = _numbers(logits)
    if found.ndim != 1 or len(found) < n_ids:
        raise LogitsError(
            f"the model gave logits of shape {found.shape} for a tokenizer of {n_ids} ids: "
            "one vector is needed, at least as long"
        )
    wide = found.astype(np.float64)
    _check(wide)
    scaled = (wide - wide.max()) / (temperature or 1.0)
    result: np.ndarray = scaled[:n_ids] - np.log(np.exp(scaled).sum())
    return result


def _numbers(logits: Any) -> np.ndarray:
    """The logits as an array of real numbers. Other types are refused, not cast."""
    advice = "give real numbers (of a torch tensor: logits.detach().float().cpu().numpy())"
    try:
        found = np.asarray(logits)
    except Exception as error:
        raise LogitsError(f"numpy cannot read the model's logits ({error}): {advice}") from error
    if found.dtype.kind not in "fiu":
        raise LogitsError(f"the model gave logits of dtype {found.dtype}: {advice}")
    return found


def _check(logits: np.ndarray) -> None:
    high = logits.max()  # NaN if one of them is
    if np.isfinite(high):
        return
    if high == -np.inf:
        raise LogitsError("all logits are -inf: no id has any mass")
    first = int(np.flatnonzero(~(logits < np.inf))[0])
    raise LogitsError(f"the logit of id {first} is {logits[first]}")


def draw(
    log_p: np.ndarray, allowed: np.ndarray, u: float, greedy: bool = False
) -> tuple[int, float]:
    """One of the allowed ids, and the natural log of the mass of all of them.

    log_p: float64 [n]; allowed: bool [n]; u: uniform in [0, 1). greedy: take the likeliest id, the
    first of equals. Raises LogitsError if the model gives no allowed id any mass.
    """
    masked = np.where(allowed, log_p, -np.inf)
    best = int(np.argmax(masked))
    highest = masked[best]
    if highest == -np.inf:
        raise LogitsError(
            f"the model gives no mass to any of the {int(np.count_nonzero(allowed))} ids allowed"
        )
    cumulative = np.cumsum(np.exp(masked - highest))
    log_mass = float(highest + np.log(cumulative[-1]))
    if greedy:
        return best, log_mass
    return int(piece(cumulative, u)), log_mass


def piece(cumulative: np.ndarray, u: Any) -> np.ndarray:
    """int64, of the shape of u: which piece of [0, cumulative[-1]) the point u * cumulative[-1] is
    in, 0 <= u < 1. A point that rounds up to the end is in the last piece that is not empty."""
    found = np.searchsorted(cumulative, u * cumulative[-1], side="right")
    return np.minimum(found, np.searchsorted(cumulative, cumulative[-1], side="left"))


# Where a sequence ends, for all loops.


def has_ended(matcher: Matcher, constraint: Constraint) -> bool:
    """Was end-of-sequence read or, if there are no end-of-sequence ids, can nothing follow? Then
    the model was asked about all of the text. A mask is computed only in the second case."""
    if constraint.eos_ids:
        return _was_read(matcher, constraint)
    return only_the_end_follows(matcher, constraint)


def only_the_end_follows(matcher: Matcher, constraint: Constraint) -> bool:
    """Is the text complete, and can nothing follow but end-of-sequence? True also once that was
    read; False in a dead end, which a sequence of the naive engine may run into."""
    if _was_read(matcher, constraint):
        return True
    if not matcher.is_accepting:
        return False
    bits = np.empty((constraint.n_ids + 31) // 32, dtype=np.int32)
    matcher.mask(bits)
    clear_bits(bits, np.array(constraint.eos_ids, dtype=np.int64))
    return not bits.any()


def _was_read(matcher: Matcher, constraint: Constraint) -> bool:
    return bool(matcher.ids) and matcher.ids[-1] in constraint.eos_ids


# The arguments of every loop, checked before the model is asked anything.


def checked(
    prompt: Sequence[int], max_new_tokens: int, temperature: float, *, greedy: bool = True
) -> tuple[tuple[int, ...], int, float]:
    """The three arguments, checked. greedy: may the temperature be 0? Raises ArgumentError."""
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
        raise ArgumentError("temperature 0 has no distribution to draw from: give one over 0")
    return found
