"""Does the tokenizer's own tokenization improve what a model writes freely?

For each model, temperature and prompt, two texts are drawn: a free one, and a canonical one under a
constraint that allows every text, but only in the tokenizer's own ids. Both are the same up to the
first id that the mask forbids (the fork). There the canonical text takes an id that is drawn, with
a fresh random number, from those that the mask allows, so that an allowed id i has the probability

    p(i) + p(forbidden) p(i) / p(allowed) = p(i) / p(allowed)

and the rest of it is drawn anew. So the canonical text has the distribution that the mask gives it,
and differs from the free one only from the fork on. Where no id was forbidden they are one text.

Prompts are beginnings of passages; intervals come from resampling them. A text is judged by its
loss after the prompt as the other model, which did not write it, reads it in ids of its own
tokenizer's `encode`. Bytes that are no UTF-8 are read as U+FFFD; bytes of a last character that the
length cut off are dropped.
"""

from __future__ import annotations

import codecs
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from bpe_automata import Tokenizer, constrain
from experiments.batched import Drawn, Free, sample_batch
from experiments.lab import Row
from experiments.models import GEMMA, SMOLLM2, LoadedModel, opened, special_ids
from experiments.passages import KINDS, UNSPACED, beginning, passages
from experiments.sampling import fault, losses
from experiments.show import Format, Table, fixed, interval, markdown, percent
from experiments.statistics import estimate, weighted_mean

TITLE, LONG = "Free generation with and without the tokenizer's own tokenization", True
WORDS, BYTES = 3, 8
"""The length of the pieces whose repetition is counted: in words, or in bytes where no space
divides words."""
FEWEST, LEVEL = 10, 0.95
"""The fewest prompts with a changed text for which there is an interval, and its level."""
WHICH = ("free", "canonical")


@dataclass(frozen=True)
class Config:
    """prompts: the most of each kind; prompt_ids: the fewest of one; ids: the most of a text."""

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
    """A row for each pair of texts, with the losses of both, in nats, as the other model reads them
    (where there is no other, their writer)."""
    loaded = opened(source, config.device, config.dtype)
    prompts = prompts_of(kind, loaded.tokenizer, config)
    ids = [loaded.prompt_ids(prompt) for prompt in prompts]
    wanted = [(t, k) for t in config.temperatures for k in range(len(prompts))]
    seeds = [zlib.crc32(f"{config.seed} {source} {kind} {t:g} {k}".encode()) for t, k in wanted]
    numbers_ = np.stack([np.random.default_rng(seed).random((config.ids, 2)) for seed in seeds])
    rows = list[Row]()
    pairs = drawn_pairs(loaded, [ids[k] for _, k in wanted], [t for t, _ in wanted], numbers_)
    for (temperature, k), pair in zip(wanted, pairs, strict=True):
        row: Row = {"model": loaded.name, "temperature": temperature, "prompt": k}
        row |= {"passage": prompts[k], "changed": pair.fork is not None}
        for name, text in (("free", pair.free), ("canonical", pair.canonical)):
            row[name] = readable(loaded.tokenizer, text.ids, ids[k])
        rows.append(row)
    for reader in {*config.models} - {source} or {source}:
        other = opened(reader, config.device, config.dtype)
        asked = dict.fromkeys((row["passage"], row[name]) for row in rows for name in WHICH)
        cached = dict(zip(asked, losses(other, list(asked)), strict=True))
        for row in rows:
            row |= {f"other {name}": cached[row["passage"], row[name]] for name in WHICH}
    return rows


def prompts_of(kind: str, tokenizer: Tokenizer, config: Config) -> list[str]:
    """Beginnings of passages."""
    is_spaced, every = kind not in UNSPACED, passages(kind, config.seed)
    begun = (beginning(passage, tokenizer, config.prompt_ids, is_spaced) for passage in every)
    return [*islice(filter(None, begun), config.prompts)]


def readable(tokenizer: Tokenizer, ids: Sequence[int], before: Sequence[int]) -> str:
    """The text of ids up to the last whole character."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    return decoder.decode(tokenizer.text_bytes(ids, before))


# Pairs.


class Pair(NamedTuple):
    """fork: the position of the first drawn id that the mask forbids; None where it forbids none,
    and both texts are one."""

    free: Drawn
    canonical: Drawn
    fork: int | None


def drawn_pairs(
    loaded: LoadedModel,
    prompts: Sequence[Sequence[int]],
    temperatures: Sequence[float],
    uniforms: np.ndarray,
) -> list[Pair]:
    """A pair after each prompt. uniforms: float64 [texts, ids, 2], for the ids of free texts, and
    for those with which canonical texts go on from the fork."""
    ends, most = sorted(special_ids(loaded)), uniforms.shape[1]
    every = constrain(loaded.tokenizer, r"(?s:.*)", "canonical", ends)
    own, none = Free(ends, n_ids=loaded.tokenizer.n_ids), [None] * len(prompts)
    draw = partial(sample_batch, loaded.model, free=own)
    free = draw(prompts, none, uniforms[:, :, 0], temperatures=temperatures)
    forks = [fault(every.matcher(p), t.ids, t.ended) for p, t in zip(prompts, free, strict=True)]
    pairs = [Pair(text, text, fork) for text, fork in zip(free, forks, strict=True)]
    changed = [k for k, fork in enumerate(forks) if fork is not None]
    if not changed:
        return pairs
    begun = [(*prompts[k], *free[k].ids[: forks[k]]) for k in changed]
    heats, masks = [temperatures[k] for k in changed], [every] * len(changed)
    rests = draw(begun, masks, uniforms[changed, :, 1], temperatures=heats)
    for k, rest in zip(changed, rests, strict=True):
        ids = (*free[k].ids[: forks[k]], *rest.ids)
        whole = Drawn(ids[:most], rest.ended and len(ids) < most, 0.0)
        pairs[k] = pairs[k]._replace(canonical=whole)
    return pairs


# What the rows say.


def distinct(text: str, kind: str) -> float:
    """The share of a text's pieces (of three words, or of eight bytes) that repeat no earlier one;
    nan where it has no piece."""
    parts: Sequence[Any] = text.encode() if kind in UNSPACED else text.split()
    size = BYTES if kind in UNSPACED else WORDS
    pieces = [tuple(parts[k : k + size]) for k in range(len(parts) - size + 1)]
    return len(set(pieces)) / len(pieces) if pieces else np.nan


def pairs_of(rows: pd.DataFrame) -> pd.DataFrame:
    """Losses per byte, nan of an empty text; `OF difference`: canonical - free."""
    found = rows.assign(unit=rows["kind"] + " " + rows["prompt"].astype(str))
    found["writer"] = found["model"].str.partition(" ")[0]
    for name in WHICH:
        found[f"other {name}"] /= found[name].map(lambda text: len(text.encode()) or np.nan)
        each = zip(found[name], found["kind"], strict=True)
        found[f"distinct {name}"] = [distinct(text, kind) for text, kind in each]
    for of in ("other", "distinct"):
        found[f"{of} difference"] = found[f"{of} canonical"] - found[f"{of} free"]
    return found


def mean(group: pd.DataFrame, of: str, level: float = LEVEL) -> Any:
    """(mean, low, high) of the differences over the changed pairs, by resampling prompts. None
    where pairs of fewer than `FEWEST` prompts were changed."""
    some = group[group["changed"] & group[f"{of} difference"].notna()]
    if some["unit"].nunique() < FEWEST:
        return None
    return estimate(some, weighted_mean, f"{of} difference", "unit", level=level)


def summed_up(rows: pd.DataFrame) -> pd.DataFrame:
    """A line for each model and temperature."""
    return pd.DataFrame(
        {
            "written by": writer,
            "temperature": temperature,
            "texts": len(group),
            "changed": group["changed"].mean(),
            **{f"loss, {name}": group[f"other {name}"].mean() for name in WHICH},
            "difference": mean(group, "other"),
            "difference, distinct": mean(group, "distinct"),
        }
        for (writer, temperature), group in pairs_of(rows).groupby(
            ["writer", "temperature"], sort=False
        )
    )


FORMATS: dict[str, Format] = {"changed": percent(1)}
FORMATS |= dict.fromkeys(("loss, free", "loss, canonical"), fixed(4))
FORMATS |= {"difference": interval(fixed(4)), "difference, distinct": interval(fixed(3))}


def clear(rows: pd.DataFrame) -> str:
    """How many differences in loss differ clearly from 0 at the corrected level (Bonferroni)."""
    groups = [group for _, group in pairs_of(rows).groupby(["writer", "temperature"])]
    found = [mean(group, "other", 1 - (1 - LEVEL) / len(groups)) for group in groups]
    count = sum(not one[1] <= 0 <= one[2] for one in found if one)
    return f"{count or 'none'} of {len(groups)} differences in loss {'are' if count > 1 else 'is'}"


def tables(rows: pd.DataFrame) -> list[Table]:
    """Losses and repetition by model and temperature."""
    note = f"""loss: in nats per byte, mean over texts; difference: canonical - free, of the texts
        that the mask changed (below 0 the canonical text is the better predicted), where it changed
        texts of {FEWEST} prompts or more; intervals: 95 %; once corrected for their number
        (Bonferroni) {clear(rows)} clear of 0

        distinct: the share of runs of {WORDS} words (in Chinese of {BYTES} bytes) of a text that do
        not repeat an earlier one; above 0 the canonical text repeats less"""
    return [Table("Losses and repetition", summed_up(rows), FORMATS, note)]


def numbers(rows: pd.DataFrame) -> dict[str, str]:
    """A line for each model and temperature."""
    kept = summed_up(rows)[["written by", "temperature", "changed", "difference"]]
    return {"free-text": markdown(kept, FORMATS)}
