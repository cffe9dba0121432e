"""What is said of mis-tokenized words: tables, figure and README sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from experiments.models import labels
from experiments.run.executors import Row
from experiments.run.report import Figure, grid, panels
from experiments.run.tables import Column, Group, Table, fixed, frame, interval, table, whole
from experiments.shared.shown import model_notes
from experiments.statistics import Statistic, quantile, weighted_mean, weighted_quantile
from experiments.study.poisoning.estimates import (
    ALL_WAYS,
    MEDIAN,
    by_model,
    facts,
    measured,
    of_example,
    of_way,
    of_words,
    rows_with,
    shown_distances,
)
from experiments.study.poisoning.words import (
    ANOTHER,
    CUT,
    NOISE,
    OWN,
    PUBLISHED,
    RANDOM,
    SMALLEST,
    WAYS,
)

__all__ = ["TITLE", "complete", "facts", "figures", "readme", "tables"]

TITLE = "What one mis-tokenized word does to the next-token distributions after it"
QUANTILES = {"10 %": 0.1, "median": 0.5, "90 %": 0.9}
MOST_FAR = 10
"""Readings that are shown in full."""
IDS = "ids of the word"
DRAWN_AGAIN = (
    "in brackets intervals of 95 %, words and templates drawn again; each for itself, so of a "
    "hundred of them some miss"
)


# What the README says.


def complete(rows: pd.DataFrame, manifest: Row) -> bool:
    """Has each model words and all of the published example? The README compares models."""
    wanted = manifest["config"]["models"]
    examples = len(rows_with(rows, "animal"))
    names = {row["model"] for row in rows_with(rows, "found")}
    return names == set(wanted) and examples == len(wanted) * len(PUBLISHED)


def readme(facts: Row) -> str:
    """How far the change reaches, compared with that of another word."""
    if not facts:
        return ""
    said = [_said(label, own) for label, own in facts["models"].items() if ALL_WAYS in own]
    return (
        "A word spelled with other ids than the tokenizer's own moves what the model says next, "
        "though the text is the same. Median total variation right after it, and further on: "
        f"{'; '.join(said)}.{_of_the_example(facts['example'])}"
    )


def _said(label: str, own: Row) -> str:
    (value, low, high), last, far = _ends(own[ALL_WAYS])
    text = (
        f"{label} {value:.2f} ({low:.2f} to {high:.2f}), {last[0]:.3f} after {far} tokens, over "
        f"{own['words']} words in {own['templates']} templates"
    )
    if ANOTHER in own:
        first, last, _ = _ends(own[ANOTHER])
        text += f" (another word: {first[0]:.2f} and {last[0]:.3f})"
    near, last, _ = _ends(own["extra_loss"])
    return (
        f"{text}; the loss of the token that does follow changes by {_signed(near)} nats right "
        f"after it, and by {_signed(last)} after {far}"
    )


def _signed(found: Sequence[float]) -> str:
    """With its interval; below 0 where the model predicts better than after the word's own ids."""
    value, low, high = found
    return f"{value:+.3f} ({low:+.3f} to {high:+.3f})"


def _ends(by_distance: dict[str, list[float]]) -> tuple[list[float], list[float], str]:
    """The estimates at the first and at the last distance, and that distance."""
    near, *_, far = [*by_distance] * 2
    return by_distance[near], by_distance[far], far


def _of_the_example(found: dict[str, dict[str, Row]]) -> str:
    if not found:
        return ""
    counts = [
        f"{sum(own['raised'] for own in animals.values())} of "
        f"{sum(own['others'] for own in animals.values())} under {label}"
        for label, animals in found.items()
    ]
    one, other = PUBLISHED["weasel"]
    up = sum(one < other for one, other in PUBLISHED.values())
    return (
        " Published, for Mistral-7B, is P(mammal) / P(fish) after “A weasel shark is a kind of”, "
        f"which other tokens of “shark” moved from {one:.3f} to {other:.3f}; of the "
        f"{len(PUBLISHED)} animals in the companion notebook {up} move up, {len(PUBLISHED) - up} "
        f"down. Of the other tokenizations of the word {' and '.join(counts)} move it up."
    )


# Tables.


def tables(rows: pd.DataFrame, manifest: Row) -> list[Table]:
    """By way; by category; the published example; the words that moved the most."""
    words, shown = measured(rows, manifest), shown_distances(manifest)
    examples, compared = rows_with(rows, "animal"), (ALL_WAYS, *WAYS, ANOTHER)

    def by_way(title: str, ways: Sequence[str], field: str, of: Statistic, *notes: str) -> Table:
        columns = _columns(IDS, shown, of_words(of, field))
        return table(title, _lines(words, ways, field), columns, notes)

    return [
        by_way(
            "Total variation between the distributions after the word's own ids and after others, "
            "median",
            (*compared, NOISE),
            "tv",
            MEDIAN,
            "Distance d: how many tokens of the sentence, in their own tokenization, stand after "
            "the word.",
            f"Medians over words, templates of sentences and ways; {DRAWN_AGAIN}.",
            "Each word stands in several templates, so words and templates cross: a reading counts "
            "as often as its word is drawn times as often as its template (pigeonhole bootstrap, "
            "Owen 2007), which is rather too wide than too narrow where both are many.",
            "Whole vocabulary, float64, from logits in " + manifest["config"]["dtype"] + ".",
            f"{ANOTHER}: one of the same category in its own tokens, that is a change of meaning.",
            *model_notes(manifest, set(words["model"])),
        ),
        _divergences(_lines(words, compared, "kl"), shown),
        by_way(
            "Extra loss of the token that does follow, nats, mean", compared, "extra", weighted_mean
        ),
        _by_category(words, manifest["config"]["categories"], shown),
        by_way(
            "Mass of the next token on ids that do not go on canonically, mean",
            (OWN, *WAYS),
            "outside",
            weighted_mean,
            "The ids that go on canonically are those after the word's own ids, for all ways.",
        ),
        *([_example(examples, labels(manifest))] if examples else []),
        *_farthest(words, shown),
    ]


def _lines(words: pd.DataFrame, ways: Sequence[str], field: str) -> Iterator[tuple[str, Group]]:
    """The words of each model and way where the field was measured."""
    for _, own in by_model(words):
        for way in ways:
            some = of_way(own, way)
            if some[field].notna().any():
                yield way, some.assign(line=way)


def _columns(
    first: str, shown: Sequence[int], of: Callable[[Group], Any], *more: Column
) -> list[Column]:
    """The line's name, its model, and an estimate for each distance."""

    def at(d: int) -> Callable[[Group], Any]:
        return lambda own: of(own[own["d"] == d])

    return [
        Column(first, "line"),
        Column("model", "model"),
        *more,
        *(Column(f"d = {d}", at(d), _shown) for d in shown),
    ]


def _shown(found: Sequence[float]) -> str:
    return interval("{:.0e}".format if 0 < abs(found[0]) < 5e-4 else fixed(3))(found)


def _divergences(lines: Iterable[tuple[str, Group]], shown: Sequence[int]) -> Table:
    """Kullback-Leibler divergence has no upper end, so a few words far off show here that total
    variation hides."""

    def of(own: Group) -> Any:
        which = weighted_quantile(QUANTILES[own["quantile"].iloc[0]])
        return of_words(which, "kl")(own)

    more = (
        Column("n", lambda own: (own["d"] == own["d"].iloc[0]).sum(), whole),
        Column("quantile", "quantile"),
    )
    each = [(way, own.assign(quantile=name)) for way, own in lines for name in QUANTILES]
    title = (
        "Kullback-Leibler divergence of the distribution after other ids from that after its own, "
        "nats"
    )
    notes = [
        f"n: readings, one for each word, template and way; {DRAWN_AGAIN}.",
        "KL(own || other): the sum over the vocabulary of own probability times the log of its "
        "ratio to the other.",
    ]
    return table(title, each, _columns(IDS, shown, of, *more), notes)


def _by_category(words: pd.DataFrame, categories: Sequence[str], shown: Sequence[int]) -> Table:
    lines = []
    for _, own in by_model(words):
        for category in categories:
            some = own[own["category"] == category]
            ways = of_way(some, ALL_WAYS)
            if len(ways):
                count = f"{some['word'].nunique()}, {some['template'].nunique()}"
                lines.append((category, ways.assign(line=f"{category} ({count})")))
    title = "Total variation by category (words, templates), all ways together, median"
    return table(title, lines, _columns("category", shown, of_words(MEDIAN, "tv")))


def _example(examples: Sequence[Row], called: dict[str, str]) -> Table:
    """The published ratios, then those of the models."""
    published = "Mistral-7B-v0.1, 4 bits (published)"
    lines = [
        {"animal": animal, "model": published, "own": own, "split": other}
        for animal, (own, other) in PUBLISHED.items()
    ]
    for row in examples:
        found, (_, *others) = of_example(row), [ratio for _, ratio in row["ways"]]
        line = {"animal": row["animal"], "model": called[row["model"]], "own": found["own"]}
        line["split"] = None if row["split"] is None else row["ways"][row["split"]][1]
        if others:
            line |= {"least": min(others), "median": np.median(others), "greatest": max(others)}
        lines.append(line | {"raised": f"{found['raised']} of {found['others']}"})
    columns = [
        Column("animal", "animal"),
        Column("model", "model"),
        Column("own tokens", "own", fixed(3)),
        Column("`␣s`+`har`+`k`", "split", fixed(3), ""),
        Column("least of the others", "least", fixed(3), ""),
        Column("median", "median", fixed(3), ""),
        Column("greatest", "greatest", fixed(3), ""),
        Column("others that raise it", "raised", missing=""),
    ]
    title = "P(“mammal”) / P(“fish”) after “A … shark is a kind of”, by the tokens of “shark”"
    notes = [
        "Published: in the notebook beside the article, all four animals. Its prompt has no mark "
        "of the beginning of a text; ours has what the model expects there.",
        "The others are all other ways to spell the word with tokens of whole characters. Of "
        "“mammal” and “fish” the first token counts.",
    ]
    return table(title, frame(lines), columns, notes)


def _farthest(words: pd.DataFrame, shown: Sequence[int]) -> list[Table]:
    """The readings that moved the distribution right after the word the most, in full; no table of
    none."""
    others = words[(words["d"] == shown[0]) & words["way"].isin(WAYS)]
    order = {"by": ["tv", "key", "way"], "ascending": [False, True, True]}
    found = words.set_index(["key", "way", "d"])

    def of(field: str, way: str = "", d: int = shown[0]) -> Callable[[Group], Any]:
        """Of the same word and template: its field at a distance after one of the ways, by default
        that of the line."""
        return lambda one: found[field].get((one["key"].iloc[0], way or one["way"].iloc[0], d))

    ends = dict.fromkeys((shown[0], shown[-1]))
    columns = [
        Column("word", "word"),
        Column("template", "template"),
        Column("model", "model"),
        Column("own ids", of("tokens", OWN)),
        Column("other ids", "tokens"),
        *(Column(f"TV, d = {d}", of("tv", d=d), fixed(3)) for d in ends),
        Column("another word", "another", missing=""),
        *(Column(f"TV, d = {d}", of("tv", ANOTHER, d), fixed(3), "") for d in ends),
    ]
    title = f"The farthest moved of {len(others):,} readings (word, template, way)"
    farthest = others.sort_values(**order).head(MOST_FAR)
    return [table(title, farthest, columns)] if len(others) else []


# The figure of total variation against distance from the word: a panel per model.

OURS, CONTROL = "#d1495b", "#00798c"
LINES = {CUT: ("#edae49", ":"), RANDOM: ("#e07a5f", "--"), SMALLEST: ("#8d2f3a", "-.")}


def figures(rows: pd.DataFrame, manifest: Row) -> list[Figure]:
    """None where no word was measured."""
    words = measured(rows, manifest)
    if words.empty:
        return []
    models = dict(by_model(words))
    size = (max(11.0, 5.4 * len(models)), 5.0)
    drawn, axes = panels(1, len(models), size, sharey=True)
    for panel, (label, own) in zip(axes[0], models.items(), strict=True):
        _panel(panel, own)
        counts = f"{own['word'].nunique()} words in {own['template'].nunique()} templates"
        panel.set_title(f"{label}, {counts}", loc="left", fontsize=11)
    axes[0, 0].set_ylabel("total variation to the distribution after its own ids")
    axes[0, 0].legend(frameon=False, fontsize=8.5, loc="upper right")
    note = (
        "Lines: medians; bands: 10 % to 90 % of words, templates and ways. Another word: of the "
        "same category, in its own tokenization. All over the whole vocabulary."
    )
    return [Figure("poisoning", drawn, headline(facts(rows, manifest)), note)]


def _panel(axes: Any, words: Group) -> None:
    for way, color, text in ((ALL_WAYS, OURS, "other ids, all ways"), (ANOTHER, CONTROL, ANOTHER)):
        bands = _bands(of_way(words, way))
        if not bands.empty:
            axes.fill_between(bands.index, bands[0.1], bands[0.9], color=color, alpha=0.15, lw=0)
            axes.plot(bands[0.5], color=color, linewidth=2.2, marker="o", markersize=4, label=text)
    for way, (color, dashes) in LINES.items():
        bands = _bands(of_way(words, way))
        if not bands.empty:
            axes.plot(bands[0.5], color=color, linestyle=dashes, linewidth=1.2, label=way)
    axes.set_ylim(0, 1)
    axes.set_xlabel("distance: tokens of the sentence after the word")
    grid(axes, "y")


def _bands(words: Group) -> pd.DataFrame:
    """Quantiles of the total variation by distance."""
    each = words.groupby("d")["tv"]
    return pd.DataFrame(
        {q: each.agg(lambda values, q=q: quantile([*values], q)) for q in QUANTILES.values()}
    )


def headline(facts: Row) -> str:
    """The message of the figure, with the numbers of these rows, in the order of the panels."""
    each = []
    for label, own in facts["models"].items():
        there = [f"{_ends(own[way])[0][0]:.2f}" for way in (ALL_WAYS, ANOTHER) if way in own]
        each.append(f"{label.partition(' ')[0]} {' : '.join(there)}")
    return f"Respelled : another word, medians: {', '.join(each)}"
