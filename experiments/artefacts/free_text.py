"""Does the tokenizer's own tokenization improve what a model writes freely?

For each model, temperature and prompt two texts: a free one, and a canonical one under a constraint
that allows every text, in the tokenizer's own ids alone. They are drawn with the same random
numbers: an id that the mask forbids gives way to one that is drawn from what the mask leaves, with
a number of its own,

    p(i) + p(forbidden) p(i) / p(allowed) = p(i) / p(allowed)

so the canonical text has the distribution that the mask gives it, and differs from the free one
only from the first forbidden id on. Where none was drawn the two are one text.

Prompts are beginnings of passages, and the unit of all intervals. Texts are judged by their loss
after the prompt, as each model reads them in ids of its own tokenizer's `encode`: the other model
did not write them. A byte that is no UTF-8 is read as U+FFFD, as it is shown; the first bytes of a
character that the length cut off are left out.
"""

from __future__ import annotations

import codecs
import zlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from bpe_automata import Matcher, Tokenizer, constrain
from bpe_automata.errors import LogitsError
from experiments.files import require
from experiments.lab import Row
from experiments.models import GEMMA, SMOLLM2, LoadedModel, notes_on, opened, special_ids
from experiments.passages import KINDS, UNSPACED, beginning, passages
from experiments.sampling import Text, draw, fault, losses, sample
from experiments.show import Format, Table, fixed, interval, markdown, percent
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
    """A row for each pair of texts, with the losses of both, in nats, as the other model reads them
    (where there is no other, their writer)."""
    loaded = opened(source, config.device, config.dtype)
    prompts = prompts_of(kind, loaded.tokenizer, config)
    ids = [loaded.prompt_ids(prompt) for prompt in prompts]
    wanted = [(t, k) for t in config.temperatures for k in range(len(prompts))]
    seeds = [zlib.crc32(f"{config.seed} {source} {kind} {t:g} {k}".encode()) for t, k in wanted]
    numbers_ = np.stack([np.random.default_rng(seed).random((config.ids, 2)) for seed in seeds])
    which, temperatures = [k for _, k in wanted], [t for t, _ in wanted]
    rows = list[Row]()
    pairs = drawn_pairs(loaded, ids, which, temperatures, numbers_)
    for (temperature, k), pair in zip(wanted, pairs, strict=True):
        row: Row = {"model": loaded.name, "temperature": temperature, "prompt": k}
        row |= {"passage": prompts[k], "changed": pair.fork is not None}
        for name, text in (("free", pair.free), ("canonical", pair.canonical)):
            row[name] = shown_text(loaded.tokenizer, text.ids, ids[k])
        rows.append(row)
    for reader in {*config.models} - {source} or {source}:
        other = opened(reader, config.device, config.dtype)
        asked = dict.fromkeys((row["passage"], row[name]) for row in rows for name in WHICH)
        known = dict(zip(asked, losses(other, list(asked)), strict=True))
        for row in rows:
            row |= {f"other {name}": known[row["passage"], row[name]] for name in WHICH}
    return rows


def prompts_of(kind: str, tokenizer: Tokenizer, config: Config) -> list[str]:
    """Beginnings of passages."""
    is_spaced, every = kind not in UNSPACED, passages(kind, config.seed)
    begun = (beginning(passage, tokenizer, config.prompt_ids, is_spaced) for passage in every)
    return [*islice(filter(None, begun), config.prompts)]


def shown_text(tokenizer: Tokenizer, ids: Sequence[int], before: Sequence[int]) -> str:
    """The text of ids up to the last whole character."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    return decoder.decode(tokenizer.text_bytes(ids, before))


# Pairs.


class Pair(NamedTuple):
    """fork: the place of the first id that the mask forbade, of all that were drawn; None where it
    forbade none, and both texts are one."""

    free: Text
    canonical: Text
    fork: int | None


class Mask:
    """Has the last word on the ids of a batch: see above."""

    def __init__(
        self, matchers: dict[int, Matcher], uniforms: np.ndarray, ends: Collection[int]
    ) -> None:
        """matchers: by the number of their text; uniforms: float64 [texts, ids]."""
        self.matchers, self._uniforms, self._ends = matchers, uniforms, ends

    def __call__(self, step: int, mass: Any, ids: Any) -> Any:
        torch, tokens = require("torch"), ids.tolist()
        refused = [k for k, matcher in self.matchers.items() if not matcher.allows(tokens[k])]
        if refused:
            allowed = np.stack([self.matchers[k].mask() for k in refused])
            left = mass[refused] * torch.from_numpy(allowed).to(mass.device)
            if not bool((left.sum(1) > 0).all()):
                raise LogitsError("the model gives no mass to any id that is allowed")
            uniforms = torch.from_numpy(self._uniforms[refused, step, None]).to(mass.device)
            ids = ids.clone()
            ids[refused] = draw(left, uniforms)
            tokens = ids.tolist()
        for k in list(self.matchers):
            self.matchers[k].advance(tokens[k])
            if tokens[k] in self._ends:
                del self.matchers[k]
        return ids


def drawn_pairs(
    loaded: LoadedModel,
    prompts: Sequence[Sequence[int]],
    which: Sequence[int],
    temperatures: Sequence[float],
    uniforms: np.ndarray,
) -> list[Pair]:
    """A pair after each of `which`, numbers of prompts. uniforms: float64 [texts, ids, 2], for an
    id and for the one in its place. The canonical text is drawn from the fork on, so that rounding
    cannot make it another one before that."""
    n_ids, ends = loaded.tokenizer.n_ids, sorted(special_ids(loaded))
    constraint = constrain(loaded.tokenizer, r"(?s:.*)", "canonical", ends)
    starts = [constraint.matcher(prompt) for prompt in prompts]
    first = uniforms[:, :, 0]
    free = sample(loaded.model, prompts, which, temperatures, first, ends, n_ids)
    forks = [fault(starts[k], *text) for k, text in zip(which, free, strict=True)]
    rows = [row for row, place in enumerate(forks) if place is not None]
    made: dict[int, Text] = {}
    if rows:
        begun = [free[row].ids[: forks[row]] for row in rows]
        matchers = {k: starts[which[row]].copy() for k, row in enumerate(rows)}
        later = np.zeros((len(rows), *uniforms.shape[1:]))
        for k, row in enumerate(rows):
            later[k, : uniforms.shape[1] - len(begun[k])] = uniforms[row, len(begun[k]) :]
            for token in begun[k]:
                matchers[k].advance(token)
        rests = sample(
            loaded.model,
            [[*prompts[which[row]], *ids] for row, ids in zip(rows, begun, strict=True)],
            range(len(rows)),
            [temperatures[row] for row in rows],
            later[:, :, 0],
            ends,
            n_ids,
            Mask(matchers, later[:, :, 1], ends),
        )
        for row, ids, rest in zip(rows, begun, rests, strict=True):
            left = uniforms.shape[1] - len(ids)
            is_whole = rest.ended and len(rest.ids) < left
            made[row] = Text((*ids, *rest.ids[:left]), is_whole)
    return [Pair(text, made.get(row, text), forks[row]) for row, text in enumerate(free)]


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
    """(mean, low, high) of the differences over the changed pairs; prompts are drawn again. None
    where pairs of fewer than `FEWEST` prompts were changed."""
    some = group[group["changed"] & group[f"{of} difference"].notna()]
    if some["unit"].nunique() < FEWEST:
        return None
    values = some[f"{of} difference"].to_numpy(dtype=np.float64)
    ends = bootstrap(values.tolist(), [some["unit"].tolist()], weighted_mean, level)
    return float(values.mean()), *ends


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
    """How many differences in loss are clear of 0 at the corrected level (Bonferroni)."""
    groups = [group for _, group in pairs_of(rows).groupby(["writer", "temperature"])]
    found = [mean(group, "other", 1 - (1 - LEVEL) / len(groups)) for group in groups]
    count = sum(not one[1] <= 0 <= one[2] for one in found if one)
    return f"{count or 'none'} of {len(groups)} differences in loss {'are' if count > 1 else 'is'}"


def tables(rows: pd.DataFrame) -> list[Table]:
    """Losses and repetition by model and temperature."""
    note = f"""loss: in nats per byte of text, after the prompt, as the other model reads it, mean
        over texts; difference: canonical - free, of the texts that the mask changed (below 0 the
        canonical text is the better predicted), with 95 % intervals by drawing prompts again where
        it changed texts of {FEWEST} prompts or more; once corrected for their number (Bonferroni)
        {clear(rows)} clear of 0

        changed: the mask forbade an id that was drawn; other pairs are one text

        distinct: the share of runs of {WORDS} words (in Chinese of {BYTES} bytes) of a text that do
        not repeat an earlier one; above 0 the canonical text repeats less

        {notes_on(rows["source"].unique())}"""
    return [Table("Losses and repetition", summed_up(rows), FORMATS, note)]


def numbers(rows: pd.DataFrame) -> dict[str, str]:
    """A line for each model and temperature."""
    kept = summed_up(rows)[["written by", "temperature", "changed", "difference"]]
    return {"free-text": markdown(kept, FORMATS)}
