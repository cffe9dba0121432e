"""How often a model that samples freely leaves its tokenizer's own tokenization.

For each model, temperature and kind of text: texts of some tokens, drawn without any constraint
after each of the kind's prompts, until a special token or the last id. A text counts as canonical
if `encode` makes these ids of it (after its prompt); one that was cut off, if some longer text has
them (`spontaneous_judge`). A joint is what lies before an id: it is at fault where the ids leave
the canonical sequences.

Texts are independent of one another; the joints of one text are not. So intervals of shares of
texts are those of Clopper & Pearson, and intervals of shares of joints come from drawing whole
texts again (bootstrap). Both speak of these prompts, which are fixed, not of all that there could
be.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from bpe_automata.errors import ArgumentError
from experiments.run import config
from experiments.run.config import option
from experiments.run.executors import Cell, Row
from experiments.run.measuring import Run
from experiments.run.report import Report
from experiments.shared import models
from experiments.shared.model_rows import models_there
from experiments.study import spontaneous_report
from experiments.study.spontaneous_judge import Judge
from experiments.study.spontaneous_prompts import PROMPTS, prompts_of
from experiments.study.spontaneous_sampler import sample

VERSION = 1


@dataclass(frozen=True)
class Config(config.Config):
    """What is sampled from what."""

    models: tuple[str, ...] = option((models.SMOLLM2, models.GEMMA), "packaged, folder or hub id")
    temperatures: tuple[float, ...] = option((0.3, 0.7, 1.0, 1.3, 1.6), "of sampling")
    kinds: tuple[str, ...] = option(tuple(PROMPTS), "of text")
    texts: int = option(32, "per model, temperature and kind, shared by its prompts")
    tokens: int = option(48, "at most in each text")
    device: Literal["auto", "cpu", "cuda"] = option("auto", "where the models run")
    dtype: Literal["float32", "bfloat16", "float64"] = option("bfloat16", "of the arithmetic")


SMOKE = Config(
    models=(models.SMOLLM2,), temperatures=(1.0, 1.6), kinds=("names",), texts=8, tokens=8
)


def measure(run: Run[Config]) -> None:
    """A row for each model, then one per model and kind of text, with all temperatures: their texts
    are one batch. A model that is not there is one failure, and writes nothing."""
    chosen = run.config
    check(chosen)
    there = models_there(run, chosen.models, chosen.device, chosen.dtype)
    cells = [
        Cell(f"{name} {kind}", drawn, (name, kind, chosen))
        for kind in chosen.kinds
        for name in there
    ]
    run.cells(cells, what="sampling")


def check(chosen: Config) -> None:
    """Raises ArgumentError for a kind that there are no prompts of, and for temperatures at which
    nothing can be drawn."""
    unknown = [kind for kind in chosen.kinds if kind not in PROMPTS]
    if unknown:
        raise ArgumentError(f"--kinds: {unknown[0]!r} is none of {', '.join(PROMPTS)}")
    if cold := [heat for heat in chosen.temperatures if heat <= 0]:
        raise ArgumentError(f"--temperatures: {cold[0]:g} is not over 0")


def drawn(name: str, kind: str, chosen: Config) -> Row:
    """The texts of one cell, judged; prompts take turns at each temperature."""
    loaded = models.opened(name, chosen.device, chosen.dtype)
    prompts = [loaded.prompt_ids(text) for text in prompts_of(kind, loaded.tokenizer)]
    asked = [(heat, k) for heat in chosen.temperatures for k in range(chosen.texts)]
    which = [k % len(prompts) for _, k in asked]
    texts = sample(
        loaded.model,
        prompts,
        which,
        [heat for heat, _ in asked],
        np.stack([numbers(chosen, name, kind, heat, k) for heat, k in asked]),
        models.special_ids(loaded),
        loaded.tokenizer.n_ids,
    )
    judges = [Judge(loaded.tokenizer, prompt) for prompt in prompts]
    judged = [
        {"temperature": heat} | described(judges[prompt], *text)
        for (heat, _), prompt, text in zip(asked, which, texts, strict=True)
    ]
    return {"model": name, "kind": kind, "texts": judged}


def numbers(chosen: Config, name: str, kind: str, heat: float, k: int) -> np.ndarray:
    """float64 [tokens]: what the ids of one text are drawn with. They depend on nothing but what
    names the text."""
    seed = zlib.crc32(f"{chosen.seed} {name} {kind} {heat:g} {k}".encode())
    return np.random.default_rng(seed).random(chosen.tokens)


def described(judge: Judge, ids: Sequence[int], ended: bool) -> Row:
    """One text as it is kept."""
    verdict = judge.verdict(ids, ended)
    row: Row = {"ids": list(ids), "ended": ended, "canonical": verdict.canonical}
    if not verdict.canonical:
        row["faults"] = [[f.position, f.kind, f.tokens, f.reason] for f in verdict.faults]
    return row


def render(rows: Sequence[Row], manifest: Row) -> Report:
    """Shares, faults and the figure."""
    return spontaneous_report.render(rows, manifest)


readme = spontaneous_report.readme
