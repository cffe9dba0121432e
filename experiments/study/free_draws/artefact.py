"""Free draws: does a model's own `generate` write what the exact numbers say?

For each prompt of the distortion table whose answers a model writes often enough, texts are drawn
by `transformers`' `generate`: at temperature 1, from the whole vocabulary, with no mask. The
model's cache of the prompt is the only thing that they share. A draw goes on until it is decided:

- *complete*: the ids spelled an answer exactly, then the sequence ended;
- *goes on*: they spelled an answer exactly, and something else came next;
- *past*: the text began with an answer, but the last id went past its end;
- *other*: the text began with no answer.

Beside the counts stand the probabilities that `answers.distributions` sums up over all
tokenizations, and an exact test of the counts of all outcomes of all answers. What rejection
sampling costs comes from the same draws: ids until a draw is decided, over the share of draws that
are accepted.
"""

from __future__ import annotations

import copy
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np

from bpe_automata import Tokenizer
from bpe_automata.errors import ArgumentError, BpeAutomataError
from experiments import models
from experiments.answers.asked import Opened, opened
from experiments.answers.cases import PROMPTS, Case
from experiments.answers.distributions import Aims, distributions, per_leaf, tv_between
from experiments.answers.methods import OUR_METHODS, Posed
from experiments.answers.targets import COMPLETE, PREFIX, SEQUENCE
from experiments.engines.named import check_known
from experiments.models import Device, Dtype, models_there
from experiments.run import config
from experiments.run.config import option
from experiments.run.executors import Cell, Row
from experiments.run.files import cache_name, require
from experiments.run.measuring import Run
from experiments.study.free_draws.report import (
    OUTCOMES,
    TITLE,
    facts,
    figures,
    readme,
    tables,
    wrong,
)
from experiments.trie import along_paths

VERSION = 1
LONG = True
__all__ = [
    "LONG",
    "ON_GPU",
    "SMOKE",
    "TITLE",
    "VERSION",
    "Config",
    "facts",
    "figures",
    "measure",
    "readme",
    "tables",
    "wrong",
]


@dataclass(frozen=True)
class Config(config.Config):
    """Which prompts, of which models, and how many draws of each."""

    models: tuple[str, ...] = option((models.SMOLLM2, models.GEMMA), "packaged, folder or hub id")
    prompts: tuple[str, ...] = option((), "names of prompts of the distortion table, all if empty")
    least_mass: float = option(0.01, "a prompt whose answers have less is not drawn from")
    draws: int = option(2000, "of each prompt")
    batch: int = option(100, "draws at a time")
    slack: float = option(1e-4, "most probability of answers that may stay unread, of theirs")
    most_nodes: int = option(6000, "most forward positions for the exact numbers of a prompt")
    device: Device = option("auto", "where the models run")
    dtype: Dtype = option("float32", "of the arithmetic")


ON_GPU = Config(models=(models.SMOLLM2,), draws=100_000, batch=2048, device="cuda")
SMOKE = Config(models=(models.SMOLLM2,), prompts=("yes_no", "digit"), draws=40, batch=20)


def measure(run: Run[Config]) -> None:
    """A row for each model, then one for each model and prompt. A model that is not there is one
    failure, and has no prompts."""
    chosen = run.config
    named = {case.name: case for case in PROMPTS}
    check_known("prompts", chosen.prompts, named)
    there = models_there(run, chosen.models, chosen.device, chosen.dtype)
    run.cells(
        [
            Cell(f"{name}/{prompt}", prompt_row, (name, named[prompt], chosen))
            for name in there
            for prompt in chosen.prompts or named
        ]
    )


def prompt_row(name: str, case: Case, chosen: Config) -> Row:
    """Exact numbers, and draws where the answers have `least_mass`."""
    ready = opened(name, chosen.device, chosen.dtype)
    loaded = ready.loaded
    if not loaded.eos_ids:
        raise ArgumentError(f"{name} names no end-of-sequence id: nothing is ever complete")
    posed = ready.poser.posed(loaded.prompt_ids(case.prompt), case.answers)
    exact = exact_row(posed, ready, chosen)
    row: Row = {"model": name, "prompt": case.name, "answers": list(case.answers), "exact": exact}
    if 10 ** exact["log10_mass"][PREFIX] < chosen.least_mass:
        return row
    drawn = draws(loaded, posed, f"{chosen.seed} {name} {case.name}", chosen)
    counts = Counter((one.outcome, one.answer) for one in drawn)
    own = [
        loaded.prompt_ids(case.prompt + answer)[len(posed.prompt_ids) :] for answer in case.answers
    ]
    return row | {
        "draws": len(drawn),
        "counts": {o: [counts[o, k] for k in range(len(own))] for o in OUTCOMES},
        "canonical": sum(one.ids != () and [*one.ids] == own[one.answer] for one in drawn),
        "read": sum(one.read for one in drawn),
    }


def exact_row(posed: Posed, ready: Opened, chosen: Config) -> Row:
    """The probability of each outcome and answer; of all answers by target; and the distance of
    each method from each target. slack: what may be missing of each target's mass, relative to it,
    at most. What is complete is summed over the tokenizations that were read: where its slack is
    large, its mass is a lower bound alone, and its distances say little.

    canonical: the share of the tokenizer's own ids in the mass of those that spell an answer; that
    of `prompt_row` is how many draws have them."""
    aims = Aims(chosen.slack, chosen.slack, chosen.most_nodes)
    found = ready.explored(posed, (1.0,), aims, OUR_METHODS)
    n = len(posed.answers)
    each = distributions(found, 0, OUR_METHODS, n, ())
    own = along_paths(found.trie, found.scores[0])
    spelled = np.exp(per_leaf(found, found.complete, own, n))
    ended, past = np.exp(found.targets.ended[0]), np.exp(found.targets.past[0])
    targets = {SEQUENCE: {"free": each["free"]}, **each["targets"]}
    return {
        "probability": dict(zip(OUTCOMES, ([*ended], [*(spelled - ended)], [*past]), strict=True)),
        "log10_mass": {SEQUENCE: each["log10_mass"]}
        | {target: each["targets"][target]["log10_mass"] for target in (PREFIX, COMPLETE)},
        "slack": {SEQUENCE: each["free_slack"]}
        | {target: each["targets"][target]["slack"] for target in (PREFIX, COMPLETE)},
        "canonical": each["methods"]["canonical"]["share"],
        "tv": {
            target: {
                method: tv_between(part["law"], of["free"], part["lost"])
                for method, part in each["methods"].items()
            }
            for target, of in targets.items()
        },
        "given_back": 0 if posed.healing is None else len(posed.healing.given_back),
    }


# ---------------------------------------------------------------- draws


class UndecidedError(BpeAutomataError):
    """A draw was cut off before it was known what it begins with: a bug of the artefact."""


@dataclass(frozen=True)
class Draw:
    """outcome: one of `OUTCOMES`, or "other"; answer: its number, -1 for "other"; ids: those that
    spelled the answer, () where none did exactly; read: ids until it was decided."""

    outcome: str
    answer: int
    ids: tuple[int, ...]
    read: int


def decided(
    ids: Sequence[int], answers: Sequence[bytes], tokenizer: Tokenizer, eos_ids: Sequence[int]
) -> Draw | None:
    """What ids are a draw of; None where that is not decided yet. answers: prefix-free."""
    text = b""
    for k, token in enumerate(ids):
        spelled = tokenizer.token_bytes(int(token))
        whole = answers.index(text) if text in answers else -1
        if whole >= 0:
            outcome = "complete" if token in eos_ids else "goes on"
            return Draw(outcome, whole, tuple(ids[:k]), k + 1)
        if token in eos_ids or not spelled:
            return Draw("other", -1, (), k + 1)
        text += spelled
        begun = [j for j, answer in enumerate(answers) if text.startswith(answer)]
        if begun and answers[begun[0]] != text:
            return Draw("past", begun[0], (), k + 1)
        if not begun and not any(answer.startswith(text) for answer in answers):
            return Draw("other", -1, (), k + 1)
    return None


def draws(loaded: models.LoadedModel, posed: Posed, seed: str, chosen: Config) -> list[Draw]:
    """`chosen.draws` continuations of the prompt, each until it is decided: at the latest with the
    id behind as many as the longest answer has bytes."""
    torch, transformers = require("torch"), require("transformers")
    torch.manual_seed(zlib.crc32(seed.encode()))

    def judged(ids: Sequence[int]) -> Draw | None:
        return decided(ids, posed.answers, loaded.tokenizer, loaded.eos_ids)

    rows = torch.tensor([posed.prompt_ids], device=loaded.model.device)
    first = transformers.DynamicCache(config=loaded.model.config)
    if rows.shape[1] > 1:
        with torch.inference_mode():
            loaded.model(input_ids=rows[:, :-1], **{cache_name(): first}, use_cache=True)
    options = transformers.GenerationConfig(
        do_sample=True,
        temperature=1.0,
        top_k=0,
        top_p=1.0,
        max_new_tokens=1 + max(map(len, posed.answers)),
        eos_token_id=list(loaded.eos_ids),
        pad_token_id=loaded.eos_ids[0],
    )

    found: list[Draw | None] = []
    while len(found) < chosen.draws:
        count = min(chosen.batch, chosen.draws - len(found))
        made = list[Draw | None]([None] * count)

        def stop(input_ids: Any, scores: Any, made: list[Draw | None] = made, **more: Any) -> Any:
            """Row by row: it looks at what was written, and changes nothing of what is drawn."""
            del scores, more
            open_rows = [k for k, one in enumerate(made) if one is None]
            written = input_ids[open_rows, len(posed.prompt_ids) :].tolist()
            for k, ids in zip(open_rows, written, strict=True):
                made[k] = judged(ids)
            return torch.tensor([one is not None for one in made], device=rows.device)

        cache = copy.deepcopy(first)
        cache.batch_repeat_interleave(count)
        many = rows.repeat(count, 1)
        # `generate` would take what `options` leaves out (a penalty, a least p) from the model's
        # own config: hence the patch.
        with patch.object(loaded.model, "generation_config", options):
            loaded.model.generate(
                many,
                attention_mask=torch.ones_like(many),
                generation_config=options,
                stopping_criteria=[stop],
                **({cache_name(): cache} if rows.shape[1] > 1 else {}),
            )
        found += made
    if None in found:
        raise UndecidedError(f"{found.count(None)} draws are not decided after {options}")
    return [one for one in found if one is not None]
