"""How often a model that samples freely leaves its tokenizer's own tokenization.

For each model, temperature and kind of text: texts of some tokens, drawn without any constraint
after each of the prompts in `spontaneous.json`, until a special token or the last id. A text counts
as canonical if `encode` makes these ids of it (after its prompt); one that was cut off, if some
longer text has them (`shared.canonical_texts`). A joint is the position before an id; it is at
fault where the ids leave the canonical sequences.

Texts after one prompt are like one another: what a prompt asks for decides much of how often they
leave the canonical sequences. So prompts are the unit, and intervals come from drawing prompts
again, each with all of its texts (bootstrap): they speak of prompts like these.
"""

from __future__ import annotations

import json
import math
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bpe_automata import Tokenizer
from experiments.canonical_texts import KINDS, Judge
from experiments.lab import Row
from experiments.models import GEMMA, SMOLLM2, opened, special_ids
from experiments.sampling import sample
from experiments.show import MODELS, Figure, Format, Table, fixed, interval, panels, whole
from experiments.statistics import bootstrap

TITLE = "How often models leave their tokenizer's own tokenization"
PROMPTS: dict[str, list[str]] = json.loads(
    Path(__file__).with_suffix(".json").read_text(encoding="utf-8")
)
"""By kind of text, as many of each, chosen without looking at what models make of them. None ends
with a space or, where words are divided by spaces, inside a word: the next id would have to mend
that."""
TURN = "<|im_start|>"
"""Of the chat format that SmolLM2 was trained with; a model without it gets plain text."""
PROBE, MOST_COMMON, LONGEST = 1.0, 8, 110
"""The temperature of headline and pages; faults of a model, and characters of an explanation."""


@dataclass(frozen=True)
class Config:
    """texts: per model, temperature and kind, whose prompts take turns; ids: at most in each."""

    models: tuple[str, ...] = (SMOLLM2, GEMMA)
    temperatures: tuple[float, ...] = (0.3, 0.7, 1.0, 1.3, 1.6)
    kinds: tuple[str, ...] = tuple(PROMPTS)
    texts: int = 32
    ids: int = 48
    device: str = "auto"
    dtype: str = "bfloat16"
    seed: int = 0


SMOKE = Config((SMOLLM2,), (1.0, 1.6), ("names",), texts=8, ids=8)


def cells(config: Config) -> list[Row]:
    """A model and a kind of text, with all temperatures: their texts are one batch."""
    return [{"source": model, "kind": kind} for kind in config.kinds for model in config.models]


def measure(config: Config, source: str, kind: str) -> list[Row]:
    """A row for each text, judged, with the number of its prompt. What its ids are drawn with
    depends on nothing but what names the text."""
    loaded = opened(source, config.device, config.dtype)
    prompts = [loaded.prompt_ids(text) for text in prompts_of(kind, loaded.tokenizer)]
    wanted = [(t, k) for t in config.temperatures for k in range(config.texts)]
    seeds = [zlib.crc32(f"{config.seed} {source} {kind} {t:g} {k}".encode()) for t, k in wanted]
    which = [k % len(prompts) for _, k in wanted]
    texts = sample(
        loaded.model,
        prompts,
        which,
        [temperature for temperature, _ in wanted],
        np.stack([np.random.default_rng(seed).random(config.ids) for seed in seeds]),
        special_ids(loaded),
        loaded.tokenizer.n_ids,
    )
    judges = [Judge(loaded.tokenizer, prompt) for prompt in prompts]
    rows = list[Row]()
    for (temperature, _), prompt, text in zip(wanted, which, texts, strict=True):
        faults = judges[prompt].verdict(text.ids, text.ended).faults
        row = {"model": loaded.name, "note": loaded.note, "temperature": temperature}
        row |= {"prompt": prompt, "ids": list(text.ids), "ended": text.ended}
        rows.append(row | {"faults": [[f.position, f.kind, f.tokens, f.reason] for f in faults]})
    return rows


def prompts_of(kind: str, tokenizer: Tokenizer) -> list[str]:
    """The prompts of a kind, in the chat format of the tokenizer's model where there is one."""
    if kind != "chat":
        return PROMPTS[kind]
    has_turns = any(token.content == TURN for token in tokenizer.description.added)
    form = "Question: {}\nAnswer:"
    if has_turns:
        form = f"{TURN}user\n{{}}<|im_end|>\n{TURN}assistant\n"
    return [form.format(question) for question in PROMPTS[kind]]


# What the rows say.


def texts_of(rows: pd.DataFrame) -> pd.DataFrame:
    """off: 1 if a text is not canonical; joints: that of an end included; at_fault: of them."""
    found = rows.sort_values(["source", "kind"], kind="stable")
    faults = found["faults"].map(len)
    found = found.assign(at_fault=faults, off=(faults > 0).astype(int), one=1)
    found["joints"] = found["ids"].map(len) + found["ended"].astype(int)
    found["unit"] = found["kind"] + " " + found["prompt"].astype(str)
    for name in ("model", "kind"):
        found[name] = pd.Categorical(found[name], rows[name].unique())
    return found


def share(texts: pd.DataFrame, counted: str, of: str) -> tuple[float, float, float]:
    """(value, low, high), with an interval of 95 % from drawing prompts again; nan where that
    changes nothing (all are canonical, say), for it says nothing of other prompts."""
    sizes = texts[of].to_numpy()

    def ratio(values: np.ndarray, taken: np.ndarray) -> np.ndarray:
        found: np.ndarray = taken @ values / np.maximum(taken @ sizes, 1)
        return found

    low, high = bootstrap(texts[counted].tolist(), texts["unit"].tolist(), ratio)
    low, high = (low, high) if round(low, 6) < round(high, 6) else (math.nan, math.nan)
    return float(texts[counted].sum() / max(1, sizes.sum())), low, high


def shown(digits: int, factor: float) -> Format:
    """A share in another unit, without brackets where there is no interval."""
    of = fixed(digits)

    def text(found: Any) -> str:
        value, *ends = (factor * one for one in found)
        return of(value) if math.isnan(ends[0]) else interval(of)((value, *ends))

    return text


WHAT = {"texts": ("off", "one", 100), "joints": ("at_fault", "joints", 1000)}


def tables(rows: pd.DataFrame) -> list[Table]:
    """By temperature; by kind of text; what is wrong."""
    texts = texts_of(rows)
    lines = list[Row]()
    for (model, temperature), own in texts.groupby(["model", "temperature"], observed=True):
        line: Row = {"model": model, "temperature": temperature}
        for name, (counted, of, _) in WHAT.items():
            line |= {name: own[of].sum(), f"{name}, off": own[counted].sum()}
            line["% [95 %]" if name == "texts" else "per 1,000 [95 %]"] = share(own, counted, of)
        lines.append(line)
    counts = dict.fromkeys(("texts", "texts, off", "joints", "joints, off"), whole)
    formats = {"temperature": "{:g}".format, "% [95 %]": shown(1, 100)}
    notes = "\n\n".join(filter(None, rows["note"].unique()))
    each = texts.groupby(["model", "temperature", "kind"], observed=True).size().max()
    few = """A share has no interval where drawing prompts again always gives the same. Prompts of
        one kind are few, for which such intervals are rather too narrow; each is for itself, so of
        a hundred of them some miss."""
    return [
        Table(
            "Texts and joints, all kinds of text together",
            pd.DataFrame(lines),
            formats | counts | {"per 1,000 [95 %]": shown(1, 1000)},
            f"""{each} texts of at most {texts["ids"].map(len).max()} tokens per model, temperature
            and kind of text; fixed prompts ({texts["unit"].nunique()} in all), those of a kind in
            turn. Off: not canonical; at fault.

            Intervals come from drawing prompts again, each with all of its texts (bootstrap): texts
            of one prompt are no independent evidence. Here prompts of all kinds are drawn as one.

            A text that was cut off is canonical if a longer text has its ids. A joint is the
            position before an id, that after the prompt and that of an end included. Ids of a model
            that its tokenizer does not have are never drawn.

            Published (the companion notebook of Tran-Thien 2024): along one English text, Outlines'
            README, Mistral-7B's likeliest id is nowhere one that is not canonical.

            {notes}""",
        ),
        by_kind("Texts that are not canonical, %, with intervals of 95 %", texts, "texts", 0, few),
        by_kind("Joints at fault, per 1,000, with intervals of 95 %", texts, "joints", 1, few),
        *faults_of(texts),
    ]


def by_kind(title: str, texts: pd.DataFrame, name: str, digits: int, note: str) -> Table:
    """A line per kind of text and model, a column per temperature."""
    counted, of, factor = WHAT[name]
    lines = list[Row]()
    for (kind, model), own in texts.groupby(["kind", "model"], observed=True):
        line: Row = {"kind of text": kind, "model": model}
        for temperature, some in own.groupby("temperature"):
            line[f"T = {temperature:g}"] = share(some, counted, of)
        lines.append(line)
    data = pd.DataFrame(lines)
    return Table(title, data, dict.fromkeys(data.columns[2:], shown(digits, factor)), note)


def faults_of(texts: pd.DataFrame) -> list[Table]:
    """How many faults of each kind, by model; the tokens that stand at a fault most often, with the
    library's explanation of one."""
    each = texts.explode("faults").dropna(subset=["faults"])
    parts = pd.DataFrame([*each["faults"]], columns=["position", "fault", "tokens", "reason"])
    faults = pd.concat([each[["model"]].reset_index(drop=True), parts], axis=1)
    faults["fault"] = pd.Categorical(faults["fault"], KINDS)
    counts = faults.groupby(["fault", "model"], observed=True).size().unstack(fill_value=0)
    totals = counts.sum()
    data = counts.apply(lambda of: [f"{n:,} ({100 * n / totals[of.name]:.0f} %)" for n in of])
    common = list[Row]()
    for model, own in faults.groupby("model", observed=True):
        times = own.groupby("tokens", sort=False).size().sort_values(ascending=False, kind="stable")
        for tokens, n in times.head(MOST_COMMON).items():
            reasons = own[own["tokens"] == tokens]["reason"]
            reason = next(iter(reversed([*filter(None, reasons)])), "")
            line = {"tokens at the joint": tokens, "model": model, "times": n}
            common.append(line | {"as explained": reason[:LONGEST]})
    return [
        Table("What is wrong at the joints at fault", data.reset_index()),
        Table("The commonest faults", pd.DataFrame(common)),
    ]


COLORS = (*MODELS, "#66a182", "#335c67")
NAMED = {"prose": "English prose", "chat": "answers to questions", "json": "JSON"}
NAMED |= {"table": "tables of spaces, tabs", "dates": "dates and numbers"}
NAMED |= {"names": "lists of names"} | {s: s.title() for s in ("russian", "chinese", "arabic")}


def figure(rows: pd.DataFrame) -> Figure:
    """A panel per kind of text: shares of texts that are not canonical by temperature."""
    texts = texts_of(rows)
    kinds = [*texts["kind"].cat.categories]
    across = min(5, len(kinds))
    down = math.ceil(len(kinds) / across)
    size = (max(8.0, 2.5 * across), 2.6 * down + 1.2)
    drawn, axes = panels(down, across, size, sharex=True, sharey=True)
    for panel, kind in zip(axes.flat, kinds, strict=False):
        some = texts[texts["kind"] == kind]
        for k, (model, own) in enumerate(some.groupby("model", observed=True)):
            by = {t: share(of, "off", "one") for t, of in own.groupby("temperature")}
            value, low, high = 100 * np.array([*by.values()]).T
            places = np.array([*by]) + 0.025 * (k - 0.5)
            style = {"color": COLORS[k], "marker": "os^D"[k], "markersize": 5, "label": model}
            panel.errorbar(places, value, [value - low, high - value], capsize=2, **style)
        panel.set_title(NAMED.get(kind, kind), loc="left", fontsize=11)
        panel.set_ylim(-3, 103)
        panel.set_xticks([*by], [f"{t:g}" for t in by])
        panel.grid(axis="y", color="#eeeeee")
    axes[0, 0].legend(frameon=False, fontsize=8, loc="upper left")
    for panel in axes[-1]:
        panel.set_xlabel("temperature")
    drawn.supylabel("texts that are not canonical, %", fontsize=10)
    probed = texts[texts["temperature"] == PROBE].groupby("model", observed=True)["off"].mean()
    said = [f"{model.partition(' ')[0]} {100 * value:.0f} %" for model, value in probed.items()]
    headline = f"Not canonical at temperature {PROBE:g}, mean of the kinds: {', '.join(said)}"
    note = "Texts are drawn freely; bars: intervals of 95 %, prompts drawn again."
    return Figure(drawn, headline, note)


def numbers(rows: pd.DataFrame) -> dict[str, str]:
    """How many texts of each model at temperature 1, and how that changes with it."""
    texts, said = texts_of(rows), list[str]()
    for model, own in texts.groupby("model", observed=True):
        at = dict(list(own.groupby("temperature")))
        of = at[PROBE]
        value, low, high = (100 * one for one in share(of, "off", "one"))
        joints = 1000 * share(of, "at_fault", "joints")[0]
        ends = [f"{100 * at[t]['off'].mean():.0f} % at {t:g}" for t in (min(at), max(at))]
        said.append(
            f"{model} {value:.0f} % of {len(of)} at temperature {PROBE:g} ({low:.0f} to {high:.0f} "
            f"%; {joints:.1f} of 1,000 joints), {' and '.join(ends)}"
        )
    kinds = [*texts["kind"].cat.categories]
    return {
        "spontaneous": f"""Left to themselves, models write texts of at most
        {texts["ids"].map(len).max()} tokens that are not their tokenizer's own. On average over
        {len(kinds)} kinds of text ({", ".join(kinds)}), as many of each, after
        {texts["unit"].nunique()} prompts: {"; ".join(said)}."""
    }
