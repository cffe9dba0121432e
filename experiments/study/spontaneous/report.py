"""What is said of texts that models wrote freely: tables, figure, facts and README sentence.

Shares have intervals of 95 % that come from drawing prompts again, each with all of its texts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from experiments.models import labels
from experiments.run.executors import Row
from experiments.run.report import Figure, grid, panels
from experiments.run.tables import (
    Column,
    Group,
    Table,
    count,
    fixed,
    interval,
    is_missing,
    records,
    scaled,
    table,
    whole,
)
from experiments.shared.canonical_texts import KINDS
from experiments.shared.shown import model_notes
from experiments.statistics import bootstrap

TITLE = "How often models leave their tokenizer's own tokenization"
MOST_COMMON, SHOWN = 8, 110
PROBE = "1"
"""The temperature of the headline and of the README."""
_FIELDS = ["model", "kind", "prompt", "temperature", "off", "joints", "at_fault", "faults"]


# Texts and faults as data frames.


def texts_of(rows: pd.DataFrame, manifest: Row) -> pd.DataFrame:
    """A row for each text, in the order of the keys: model (what it is called); kind; prompt, which
    no other kind has; temperature; off, 1 if it is not canonical; joints, that of an end included;
    at_fault, how many of them; faults."""
    called, chosen = labels(manifest), manifest["config"]
    found = [
        {"model": called[row["model"]], "kind": row["kind"], "temperature": text["temperature"]}
        | {"prompt": f"{row['kind']} {text['prompt']}", "off": int(not text["canonical"])}
        | {"joints": len(text["ids"]) + text["ended"]}
        | {"at_fault": len(text.get("faults", ())), "faults": text.get("faults", [])}
        for row in sorted(records(rows), key=lambda row: str(row["key"]))
        if not is_missing(row.get("texts"))
        for text in row["texts"]
    ]
    texts = pd.DataFrame(found, columns=_FIELDS)
    orders = {
        "model": called.values(),
        "kind": chosen["kinds"],
        "temperature": chosen["temperatures"],
    }
    return texts.assign(
        **{by: pd.Categorical(texts[by], [*dict.fromkeys(of)]) for by, of in orders.items()}
    )


def groups(texts: pd.DataFrame, *by: str) -> Iterator[tuple[Any, Group]]:
    """The texts by these columns, in the order of the config."""
    yield from texts.groupby([*by], observed=True)


def of_texts(texts: Group) -> Row:
    """count: of the texts those that are not canonical; of: how many texts; share, low, high: what
    that makes, with the interval that comes from drawing prompts again. Where that changes nothing
    (all are canonical, say), it says nothing of other prompts, and low and high are None."""
    return _share(texts, texts["off"].to_numpy(), np.ones(len(texts)))


def of_joints(texts: Group) -> Row:
    """The same for the joints, of which those at fault count."""
    return _share(texts, texts["at_fault"].to_numpy(), texts["joints"].to_numpy())


def _share(texts: Group, counts: np.ndarray, sizes: np.ndarray) -> Row:
    """Of some texts: the counted part of their sizes."""

    def ratio(values: np.ndarray, taken: np.ndarray) -> np.ndarray:
        found: np.ndarray = taken @ values / np.maximum(taken @ sizes, 1)
        return found

    number, of = int(counts.sum()), int(sizes.sum())
    low, high = bootstrap(counts.tolist(), texts["prompt"].tolist(), ratio)
    ends = (round(low, 6), round(high, 6)) if low < high else (None, None)
    share = round(number / of, 6) if of else math.nan
    return {"count": number, "of": of, "share": share, "low": ends[0], "high": ends[1]}


def faults_of(texts: pd.DataFrame) -> pd.DataFrame:
    """A row for each fault: the model, its kind, the tokens and the reason."""
    found = [
        (text["model"], kind, tokens, reason)
        for text in records(texts)
        for _, kind, tokens, reason in text["faults"]
    ]
    return pd.DataFrame(found, columns=["model", "kind", "tokens", "reason"])


# Facts, and what the README says of them.


def facts(rows: pd.DataFrame, manifest: Row) -> Row:
    """models: by name and temperature, the shares over all kinds of text; kinds: those that some
    model wrote; prompts: how many in all; tokens: at most in a text."""
    texts = texts_of(rows, manifest)
    found: dict[str, Row] = {}
    for (model, temperature), own in groups(texts, "model", "temperature"):
        shares = {"texts": of_texts(own), "joints": of_joints(own)}
        found.setdefault(model, {})[f"{temperature:g}"] = shares
    kinds = [kind for (kind,), _ in groups(texts, "kind")]
    counts = {"tokens": manifest["config"]["tokens"], "prompts": texts["prompt"].nunique()}
    return counts | {"kinds": kinds, "models": found}


def complete(rows: pd.DataFrame, manifest: Row) -> bool:
    """Has each model texts of each kind? The README speaks of averages over all of them."""
    chosen = manifest["config"]
    pairs = texts_of(rows, manifest)[["model", "kind"]].drop_duplicates()
    return len(pairs) == len(chosen["models"]) * len(chosen["kinds"])


def readme(facts: Row) -> str:
    """How many texts of each model at temperature 1, and how that changes with it: averages over
    kinds of text, which differ from one another."""
    if not facts:
        return ""
    said = [_said(label, own) for label, own in facts["models"].items() if own]
    kinds = facts["kinds"]
    return (
        f"Left to themselves, models write texts of at most {facts['tokens']} tokens that are not "
        f"their tokenizer's own. On average over {len(kinds)} kinds of text ({', '.join(kinds)}), "
        f"as many of each, after {facts['prompts']} prompts: {'; '.join(said)}."
    )


def _said(label: str, own: Row) -> str:
    temperature = PROBE if PROBE in own else next(iter(own))
    texts, joints = own[temperature]["texts"], own[temperature]["joints"]
    ends = dict.fromkeys(
        end for end in (min(own, key=float), max(own, key=float)) if end != temperature
    )
    others = [f"{own[end]['texts']['share'] * 100:.0f} % at {end}" for end in ends]
    known = texts["low"] is not None
    return (
        f"{label} {texts['share'] * 100:.0f} % of {texts['of']:,} at temperature {temperature} ("
        + (f"{texts['low'] * 100:.0f} to {texts['high'] * 100:.0f} %; " if known else "")
        + f"{joints['share'] * 1000:.1f} of 1,000 joints)"
        + (f", {' and '.join(others)}" if others else "")
    )


# Tables.


def tables(rows: pd.DataFrame, manifest: Row) -> list[Table]:
    """By temperature; by kind of text; what is wrong."""
    texts = texts_of(rows, manifest)
    temperatures = manifest["config"]["temperatures"]

    def in_percent(found: Row) -> str:
        return _estimate(found, 100, 0)

    return [
        _by_temperature(texts, _notes(texts, manifest)),
        _by_kind("Texts that are not canonical, %", texts, temperatures, of_texts, in_percent, FEW),
        _by_kind("Joints at fault, per 1,000", texts, temperatures, of_joints, _joints_shown, FEW),
        _kinds_of_fault(texts),
        _commonest(faults_of(texts)),
    ]


FEW = (
    "A share has no interval where drawing prompts again always gives the same (all texts are "
    "canonical, or none is). Prompts of one kind are few, for which such intervals are rather too "
    "narrow; each is for itself, so of a hundred of them some miss."
)


def _notes(texts: pd.DataFrame, manifest: Row) -> list[str]:
    """What the shares are of."""
    chosen = manifest["config"]
    return [
        f"{chosen['texts']} texts of at most {chosen['tokens']} tokens per model, temperature and "
        f"kind of text, in {chosen['dtype']}; fixed prompts ({texts['prompt'].nunique()} in all), "
        "those of a kind in turn.",
        "Intervals come from drawing prompts again, each with all of its texts (bootstrap): texts "
        "of one prompt are no independent evidence. Here prompts of all kinds are drawn as one.",
        "A text that was cut off is canonical if a longer text has its ids.",
        "A joint is the position before an id, that after the prompt and that of an end included. "
        "Ids of a model that its tokenizer does not have are never drawn.",
        "Published (the companion notebook of Tran-Thien 2024): along one English text, Outlines' "
        "README, Mistral-7B's likeliest id is nowhere one that is not canonical.",
        *model_notes(manifest, set(texts["model"])),
    ]


def _by_temperature(texts: pd.DataFrame, notes: Sequence[str]) -> Table:
    lines = [
        {
            "model": model,
            "temperature": temperature,
            "texts": of_texts(own),
            "joints": of_joints(own),
        }
        for (model, temperature), own in groups(texts, "model", "temperature")
    ]
    for line in lines:
        for found in (line["texts"], line["joints"]):
            found["ends"] = None if found["low"] is None else [found["low"], found["high"]]
    columns = [Column("model", "model"), Column("temperature", "temperature", "{:g}".format)]
    for of, unit, names in (
        ("texts", 100, ("texts", "not canonical", "%", "95 %")),
        ("joints", 1000, ("joints", "at fault", "per 1,000", "95 %")),
    ):
        shown = scaled(unit, fixed(1))
        formats: dict[str, Callable[[Any], str]] = {
            "of": whole,
            "count": whole,
            "share": shown,
            "ends": interval(shown),
        }
        columns += [
            Column(name, f"{of}.{field}", format_)
            for name, (field, format_) in zip(names, formats.items(), strict=True)
        ]
    title = "Texts and joints, all kinds of text together"
    return table(title, pd.json_normalize(lines), columns, notes)


def _by_kind(
    title: str,
    texts: pd.DataFrame,
    temperatures: Sequence[float],
    of: Callable[[Group], Row],
    shown: Callable[[Row], str],
    *notes: str,
) -> Table:
    """A line per kind of text and model, a column per temperature. of: the share of some texts."""

    def at(temperature: float) -> Callable[[Group], Row | None]:
        def shares(own: Group) -> Row | None:
            there = own[own["temperature"] == temperature]
            return None if there.empty else of(there)

        return shares

    columns = [Column("kind of text", "kind"), Column("model", "model")]
    columns += [Column(f"T = {each:g}", at(each), shown) for each in temperatures]
    title = f"{title}, with intervals of 95 %"
    return table(title, groups(texts, "kind", "model"), columns, notes)


def _estimate(found: Row, factor: float, digits: int) -> str:
    """A share with its interval, where it has one, in another unit."""
    shown = scaled(factor, fixed(digits))
    if found["low"] is None:
        return shown(found["share"])
    return interval(shown)((found["share"], found["low"], found["high"]))


def _joints_shown(found: Row) -> str:
    return f"{_estimate(found, 1000, 1) if found['count'] else '0'} of {found['of']:,}"


def _kinds_of_fault(texts: pd.DataFrame) -> Table:
    """How many faults of each kind, by model."""
    faults = faults_of(texts)

    def of(model: str) -> Callable[[Group], str]:
        all_of = int((faults["model"] == model).sum())

        def shown(some: Group) -> str:
            number = int((some["model"] == model).sum())
            return f"{number:,} ({number / all_of * 100:.0f} %)" if all_of else "0"

        return shown

    columns = [Column("fault", "kind")]
    columns += [Column(model, of(model)) for (model,), _ in groups(texts, "model")]
    ordered = faults.assign(kind=pd.Categorical(faults["kind"], KINDS))
    title = "What is wrong at the joints at fault"
    return table(title, ordered.groupby("kind", observed=True), columns)


def _commonest(faults: pd.DataFrame) -> Table:
    """The tokens that stand at a fault most often, with the library's explanation of one."""
    lines = []
    for _, own in faults.groupby("model", sort=False):
        each = sorted(own.groupby("tokens", sort=False), key=lambda pair: -len(pair[1]))
        lines += each[:MOST_COMMON]
    columns = [
        Column("tokens at the joint", "tokens"),
        Column("model", "model"),
        Column("times", count),
        Column("as explained", lambda some: [*filter(None, some["reason"]), ""][-2:][0][:SHOWN]),
    ]
    return table("The commonest faults", lines, columns)


# The figure: a panel per kind of text, shares of texts that are not canonical by temperature.

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


def figures(rows: pd.DataFrame, manifest: Row) -> list[Figure]:
    """None where no model wrote anything."""
    texts, chosen = texts_of(rows, manifest), manifest["config"]
    if texts.empty:
        return []
    kinds = chosen["kinds"]
    across = min(ACROSS, len(kinds))
    down = math.ceil(len(kinds) / across)
    size = (max(8.0, 2.5 * across), 2.6 * down + 1.2)
    drawn, axes = panels(down, across, size, sharex=True, sharey=True)
    for panel in axes.flat[len(kinds) :]:
        panel.axis("off")
    models = [model for (model,), _ in groups(texts, "model")]
    for place, kind in enumerate(kinds):
        panel = axes.flat[place]
        _panel(panel, texts[texts["kind"] == kind], models, chosen["temperatures"])
        panel.set_title(LABELS.get(kind, kind), loc="left", fontsize=11)
        if place + across >= len(kinds):
            panel.set_xlabel("temperature")
            panel.tick_params(labelbottom=True)
    axes[0, 0].legend(frameon=False, fontsize=8, loc="upper left")
    drawn.supylabel("texts that are not canonical, %", fontsize=10)
    note = (
        f"{chosen['texts']} texts of at most {chosen['tokens']} tokens each, drawn freely; bars: "
        "intervals of 95 %, prompts drawn again."
    )
    return [Figure("spontaneous", drawn, headline(facts(rows, manifest)), note)]


def _panel(
    axes: Any, texts: pd.DataFrame, models: Sequence[str], temperatures: Sequence[float]
) -> None:
    for (model,), own in groups(texts, "model"):
        number = models.index(model)
        found = [
            {"temperature": temperature} | of_texts(some)
            for (temperature,), some in groups(own, "temperature")
        ]
        points = pd.DataFrame(found)
        shares = points[["share", "low", "high"]].astype(float) * 100
        bars = [shares["share"] - shares["low"], shares["high"] - shares["share"]]
        places = points["temperature"] + APART * (number - (len(models) - 1) / 2)
        style = {"color": COLORS[number % 4], "marker": MARKS[number % 4], "markersize": 5}
        axes.errorbar(places, shares["share"], bars, capsize=2, linewidth=1.4, label=model, **style)
    axes.set_ylim(-3, 103)
    axes.set_xticks(list(temperatures), [f"{temperature:g}" for temperature in temperatures])
    grid(axes, "y")


def headline(facts: Row) -> str:
    """The message, with the numbers of these rows, at temperature 1 where all were measured. Kinds
    of text differ more than models do, so it says that the numbers are averages."""
    models = facts["models"]
    first, *others = models.values()
    temperatures = [
        temperature for temperature in first if all(temperature in other for other in others)
    ]
    if not temperatures:
        return TITLE
    temperature = PROBE if PROBE in temperatures else temperatures[-1]
    said = [
        f"{label.partition(' ')[0]} {own[temperature]['texts']['share'] * 100:.0f} %"
        for label, own in models.items()
    ]
    what = ", mean of the kinds" if len(facts["kinds"]) > 1 else ""
    return f"Not canonical at temperature {temperature}{what}: {', '.join(said)}"
