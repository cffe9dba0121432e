"""What one mis-tokenized word does to a model's next-token distributions, by the distance from it.

A word in a sentence is spelled with other ids than the tokenizer's own, in up to three ways: one of
its tokens cut in two, all of it cut at random, its single characters (or bytes). What comes before
and after keeps its ids. At distance d (so many tokens of the sentence stand after the word) the
model's distribution of the next token is compared with the one after the word's own ids: total
variation, Kullback-Leibler divergence, and the loss of the token that does follow. The same text
was read, so a model that looked at text alone would show no change at all.

Each word stands in several templates of sentences. Both words and templates are samples of what
might be asked, so intervals come from drawing both again.

Two controls give the numbers a scale: another word of the same category, in its own ids, which is a
change of meaning; and, for some words, the same ids once more, in a batch by themselves, which is
the noise of the model's arithmetic. Also measured: the mass on ids that do not go on canonically,
after the word's own ids and after the others.

The published example, "weasel shark", is measured too: for each of four animals the ratio of the
chances of two next words, with every way to spell "shark".
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from bpe_automata import Tokenizer
from bpe_automata._decoding.visible import visible_tokens
from bpe_automata.errors import ArgumentError
from experiments import models
from experiments.engines.named import check_known
from experiments.models import Device, Dtype, LoadedModel, models_there, special_ids
from experiments.run import config
from experiments.run.config import option
from experiments.run.executors import Cell, Row
from experiments.run.files import cache_name, require
from experiments.run.measuring import Run
from experiments.shared.canonical_texts import after
from experiments.shared.free_texts import padded
from experiments.study.poisoning.report import TITLE, complete, facts, figures, readme, tables
from experiments.study.poisoning.words import (
    ANOTHER,
    NOISE,
    OWN,
    PUBLISHED,
    WORDS,
    OrdinaryTokens,
    Sentence,
    SentenceError,
    Template,
    other_ways,
    sentence,
    templates_of,
    with_another_word,
)

__all__ = ["SMOKE", "TITLE", "VERSION", "Config", "complete", "facts", "figures", "measure"]
__all__ += ["readme", "tables"]

VERSION = 3
NOISE_EVERY = 8
"""Of so many words, the noise of one is measured."""
DIGITS = 6


@dataclass(frozen=True)
class Config(config.Config):
    """Which words, how far, in which models."""

    models: tuple[str, ...] = option((models.SMOLLM2, models.GEMMA), "packaged, folder or hub id")
    categories: tuple[str, ...] = option(tuple(WORDS), "of words")
    words: int = option(12, "at most, of each category")
    templates: int = option(3, "of sentences that each word stands in, at most; they take turns")
    distances: tuple[int, ...] = option(
        (0, 1, 2, 3, 4, 6, 8, 12, 16), "tokens after the word, ascending"
    )
    device: Device = option("auto", "where the models run")
    dtype: Dtype = option("float32", "of the arithmetic")


SMOKE = Config(models=(models.SMOLLM2,), categories=("rare",), words=1, distances=(0, 2))


def measure(run: Run[Config]) -> None:
    """A row for each model; one for each animal of the published example and one for each word in
    each of its templates. A model that is not there is one failure, and has none of these."""
    chosen = run.config
    check(chosen)
    there = models_there(run, chosen.models, chosen.device, chosen.dtype)
    cells = [
        Cell(f"{name} {animal} shark", example, (name, animal, chosen))
        for animal in PUBLISHED
        for name in there
    ]
    cells += [
        Cell(
            f"{name} {category} {word} {template.name}",
            changed,
            (name, category, number, template, chosen),
        )
        for category in chosen.categories
        for number, word in enumerate(WORDS[category][: chosen.words])
        for template in templates_of(category, number, chosen.templates)
        for name in there
    ]
    run.cells(cells, what="words")


def check(chosen: Config) -> None:
    """Raises ArgumentError for a category that has no words, and for distances that do not
    ascend."""
    check_known("categories", chosen.categories, WORDS)
    far = chosen.distances
    if not far or far[0] < 0 or any(one >= other for one, other in pairwise(far)):
        raise ArgumentError(f"--distances {','.join(map(str, far))!r}: from 0 on, ascending")


def changed(name: str, category: str, number: int, template: Template, chosen: Config) -> Row:
    """One word in one template: the distributions after its own ids, after others, and after
    another word."""
    loaded, far = models.opened(name, chosen.device, chosen.dtype), chosen.distances
    words, (named, before, behind) = WORDS[category], template
    text = sentence(loaded.tokenizer, before, words[number], behind)
    ways = other_ways(loaded.tokenizer, text.word, random.Random(f"{chosen.seed} {words[number]}"))
    spelled = {OWN: text.word, **ways}
    others = [*words[number + 1 :], *words[:number]]
    another = with_another_word(loaded.tokenizer, text, before, others, behind, far[-1] + 1)
    if another:
        spelled[ANOTHER] = another[1].word
    row: Row = {
        "model": name,
        "category": category,
        "word": words[number],
        "template": named,
        "another": another[0] if another else None,
        "found": compared(loaded, text, spelled, far),
    }
    if number % NOISE_EVERY == 0:
        row["found"][NOISE] = noise(loaded, text, [*spelled.values()][-1], far)
    return row


# Distributions of the next id, over the whole vocabulary, in float64, from logits in the model's
# own arithmetic.


def compared(
    loaded: LoadedModel, text: Sentence, spelled: Mapping[str, Sequence[int]], far: Sequence[int]
) -> dict[str, Row]:
    """For each of `spelled` (ids in place of the word's, by a name; OWN among them) what holds at
    the distances `far` (ascending): the loss of the token that follows; but for OWN, the distances
    from its distribution; but for ANOTHER, which is another text, the mass outside the canonical
    ids."""
    torch = require("torch")
    logs = _after_words(loaded, text, spelled.values(), far)
    masses = logs.exp()
    allowed = torch.from_numpy(canonical_next(loaded, text, far)).to(logs.device).double()
    following = [text.after[d] for d in far]
    own = [*spelled].index(OWN)
    found = {}
    for k, (name, ids) in enumerate(spelled.items()):
        row: Row = {"ids": list(ids), "tokens": visible_tokens(loaded.tokenizer, ids)}
        row["loss"] = losses(logs[k], following)
        if name != OWN:
            row["tv"] = variations(masses[own], masses[k])
            row["kl"] = divergences(masses[own], logs[own], logs[k])
        if name != ANOTHER:
            row["outside"] = outside(masses[k], allowed)
        found[name] = row
    return found


def noise(loaded: LoadedModel, text: Sentence, other: Sequence[int], far: Sequence[int]) -> Row:
    """Total variation at the distances between the distributions after the word's own ids, read in
    one batch with other ids after a common beginning, and the same read alone and all at once."""
    together = _after_words(loaded, text, (text.word, other), far)[0].exp()
    start = [*loaded.start_ids, *text.before]
    rest = [*start[1:], *text.word, *text.after[: far[-1]]]
    alone = next_log_probs(loaded.model, start[:1], [rest], far)[0].exp()
    return {"tv": variations(together, alone)}


def _after_words(
    loaded: LoadedModel, text: Sentence, words: Iterable[Sequence[int]], far: Sequence[int]
) -> Any:
    """`next_log_probs` of the sentence, with each of these ids for its word."""
    following = text.after[: far[-1]]
    start = [*loaded.start_ids, *text.before]
    return next_log_probs(loaded.model, start, [[*word, *following] for word in words], far)


def next_log_probs(
    model: Any, start: Sequence[int], batch: Sequence[Sequence[int]], far: Sequence[int]
) -> Any:
    """Natural logs of the distributions of the next id, float64 [batch, far, V]: `far` ids,
    ascending, after the position far[-1] ids before the end of each sequence.

    start: ids that all sequences come after, at least one; they are read once.
    """
    torch = require("torch")
    inputs = padded(batch, len(start))
    last = inputs["input_ids"].shape[1] - 1
    inputs["logits_to_keep"] = last - far[-1] + torch.tensor(list(far))
    with torch.inference_mode():
        begun = model(torch.tensor([list(start)], device=model.device), logits_to_keep=1)
        begun[cache_name()].batch_repeat_interleave(len(batch))
        moved = {name: values.to(model.device) for name, values in inputs.items()}
        logits = model(**moved, **{cache_name(): begun[cache_name()]}).logits
        return logits.double().log_softmax(-1)


def variations(masses: Any, others: Any) -> list[float]:
    """Total variation at each distance, 0 to 1; float64 [far, V] each."""
    return _numbers((masses - others).abs_().sum(-1) / 2)


def divergences(masses: Any, logs: Any, others: Any) -> list[float]:
    """Kullback-Leibler divergence at each distance, nats: of `others` (logs) from the distribution
    that is given by its masses and their logs; float64 [far, V] each."""
    torch = require("torch")
    return _numbers(torch.linalg.vecdot(masses, logs) - torch.linalg.vecdot(masses, others))


def losses(logs: Any, following: Sequence[int]) -> list[float]:
    """-log P of the token that does follow, at each distance, in nats; logs: float64 [far, V]."""
    torch = require("torch")
    tokens = torch.tensor(list(following), device=logs.device)
    return _numbers(-logs.gather(-1, tokens[:, None])[:, 0])


def outside(masses: Any, allowed: Any) -> list[float]:
    """The mass at each distance on ids that are not allowed there. masses: float64 [far, V];
    allowed: float64 [far, n_ids], 1 or 0."""
    torch = require("torch")
    return _numbers(1 - torch.linalg.vecdot(masses[:, : allowed.shape[1]], allowed))


def _numbers(values: Any) -> list[float]:
    return [float(f"{value:.{DIGITS}g}") for value in values.cpu().tolist()]


def canonical_next(loaded: LoadedModel, text: Sentence, far: Sequence[int]) -> np.ndarray:
    """bool [far, n_ids]: at these distances from the word, the ids that go on canonically, and the
    special ones, which end or interrupt a text."""
    matcher, masks = after(loaded.tokenizer, [*text.before, *text.word]), []
    for d, token in enumerate(text.after[: far[-1] + 1]):
        if d in far:
            masks.append(matcher.mask())
        matcher.advance(token)
    allowed = np.stack(masks)
    allowed[:, sorted(special_ids(loaded))] = True
    return allowed


# The published example: what kind of animal some sharks are, by the tokens of "shark". There one
# other way to spell the word was measured, here all of them are.

BEFORE, WORD, AFTER = "A {}", " shark", " is a kind of"
ANSWERS = (" mammal", " fish")
SPLIT = (b" s", b"har", b"k")
"""The published way."""


def example(name: str, animal: str, chosen: Config) -> Row:
    """The ratios of one animal, with the model of this name."""
    loaded = models.opened(name, chosen.device, chosen.dtype)
    return {"model": name, **ratios(loaded, animal)}


def ratios(loaded: LoadedModel, animal: str) -> Row:
    """ways: [tokens, ratio] of the word's own ids, then of others, those of few tokens first;
    split: the index of the published way among them, None where it is not. Raises SentenceError."""
    tokenizer = loaded.tokenizer
    before = BEFORE.format(animal)
    text = sentence(tokenizer, before, WORD, AFTER)
    spelled = b"".join(map(tokenizer.token_bytes, text.word))
    others = sorted(OrdinaryTokens(tokenizer).all_ways(spelled), key=lambda ids: (len(ids), ids))
    ways = [text.word, *(ids for ids in others if ids != text.word)]
    answers = [_first(tokenizer, before + WORD + AFTER, answer) for answer in ANSWERS]
    logs = _after_words(loaded, text, ways, (len(text.after),))[:, 0]
    found = [one / other for one, other in logs[:, answers].exp().tolist()]
    pieces = [tuple(map(tokenizer.token_bytes, ids)) for ids in ways]
    return {
        "animal": animal,
        "ways": [
            [visible_tokens(tokenizer, ids), float(f"{ratio:.6g}")]
            for ids, ratio in zip(ways, found, strict=True)
        ],
        "split": pieces.index(SPLIT) if SPLIT in pieces else None,
    }


def _first(tokenizer: Tokenizer, prompt: str, answer: str) -> int:
    """The first id of an answer. Raises SentenceError where it changes those of the prompt."""
    ids, whole = tokenizer.encode(prompt), tokenizer.encode(prompt + answer)
    if whole[: len(ids)] != ids:
        raise SentenceError(f"{answer!r} after {prompt!r} changes the ids before it")
    return whole[len(ids)]
