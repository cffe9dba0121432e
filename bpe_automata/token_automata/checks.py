"""What comes from outside is looked at once: integers, sequences of ids, spellings."""

from __future__ import annotations

import operator
from collections.abc import Hashable, Iterable
from typing import Any

from bpe_automata.errors import ArgumentError, MalformedAutomatonError

LARGEST = 2**31 - 1  # a symbol or a state is an int32


def whole(value: Any, name: str) -> int:
    """The integer that `value` is. Raises ArgumentError."""
    try:
        return operator.index(value)
    except TypeError:
        raise ArgumentError(f"{name} is {short(value)}: give an integer") from None


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
    return tuple(whole(value, f"the id at position {at}") for at, value in enumerate(listed))


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


def short(value: object) -> str:
    """For a message: what it looks like, cut."""
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:60]}…"


def _listed(values: Iterable[Any], name: str) -> list[Any]:
    try:
        return list(values)
    except TypeError:
        raise MalformedAutomatonError(f"{name} is {short(values)}: give a list") from None
