"""The cases of the distortion study, read from `cases.jsonl`: one JSON object a line, with the
fields of `StudyCase` (what is left out is the default; a case without `base` is its own).

All of them were written before any of them was measured: no model has been run on a case to
choose it, to word it, or to leave it out. None repeats a prompt of `experiments.study.prompts`. A
tokenizer (SmolLM2's) was used for two things, neither of which looks at a probability: answers with
too many tokenizations to sum over were shortened, and prompts that an answer would change were
reworded, except in the variants that are meant for that.

A family is what the constraint is of. Cases with the same `base` are variants of one question:
they list their answers in the same order, and differ in `style` only or in `boundary` only. A case
with a `pattern` has a language that is too large to be listed: bounded in length, with an end that
is clear, so that no string of it begins another.

Besides the boundaries that `StudyCase` names, "mixed" means that the answers differ in what
stands before their first word. "word" is also used after a mark (`list.`, `12:`) and in scripts
without spaces. "quote" is anywhere in a string that the prompt has opened.

The functions of `function_calls` are real ones. Source: the function documents in the PyPI package
`bfcl-eval` 2026.3.23 (Berkeley Function Calling Leaderboard; Apache-2.0,
https://github.com/ShishirPatil/gorilla). Only facts are kept: the names, the order of the
parameters, their types and enumerations; its descriptions and requests are not.

A prompt of style "chat" is the bare question: `chat.prompt_text(case, model_name)` gives the text
to be encoded, for cases of all styles.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bpe_automata.errors import BpeAutomataError
from experiments.study.study_case import StudyCase

PATH = Path(__file__).with_suffix(".jsonl")


class CasesError(BpeAutomataError):
    """A line that is no case."""


def read(path: Path) -> tuple[StudyCase, ...]:
    """The cases of a file, in its order. Raises CasesError, naming the line."""
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


CASES = read(PATH)
