"""The chat formats that are put around a question, per model.

A prompt of style "chat" holds the bare question; it must go through `chat_prompt` before it is
encoded. What the assistant has written already stands behind `ASSISTANT`:

    'How does this review sound?' + ASSISTANT + '{"sentiment": "'

The formats hold special tokens, spelled as text: encode them as such. A token that begins every
text (Gemma's <bos>) is not part of a format, and neither is SmolLM2's default system message.
"""

from __future__ import annotations

from bpe_automata.errors import BpeAutomataError
from experiments.study.study_case import StudyCase

ASSISTANT = "\n<<assistant>>\n"
"""Divides a chat prompt into the user's question and the beginning of the assistant's turn."""

_FORMATS = {
    "smollm2": ("<|im_start|>user\n", "<|im_end|>\n<|im_start|>assistant\n"),
    "gemma": ("<start_of_turn>user\n", "<end_of_turn>\n<start_of_turn>model\n"),
}
"""Part of a model's name in lower case -> what stands before the question, and after it."""


class ChatFormatError(BpeAutomataError):
    """No chat format is known for a model, or a prompt has two assistant's turns."""


def prompt_text(case: StudyCase, model_name: str) -> str:
    """What the model reads before its answer: the prompt, in the chat format where it is a chat."""
    return chat_prompt(case.prompt, model_name) if case.style == "chat" else case.prompt


def chat_prompt(question: str, model_name: str) -> str:
    """`question` in the format of the model, up to the answer. Raises `ChatFormatError`.

    Without `ASSISTANT` in it the assistant's turn is empty, so the prompt ends with a newline.
    """
    asked, _, begun = question.partition(ASSISTANT)
    if ASSISTANT in begun:
        raise ChatFormatError(f"{question!r} holds ASSISTANT twice; write one turn of each side")
    before, after = _format_of(model_name)
    return before + asked + after + begun


def _format_of(model_name: str) -> tuple[str, str]:
    for part, written in _FORMATS.items():
        if part in model_name.lower():
            return written
    known = ", ".join(_FORMATS)
    raise ChatFormatError(f"no chat format for {model_name!r}; known are {known}: add one to it")
