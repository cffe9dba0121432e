"""What an automaton is made of is looked at once, on the way in: symbols, states, spellings."""

from __future__ import annotations

import operator
from collections.abc import Hashable, Iterable
from typing import Any

from bpe_automata.arguments import short
from bpe_automata.errors import MalformedAutomatonError

LARGEST = 2**31 - 1  # a symbol or a state is an int32


def symbols(values: Any, name: str) -> list[int]:
    """`values`, each from 0 to 2**31 - 1. Raises MalformedAutomatonError, naming the first that
    is not."""
    if isinstance(values, str | bytes | bytearray):
        raise MalformedAutomatonError(f"{name} is {short(values)}, a text: give integers")
    return [symbol(value, f"{name} at {at}") for at, value in enumerate(_listed(values, name))]


def symbol(value: Any, name: str) -> int:
    """One symbol. Raises MalformedAutomatonError."""
    try:
        found = operator.index(value)
    except TypeError:
        found = -1
    if not 0 <= found <= LARGEST:
        raise MalformedAutomatonError(
            f"{name} is {short(value)}: a symbol is an integer from 0 to {LARGEST}"
        )
    return found


def states(values: Any, name: str) -> list[Hashable]:
    """`values`, each hashable. Raises MalformedAutomatonError, naming the first that is not."""
    listed = _listed(values, name)
    for at, value in enumerate(listed):
        state(value, f"{name} at {at}")
    return listed


def state(value: Any, name: str) -> None:
    """Raises MalformedAutomatonError if `value` is not hashable."""
    try:
        hash(value)
    except TypeError:
        raise MalformedAutomatonError(
            f"{name} is {short(value)}, which is not hashable: give a number, text or tuple"
        ) from None


def spellings(values: Any) -> tuple[bytes, ...]:
    """`values` as a tuple, each bytes. Raises MalformedAutomatonError, naming the first that is
    not."""
    if isinstance(values, str | bytes | bytearray | dict):
        raise MalformedAutomatonError(
            f"the spellings are {short(values)}: give a list with the bytes of each symbol"
        )
    found = tuple(_listed(values, "spellings"))
    wrong = next((i for i, spelled in enumerate(found) if not isinstance(spelled, bytes)), None)
    if wrong is not None:
        raise MalformedAutomatonError(
            f"the spelling of symbol {wrong} is {short(found[wrong])}: give bytes, b'' for none"
        )
    return found


def _listed(values: Iterable[Any], name: str) -> list[Any]:
    try:
        return list(values)
    except TypeError:
        raise MalformedAutomatonError(f"{name} is {short(values)}: give a list") from None
