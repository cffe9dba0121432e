"""Floor 0: numbers and ids that come from outside, looked at in one way everywhere."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from numbers import Real
from typing import Any

import numpy as np

from bpe_automata.errors import ArgumentError, TokenOutOfRangeError


def integer(value: Any, name: str) -> int:
    """The integer that `value` is: of Python, numpy or torch, but no bool, which is most likely an
    entry of a mask. Raises ArgumentError."""
    if isinstance(value, bool | np.bool):
        raise ArgumentError(f"{name} is {value}: give an integer")
    try:
        return operator.index(value)
    except TypeError:
        raise ArgumentError(f"{name} is {short(value)}: give an integer") from None


def at_least(least: int, value: Any, name: str) -> int:
    """An integer from `least` on. Raises ArgumentError."""
    found = integer(value, name)
    if found < least:
        said = "negative" if least == 0 else f"less than {least}"
        raise ArgumentError(f"{name} {found} is {said}")
    return found


def number(value: Any, name: str) -> float:
    """A real number of Python or numpy, NaN and inf too. Raises ArgumentError."""
    if not isinstance(value, Real) or isinstance(value, bool):
        raise ArgumentError(f"{name} is {short(value)}: give a number")
    try:
        return float(value)
    except OverflowError:
        raise ArgumentError(f"{name} {short(value)} is too large") from None


def sequence_of_ids(ids: Any) -> tuple[int, ...]:
    """`ids` as integers of any size. Raises ArgumentError, naming the first that is none."""
    if isinstance(ids, str | bytes | bytearray):
        raise ArgumentError(
            f"the sequence of ids is {short(ids)}, a text: give its ids, for instance "
            "tokenizer.encode(text)"
        )
    try:
        listed = list(ids)
    except TypeError:
        raise ArgumentError(f"the sequence of ids is {short(ids)}: give a list") from None
    return tuple(integer(value, f"the id at position {at}") for at, value in enumerate(listed))


def end_ids(ids: Any, n_ids: int) -> tuple[int, ...]:
    """End-of-sequence ids, each once. Raises ArgumentError, TokenOutOfRangeError."""
    if not isinstance(ids, Iterable) or isinstance(ids, str | bytes):
        raise ArgumentError(f"eos_ids is {short(ids)}: give a list of ids, such as [2]")
    of = "the end-of-sequence id at position {}"
    found = tuple(dict.fromkeys(integer(value, of.format(at)) for at, value in enumerate(ids)))
    for token in found:
        if not 0 <= token < n_ids:
            raise TokenOutOfRangeError(f"end-of-sequence id {token} is not in 0 .. {n_ids - 1}")
    return found


def short(value: object) -> str:
    """For a message: what it looks like, cut."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an int of more digits than Python shows; deep lists
        text = f"a {type(value).__name__} that is too large to show"
    return text if len(text) <= 60 else f"{text[:60]}…"
