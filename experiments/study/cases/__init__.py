"""The cases of the distortion study: `CASES`.

All of them were written before any of them was measured: no model has been run on a case to
choose it, to word it, or to leave it out. None repeats a prompt of `experiments.study.prompts`. A
tokenizer (SmolLM2's) was used for two things, neither of which looks at a probability: answers with
too many tokenizations to sum over were shortened, and prompts that an answer would change were
reworded, except in the variants that are meant for that.

A family is what the constraint is of. `names`, `choices`, `yes_no`, `dates_numbers`,
`function_calls`, `identifiers`, `scripts`, `strings` and `whitespace` hold single cases;
`styles` and `boundaries` hold variants, which count to the family of their question: cases with
the same `base` ask the same, list their answers in the same order, and differ in `style` only or
in `boundary` only. `patterns` holds the languages that are too large to be listed.

Besides the boundaries that `StudyCase` names, "mixed" means that the answers differ in what
stands before their first word. "word" is also used after a mark (`list.`, `12:`) and in scripts
without spaces. "quote" is anywhere in a string that the prompt has opened.

A prompt of style "chat" is the bare question: `chat.prompt_text(case, model_name)` gives the text
to be encoded, for cases of all styles.
"""

from experiments.study.cases import (
    boundaries,
    choices,
    dates_numbers,
    function_calls,
    identifiers,
    names,
    patterns,
    scripts,
    strings,
    styles,
    whitespace,
    yes_no,
)
from experiments.study.study_case import StudyCase

CASES: tuple[StudyCase, ...] = (
    *names.CASES,
    *choices.CASES,
    *yes_no.CASES,
    *dates_numbers.CASES,
    *function_calls.CASES,
    *identifiers.CASES,
    *scripts.CASES,
    *strings.CASES,
    *whitespace.CASES,
    *styles.CASES,
    *boundaries.CASES,
    *patterns.CASES,
)

__all__ = ["CASES"]
