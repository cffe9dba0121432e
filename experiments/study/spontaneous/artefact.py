"""How often a model that samples freely leaves its tokenizer's own tokenization.

For each model, temperature and kind of text: texts of some tokens, drawn without any constraint
after each of the prompts in `prompts.json`, until a special token or the last id. A
text counts as canonical if `encode` makes these ids of it (after its prompt); one that was cut off,
if some longer text has them (`shared.canonical_texts`). A joint is the position before an id; it is at
fault where the ids leave the canonical sequences.

Texts are independent of one another; the joints of one text are not. So intervals of shares of
texts are those of Clopper and Pearson, and intervals of shares of joints come from drawing whole
texts again (bootstrap). Both speak of these prompts alone, which are fixed.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bpe_automata import Tokenizer
from bpe_automata.errors import ArgumentError, PromptError
from experiments.engines.named import check_known
from experiments.run import config
from experiments.run.config import option
from experiments.run.executors import Cell, Row
from experiments.run.files import cache_name, require
from experiments.run.measuring import Run
from experiments.shared import models
from experiments.shared.canonical_texts import Judge
from experiments.shared.models import Device, Dtype, models_there
from experiments.study.spontaneous.report import TITLE, complete, facts, figures, readme, tables

__all__ = ["SMOKE", "TITLE", "VERSION", "Config", "complete", "facts", "figures", "measure"]
__all__ += ["readme", "tables"]

VERSION = 1
PROMPTS: dict[str, list[str]] = json.loads(
    Path(__file__).with_name("prompts.json").read_text(encoding="utf-8")
)
"""By kind of text, fixed before any was measured. None ends with a space or, where words are
divided by spaces, inside a word: the next id would have to mend that."""
TURN = "<|im_start|>"
"""Of the chat format that SmolLM2 was trained with; a model without it gets plain text."""


@dataclass(frozen=True)
class Config(config.Config):
    """What is sampled from what."""

    models: tuple[str, ...] = option((models.SMOLLM2, models.GEMMA), "packaged, folder or hub id")
    temperatures: tuple[float, ...] = option((0.3, 0.7, 1.0, 1.3, 1.6), "of sampling")
    kinds: tuple[str, ...] = option(tuple(PROMPTS), "of text")
    texts: int = option(32, "per model, temperature and kind, shared by its prompts")
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
    if cold := [heat for heat in chosen.temperatures if heat <= 0]:
        raise ArgumentError(f"--temperatures: {cold[0]:g} is not over 0")


def drawn(name: str, kind: str, chosen: Config) -> Row:
    """The texts of one cell, judged; prompts take turns at each temperature."""
    loaded = models.opened(name, chosen.device, chosen.dtype)
    prompts = [loaded.prompt_ids(text) for text in prompts_of(kind, loaded.tokenizer)]
    wanted = [(heat, k) for heat in chosen.temperatures for k in range(chosen.texts)]
    which = [k % len(prompts) for _, k in wanted]
    texts = sample(
        loaded.model,
        prompts,
        which,
        [heat for heat, _ in wanted],
        np.stack([numbers(chosen, name, kind, heat, k) for heat, k in wanted]),
        models.special_ids(loaded),
        loaded.tokenizer.n_ids,
    )
    judges = [Judge(loaded.tokenizer, prompt) for prompt in prompts]
    judged = [
        {"temperature": heat} | described(judges[prompt], *text)
        for (heat, _), prompt, text in zip(wanted, which, texts, strict=True)
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


# Sampling many texts at once, each with a prompt and a temperature of its own. `shared.batched`
# draws weighted texts of one prompt under a constraint; here nothing is weighed, and a batch is as
# wide as all temperatures together: on a CPU a step of a wide batch costs hardly more than one of a
# narrow batch.

BLOCK = 512
"""Ids whose masses are summed in one go."""
LEAST = -87.0
"""Natural log of the least mass relative to the greatest one: below it float32 is denormal, and
slow."""


class Text(NamedTuple):
    """ids: without what ended it; ended: by one of the ids that end a text, not by the length."""

    ids: tuple[int, ...]
    ended: bool


def sample(
    model: Any,
    prompts: Sequence[Sequence[int]],
    which: Sequence[int],
    temperatures: Sequence[float],
    numbers: np.ndarray,
    ends: Collection[int],
    n_ids: int | None = None,
) -> list[Text]:
    """A text for each of `which`, numbers of prompts, at its temperature (over 0).

    numbers: float64 [n, tokens] in [0, 1), one for each id that is drawn, so that a text depends on
    its own numbers alone (but for the rounding of the model's arithmetic). ends: ids that end a
    text. n_ids: how many the tokenizer has. A model may have more, which fill its matrices up to a
    round number and spell nothing; the distribution is conditioned on none of them being drawn.
    Raises PromptError for an empty prompt.
    """
    torch = require("torch")
    if not all(prompts):
        raise PromptError("an empty prompt: the model needs at least one id to predict from")
    heats = torch.tensor(temperatures, dtype=torch.float32, device=model.device)[:, None]
    thrown = torch.from_numpy(numbers).to(model.device)
    found: list[list[int]] = [[] for _ in which]
    ended = [False] * len(which)
    with torch.inference_mode():
        logits, cache, inputs = _begun(model, prompts, which)
        for step in range(numbers.shape[1]):
            ids = draw(logits[:, :n_ids], heats, thrown[:, step : step + 1])
            for k, token in enumerate(ids.tolist()):
                if not ended[k]:
                    ended[k] = token in ends
                    found[k] += [] if ended[k] else [token]
            if all(ended) or step + 1 == numbers.shape[1]:
                break
            inputs = _next(inputs, ids)
            read = model(**inputs, **{cache_name(): cache}, use_cache=True)
            logits = read.logits[:, -1].float()
    return [Text(tuple(ids), end) for ids, end in zip(found, ended, strict=True)]


def draw(logits: Any, temperatures: Any, numbers: Any) -> Any:
    """int64 [n]: min { i : p(ids up to i) > number }. logits: float32 [n, V], overwritten, for the
    array is large; temperatures: float32 [n, 1]; numbers: float64 [n, 1].

    Masses are float32, their sums float64: first over blocks of ids, then inside the block where
    the number falls. That takes a third of the time of one long sum for a vocabulary of 262,144.
    """
    torch = require("torch")
    scaled = logits.sub_(logits.amax(1, keepdim=True)).div_(temperatures)
    masses = torch.nn.functional.threshold_(scaled, LEAST, -torch.inf).exp_()
    if missing := -masses.shape[1] % BLOCK:
        masses = torch.nn.functional.pad(masses, (0, missing))
    blocks = masses.view(len(masses), -1, BLOCK)
    sums = blocks.sum(-1).double()
    until = sums.cumsum(1)
    goal = numbers * until[:, -1:]
    block = _first_over(until, goal)
    before = until.gather(1, block) - sums.gather(1, block)
    each = torch.arange(len(blocks), device=blocks.device)
    inside = blocks[each, block[:, 0]].double().cumsum(1)
    return (block * BLOCK + _first_over(inside, goal - before))[:, 0]


def _first_over(cumulated: Any, goal: Any) -> Any:
    """int64 [n, 1]: the first index whose sum is over the goal; where rounding gives none, the last
    that adds anything."""
    torch = require("torch")
    found = torch.searchsorted(cumulated, goal, right=True)
    last = torch.searchsorted(cumulated, cumulated[:, -1:].contiguous())
    return torch.minimum(found, last)


def padded(batch: Sequence[Sequence[int]], before: int = 0) -> dict[str, Any]:
    """What a model reads of sequences, padded on their left, after so many ids that all have in
    common: input_ids, position_ids, int64 [batch, longest]; attention_mask, int64 [batch, before +
    longest]. Padding moves no position: positions count a sequence's own ids."""
    torch = require("torch")
    width = max(map(len, batch))
    own = torch.tensor([[0] * (width - len(each)) + [1] * len(each) for each in batch])
    return {
        "input_ids": torch.tensor([[0] * (width - len(each)) + list(each) for each in batch]),
        "attention_mask": torch.cat([own.new_ones(len(batch), before), own], 1),
        "position_ids": before + (own.cumsum(1) - 1).clamp(min=0),
    }


def _begun(
    model: Any, prompts: Sequence[Sequence[int]], which: Sequence[int]
) -> tuple[Any, Any, dict[str, Any]]:
    """(float32 [n, V] logits after the prompts, the cache, the inputs so far), for each of `which`;
    each prompt is read once."""
    torch = require("torch")
    inputs = {name: values.to(model.device) for name, values in padded(prompts).items()}
    read = model(**inputs, use_cache=True, logits_to_keep=1)
    chosen = torch.tensor(list(which), device=model.device)
    read[cache_name()].batch_select_indices(chosen)
    logits = read.logits[:, -1].float()[chosen]
    return logits, read[cache_name()], {name: each[chosen] for name, each in inputs.items()}


def _next(inputs: dict[str, Any], ids: Any) -> dict[str, Any]:
    """What the model reads of one more id for each text."""
    torch = require("torch")
    mask = inputs["attention_mask"]
    return {
        "input_ids": ids[:, None],
        "attention_mask": torch.cat([mask, mask.new_ones(len(mask), 1)], 1),
        "position_ids": inputs["position_ids"][:, -1:] + 1,
    }
