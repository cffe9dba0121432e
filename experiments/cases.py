"""Prompts with answers: those of the distortion table and of the distortion study, and the chat
formats that are put around a question.

All were written before any of them was measured: no model has been run on a case to choose it, to
word it, or to leave it out. A tokenizer (SmolLM2's) was used for two things, neither of which looks
at a probability: answers with too many tokenizations to sum over were shortened, and prompts that
an answer would change were reworded, except in the variants that are meant for that.

The functions of the family `function_calls` are real ones, of the PyPI package `bfcl-eval`
2026.3.23 (Berkeley Function Calling Leaderboard; Apache-2.0). Only facts are kept: names, the order
of parameters, their types and enumerations.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.files import lines_of
from experiments.models import SMOLLM2, LoadedModel


@dataclass(frozen=True)
class Case:
    """family: the kind of answers (names, choices, yes_no, ...); base: shared by the variants of
    one question, which differ in style or boundary only and list their answers in the same order;
    style: of the prompt ("plain", "chat", "few_shot", "json", "code"); boundary: how the prompt
    ends and the answer begins ("space": a space begins the answer, "no_space": it ends the prompt,
    "newline", "quote", "bracket", "word": the answer follows a word, a mark or a script without
    spaces, "mixed"); answers: prefix-free; truth: the right answers, () if none is called right."""

    name: str
    prompt: str
    answers: tuple[str, ...]
    family: str = ""
    base: str = ""
    style: str = "plain"
    boundary: str = ""
    truth: tuple[str, ...] = ()


def read(path: Path) -> dict[str, Case]:
    """The cases of JSON lines with these fields, by name. A case without `base` is its own."""
    found = dict[str, Case]()
    for line in lines_of(path):
        given: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in line.items()}
        case = Case(**{"base": given["name"], **given})
        if case.name in found or not {*case.truth} <= {*case.answers}:
            raise ValueError(f"{path.name}: {case.name} is there twice, or its truth is no answer")
        found[case.name] = case
    return found


# A prompt of style "chat" holds the bare question, and after ASSISTANT the beginning of the answer:
# 'How does this review sound?' + ASSISTANT + '{"sentiment": "'. The formats hold special tokens,
# spelled as text and encoded as special tokens. Neither a token that begins every text (Gemma's
# <bos>) nor SmolLM2's default system message is part of a format. A model without a format here, or
# one that was not trained on chats, is asked in plain text.

ASSISTANT = "\n<<assistant>>\n"
FORMATS = {
    SMOLLM2: ("<|im_start|>user\n", "<|im_end|>\n<|im_start|>assistant\n"),
    "gemma": ("<start_of_turn>user\n", "<end_of_turn>\n<start_of_turn>model\n"),
}
"""Part of a model's name in lower case -> the text before the question, and the text after it. A
model of another name has the format whose first mark is one of its added tokens."""
PLAIN = ("Question: ", "\nAnswer:\n")


def prompt_text(case: Case, loaded: LoadedModel) -> str:
    """The text that the model reads before its answer."""
    if case.style != "chat":
        return case.prompt
    asked, _, begun = case.prompt.partition(ASSISTANT)
    added = {token.content for token in loaded.tokenizer.description.added}
    named = [both for name, both in FORMATS.items() if name in loaded.name.lower()]
    marked = [both for both in FORMATS.values() if both[0].partition(">")[0] + ">" in added]
    before, after = (*named, *marked, PLAIN)[0] if loaded.instruct else PLAIN
    return before + asked + after + begun
