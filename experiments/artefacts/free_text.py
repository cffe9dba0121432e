"""Does the tokenizer's own tokenization improve what a model writes freely?

For each model, temperature and prompt two texts: a free one, and a canonical one under a constraint
that allows every text, in the tokenizer's own ids alone. They are drawn with the same random
numbers, so they differ only from the first id on that the mask forbids (`shared.paired_texts`).

Prompts are beginnings of passages, and the unit of all intervals. Texts are judged by their loss
after the prompt, as each model reads them in ids of its own tokenizer's `encode`: the other model
did not write them. A byte that is no UTF-8 is read as U+FFFD, as it is shown; the first bytes of a
character that the length cut off are left out.
"""

from __future__ import annotations

import codecs
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from bpe_automata import Tokenizer
from experiments.lab import Row
from experiments.models import GEMMA, SMOLLM2, LoadedModel, opened
from experiments.paired_texts import drawn_pairs
from experiments.passages import KINDS, UNSPACED, divided, passages
from experiments.sampling import losses
from experiments.show import (
    MODELS,
    Figure,
    Format,
    Table,
    fixed,
    interval,
    is_missing,
    panels,
    percent,
)
from experiments.statistics import bootstrap, weighted_mean

TITLE, LONG = "Free generation with and without the tokenizer's own tokenization", True
WORDS, BYTES = 3, 8
"""How long the pieces are whose repetition is counted: words, and bytes where no space divides
words."""
FEWEST, LEVEL = 10, 0.95
"""Prompts with a changed text that an interval takes."""
WHICH = ("free", "canonical")


@dataclass(frozen=True)
class Config:
    """prompts: of each kind, at most; prompt_ids: the fewest of one; ids: of each text, at most."""

    models: tuple[str, ...] = (SMOLLM2, GEMMA)
    temperatures: tuple[float, ...] = (0.7, 1.0, 1.3)
    kinds: tuple[str, ...] = KINDS
    prompts: int = 50
    prompt_ids: int = 30
    ids: int = 48
    device: str = "auto"
    dtype: str = "float32"
    seed: int = 0


SMOKE = Config((SMOLLM2,), (1.0, 1.3), ("prose", "code"), prompts=4, ids=8)


def cells(config: Config) -> list[Row]:
    """A writer and a kind of passage."""
    return [{"source": model, "kind": kind} for model in config.models for kind in config.kinds]


def measure(config: Config, source: str, kind: str) -> list[Row]:
    """A row for each pair of texts, with the losses of both, in nats, as its writer reads them
    (`own`, where the mask changed something) and as the `other` model does, which reads `rest` too:
    what the passage goes on with."""
    loaded = opened(source, config.device, config.dtype)
    prompts = prompts_of(kind, loaded.tokenizer, config)
    ids = [loaded.prompt_ids(prompt) for prompt, _ in prompts]
    wanted = [(t, k) for t in config.temperatures for k in range(len(prompts))]
    seeds = [zlib.crc32(f"{config.seed} {source} {kind} {t:g} {k}".encode()) for t, k in wanted]
    numbers_ = np.stack([np.random.default_rng(seed).random((config.ids, 2)) for seed in seeds])
    which, temperatures = [k for _, k in wanted], [t for t, _ in wanted]
    rows = list[Row]()
    pairs = drawn_pairs(loaded, ids, which, temperatures, numbers_)
    for (temperature, k), pair in zip(wanted, pairs, strict=True):
        row: Row = {"model": loaded.name, "note": loaded.note, "temperature": temperature}
        row |= {"prompt": k, "changed": pair.fork is not None}
        for name, text in (("free", pair.free), ("canonical", pair.canonical)):
            row[name] = shown_text(loaded.tokenizer, text.ids, ids[k])
            row[f"{name} ids"] = list(text.ids) if name == "free" or row["changed"] else None
        rows.append(row | {"passage": list(prompts[k])})
    for reader in config.models:
        of = "own" if reader == source else "other"
        read(opened(reader, config.device, config.dtype), rows, of)
    return rows


def prompts_of(kind: str, tokenizer: Tokenizer, config: Config) -> list[tuple[str, str]]:
    """(prompt, as many ids of what the passage goes on with as a text has)."""
    found = list[tuple[str, str]]()
    for passage in passages(kind, config.seed):
        made = divided(passage, tokenizer, config.prompt_ids, kind not in UNSPACED)
        if made is None:
            continue
        before = tokenizer.encode(made[0])
        rest = tokenizer.encode(passage)[len(before) :][: config.ids]
        found.append((made[0], shown_text(tokenizer, rest, before)))
        if len(found) == config.prompts:
            break
    return found


def shown_text(tokenizer: Tokenizer, ids: Sequence[int], before: Sequence[int]) -> str:
    """The text of ids up to the last whole character."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    return decoder.decode(tokenizer.text_bytes(ids, before))


def read(reader: LoadedModel, rows: list[Row], of: str) -> None:
    """Add to the rows what a model makes of their texts. Of its own it reads those that the mask
    changed, for nothing is said of the others."""
    asked = dict[tuple[str, str], None]()
    some = [row for row in rows if of == "other" or row["changed"]]
    for row in some:
        prompt, rest = row["passage"]
        asked |= {(prompt, row[name]): None for name in WHICH}
        asked |= {(prompt, rest): None} if of == "other" else {}
    known = dict(zip(asked, losses(reader, list(asked)), strict=True))
    for row in some:
        prompt, rest = row["passage"]
        row |= {f"{of} {name}": known[prompt, row[name]] for name in WHICH}
        row |= {"rest": known[prompt, rest]} if of == "other" else {}


# What the rows say.


def distinct(text: str, kind: str) -> float:
    """The share of its pieces that are no repetition: of three words each, or of eight bytes; nan
    of a text that has no piece."""
    parts: Sequence[Any] = text.encode() if kind in UNSPACED else text.split()
    size = BYTES if kind in UNSPACED else WORDS
    pieces = [tuple(parts[k : k + size]) for k in range(len(parts) - size + 1)]
    return len(set(pieces)) / len(pieces) if pieces else np.nan


def pairs_of(rows: pd.DataFrame) -> pd.DataFrame:
    """Losses per byte, nan of an empty text; `OF difference`: canonical - free."""
    names = [f"{of} {name}" for of in ("own", "other") for name in WHICH]
    found = rows.reindex(columns=[*dict.fromkeys([*rows, *names, "rest"])]).copy()
    found["unit"] = found["kind"] + " " + found["prompt"].astype(str)
    found["writer"] = found["model"].str.partition(" ")[0]
    for name in WHICH:
        sizes = found[name].map(lambda text: len(text.encode()) or np.nan)
        for of in ("own", "other"):
            found[f"{of} {name}"] = found[f"{of} {name}"].astype(float) / sizes
        each = zip(found[name], found["kind"], strict=True)
        found[f"distinct {name}"] = [distinct(text, kind) for text, kind in each]
    rests = found["passage"].map(lambda pair: len(pair[1].encode()) or np.nan)
    found["rest"] = found["rest"].astype(float) / rests
    for of in ("own", "other", "distinct"):
        found[f"{of} difference"] = found[f"{of} canonical"] - found[f"{of} free"]
    return found


def mean(group: pd.DataFrame, of: str, changed: bool = False, level: float = LEVEL) -> Any:
    """(mean, low, high) of the differences, over the changed pairs alone or over all; prompts are
    drawn again. None where pairs of fewer than `FEWEST` prompts were changed: all other differences
    are 0, and to draw them again says nothing."""
    there = group[group[f"{of} difference"].notna()]
    if there["unit"][there["changed"]].nunique() < FEWEST:
        return None
    some = there[there["changed"] | (not changed)]
    values = some[f"{of} difference"].to_numpy(dtype=np.float64)
    ends = bootstrap(values.tolist(), some["unit"].tolist(), weighted_mean, level)
    return float(values.mean()), *ends


def clear(pairs: pd.DataFrame) -> tuple[list[str], int]:
    """(which differences over changed texts are clear of 0 at the corrected level, Bonferroni; of
    how many)."""
    groups = [*pairs.groupby(["writer", "temperature"], sort=False)]
    level, kept = 1 - (1 - LEVEL) / len(groups), list[str]()
    for (writer, temperature), group in groups:
        found = mean(group, "other", True, level)
        kept += [f"{writer} at {temperature:g}"] * bool(found and not found[1] <= 0 <= found[2])
    return kept, len(groups)


def tables(rows: pd.DataFrame) -> list[Table]:
    """Losses by model and temperature, repetition by the same, losses by kind of passage."""
    pairs = pairs_of(rows)
    losses_, repeated, kinds = list[Row](), list[Row](), list[Row]()

    def counts(group: pd.DataFrame) -> Row:
        said: Row = {"texts": len(group), "changed": group["changed"].mean()}
        return said | {f"{name} loss": group[f"other {name}"].mean() for name in WHICH}

    for (writer, temperature), group in pairs.groupby(["writer", "temperature"], sort=False):
        line: Row = {"written by": writer, "temperature": temperature}
        losses_.append(line | counts(group))
        losses_[-1]["difference, all texts"] = mean(group, "other")
        losses_[-1]["difference, changed texts"] = mean(group, "other", True)
        losses_[-1]["as the writer reads them"] = mean(group, "own", True)
        repeated.append(line | {f"distinct, {w}": group[f"distinct {w}"].mean() for w in WHICH})
        repeated[-1]["difference, all texts"] = mean(group, "distinct")
        repeated[-1]["difference, changed texts"] = mean(group, "distinct", True)
    for (writer, kind), group in pairs.groupby(["writer", "kind"], sort=False):
        line = {"written by": writer, "kind": kind, "prompts": group["unit"].nunique()}
        line |= counts(group) | {"loss of the passage itself": group["rest"].mean()}
        kinds.append(line | {"difference, changed texts": mean(group, "other", True)})
    four: dict[str, Format] = dict.fromkeys(("free loss", "canonical loss"), fixed(4))
    four |= {"temperature": "{:g}".format, "changed": percent(1)}
    four["loss of the passage itself"] = fixed(4)
    ends = ("difference, all texts", "difference, changed texts", "as the writer reads them")
    notes, (kept, n) = "\n\n".join(filter(None, rows["note"].unique())), clear(pairs)
    return [
        Table(
            "Losses",
            pd.DataFrame(losses_),
            four | dict.fromkeys(ends, interval(fixed(4))),
            f"""loss: in nats per byte of text, after the prompt, as the other model reads it;
            difference: canonical - free, so that below 0 the canonical text is the better predicted

            changed: the mask forbade an id that was drawn; other pairs are one text, and their
            difference is 0; as the writer reads them: the difference over changed texts

            means are over texts; intervals: 95 %, bootstrap of prompts, where the mask changed
            texts of {FEWEST} prompts or more; of {n} differences over changed texts, those whose
            interval at the corrected level (Bonferroni) leaves 0 out: {", ".join(kept) or "none"}

            {notes}""",
        ),
        Table(
            "Repetition",
            pd.DataFrame(repeated),
            dict.fromkeys((f"distinct, {name}" for name in WHICH), percent(1))
            | dict.fromkeys(ends, interval(fixed(3)))
            | {"temperature": "{:g}".format},
            f"""distinct: the share of runs of {WORDS} words (in Chinese of {BYTES} bytes) of a text
            that do not repeat an earlier one; above 0 the canonical text repeats less""",
        ),
        Table(
            "By kind of passage, all temperatures together",
            pd.DataFrame(kinds),
            four | dict.fromkeys(ends, interval(fixed(4))),
            "the passage itself: as many ids of what it goes on with after the prompt",
        ),
    ]


def figure(rows: pd.DataFrame) -> Figure:
    """Differences over changed texts, by temperature: losses, and distinct pieces."""
    pairs = pairs_of(rows)
    drawn, axes = panels(1, 2, (9, 4))
    titles = (
        "loss as the other model reads it, nats per byte",
        "share of pieces that are distinct",
    )
    for axis, of, title in zip(axes[0], ("other", "distinct"), titles, strict=True):
        axis.axhline(0, color="#888888", linewidth=1, zorder=0)
        for k, (writer, own) in enumerate(pairs.groupby("writer", sort=False)):
            by = {t: mean(some, of, True) for t, some in own.groupby("temperature")}
            there = {t + 0.02 * k: found for t, found in by.items() if not is_missing(found)}
            style = {"color": MODELS[k % 2], "marker": "os"[k % 2], "label": writer}
            if there:
                value, low, high = np.array([*there.values()]).T
                axis.errorbar([*there], value, [value - low, high - value], linestyle="", **style)
        axis.set_xticks(sorted(pairs["temperature"].unique()))
        axis.set_xlabel("temperature")
        axis.set_title(title, loc="left", fontsize=10)
        axis.grid(axis="y", color="#eeeeee")
    axes[0][0].set_ylabel("canonical - free, changed texts")
    if axes[0][0].get_legend_handles_labels()[0]:
        axes[0][0].legend(fontsize=8, frameon=False)
    note = (
        f"{len(pairs):,} pairs of texts with the same random numbers, of which the mask changed "
        f"{pairs['changed'].sum():,}; intervals: 95 %, bootstrap of prompts, each by itself."
    )
    kept, n = clear(pairs)
    headline = (
        f"Free texts: {len(kept) or 'none'} of {n} differences in loss under the mask "
        f"{'are' if len(kept) > 1 else 'is'} clear of 0"
    )
    return Figure(drawn, headline, note, "free_text")


def numbers(rows: pd.DataFrame) -> dict[str, str]:
    """A line for each model."""
    lines = list[str]()
    for writer, own in pairs_of(rows).groupby("writer", sort=False):
        told = [
            f"at temperature {temperature:g} the mask changes {of['changed'].mean():.0%} of "
            f"{len(of)} texts, and the loss of these, as the other model reads them, by "
            "{:+.3f} ({:+.3f} to {:+.3f}) nats per byte".format(*found)
            for temperature, of in own.groupby("temperature")
            if (found := mean(of, "other", True))
        ]
        lines += [f"- *{writer}*: {'; '.join(told)}."] if told else []
    return {"free-text": "\n".join(lines)}
