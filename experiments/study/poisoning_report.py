"""What a mis-tokenized word does to the laws after it: the report, and what the README says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from experiments.run.executors import FAILURE, Row
from experiments.run.report import Report
from experiments.run.tables import Table
from experiments.shared.models import labels
from experiments.study import poisoning_laws, poisoning_numbers
from experiments.study.poisoning_laws import ANOTHER, NOISE, OWN, PUBLISHED, WAYS
from experiments.study.poisoning_numbers import ALL_WAYS, Estimate, means, medians, words_of

# Tables of what a mis-tokenized word does to the laws after it.

IDS = "ids of the word"
QUANTILES = {"10 %": 0.1, "median": 0.5, "90 %": 0.9}
MOST_FAR = 10
"""Words that are shown in full."""


class Scope(NamedTuple):
    """rows: of a run; names: what models are called, by their names in the rows; far: all
    distances; shown: those of the tables."""

    rows: Sequence[Row]
    names: dict[str, str]
    far: list[int]
    shown: list[int]

    def picked(self, values: np.ndarray) -> np.ndarray:
        """[words, ways, shown] of [words, ways, far]."""
        return values[..., [self.far.index(d) for d in self.shown]]


def _table(
    title: str,
    first: str,
    scope: Scope,
    values_of: Callable[[Sequence[Row]], dict[str, np.ndarray | None]],
    estimate: Callable[[np.ndarray], Estimate],
    notes: Sequence[str] = (),
) -> Table:
    """A line per model and way. values_of: from the words of a model to what its lines are of."""
    lines = [
        [way, label, *map(_cell, *estimate(scope.picked(values)))]
        for name, label in scope.names.items()
        for way, values in values_of(words_of(scope.rows, name)).items()
        if values is not None
    ]
    return Table(title, [first, "model", *(f"d = {d}" for d in scope.shown)], lines, notes)


def _cell(value: float, low: float, high: float) -> str:
    if 0 < abs(value) < 5e-4:
        return f"{value:.0e} ({low:.0e} to {high:.0e})"
    return f"{value:.3f} ({low:.3f} to {high:.3f})"


def variations(scope: Scope, notes: Sequence[str]) -> Table:
    """Total variation, by way and distance."""

    def values_of(words: Sequence[Row]) -> dict[str, np.ndarray | None]:
        ways = (ALL_WAYS, *WAYS, ANOTHER, NOISE)
        return {way: poisoning_numbers.table(words, way, "tv") for way in ways}

    title = "Total variation between the laws after the word's own ids and after others, median"
    return _table(title, IDS, scope, values_of, medians, notes)


def divergences(scope: Scope) -> Table:
    """Kullback-Leibler divergence, by way and distance: it has no upper end, so a few words far off
    show here that total variation hides."""
    estimates = {name: poisoning_numbers.quantile(q) for name, q in QUANTILES.items()}
    lines = []
    for name, label in scope.names.items():
        words = words_of(scope.rows, name)
        for way in (ALL_WAYS, *WAYS, ANOTHER):
            values = poisoning_numbers.table(words, way, "kl")
            if values is None:
                continue
            picked, n = scope.picked(values), f"{np.isfinite(values[..., 0]).sum():,}"
            for which, estimate in estimates.items():
                lines.append([way, label, n, which, *map(_cell, *estimate(picked))])
    title = "Kullback-Leibler divergence of the law after other ids from that after its own, nats"
    note = (
        "n: words times ways; in brackets intervals of 95 %, words drawn again. KL(own || other) = "
        "sum over the vocabulary of own law times the log of its ratio to the other."
    )
    columns = [IDS, "model", "n", "quantile", *(f"d = {d}" for d in scope.shown)]
    return Table(title, columns, lines, [note])


def extra_losses(scope: Scope) -> Table:
    """What the token that follows loses."""

    def values_of(words: Sequence[Row]) -> dict[str, np.ndarray | None]:
        ways = (ALL_WAYS, *WAYS, ANOTHER)
        return {way: poisoning_numbers.excess(words, way) for way in ways}

    title = "Extra loss of the token that does follow, nats, mean"
    return _table(title, IDS, scope, values_of, means)


def categories(scope: Scope, kinds: Sequence[str]) -> Table:
    """Total variation by category of words, all ways together."""

    def values_of(words: Sequence[Row]) -> dict[str, np.ndarray | None]:
        of_kinds = {kind: [word for word in words if word["category"] == kind] for kind in kinds}
        return {
            f"{kind} ({len(some)})": poisoning_numbers.table(some, ALL_WAYS, "tv")
            for kind, some in of_kinds.items()
        }

    title = "Total variation by category of words (how many), all ways together, median"
    return _table(title, "category", scope, values_of, medians)


def begotten(scope: Scope) -> Table:
    """Mass on next ids that do not go on canonically."""

    def values_of(words: Sequence[Row]) -> dict[str, np.ndarray | None]:
        return {way: poisoning_numbers.table(words, way, "outside") for way in (OWN, *WAYS)}

    note = "The ids that go on canonically are those after the word's own ids, for all ways alike."
    title = "Mass of the next token on ids that do not go on canonically, mean"
    return _table(title, IDS, scope, values_of, means, [note])


def farthest(scope: Scope) -> list[Table]:
    """The words that moved the law right after them the most, in full; no table of no word."""
    shown = scope.shown
    found = sorted(
        (
            (tv[scope.far.index(shown[0])], row["key"], way, row)
            for name in scope.names
            for row in words_of(scope.rows, name)
            for way in WAYS
            if (tv := row["found"].get(way, {}).get("tv")) is not None
        ),
        key=lambda each: (-each[0], each[1], each[2]),
    )
    lines = [
        [
            row["word"],
            scope.names[row["model"]],
            row["found"][OWN]["tokens"],
            row["found"][way]["tokens"],
            *_places(scope, row["found"][way]["tv"]),
            row["another"] or "",
            *_places(scope, row["found"].get(ANOTHER, {}).get("tv")),
        ]
        for _, _, way, row in found[:MOST_FAR]
    ]
    ends = [f"TV, d = {d}" for d in dict.fromkeys((shown[0], shown[-1]))]
    columns = ["word", "model", "own ids", "other ids", *ends, "another word", *ends]
    title = f"The farthest moved of {len(found):,} words and ways, by total variation"
    return [Table(title, columns, lines)] if lines else []


def _places(scope: Scope, values: Sequence[float] | None) -> list[str]:
    """At the first and the last distance that tables show."""
    ends = dict.fromkeys((scope.shown[0], scope.shown[-1]))
    return ["" if values is None else f"{values[scope.far.index(d)]:.3f}" for d in ends]


TITLE = "What one mis-tokenized word does to the next-token laws after it"
SHOWN = (0, 1, 2, 4, 8, 16)
"""Distances that tables show, where they were measured; else the first ones that were."""


def render(rows: Sequence[Row], manifest: Row) -> Report:
    """From the rows alone, whatever their order. The README compares models, so the report is
    complete if each has words and all of the published example."""
    rows = sorted(rows, key=lambda row: str(row["key"]))
    chosen, known = manifest["config"], manifest.get("models", {})
    called = labels(manifest)
    names = {name: label for name, label in called.items() if words_of(rows, name)}
    far = chosen["distances"]
    scope = Scope(rows, names, far, [d for d in SHOWN if d in far] or far[: len(SHOWN)])
    examples = [row for row in rows if "animal" in row and not row.get(FAILURE)]
    facts = {
        "models": {label: facts_of(scope, name) for name, label in names.items()},
        "example": _example_facts(examples),
    }
    notes = _notes(chosen, [known.get(name, {}).get("note", "") for name in names])
    tables = [
        variations(scope, notes),
        divergences(scope),
        extra_losses(scope),
        categories(scope, chosen["categories"]),
        begotten(scope),
        *([poisoning_laws.table(examples, called)] if examples else []),
        *farthest(scope),
    ]
    figures = [poisoning_numbers.figure(rows, names, far, headline(facts))] if names else []
    wanted = len(chosen["models"])
    complete = len(names) == wanted and len(examples) == wanted * len(PUBLISHED)
    return Report(TITLE, tables, figures, facts, complete=complete)


def facts_of(scope: Scope, name: str) -> Row:
    """Of one model: medians of the total variation and mean losses, by distance."""
    words = words_of(scope.rows, name)
    found: dict[str, Any] = {"words": len(words)}
    for way in (ALL_WAYS, *WAYS, ANOTHER, NOISE):
        values = poisoning_numbers.table(words, way, "tv")
        if values is not None:
            found[way] = _at(medians(scope.picked(values)), scope)
    lost = poisoning_numbers.excess(words, ALL_WAYS)
    if lost is not None:
        found["extra_loss"] = _at(means(scope.picked(lost)), scope)
    return found


def _at(found: Estimate, scope: Scope) -> dict[str, list[float]]:
    """[value, low, high] at each distance."""
    each = zip(scope.shown, zip(*found, strict=True), strict=True)
    return {str(d): [float(f"{part:.6g}") for part in parts] for d, parts in each}


def _notes(chosen: Row, of_models: Sequence[str]) -> list[str]:
    return [
        "Distance d: how many tokens of the sentence, in their own tokenization, stand after the "
        "word. Medians over words and ways; in brackets intervals of 95 %, words drawn again.",
        f"Whole vocabulary, float64, from logits in {chosen['dtype']}. {ANOTHER}: one of the same "
        "category in its own tokens, that is a change of meaning.",
        *dict.fromkeys(note for note in of_models if note),
    ]


def _example_facts(examples: Sequence[Row]) -> dict[str, Row]:
    """By model and animal."""
    found: dict[str, Row] = {}
    for row in examples:
        found.setdefault(row["model"], {})[row["animal"]] = poisoning_laws.facts_of(row)
    return found


def readme(facts: Row) -> str:
    """How far the change reaches, beside that of another word."""
    said = [_said(label, own) for label, own in facts["models"].items() if ALL_WAYS in own]
    return (
        "A word spelled with other ids than the tokenizer's own moves what the model says next, "
        "though the text is the same. Median total variation right after it, and further on: "
        f"{'; '.join(said)}.{_of_the_example(facts['example'])}"
    )


def _of_the_example(found: dict[str, dict[str, Row]]) -> str:
    animals = [own for by_animal in found.values() for own in by_animal.values()]
    if not animals:
        return ""
    others, raised = (sum(own[name] for own in animals) for name in ("others", "raised"))
    one, other = PUBLISHED["weasel"]
    up = sum(one < other for one, other in PUBLISHED.values())
    return (
        " Published, for Mistral-7B, is P(mammal) / P(fish) after “A weasel shark is a kind of”, "
        f"which other tokens of “shark” moved from {one:.3f} to {other:.3f}; of the "
        f"{len(PUBLISHED)} animals in the companion notebook {up} move up, {len(PUBLISHED) - up} "
        f"down. With these models and animals {raised} of {others} other tokenizations of the word "
        "move it up."
    )


def _said(label: str, own: Row) -> str:
    near, *_, far = [*own[ALL_WAYS]] * 2
    first, last = own[ALL_WAYS][near], own[ALL_WAYS][far]
    text = (
        f"{label} {first[0]:.2f} ({first[1]:.2f} to {first[2]:.2f}), {last[0]:.3f} after {far} "
        f"tokens, over {own['words']} words"
    )
    if ANOTHER not in own:
        return text
    return f"{text} (another word: {own[ANOTHER][near][0]:.2f} and {own[ANOTHER][far][0]:.3f})"


def headline(facts: Row) -> str:
    """The message of the figure, with the numbers of these rows."""
    said = []
    for label, own in facts["models"].items():
        if ALL_WAYS not in own:
            continue
        near, *_, far = [*own[ALL_WAYS]] * 2
        ends = own[ALL_WAYS][near][0], own[ALL_WAYS][far][0]
        text = f"{label}: {ends[0]:.2f}, and {ends[1]:.3f} after {far} tokens"
        if ANOTHER in own:
            ends = own[ANOTHER][near][0], own[ANOTHER][far][0]
            text += f" (another word: {ends[0]:.2f}, {ends[1]:.3f})"
        said.append(text)
    return "\n".join(["How far a word in other ids moves the next token's law, median", *said])
