"""How often a model that samples freely leaves its tokenizer's own tokenization.

For each model, temperature and kind of text: texts of some tokens, drawn without any constraint
after each of the prompts in `prompts.json`, until a special token or the last id. A text counts as
canonical if `encode` makes these ids of it (after its prompt); one that was cut off, if some longer
text has them (`shared.canonical_texts`). A joint is the position before an id; it is at fault where
the ids leave the canonical sequences.

Texts after one prompt are like one another: what a prompt asks for decides much of how often they
leave the canonical sequences. So prompts are the unit, and intervals come from drawing prompts
again, each with all of its texts (bootstrap): they speak of prompts like these.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bpe_automata import Tokenizer
from bpe_automata.errors import ArgumentError
from experiments import models
from experiments.engines.named import check_known
from experiments.models import Device, Dtype, models_there
from experiments.run import config
from experiments.run.config import option
from experiments.run.executors import Cell, Row
from experiments.run.measuring import Run
from experiments.shared.canonical_texts import Judge
from experiments.shared.free_texts import sample
from experiments.study.spontaneous.report import TITLE, complete, facts, figures, readme, tables

__all__ = ["SMOKE", "TITLE", "VERSION", "Config", "complete", "facts", "figures", "measure"]
__all__ += ["readme", "tables"]

VERSION = 2
PROMPTS: dict[str, list[str]] = json.loads(
    Path(__file__).with_name("prompts.json").read_text(encoding="utf-8")
)
"""By kind of text, as many of each, chosen without looking at what models make of them. None ends
with a space or, where words are divided by spaces, inside a word: the next id would have to mend
that."""
TURN = "<|im_start|>"
"""Of the chat format that SmolLM2 was trained with; a model without it gets plain text."""


@dataclass(frozen=True)
class Config(config.Config):
    """What is sampled from what."""

    models: tuple[str, ...] = option((models.SMOLLM2, models.GEMMA), "packaged, folder or hub id")
    temperatures: tuple[float, ...] = option((0.3, 0.7, 1.0, 1.3, 1.6), "of sampling")
    kinds: tuple[str, ...] = option(tuple(PROMPTS), "of text")
    texts: int = option(
        32, "per model, temperature and kind, whose 8 prompts take turns: best a multiple of 8"
    )
    tokens: int = option(48, "at most in each text")
    device: Device = option("auto", "where the models run")
    dtype: Dtype = option("bfloat16", "of the arithmetic")


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
    check_known("kinds", chosen.kinds, PROMPTS)
    if cold := [temperature for temperature in chosen.temperatures if temperature <= 0]:
        raise ArgumentError(f"--temperatures: {cold[0]:g} is not over 0")


def drawn(name: str, kind: str, chosen: Config) -> Row:
    """The texts of one cell, judged, each with the number of its prompt; prompts take turns at each
    temperature."""
    loaded = models.opened(name, chosen.device, chosen.dtype)
    prompts = [loaded.prompt_ids(text) for text in prompts_of(kind, loaded.tokenizer)]
    wanted = [(temperature, k) for temperature in chosen.temperatures for k in range(chosen.texts)]
    which = [k % len(prompts) for _, k in wanted]
    texts = sample(
        loaded.model,
        prompts,
        which,
        [temperature for temperature, _ in wanted],
        np.stack([numbers(chosen, name, kind, temperature, k) for temperature, k in wanted]),
        models.special_ids(loaded),
        loaded.tokenizer.n_ids,
    )
    judges = [Judge(loaded.tokenizer, prompt) for prompt in prompts]
    judged = [
        {"temperature": temperature, "prompt": prompt} | described(judges[prompt], *text)
        for (temperature, _), prompt, text in zip(wanted, which, texts, strict=True)
    ]
    return {"model": name, "kind": kind, "texts": judged}


def prompts_of(kind: str, tokenizer: Tokenizer) -> list[str]:
    """The prompts of a kind, in the chat format of the tokenizer's model where there is one."""
    if kind != "chat":
        return PROMPTS[kind]
    if any(token.content == TURN for token in tokenizer.description.added):
        form = f"{TURN}user\n{{}}<|im_end|>\n{TURN}assistant\n"
    else:
        form = "Question: {}\nAnswer:"
    return [form.format(question) for question in PROMPTS[kind]]


def numbers(chosen: Config, name: str, kind: str, temperature: float, k: int) -> np.ndarray:
    """float64 [tokens]: what the ids of one text are drawn with. They depend on nothing but what
    names the text."""
    seed = zlib.crc32(f"{chosen.seed} {name} {kind} {temperature:g} {k}".encode())
    return np.random.default_rng(seed).random(chosen.tokens)


def described(judge: Judge, ids: Sequence[int], ended: bool) -> Row:
    """One text as it is kept."""
    verdict = judge.verdict(ids, ended)
    row: Row = {"ids": list(ids), "ended": ended, "canonical": verdict.canonical}
    if not verdict.canonical:
        row["faults"] = [[f.position, f.kind, f.tokens, f.reason] for f in verdict.faults]
    return row
