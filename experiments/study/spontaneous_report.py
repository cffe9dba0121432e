"""Tables of what models write that is not their tokenizer's own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from experiments.run.cells import Row
from experiments.run.report import Report
from experiments.run.tables import Table
from experiments.study import spontaneous_figure
from experiments.study.spontaneous_judge import KINDS
from experiments.study.spontaneous_shares import (
    Share,
    faults_of,
    of_joints,
    of_texts,
    texts_of,
)

TITLE = "How often models leave their tokenizer's own tokenization"
MOST_COMMON, SHOWN = 8, 110
PROBE = 1.0
"""The temperature of the headline."""


def render(rows: Sequence[Row], manifest: Row) -> Report:
    """From the rows alone."""
    chosen = manifest["config"]
    names = {name: labels(manifest)[name] for name in chosen["models"] if texts_of(rows, name)}
    facts = {
        "tokens": chosen["tokens"],
        "models": {label: facts_of(rows, name, chosen) for name, label in names.items()},
    }
    tables = [
        by_temperature(facts, note(chosen, manifest, names)),
        by_kind(rows, names, chosen),
        kinds_of_fault(rows, names),
        commonest(rows, names),
    ]
    figures = [spontaneous_figure.figure(rows, names, chosen, facts)] if names else []
    return Report(TITLE, tables, figures, facts)


def labels(manifest: Row) -> dict[str, str]:
    """What the models are called, by the names of the config."""
    known = manifest.get("models", {})
    return {name: known.get(name, {}).get("model", name) for name in manifest["config"]["models"]}


def facts_of(rows: Sequence[Row], name: str, chosen: Row) -> Row:
    """Shares by temperature, over all kinds of text."""
    found: dict[str, Any] = {}
    for heat in chosen["temperatures"]:
        if texts := texts_of(rows, name, heat):
            share = {"texts": of_texts(texts).facts(), "joints": of_joints(texts).facts()}
            found[f"{heat:g}"] = share
    return found


def note(chosen: Row, manifest: Row, names: dict[str, str]) -> list[str]:
    """What the shares are of."""
    known = manifest.get("models", {})
    whose = [known[name]["note"] for name in names if known.get(name, {}).get("note")]
    return [
        f"{chosen['texts']} texts of at most {chosen['tokens']} tokens per model, temperature and "
        f"kind of text, in {chosen['dtype']}; intervals of 95 %: of texts Clopper and Pearson's, "
        "of joints by drawing whole texts again. The prompts are fixed.",
        "A text that was cut off is canonical if a longer text has its ids; a joint is what lies "
        "before an id, the one after the prompt and that of an end included.",
        *dict.fromkeys(whose),
    ]


def by_temperature(facts: Row, notes: Sequence[str]) -> Table:
    """A row per model and temperature."""
    lines = [
        [label, heat, *_cells(found["texts"], 100), *_cells(found["joints"], 1000)]
        for label, own in facts["models"].items()
        for heat, found in own.items()
    ]
    columns = ["model", "temperature", "texts", "not canonical", "%", "95 %"]
    columns += ["joints", "at fault", "per 1,000", "95 %"]
    return Table("Texts and joints, all kinds of text together", columns, lines, notes)


def _cells(found: Row, scale: int) -> list[str]:
    low, high = found["low"] * scale, found["high"] * scale
    share = f"{found['share'] * scale:.1f}"
    return [f"{found['of']:,}", f"{found['count']:,}", share, f"{low:.1f} to {high:.1f}"]


def by_kind(rows: Sequence[Row], names: dict[str, str], chosen: Row) -> Table:
    """A row per kind of text and model, a column per temperature."""
    heats = chosen["temperatures"]
    lines = [
        [kind, label, *(_percent(texts_of(rows, name, heat, kind)) for heat in heats)]
        for kind in chosen["kinds"]
        for name, label in names.items()
    ]
    columns = ["kind of text", "model", *(f"T = {heat:g}" for heat in heats)]
    return Table("Texts that are not canonical, %, with intervals of 95 %", columns, lines)


def _percent(texts: Sequence[Row]) -> str:
    if not texts:
        return ""
    found: Share = of_texts(texts)
    return f"{found.share * 100:.0f} ({found.low * 100:.0f} to {found.high * 100:.0f})"


def kinds_of_fault(rows: Sequence[Row], names: dict[str, str]) -> Table:
    """How many faults of each kind, by model."""
    counts = {name: Counter(kind for kind, _, _ in _faults(rows, name)) for name in names}
    lines = [
        [kind, *(_of(counts[name][kind], counts[name].total()) for name in names)]
        for kind in KINDS
        if any(counts[name][kind] for name in names)
    ]
    return Table("What is wrong at the joints at fault", ["fault", *names.values()], lines)


def _of(count: int, total: int) -> str:
    return f"{count:,} ({count / total * 100:.0f} %)" if total else "0"


def commonest(rows: Sequence[Row], names: dict[str, str]) -> Table:
    """The tokens that stand at a fault most often, with the library's explanation of one."""
    lines = []
    for name, label in names.items():
        counts = Counter(tokens for _, tokens, _ in _faults(rows, name))
        reasons = {tokens: reason for _, tokens, reason in _faults(rows, name) if reason}
        for tokens, count in counts.most_common(MOST_COMMON):
            lines.append([tokens, label, str(count), reasons.get(tokens, "")[:SHOWN]])
    columns = ["tokens at the joint", "model", "times", "as explained"]
    return Table("The commonest faults", columns, lines)


def _faults(rows: Sequence[Row], name: str) -> list[tuple[str, str, str]]:
    return list(faults_of(texts_of(rows, name)))


def readme(facts: Row) -> str:
    """How many texts of each model at temperature 1, and how that changes with it."""
    said = [_said(label, own) for label, own in facts["models"].items() if own]
    return (
        f"Left to themselves, models write texts of {facts['tokens']} tokens that are not their "
        f"tokenizer's own: {'; '.join(said)}."
    )


def _said(label: str, own: Row) -> str:
    heat = f"{PROBE:g}" if f"{PROBE:g}" in own else next(iter(own))
    texts, joints = own[heat]["texts"], own[heat]["joints"]
    ends = [f"{own[end]['texts']['share'] * 100:.0f} % at {end}" for end in (min(own), max(own))]
    return (
        f"{label} {texts['share'] * 100:.0f} % of {texts['of']:,} at temperature {heat} "
        f"({texts['low'] * 100:.0f} to {texts['high'] * 100:.0f} %; "
        f"{joints['share'] * 1000:.1f} of 1,000 joints), {' and '.join(ends)}"
    )
