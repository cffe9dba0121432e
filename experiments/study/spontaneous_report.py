"""Tables of what models write that is not their tokenizer's own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from experiments.run.executors import Row
from experiments.run.report import Report
from experiments.run.tables import Table
from experiments.shared.model_rows import labels
from experiments.study import spontaneous_figure
from experiments.study.spontaneous_judge import KINDS
from experiments.study.spontaneous_shares import (
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
    """From the rows alone, whatever their order. What the README says is an average over all kinds
    of text, so the report is complete if each model has each of them."""
    rows, chosen = sorted(rows, key=lambda row: str(row["key"])), manifest["config"]
    names = {name: labels(manifest)[name] for name in chosen["models"] if texts_of(rows, name)}
    facts = {
        "tokens": chosen["tokens"],
        "kinds": [kind for kind in chosen["kinds"] if any_texts(rows, chosen, kind)],
        "models": {label: facts_of(rows, name, chosen) for name, label in names.items()},
    }
    tables = [
        by_temperature(facts, note(chosen, manifest, names)),
        texts_by_kind(rows, names, chosen),
        joints_by_kind(rows, names, chosen),
        kinds_of_fault(rows, names),
        commonest(rows, names),
    ]
    figures = [spontaneous_figure.figure(rows, names, chosen, facts)] if names else []
    pairs = [(name, kind) for name in chosen["models"] for kind in chosen["kinds"]]
    complete = all(texts_of(rows, name, kind=kind) for name, kind in pairs)
    return Report(TITLE, tables, figures, facts, complete=complete)


def any_texts(rows: Sequence[Row], chosen: Row, kind: str) -> bool:
    """Has any model texts of this kind?"""
    return any(texts_of(rows, name, kind=kind) for name in chosen["models"])


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
        "before an id, the one after the prompt and that of an end included: so joints are tokens, "
        "ends among them. Ids of a model that its tokenizer does not have are never drawn.",
        "Published (the companion notebook of Tran-Thien 2024): along one English text, Outlines' "
        "README, Mistral-7B's likeliest id is nowhere one that is not canonical.",
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
    is_said = found["count"] or found["high"]  # of joints, none that is at fault has no interval
    interval = f"{low:.1f} to {high:.1f}" if is_said else ""
    return [f"{found['of']:,}", f"{found['count']:,}", share, interval]


def texts_by_kind(rows: Sequence[Row], names: dict[str, str], chosen: Row) -> Table:
    """Of each kind the texts that are not canonical."""
    title = "Texts that are not canonical, %, with intervals of 95 %"
    return _by_kind(title, rows, names, chosen, _texts_cell)


def joints_by_kind(rows: Sequence[Row], names: dict[str, str], chosen: Row) -> Table:
    """Of each kind the joints at fault."""
    title = "Joints at fault, per 1,000, with intervals of 95 %"
    note = (
        "After the interval the number of joints. Where none is at fault there is no interval: "
        "drawing texts without a fault again finds none."
    )
    return _by_kind(title, rows, names, chosen, _joints_cell, [note])


def _by_kind(
    title: str,
    rows: Sequence[Row],
    names: dict[str, str],
    chosen: Row,
    cell: Callable[[Sequence[Row]], str],
    notes: Sequence[str] = (),
) -> Table:
    """A row per kind of text and model, a column per temperature. cell: of some texts."""
    heats = chosen["temperatures"]
    lines = [
        [kind, label, *(cell(texts_of(rows, name, heat, kind)) for heat in heats)]
        for kind in chosen["kinds"]
        for name, label in names.items()
    ]
    columns = ["kind of text", "model", *(f"T = {heat:g}" for heat in heats)]
    return Table(title, columns, lines, notes)


def _texts_cell(texts: Sequence[Row]) -> str:
    if not texts:
        return ""
    found = of_texts(texts)
    return f"{found.share * 100:.0f} ({found.low * 100:.0f} to {found.high * 100:.0f})"


def _joints_cell(texts: Sequence[Row]) -> str:
    if not texts:
        return ""
    found = of_joints(texts)
    if not found.count:
        return f"0 of {found.whole:,}"
    ends = f"{found.low * 1000:.1f} to {found.high * 1000:.1f}"
    return f"{found.share * 1000:.1f} ({ends}) of {found.whole:,}"


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
    """How many texts of each model at temperature 1, and how that changes with it: averages over
    kinds of text, which differ from one another."""
    said = [_said(label, own) for label, own in facts["models"].items() if own]
    kinds = facts["kinds"]
    return (
        f"Left to themselves, models write texts of at most {facts['tokens']} tokens that are not "
        f"their tokenizer's own. On average over {len(kinds)} kinds of text ({', '.join(kinds)}), "
        f"as many of each: {'; '.join(said)}."
    )


def _said(label: str, own: Row) -> str:
    heat = f"{PROBE:g}" if f"{PROBE:g}" in own else next(iter(own))
    texts, joints = own[heat]["texts"], own[heat]["joints"]
    ends = dict.fromkeys(end for end in (min(own, key=float), max(own, key=float)) if end != heat)
    others = [f"{own[end]['texts']['share'] * 100:.0f} % at {end}" for end in ends]
    return (
        f"{label} {texts['share'] * 100:.0f} % of {texts['of']:,} at temperature {heat} "
        f"({texts['low'] * 100:.0f} to {texts['high'] * 100:.0f} %; "
        f"{joints['share'] * 1000:.1f} of 1,000 joints)"
        + (f", {' and '.join(others)}" if others else "")
    )
