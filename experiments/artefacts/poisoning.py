"""What one mis-tokenized word does to a model's next-token distributions, by the distance from it.

A word in a sentence is spelled with other ids than the tokenizer's own, in up to three ways: one of
its tokens is cut in two, the whole word is cut at random, or its characters (or bytes) are spelled
one by one. The text before and after it keeps its ids. At distance d, which counts the tokens read
after the word, the model's distribution of the next token is compared with the one after the word's
own ids, by total variation and by the loss of the token that does follow. The model has read the
same text, so if the text alone mattered, nothing would change.

A control gives the numbers a scale: another word of the same category, in its own ids, which
changes the meaning. The published example, "weasel shark", is measured too: for each of four
animals, and for every way to spell "shark", the ratio of the probabilities of two next words.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from bpe_automata.decoding.visible import visible_tokens
from experiments import show
from experiments.files import require
from experiments.lab import Row
from experiments.models import GEMMA, SMOLLM2, LoadedModel, opened
from experiments.sampling import last_logits
from experiments.statistics import Statistic, estimate, weighted_mean, weighted_quantile
from experiments.words import (
    ANOTHER,
    OWN,
    PUBLISHED,
    WAYS,
    WORDS,
    OrdinaryTokens,
    Sentence,
    SentenceError,
    other_ways,
    sentence,
    templates_of,
    with_another_word,
)

TITLE, LONG = "What one mis-tokenized word does to the next-token distributions after it", True
DIGITS = 6
SHOWN = (0, 1, 2, 4, 8, 16)
"""The distances that the tables have."""
ALL = "all three"
VALUES = ["loss", "tv"]
BEFORE, WORD, AFTER, ANSWERS = "A {}", " shark", " is a kind of", (" mammal", " fish")
SPLIT = (b" s", b"har", b"k")
"""The published way to spell the word."""
MEDIAN = weighted_quantile(0.5)


@dataclass(frozen=True)
class Config:
    """words: the most of each category; templates: the most of each word; distances: tokens after
    the word, ascending."""

    models: tuple[str, ...] = (SMOLLM2, GEMMA)
    categories: tuple[str, ...] = tuple(WORDS)
    words: int = 12
    templates: int = 3
    distances: tuple[int, ...] = (0, 1, 2, 3, 4, 6, 8, 12, 16)
    device: str = "auto"
    dtype: str = "float32"
    seed: int = 0


SMOKE = Config((SMOLLM2,), ("rare",), words=2, templates=2, distances=(0, 2))


def cells(config: Config) -> list[Row]:
    """The published example, then a word in a template."""
    examples: list[Row] = [{"source": m, "animal": a} for m in config.models for a in PUBLISHED]
    words: list[Row] = [
        {"source": m, "category": c, "number": k, "turn": t}
        for m in config.models
        for c in config.categories
        for k in range(config.words)
        for t in range(config.templates)
    ]
    return [*examples, *words]


def measure(
    config: Config,
    source: str,
    animal: str = "",
    category: str = "",
    number: int = 0,
    turn: int = 0,
) -> list[Row] | Row:
    """The ratios of an animal; or, for a word, a row for each way with a value for each
    distance."""
    loaded = opened(source, config.device, config.dtype)
    said: Row = {"model": loaded.name}
    if animal:
        return said | ratios(loaded, animal)
    words, far, tokenizer = WORDS[category], config.distances, loaded.tokenizer
    template, before, behind = templates_of(category, number, config.templates)[turn]
    text = sentence(tokenizer, before, words[number], behind)
    ways = other_ways(tokenizer, text.word, random.Random(f"{config.seed} {words[number]}"))
    spelled = {OWN: text.word, **ways}
    others = [*words[number + 1 :], *words[:number]]
    another = with_another_word(tokenizer, text, before, others, behind, far[-1] + 1)
    if another:
        spelled[ANOTHER] = another[1].word
    rows = compared(loaded, text, spelled, far)
    said |= {"word": words[number], "template": template, "d": list(far)}
    return [said | {"another": another[0] if another else None} | row for row in rows]


# Distributions of the next id are over the whole vocabulary, in float64, from logits in the model's
# own dtype.


def compared(
    loaded: LoadedModel, text: Sentence, spelled: Mapping[str, Sequence[int]], far: Sequence[int]
) -> list[Row]:
    """A row for each of `spelled` (ids for the word, by way; OWN is the first), with values at the
    distances `far` (ascending): the loss of the token that follows, and, for ways other than OWN,
    the total variation to OWN's distribution."""
    torch = require("torch")
    logs = after_words(loaded, text, spelled.values(), far)
    masses = logs.exp()
    following = torch.tensor([text.after[d] for d in far], device=logs.device)
    rows = list[Row]()
    for k, (way, ids) in enumerate(spelled.items()):
        row: Row = {"way": way, "tokens": visible_tokens(loaded.tokenizer, ids)}
        row["loss"] = numbers_of(-logs[k].gather(-1, following[:, None])[:, 0])
        if way != OWN:
            row["tv"] = numbers_of((masses[0] - masses[k]).abs().sum(-1) / 2)
        rows.append(row)
    return rows


def after_words(
    loaded: LoadedModel, text: Sentence, words: Iterable[Sequence[int]], far: Sequence[int]
) -> Any:
    """float64 [words, far, V]: natural logs of the distributions of the next id, with each of these
    spellings of the word in the sentence, at these distances from it (ascending)."""
    begun, following = [*loaded.start_ids, *text.before], text.after[: far[-1]]
    read = [[*begun, *word, *following] for word in words]
    logits = last_logits(loaded.model, read, far[-1] + 1)
    return logits[:, list(far)].double().log_softmax(-1)


def numbers_of(values: Any) -> list[float]:
    """The numbers of a tensor, rounded to the digits that mean something."""
    return [float(f"{value:.{DIGITS}g}") for value in values.cpu().tolist()]


def ratios(loaded: LoadedModel, animal: str) -> Row:
    """ways: [tokens, P(mammal) / P(fish)] of the word's own ids, then of others, those with few
    tokens first; split: the index of the published way, None if it is not among them. Raises
    SentenceError."""
    tokenizer, before = loaded.tokenizer, BEFORE.format(animal)
    text = sentence(tokenizer, before, WORD, AFTER)
    spelled = b"".join(map(tokenizer.token_bytes, text.word))
    others = sorted(OrdinaryTokens(tokenizer).all_ways(spelled), key=lambda ids: (len(ids), ids))
    ways = [text.word, *(ids for ids in others if ids != text.word)]
    prompt = before + WORD + AFTER
    ids, answers = tokenizer.encode(prompt), list[int]()
    for answer in ANSWERS:
        both = tokenizer.encode(prompt + answer)
        if both[: len(ids)] != ids:
            raise SentenceError(f"{answer!r} after {prompt!r} changes the ids before it")
        answers.append(both[len(ids)])
    logs = after_words(loaded, text, ways, (len(text.after),))[:, 0]
    found = [float(f"{one / other:.6g}") for one, other in logs[:, answers].exp().tolist()]
    pieces = [tuple(map(tokenizer.token_bytes, way)) for way in ways]
    found_by_way = [[visible_tokens(tokenizer, way), r] for way, r in zip(ways, found, strict=True)]
    return {"ways": found_by_way, "split": pieces.index(SPLIT) if SPLIT in pieces else None}


# What the rows say. Medians and means are over words, templates and ways; intervals come from
# resampling words and templates, which are crossed.


def measured(rows: pd.DataFrame) -> pd.DataFrame:
    """A row for each word, template, way and distance d; extra: the loss minus that after the
    word's own ids."""
    found, keys = rows.dropna(subset=["way"]), ["model", "category", "word", "template"]
    found = found.sort_values(keys, kind="stable").reset_index(drop=True)
    for name in VALUES:
        each = zip(found[name], found["d"], strict=True)
        found[name] = [v if isinstance(v, list) else [np.nan] * len(d) for v, d in each]
    found = found.explode(["d", *VALUES]).astype(dict.fromkeys(VALUES, float))
    own = found[found["way"] == OWN].set_index([*keys, "d"])["loss"]
    found["extra"] = found["loss"] - own.loc[pd.MultiIndex.from_frame(found[[*keys, "d"]])].values
    return found.assign(model=pd.Categorical(found["model"], rows["model"].unique()))


def of_way(words: pd.DataFrame, way: str) -> pd.DataFrame:
    """The rows of a way: one of WAYS, ALL, OWN, or the name of a control."""
    return words[words["way"].isin(WAYS if way == ALL else (way,))]


def of_words(words: pd.DataFrame, statistic: Statistic, value: str) -> Any:
    """An estimate (value, low, high) over words and templates."""
    return estimate(words, statistic, value, "word", "template")


def by_way(words: pd.DataFrame, ways: Sequence[str], value: str, of: Statistic) -> pd.DataFrame:
    """A line for each model and way, with an estimate for each distance."""
    far = [d for d in SHOWN if d in {*words["d"]}]
    return pd.DataFrame(
        {"model": model, "ids of the word": way}
        | {f"d = {d}": of_words(some[some["d"] == d], of, value) for d in far}
        for model, own in words.groupby("model", observed=True)
        for way in ways
        if len(some := of_way(own, way).dropna(subset=[value]))
    )


def estimated(found: Any) -> str:
    """An estimate as text."""
    return show.interval("{:.0e}".format if 0 < abs(found[0]) < 5e-4 else show.fixed(3))(found)


def tables(rows: pd.DataFrame) -> list[show.Table]:
    """Two tables by way; then the published example."""
    words, compared_ = measured(rows), (ALL, *WAYS, ANOTHER)
    tv = by_way(words, compared_, "tv", MEDIAN)
    loss = by_way(words, compared_, "extra", weighted_mean)
    formats = dict.fromkeys(tv.columns[2:], estimated)
    note = """medians and means are over words, templates of sentences and ways; in brackets
        intervals of 95 %, not corrected for their number: words and templates are both resampled,
        and a value counts with the product of how often both were drawn (pigeonhole bootstrap, Owen
        2007), which makes intervals rather too wide than too narrow"""
    return [
        show.Table(
            "Total variation to the distribution after its own ids, median", tv, formats, note
        ),
        show.Table("Extra loss of the token that does follow, nats, mean", loss, formats),
        example(rows.dropna(subset=["animal"])),
    ]


def example(rows: pd.DataFrame) -> show.Table:
    """The published ratios, then those of the models."""
    data: list[Row] = [
        {"animal": a, "model": "Mistral-7B-v0.1, 4 bits (published)", "own tokens": own, "split": s}
        for a, (own, s) in PUBLISHED.items()
    ]
    for _, row in rows.sort_values(["source", "animal"]).iterrows():
        own, *others = [ratio for _, ratio in row["ways"]]
        line = {"animal": row["animal"], "model": row["model"], "own tokens": own}
        line["split"] = None if show.is_missing(row["split"]) else row["ways"][int(row["split"])][1]
        line |= {"least of the others": min(others), "median": np.median(others)}
        line |= {"greatest": max(others), "others that raise it": sum(r > own for r in others)}
        data.append(line | {"others": len(others)})
    frame = pd.DataFrame(data).rename(columns={"split": "`␣s`+`har`+`k`"})
    formats = dict.fromkeys(frame.columns[2:-2], show.fixed(3))
    note = """published: in the article's companion notebook, without a token for the beginning of a
        text; ours has the token that the model expects there. others: all other ways to spell the
        word with tokens of whole characters"""
    title = "P(“mammal”) / P(“fish”) after “A … shark is a kind of”, by the tokens of “shark”"
    return show.Table(title, frame, formats, note)


def figure(rows: pd.DataFrame) -> show.Figure:
    """Total variation against distance from the word: a panel per model."""
    words = measured(rows)
    models = dict(list(words.groupby("model", observed=True)))
    canvas, axes = show.panels(1, len(models), (max(11.0, 5.4 * len(models)), 5.0), sharey=True)
    said = list[str]()
    for panel, (model, own) in zip(axes[0], models.items(), strict=True):
        medians = list[str]()
        for way, color in ((ALL, show.LIFT), (ANOTHER, show.FREE)):
            each = of_way(own, way).groupby("d")["tv"]
            low, middle, high = (each.quantile(q) for q in (0.1, 0.5, 0.9))
            panel.fill_between(low.index, low, high, color=color, alpha=0.15, lw=0)
            label = "other ids, all ways" if way == ALL else way
            panel.plot(middle, color=color, linewidth=2.2, marker="o", markersize=4, label=label)
            medians.append(f"{middle.iloc[0]:.2f}")
        for way, dash in zip(WAYS, (":", "--", "-."), strict=True):
            middle = of_way(own, way).groupby("d")["tv"].median()
            panel.plot(middle, color=show.LIFT, linestyle=dash, linewidth=1.2, label=way)
        counts = f"{own['word'].nunique()} words in {own['template'].nunique()} templates"
        panel.set_title(f"{model}, {counts}", loc="left", fontsize=11)
        panel.set(ylim=(0, 1), xlabel="distance: tokens of the sentence after the word")
        panel.grid(axis="y", color="#eeeeee")
        said.append(f"{' against '.join(medians)} under {str(model).partition(' ')[0]}")
    axes[0, 0].set_ylabel("total variation to the distribution after its own ids")
    axes[0, 0].legend(frameon=False, fontsize=8.5, loc="upper right")
    note = (
        "Lines: medians; bands: 10 % to 90 % of words, templates and ways. Another word: of the "
        "same category, in its own tokenization. All over the whole vocabulary."
    )
    headline = f"Other ids for a word move what comes next as another word does: {', '.join(said)}"
    return show.Figure(canvas, headline, note)


def numbers(rows: pd.DataFrame) -> dict[str, str]:
    """How far the change reaches, compared with that of another word; how many spellings raise the
    published ratio."""
    words, examples = measured(rows), example(rows.dropna(subset=["animal"])).data
    parts = [
        by_way(words, (ALL, ANOTHER), value, of).iloc[:, [0, 1, 2, -1]]
        for value, of in (("tv", MEDIAN), ("extra", weighted_mean))
    ]
    data = parts[0].merge(parts[1], on=["model", "ids of the word"], suffixes=(" ", ""))
    names = [f"{what}, {d}" for what in ("TV", "extra loss") for d in parts[0].columns[2:]]
    data.columns = [*data.columns[:2], *names]
    raised = examples.groupby("model", sort=False)[["others that raise it", "others"]].sum()
    counts = [
        f"{n:.0f} of {of:.0f} under {model}" for model, n, of in raised[1:].itertuples() if of
    ]
    return {
        "poisoning": f"""{show.markdown(data, dict.fromkeys(names, estimated))}

        Of the other tokenizations of “shark” {" and ".join(counts)} raise the published ratio."""
    }
