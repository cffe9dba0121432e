"""Prompts with finite sets of answers, for the distortion table, read from `prompts.jsonl`.

The first one is the article's. The others cover what constrained decoding is used for (enums in
JSON, yes/no, booleans, identifiers), scripts other than Latin, and answers that the end of the
prompt could merge with. They were fixed before any of them was measured. Chats are written out in
the format of SmolLM2; its special tokens are text here as there.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from pathlib import Path

from bpe_automata.errors import BpeAutomataError
from experiments.run.files import lines_of


class AnswerSetError(BpeAutomataError):
    """A set of answers that the exact computation cannot take; the message names the answers."""


@dataclass(frozen=True)
class Case:
    """One row of the table: a prompt and its answers, which must be prefix-free.

    No answer may begin another one. Then the end of an answer is forced, so the end-of-sequence
    token has probability 1 under each method once an answer is complete, and no factor for it
    enters. Raises `AnswerSetError`.
    """

    name: str
    prompt: str
    answers: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(self.answers) < 2:
            raise AnswerSetError(f"{self.name}: at least two answers are needed")
        for one, other in permutations(self.answers, 2):
            if other.startswith(one):
                message = f"{self.name}: the answer {one!r} begins the answer {other!r}"
                raise AnswerSetError(f"{message}; make the set prefix-free (add a delimiter)")


CASES: tuple[Case, ...] = tuple(
    Case(row["name"], row["prompt"], tuple(row["answers"]))
    for row in lines_of(Path(__file__).with_suffix(".jsonl"))
)
PRESIDENT = CASES[0]
