"""Ids and counts that come from outside."""

from __future__ import annotations

from typing import Any

from bpe_automata.errors import ArgumentError
from bpe_automata.token_automata.checks import whole


def integer(value: Any, name: str) -> int:
    """The integer that `value` is: of Python, numpy or torch, but no bool, which is most likely an
    entry of a mask. Raises ArgumentError."""
    if isinstance(value, bool):
        raise ArgumentError(f"{name} is {value}: give an integer")
    return whole(value, name)
