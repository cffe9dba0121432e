"""What the models look at: the ids that they are asked about, and their texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bpe_automata.arguments import sequence_of_ids, short
from bpe_automata.errors import ArgumentError, TokenOutOfRangeError


def known_ids(ids: Sequence[int], n_ids: int) -> tuple[int, ...]:
    """`ids`, each from 0 to n_ids - 1. Raises TokenOutOfRangeError, ArgumentError."""
    found = sequence_of_ids(ids)
    wrong = next((token for token in found if not 0 <= token < n_ids), None)
    if wrong is not None:
        raise TokenOutOfRangeError(f"id {wrong} is not in 0 .. {n_ids - 1}, the model's ids")
    return found


def utf8(text: Any, name: str) -> bytes:
    """The bytes of a text. Raises ArgumentError."""
    if not isinstance(text, str):
        raise ArgumentError(f"{name} is {short(text)}: give a text")
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ArgumentError(
            f"{name} has a lone surrogate, {text[error.start]!r}, at position {error.start}: that "
            "is no character, so it has no bytes"
        ) from None
