"""One prompt with one constraint, as the study asks it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations

from experiments.study.prompts import AnswerSetError


@dataclass(frozen=True)
class StudyCase:
    """name: unique; family: what the constraint is of (names, choices, yes_no, ...); base: what
    variants of one question share (its own name where there are none); style: of the prompt
    ("plain", "chat", "few_shot", "json", "code"); boundary: how the prompt ends and the answer
    begins ("space" before the first word is the answer's, "no_space": the prompt's, "newline",
    "quote": inside a string, "bracket", "word": the answer continues a word, "mixed": the
    answers differ in that).

    answers: the language, prefix-free, where it is small enough to be listed; else () and `pattern`
    is a regex of it. truth: the answers that are right; () where nothing is known.
    """

    name: str
    family: str
    base: str
    style: str
    boundary: str
    prompt: str
    answers: tuple[str, ...] = ()
    pattern: str | None = None
    truth: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if (len(self.answers) < 2) == (self.pattern is None):
            raise AnswerSetError(f"{self.name}: give two answers or more, or a pattern")
        for one, other in permutations(self.answers, 2):
            if other.startswith(one):
                message = f"{self.name}: the answer {one!r} begins the answer {other!r}"
                raise AnswerSetError(f"{message}; make the set prefix-free (add a delimiter)")
        if self.answers and not set(self.truth) <= set(self.answers):
            raise AnswerSetError(
                f"{self.name}: the right answer {self.truth} is none of the answers"
            )

    def is_finite(self) -> bool:
        """Is the language listed?"""
        return self.pattern is None
