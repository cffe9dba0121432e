"""Tables of what models write that is not their tokenizer's own."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.run.executors import FAILURE, Row
from experiments.run.files import require
from experiments.run.report import Figure, Report
from experiments.run.statistics import bootstrap, clopper_pearson
from experiments.run.tables import Table
from experiments.shared.models import labels
from experiments.study.spontaneous_judge import KINDS

# The figure of texts that are not canonical: a panel per kind of text, against temperature.

COLORS, MARKS = ("#00798c", "#d1495b", "#edae49", "#66a182"), ("o", "s", "^", "D")
ACROSS, APART = 5, 0.025
LABELS = {
    "prose": "English prose",
    "chat": "answers to questions",
    "json": "JSON",
    "table": "tables of spaces, tabs",
    "dates": "dates and numbers",
    "names": "lists of names",
    "russian": "Russian",
    "chinese": "Chinese",
    "arabic": "Arabic",
}


def figure(rows: Sequence[Row], names: Mapping[str, str], chosen: Row, facts: Row) -> Figure:
    """names: what models are called, by their names in the rows."""
    require("matplotlib").use("Agg")
    pyplot = require("matplotlib.pyplot")
    style = {"font.size": 10, "axes.spines.top": False, "axes.spines.right": False}
    with pyplot.rc_context(style):
        drawn = _panels(pyplot, rows, names, chosen)
    note = (
        f"{chosen['texts']} texts of at most {chosen['tokens']} tokens each, drawn freely; bars: "
        "intervals of 95 % (Clopper and Pearson)."
    )
    return Figure("spontaneous", drawn, headline(facts), note)


def _panels(pyplot: Any, rows: Sequence[Row], names: Mapping[str, str], chosen: Row) -> Any:
    """One for each kind of text."""
    kinds = chosen["kinds"]
    across = min(ACROSS, len(kinds))
    down = math.ceil(len(kinds) / across)
    drawn, grid = pyplot.subplots(
        down,
        across,
        figsize=(max(8.0, 2.5 * across), 2.6 * down + 1.2),
        sharex=True,
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    for place, axes in enumerate(grid.flat):
        if place >= len(kinds):
            axes.axis("off")
            continue
        _panel(axes, rows, names, kinds[place], chosen["temperatures"])
        if place + across >= len(kinds):
            axes.set_xlabel("temperature")
            axes.tick_params(labelbottom=True)
    marks = grid[0, 0].get_legend_handles_labels()
    drawn.legend(*marks, frameon=False, fontsize=10, loc="upper right")
    drawn.supylabel("texts that are not canonical, %", fontsize=10)
    return drawn


def _panel(
    axes: Any, rows: Sequence[Row], names: Mapping[str, str], kind: str, heats: Sequence[float]
) -> None:
    for number, (name, label) in enumerate(names.items()):
        found = [(heat, texts_of(rows, name, heat, kind)) for heat in heats]
        points = [(heat, of_texts(texts)) for heat, texts in found if texts]
        if not points:
            continue
        places = [heat + APART * (number - (len(names) - 1) / 2) for heat, _ in points]
        shares = [share.share * 100 for _, share in points]
        low = [(share.share - share.low) * 100 for _, share in points]
        high = [(share.high - share.share) * 100 for _, share in points]
        style = {"color": COLORS[number % 4], "marker": MARKS[number % 4], "markersize": 5}
        axes.errorbar(places, shares, [low, high], capsize=2, linewidth=1.4, label=label, **style)
    axes.set_title(LABELS.get(kind, kind), loc="left", fontsize=11)
    axes.set_ylim(-3, 103)
    axes.set_xticks(list(heats), [f"{heat:g}" for heat in heats])
    axes.grid(axis="y", color="#eeeeee")
    axes.set_axisbelow(True)


def headline(facts: Row) -> str:
    """The message, with the numbers of these rows, at temperature 1 where all were measured. Kinds
    of text differ more than models do, so it says that the numbers are averages."""
    models = facts["models"]
    first, *others = models.values()
    heats = [heat for heat in first if all(heat in other for other in others)]
    if not heats:
        return "How often models leave their tokenizer's own tokenization"
    heat = "1" if "1" in heats else heats[-1]
    what = ", averaged over these kinds of text" if len(facts["kinds"]) > 1 else ""
    said = [
        f"{label}: {own[heat]['texts']['share'] * 100:.0f} %{what}" for label, own in models.items()
    ]
    first = f"At temperature {heat}, texts that are not in their tokenizer's own ids"
    return "\n".join([first, *said])


# Shares of texts and joints that are not the tokenizer's own, with intervals of 95 %.

ALPHA = 0.05


@dataclass(frozen=True)
class Share:
    """count of whole; low, high: the interval of their ratio."""

    count: int
    whole: int
    low: float
    high: float

    @property
    def share(self) -> float:
        """count / whole; nan of nothing."""
        return self.count / self.whole if self.whole else float("nan")

    def facts(self) -> Row:
        """As JSON has it."""
        return {
            "count": self.count,
            "of": self.whole,
            "share": round(self.share, 6),
            "low": round(self.low, 6),
            "high": round(self.high, 6),
        }


def texts_of(
    rows: Sequence[Row], model: str, heat: float | None = None, kind: str | None = None
) -> list[Row]:
    """The texts of a model, at a temperature and of a kind where these are given."""
    return [
        text
        for row in rows
        if not row.get(FAILURE)
        and "texts" in row
        and row["model"] == model
        and kind in (None, row["kind"])
        for text in row["texts"]
        if heat in (None, text["temperature"])
    ]


def of_texts(texts: Sequence[Row]) -> Share:
    """The share of texts that are not canonical; the interval is Clopper & Pearson's."""
    count = sum(not text["canonical"] for text in texts)
    return Share(count, len(texts), *clopper_pearson(count, len(texts), ALPHA))


def of_joints(texts: Sequence[Row]) -> Share:
    """The share of joints at fault; the interval is that of whole texts drawn again, for the joints
    of one text depend on one another. An end that cannot be is a joint as well. Where no text has a
    fault, drawing again finds none either, and the interval says nothing: it is [0, 0]."""
    faults = np.array([len(text.get("faults", ())) for text in texts])
    joints = np.array([len(text["ids"]) + text["ended"] for text in texts])
    if not joints.sum():
        return Share(0, 0, 0.0, 1.0)

    def ratio(values: np.ndarray, taken: np.ndarray) -> np.ndarray:
        found: np.ndarray = taken @ values / np.maximum(taken @ joints, 1)
        return found

    low, high = bootstrap([*faults], range(len(texts)), ratio, 1 - ALPHA)
    return Share(int(faults.sum()), int(joints.sum()), low, high)


def faults_of(texts: Sequence[Row]) -> Iterator[tuple[str, str, str]]:
    """(kind, tokens, reason) of every fault."""
    for text in texts:
        for _, kind, tokens, reason in text.get("faults", ()):
            yield kind, tokens, reason


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
    figures = [figure(rows, names, chosen, facts)] if names else []
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
