"""How often a model that samples freely leaves its tokenizer's own tokenization.

For each model, temperature and kind of text, texts are drawn without any constraint after each of
the prompts in `spontaneous.json`, until a special token or a limit of ids. A text counts as
canonical if `encode` gives its ids (after its prompt); a text that was cut off, if some longer text
begins with its ids (`fault` in `experiments.sampling`).

Texts after one prompt resemble one another: how often they leave the canonical sequences depends
much on what the prompt asks for. So intervals come from resampling prompts, each with all of its
texts (bootstrap), and speak of prompts like these.
"""

from __future__ import annotations

import json
import math
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from bpe_automata import Tokenizer, constrain
from experiments.batched import Free, sample_batch
from experiments.cases import FORMATS
from experiments.lab import Row
from experiments.models import GEMMA, SMOLLM2, opened, special_ids
from experiments.sampling import fault
from experiments.show import MODELS, Figure, Table, interval, panels
from experiments.statistics import estimate, weighted_mean

TITLE, LONG = "How often models leave their tokenizer's own tokenization", True
PROMPTS: dict[str, list[str]] = json.loads(
    Path(__file__).with_suffix(".json").read_text(encoding="utf-8")
)
"""By kind of text, equally many of each, chosen without looking at what models make of them. None
ends with a space or, where words are divided by spaces, inside a word: the next id would hardly be
canonical there."""
PROBE = 1.0
"""The temperature of the headline."""


@dataclass(frozen=True)
class Config:
    """texts: per model, temperature and kind, whose prompts take turns; ids: the most of a text."""

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
    """A cell is a model and a kind of text; the texts at all temperatures are one batch."""
    return [{"source": model, "kind": kind} for kind in config.kinds for model in config.models]


def measure(config: Config, source: str, kind: str) -> list[Row]:
    """A row for each text, with the number of its prompt; faults: where it leaves the canonical
    sequences. Its random numbers depend on the seed and on which text it is, on nothing else."""
    loaded = opened(source, config.device, config.dtype)
    prompts = [loaded.prompt_ids(text) for text in prompts_of(kind, loaded.tokenizer)]
    wanted = [(t, k) for t in config.temperatures for k in range(config.texts)]
    seeds = [zlib.crc32(f"{config.seed} {source} {kind} {t:g} {k}".encode()) for t, k in wanted]
    which = [k % len(prompts) for _, k in wanted]
    texts = sample_batch(
        loaded.model,
        [prompts[k] for k in which],
        [None] * len(which),
        np.stack([np.random.default_rng(seed).random(config.ids) for seed in seeds]),
        temperatures=[temperature for temperature, _ in wanted],
        free=Free(special_ids(loaded), n_ids=loaded.tokenizer.n_ids),
    )
    every = constrain(loaded.tokenizer, r"(?s:.*)", eos_ids=(), added_tokens=True)
    starts = [every.matcher(ids) for ids in prompts]
    rows = list[Row]()
    for (temperature, _), prompt, text in zip(wanted, which, texts, strict=True):
        row: Row = {"model": loaded.name, "temperature": temperature, "prompt": prompt}
        row |= {"ids": list(text.ids), "ended": text.ended}
        index = fault(starts[prompt], text.ids, text.ended)
        rows.append(row | {"faults": [] if index is None else [index]})
    return rows


def prompts_of(kind: str, tokenizer: Tokenizer) -> list[str]:
    """The prompts of a kind; questions in the chat format that SmolLM2 was trained with, where the
    tokenizer has it."""
    if kind != "chat":
        return PROMPTS[kind]
    before, after = FORMATS[SMOLLM2]
    if before.removesuffix("user\n") not in {one.content for one in tokenizer.description.added}:
        before, after = "Question: ", "\nAnswer:"
    return [before + question + after for question in PROMPTS[kind]]


# What the rows say.


def texts_of(rows: pd.DataFrame) -> pd.DataFrame:
    """off: 1 if a text is not canonical; unit: its prompt."""
    found = rows.sort_values(["source", "kind"], kind="stable")
    found["off"] = (found["faults"].map(len) > 0).astype(float)
    found["unit"] = found["kind"] + " " + found["prompt"].astype(str)
    for name in ("model", "kind"):
        found[name] = pd.Categorical(found[name], rows[name].unique())
    return found


def summed_up(texts: pd.DataFrame) -> pd.DataFrame:
    """A line for each model and temperature, all kinds of text together: the share that is not
    canonical, with an interval of 95 % from resampling prompts."""
    return pd.DataFrame(
        {"model": model}
        | {f"T = {t:g}": estimate(of, weighted_mean, "off", "unit") for t, of in by_temperature}
        for model, own in texts.groupby("model", observed=True)
        for by_temperature in [own.groupby("temperature")]
    )


def tables(rows: pd.DataFrame) -> list[Table]:
    """Shares by temperature, in per cent; the figure has each kind of text."""
    texts = texts_of(rows)
    data = summed_up(texts)
    share = interval(lambda value: f"{100 * value:.0f}")
    notes = f"""{len(texts):,} texts of at most {texts["ids"].map(len).max()} tokens, after
        {texts["unit"].nunique()} prompts; [ ]: 95 %

        published (the companion notebook of Tran-Thien 2024): along one English text, Outlines'
        README, the likeliest next id of Mistral-7B is always canonical"""
    title = "Texts that are not canonical by temperature, all kinds together, %"
    return [Table(title, data, dict.fromkeys(data.columns[1:], share), notes)]


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
    canvas, axes = panels(down, across, size, sharex=True, sharey=True)
    for panel, kind in zip(axes.flat, kinds, strict=False):
        some = texts[texts["kind"] == kind]
        for k, (model, own) in enumerate(some.groupby("model", observed=True)):
            groups = own.groupby("temperature")
            by = {t: estimate(of, weighted_mean, "off", "unit") for t, of in groups}
            value, low, high = 100 * np.array([*by.values()]).T
            positions = np.array([*by]) + 0.025 * (k - 0.5)
            style = {"color": MODELS[k % 2], "marker": "os"[k % 2], "markersize": 5, "label": model}
            panel.errorbar(positions, value, [value - low, high - value], capsize=2, **style)
        panel.set_title(NAMED.get(kind, kind), loc="left", fontsize=11)
        panel.set_ylim(-3, 103)
        panel.set_xticks([*by], [f"{t:g}" for t in by])
        panel.grid(axis="y", color="#eeeeee")
    axes[0, 0].legend(frameon=False, fontsize=8, loc="upper left")
    for panel in axes[-1]:
        panel.set_xlabel("temperature")
    canvas.supylabel("texts that are not canonical, %", fontsize=10)
    probed = texts[texts["temperature"] == PROBE].groupby("model", observed=True)["off"].mean()
    said = [f"{model.partition(' ')[0]} {100 * value:.0f} %" for model, value in probed.items()]
    headline = f"Not canonical at temperature {PROBE:g}, mean of the kinds: {', '.join(said)}"
    note = "Texts are drawn freely; bars: intervals of 95 %, prompts drawn again."
    return Figure(canvas, headline, note)


def numbers(rows: pd.DataFrame) -> dict[str, str]:
    """How many texts of each model, by temperature."""
    return {"spontaneous": tables(rows)[0].lines()}
