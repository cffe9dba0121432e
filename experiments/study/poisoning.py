"""What one mis-tokenized word does to a model's next-token laws, by the distance from it.

A word in a sentence is spelled with other ids than the tokenizer's own, in up to three ways: one of
its tokens cut in two, all of it cut at random, its single characters (or bytes). What comes before
and after keeps its ids. At distance d (so many tokens of the sentence stand after the word) the
model's law of the next token is held against the law after the word's own ids: total variation,
Kullback-Leibler divergence, and the loss of the token that does follow. The same text was read, so
a model that looked at text alone would show no change at all.

Two controls give the numbers a scale: another word of the same category, in its own ids, which is a
change of meaning; and, for some words, the same ids once more, in a batch by themselves, which is
the noise of the model's arithmetic. Also measured: the mass that the law puts on ids that do not go
on canonically, after the word's own ids and after the others.

The published example, "weasel shark", is measured too: see `poisoning_published`.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from bpe_automata.errors import ArgumentError
from experiments.run import config
from experiments.run.config import option
from experiments.run.executors import Cell, Row
from experiments.run.measuring import Run
from experiments.run.report import Report
from experiments.shared import models
from experiments.shared.model_rows import models_there
from experiments.study import poisoning_published, poisoning_report
from experiments.study.poisoning_cases import other_ways, sentence, with_another_word
from experiments.study.poisoning_laws import ANOTHER, NOISE, OWN, compared, noise
from experiments.study.poisoning_words import WORDS, sentence_of, words_of

VERSION = 2
NOISE_EVERY = 8


@dataclass(frozen=True)
class Config(config.Config):
    """Which words, how far, in which models."""

    models: tuple[str, ...] = option((models.SMOLLM2, models.GEMMA), "packaged, folder or hub id")
    categories: tuple[str, ...] = option(tuple(WORDS), "of words")
    words: int = option(40, "at most, of each category")
    distances: tuple[int, ...] = option(
        (0, 1, 2, 3, 4, 6, 8, 12, 16), "tokens after the word, ascending"
    )
    device: Literal["auto", "cpu", "cuda"] = option("auto", "where the models run")
    dtype: Literal["float32", "bfloat16", "float64"] = option("float32", "of the arithmetic")


SMOKE = Config(models=(models.SMOLLM2,), categories=("rare",), words=1, distances=(0, 2))


def measure(run: Run[Config]) -> None:
    """A row for each model; one for each animal of the published example and one for each word. A
    model that is not there is one failure, and has none of these."""
    chosen = run.config
    check(chosen)
    there = models_there(run, chosen.models, chosen.device, chosen.dtype)
    cells = [
        Cell(f"{name} {animal} shark", example, (name, animal, chosen))
        for animal in poisoning_published.PUBLISHED
        for name in there
    ]
    for category in chosen.categories:
        for number, word in enumerate(words_of(category)[: chosen.words]):
            for name in there:
                arguments = (name, category, number, chosen)
                cells.append(Cell(f"{name} {category} {word}", changed, arguments))
    run.cells(cells, what="words")


def check(chosen: Config) -> None:
    """Raises ArgumentError for a category that has no words, and for distances that do not
    ascend."""
    unknown = [category for category in chosen.categories if category not in WORDS]
    if unknown:
        raise ArgumentError(f"--categories: {unknown[0]!r} is none of {', '.join(WORDS)}")
    far = chosen.distances
    if not far or far[0] < 0 or any(one >= other for one, other in pairwise(far)):
        raise ArgumentError(f"--distances {','.join(map(str, far))!r}: from 0 on, ascending")


def changed(name: str, category: str, number: int, chosen: Config) -> Row:
    """One word: the laws after its own ids, after others, and after another word."""
    loaded, far = models.opened(name, chosen.device, chosen.dtype), chosen.distances
    words, (before, after) = words_of(category), sentence_of(category, number)
    text = sentence(loaded.tokenizer, before, words[number], after)
    ways = other_ways(loaded.tokenizer, text.word, random.Random(f"{chosen.seed} {words[number]}"))
    spelled = {OWN: text.word, **ways}
    others = [*words[number + 1 :], *words[:number]]
    another = with_another_word(loaded.tokenizer, text, before, others, after, far[-1] + 1)
    if another:
        spelled[ANOTHER] = another[1].word
    row: Row = {
        "model": name,
        "category": category,
        "word": words[number],
        "another": another[0] if another else None,
        "found": compared(loaded, text, spelled, far),
    }
    if number % NOISE_EVERY == 0:
        row["found"][NOISE] = noise(loaded, text, [*spelled.values()][-1], far)
    return row


def example(name: str, animal: str, chosen: Config) -> Row:
    """The published example of one animal."""
    loaded = models.opened(name, chosen.device, chosen.dtype)
    return {"model": name, **poisoning_published.ratios(loaded, animal)}


def render(rows: Sequence[Row], manifest: Row) -> Report:
    """Distances, losses, and the figure."""
    return poisoning_report.render(rows, manifest)


readme = poisoning_report.readme
