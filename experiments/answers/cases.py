"""The prompts and their answers: those of the distortion table, the cases of the distortion study,
and the chat formats that are put around a question.

All were written before any of them was measured: no model has been run on a case to choose it, to
word it, or to leave it out. A tokenizer (SmolLM2's) was used for two things, neither of which looks
at a probability: answers with too many tokenizations to sum over were shortened, and prompts that
an answer would change were reworded, except in the variants that are meant for that.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import Any

from bpe_automata.errors import ArgumentError, BpeAutomataError
from experiments.run.files import lines_of


class AnswerSetError(BpeAutomataError):
    """A set of answers that the exact computation cannot take; the message names the answers."""


def check_prefix_free(name: str, answers: Sequence[str]) -> None:
    """Raises AnswerSetError where an answer begins another one. If none does, the end of an answer
    is forced: end-of-sequence has probability 1 under each method once an answer is complete, and
    no factor for it enters."""
    for one, other in permutations(answers, 2):
        if other.startswith(one):
            message = f"{name}: the answer {one!r} begins the answer {other!r}"
            raise AnswerSetError(f"{message}; make the set prefix-free (add a delimiter)")


# The distortion table. Its first prompt is the article's. The others cover what constrained
# decoding is used for (enums in JSON, yes/no, booleans, identifiers), scripts other than Latin, and
# answers that the end of the prompt could merge with. Chats are written out in the format of
# SmolLM2; its special tokens are text here as there.


@dataclass(frozen=True)
class Case:
    """A prompt and its answers, two or more and prefix-free. Raises AnswerSetError."""

    name: str
    prompt: str
    answers: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(self.answers) < 2:
            raise AnswerSetError(f"{self.name}: at least two answers are needed")
        check_prefix_free(self.name, self.answers)


PROMPTS: tuple[Case, ...] = tuple(
    Case(row["name"], row["prompt"], tuple(row["answers"]))
    for row in lines_of(Path(__file__).with_name("prompts.jsonl"))
)
PRESIDENT = PROMPTS[0]
BOOLEAN = "boolean: ((true)|(false))"
"""The regex of the article's other example."""

# The study. A family is what the constraint is of. Cases with the same `base` are variants of one
# question: they list their answers in the same order, and differ in `style` only or in `boundary`
# only. No case repeats a prompt of the table.
#
# The functions of `function_calls` are real ones. Source: the function documents in the PyPI
# package `bfcl-eval` 2026.3.23 (Berkeley Function Calling Leaderboard; Apache-2.0,
# https://github.com/ShishirPatil/gorilla). Only facts are kept: the names, the order of the
# parameters, their types and enumerations; its descriptions and requests are not.


@dataclass(frozen=True)
class StudyCase:
    """name: unique; family: what the constraint is of (names, choices, yes_no, ...); base: what
    variants of one question share (its own name where there are none); style: of the prompt
    ("plain", "chat", "few_shot", "json", "code"); boundary: how the prompt ends and the answer
    begins ("space" before the first word is the answer's, "no_space": the prompt's, "newline",
    "quote": anywhere in a string that the prompt has opened, "bracket", "word": the answer
    continues a word, or follows a mark (`list.`, `12:`) or a script without spaces, "mixed": the
    answers differ in what stands before their first word).

    answers: the language, prefix-free. truth: the answers that are right; () where nothing is
    known.
    """

    name: str
    family: str
    base: str
    style: str
    boundary: str
    prompt: str
    answers: tuple[str, ...]
    truth: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if len(self.answers) < 2:
            raise AnswerSetError(f"{self.name}: at least two answers are needed")
        check_prefix_free(self.name, self.answers)
        if not set(self.truth) <= set(self.answers):
            message = f"{self.name}: the right answer {self.truth} is none of the answers"
            raise AnswerSetError(message)


class CasesError(BpeAutomataError):
    """A line that is no case."""


def read(path: Path) -> tuple[StudyCase, ...]:
    """The cases of a file of JSON lines with the fields of `StudyCase`, in its order. One
    without `base` is its own. Raises CasesError, naming the line."""
    found: dict[str, StudyCase] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            given: dict[str, Any] = {
                key: tuple(value) if isinstance(value, list) else value
                for key, value in json.loads(line).items()
            }
            case = StudyCase(**{"base": given.get("name"), **given})
        except (ValueError, TypeError, AttributeError, BpeAutomataError) as error:
            raise CasesError(f"{path.name}, line {number} is no case: {error}") from error
        if case.name in found:
            raise CasesError(f"{path.name}, line {number}: {case.name} was there before")
        found[case.name] = case
    return tuple(found.values())


CASES = read(Path(__file__).with_suffix(".jsonl"))


def chosen(cases: Sequence[StudyCase], words: Sequence[str]) -> list[StudyCase]:
    """Those of these names or families, in their order; all for no words. Raises ArgumentError for
    a word that is neither."""
    known = {word for case in cases for word in (case.name, case.family)}
    unknown = [word for word in words if word not in known]
    if unknown:
        raise ArgumentError(f"--cases: {unknown[0]!r} is no case and no family of those asked")
    return [case for case in cases if not words or {case.name, case.family} & set(words)]


# The chat formats that are put around a question, per model.
#
# A prompt of style "chat" holds the bare question; it must go through `prompt_text` before it is
# encoded. What the assistant has written already stands behind `ASSISTANT`:
#
#     'How does this review sound?' + ASSISTANT + '{"sentiment": "'
#
# The formats hold special tokens, spelled as text: encode them as such. A token that begins every
# text (Gemma's <bos>) is not part of a format, and neither is SmolLM2's default system message.
# A model of which no format is known, or that was not trained on chats, is asked in plain text.

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
"""For the others. It ends with a newline as these do."""


class ChatFormatError(BpeAutomataError):
    """A prompt has two assistant's turns."""


def prompt_text(case: StudyCase, chats: str = PLAIN) -> str:
    """What the model reads before its answer: the prompt, in the format `chats` where it is one."""
    return chat_prompt(case.prompt, chats) if case.style == "chat" else case.prompt


def chat_prompt(question: str, chats: str = PLAIN) -> str:
    """`question` in the format `chats`, up to the answer. Raises `ChatFormatError`.

    Without `ASSISTANT` in it the assistant's turn is empty, so the prompt ends with a newline.
    """
    asked, _, begun = question.partition(ASSISTANT)
    if ASSISTANT in begun:
        raise ChatFormatError(f"{question!r} holds ASSISTANT twice; write one turn of each side")
    before, after = _FORMATS.get(chats, _PLAIN)
    return before + asked + after + begun


def chat_format(model_name: str, added: Collection[str], instruct: bool) -> str:
    """The name of a model's format: of one that was trained on chats (`instruct`) by its name, else
    by its added tokens, else `PLAIN`."""
    if not instruct:
        return PLAIN
    named = (name for name in _FORMATS if name in model_name.lower())
    marked = (name for mark, name in _MARKS.items() if mark in added)
    return next(named, None) or next(marked, PLAIN)
