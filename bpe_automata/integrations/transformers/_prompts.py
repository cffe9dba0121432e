"""The prompts of `generate`, texts or ids, and the ids that the model reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from bpe_automata._arguments import sequence_of_ids, short
from bpe_automata.errors import ArgumentError
from bpe_automata.tokenizer.tokenizer import Tokenizer

Prompt: TypeAlias = str | Sequence[int]
"""A text, or its ids (also a tensor or array [length])."""


def listed(prompts: Any) -> tuple[list[Any], bool]:
    """The prompts, each a str or a list, and whether one was given rather than a list of them.
    Raises ArgumentError, naming the prompt."""
    if isinstance(prompts, str):
        return [prompts], True
    given = _plain(prompts)
    if isinstance(given, Mapping) or not isinstance(given, Iterable):
        raise ArgumentError(
            f"prompts are a {type(prompts).__name__}: give texts, or lists of ids without padding"
        )
    each = [_plain(one) for one in given]
    if each and isinstance(each[0], int):
        return [each], True
    for number, one in enumerate(each):
        if not isinstance(one, str | list | tuple) or any(isinstance(m, Mapping) for m in one[:1]):
            raise ArgumentError(
                f"prompt {number} is {short(one)}: give a str or a list of ids; of chat messages "
                "those that apply_chat_template(messages, add_generation_prompt=True, "
                "return_dict=False) makes"
            )
    return each, False


def _plain(given: Any) -> Any:
    """Tensors and arrays as lists and numbers."""
    return given.tolist() if hasattr(given, "tolist") else given


def prompt_ids(tokenizer: Tokenizer, prompt: Any) -> list[int]:
    """The ids that the model reads. Raises ArgumentError."""
    if isinstance(prompt, str):
        return tokenizer.encode_prompt(prompt)
    return list(sequence_of_ids(prompt))
