"""The prompts of `generate`, texts, ids or chat messages, and the ids that are read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from bpe_automata._arguments import sequence_of_ids, short
from bpe_automata.errors import ArgumentError
from bpe_automata.tokenizer.tokenizer import Tokenizer

Prompt: TypeAlias = str | Sequence[int] | Sequence[Mapping[str, Any]]
"""A text, its ids (also a tensor or array [length]), or chat messages with "role" and "content"."""


def listed(prompts: Any) -> tuple[list[Any], bool]:
    """The prompts, each a str or a list, and whether one was given rather than a list of them.
    Raises ArgumentError, naming the prompt."""
    if isinstance(prompts, str):
        return [prompts], True
    given = _plain(prompts)
    if isinstance(given, Mapping) or not isinstance(given, Iterable):
        raise ArgumentError(
            f"prompts are a {type(prompts).__name__}: give texts, lists of ids without padding, or "
            "lists of chat messages"
        )
    each = [_plain(one) for one in given]
    if each and isinstance(each[0], int | Mapping):
        return [each], True
    for number, one in enumerate(each):
        if not isinstance(one, str | list | tuple):
            raise ArgumentError(
                f"prompt {number} is {short(one)}: give a str, a list of ids, or chat messages"
            )
    return each, False


def _plain(given: Any) -> Any:
    """Tensors and arrays as lists and numbers."""
    return given.tolist() if hasattr(given, "tolist") else given


def prompt_ids(tokenizer: Tokenizer, host: Any, number: int, prompt: Any) -> list[int]:
    """What the model reads for prompt `number`. `host`: a tokenizer of transformers, or None.

    Raises ArgumentError for messages without a chat template, or that it refuses."""
    if isinstance(prompt, str):
        return tokenizer.encode_prompt(prompt)
    if not prompt or not isinstance(prompt[0], Mapping):
        return list(sequence_of_ids(prompt))
    if getattr(host, "chat_template", None) is None:
        raise ArgumentError(
            f"prompt {number} is chat messages, and no chat template is known: give a tokenizer of "
            "transformers that has one, as hf_tokenizer or tokenizer, or give text or ids"
        )
    try:
        made = host.apply_chat_template(prompt, add_generation_prompt=True, return_dict=False)
    except Exception as error:  # whatever a template raises
        raise ArgumentError(
            f"prompt {number}: the chat template refuses the messages: {error}"
        ) from error
    return list(sequence_of_ids(made))
