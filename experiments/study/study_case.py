"""The cases and the config of the distortion study: one prompt with one constraint each."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from typing import Literal

from experiments.run import config
from experiments.run.config import option
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


MODELS = ("smollm2", "gemma-3-270m")
PARTICLES = (8, 32)
"""Of the populations that are weighted."""


@dataclass(frozen=True)
class Config(config.Config):
    """The defaults are what the README states."""

    models: tuple[str, ...] = option(MODELS, "smollm2, gemma-3-270m, local folders, hub ids")
    cases: tuple[str, ...] = option((), "names or families of cases, all if empty")
    temperatures: tuple[float, ...] = option((0.5, 1.0, 1.5), "what logits are divided by")
    slack: float = option(1e-3, "most probability of a distribution that may stay unassigned")
    unread: float = option(0.05, "most probability of paths that are not followed to their end")
    most_nodes: int = option(1500, "most forward positions per case")
    populations: int = option(1000, "weighted populations per estimate")
    large: int | None = option(1, "larger languages, which are sampled, of each family; none: all")
    samples: int = option(64, "samples per method of a larger language")
    longest: int = option(64, "ids of such a sample")
    batch: int = option(64, "such samples at a time")
    device: Literal["auto", "cpu", "cuda"] = option("auto", "where the models run")
    dtype: Literal["float32", "bfloat16", "float64"] = option("float32", "of the weights")

    def draws(self) -> int:
        """The number of the temperature at which anything is sampled: the one nearest to 1."""
        return min(range(len(self.temperatures)), key=lambda k: abs(self.temperatures[k] - 1))
