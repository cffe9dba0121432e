"""The chat formats that are put around a question, per model.

A prompt of style "chat" holds the bare question; it must go through `chat_prompt` before it is
encoded. What the assistant has written already stands behind `ASSISTANT`:

    'How does this review sound?' + ASSISTANT + '{"sentiment": "'

The formats hold special tokens, spelled as text: encode them as such. A token that begins every
text (Gemma's <bos>) is not part of a format, and neither is SmolLM2's default system message.
A model of which no format is known is asked in plain text.
"""

from __future__ import annotations

from collections.abc import Collection

from bpe_automata.errors import BpeAutomataError
from experiments.study.study_case import StudyCase

ASSISTANT = "\n<<assistant>>\n"
"""Divides a chat prompt into the user's question and the beginning of the assistant's turn."""

_FORMATS = {
    "smollm2": ("<|im_start|>user\n", "<|im_end|>\n<|im_start|>assistant\n"),
    "gemma": ("<start_of_turn>user\n", "<end_of_turn>\n<start_of_turn>model\n"),
}
"""Part of a model's name in lower case -> what stands before the question, and after it."""
_MARKS = {"<|im_start|>": "smollm2", "<start_of_turn>": "gemma"}
"""Added token -> the format that it belongs to, for models of other names."""
PLAIN = "plain"
_PLAIN = ("Question: ", "\nAnswer:\n")
"""For models without any of these tokens. It ends with a newline as the others do."""


class ChatFormatError(BpeAutomataError):
    """A prompt has two assistant's turns."""


def prompt_text(case: StudyCase, model_name: str, added: Collection[str] = ()) -> str:
    """What the model reads before its answer: the prompt, in the chat format where it is a chat."""
    return chat_prompt(case.prompt, model_name, added) if case.style == "chat" else case.prompt


def chat_prompt(question: str, model_name: str, added: Collection[str] = ()) -> str:
    """`question` in the format of the model, up to the answer. Raises `ChatFormatError`. added: the
    tokenizer's added tokens.

    Without `ASSISTANT` in it the assistant's turn is empty, so the prompt ends with a newline.
    """
    asked, _, begun = question.partition(ASSISTANT)
    if ASSISTANT in begun:
        raise ChatFormatError(f"{question!r} holds ASSISTANT twice; write one turn of each side")
    before, after = _FORMATS.get(chat_format(model_name, added), _PLAIN)
    return before + asked + after + begun


def chat_format(model_name: str, added: Collection[str] = ()) -> str:
    """The name of the format: by the model's name, else by its added tokens, else `PLAIN`."""
    named = (name for name in _FORMATS if name in model_name.lower())
    marked = (name for mark, name in _MARKS.items() if mark in added)
    return next(named, None) or next(marked, PLAIN)
