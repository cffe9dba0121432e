"""What a mis-tokenized word does to the laws after it: the report, and what the README says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from experiments.run.executors import FAILURE, Row
from experiments.run.report import Report
from experiments.shared.model_rows import labels
from experiments.study import (
    poisoning_figure,
    poisoning_numbers,
    poisoning_published,
    poisoning_tables,
)
from experiments.study.poisoning_cases import WAYS
from experiments.study.poisoning_laws import ANOTHER, NOISE
from experiments.study.poisoning_numbers import ALL_WAYS, Estimate, means, medians, words_of
from experiments.study.poisoning_published import PUBLISHED
from experiments.study.poisoning_tables import Scope

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
        poisoning_tables.variations(scope, notes),
        poisoning_tables.divergences(scope),
        poisoning_tables.extra_losses(scope),
        poisoning_tables.categories(scope, chosen["categories"]),
        poisoning_tables.begotten(scope),
        *([poisoning_published.table(examples, called)] if examples else []),
        *poisoning_tables.farthest(scope),
    ]
    figures = [poisoning_figure.figure(rows, names, far, headline(facts))] if names else []
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
        found.setdefault(row["model"], {})[row["animal"]] = poisoning_published.facts_of(row)
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
