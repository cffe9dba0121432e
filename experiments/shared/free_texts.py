"""Many texts at once without a constraint, each with a prompt and a temperature of its own.

`shared.batched` draws weighted texts of one prompt under a constraint; here nothing is weighed, and
a batch is as wide as all temperatures together: on a CPU a step of a wide batch costs hardly more
than one of a narrow batch.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from bpe_automata.errors import PromptError
from experiments.run.files import cache_name, require

BLOCK = 512
"""Ids whose masses are summed in one go."""
LEAST = -87.0
"""Natural log of the least mass relative to the greatest one: below it float32 is denormal, and
slow."""


Settle: TypeAlias = Callable[[int, Any, Any], Any]
"""(step, `masses` [n, V], int64 [n] the ids that were drawn) -> int64 [n], the ids to take."""


class Text(NamedTuple):
    """ids: without what ended it; ended: by one of the ids that end a text, not by the length."""

    ids: tuple[int, ...]
    ended: bool


def sample(
    model: Any,
    prompts: Sequence[Sequence[int]],
    which: Sequence[int],
    temperatures: Sequence[float],
    uniforms: np.ndarray,
    ends: Collection[int],
    n_ids: int | None = None,
    settle: Settle | None = None,
) -> list[Text]:
    """A text for each of `which`, numbers of prompts, at its temperature (over 0).

    uniforms: float64 [n, tokens] in [0, 1), one for each id that is drawn, so that a text hangs on
    its own alone (but for the rounding of the model's arithmetic). ends: ids that end a
    text. n_ids: how many the tokenizer has. A model may have more, which fill its matrices up to a
    round number and spell nothing; the distribution is conditioned on none of them being drawn.
    settle: has the last word on each id. Raises PromptError for an empty prompt.
    """
    torch = require("torch")
    if not all(prompts):
        raise PromptError("an empty prompt: the model needs at least one id to predict from")
    divisors = torch.tensor(temperatures, dtype=torch.float32, device=model.device)[:, None]
    thrown = torch.from_numpy(uniforms).to(model.device)
    found: list[list[int]] = [[] for _ in which]
    ended = [False] * len(which)
    with torch.inference_mode():
        logits, cache, inputs = _begun(model, prompts, which)
        for step in range(uniforms.shape[1]):
            mass = masses(logits[:, :n_ids], divisors)
            ids = drawn(mass, thrown[:, step : step + 1])
            if settle is not None:
                ids = settle(step, mass, ids)
            for k, token in enumerate(ids.tolist()):
                if not ended[k]:
                    ended[k] = token in ends
                    found[k] += [] if ended[k] else [token]
            if all(ended) or step + 1 == uniforms.shape[1]:
                break
            inputs = _next(inputs, ids)
            read = model(**inputs, **{cache_name(): cache}, use_cache=True)
            logits = read.logits[:, -1].float()
    return [Text(tuple(ids), end) for ids, end in zip(found, ended, strict=True)]


def masses(logits: Any, temperatures: Any) -> Any:
    """float32 [n, V], not normalised: in the place of the logits, float32, for the array is large.
    temperatures: float32 [n, 1]."""
    torch = require("torch")
    scaled = logits.sub_(logits.amax(1, keepdim=True)).div_(temperatures)
    return torch.nn.functional.threshold_(scaled, LEAST, -torch.inf).exp_()


def drawn(mass: Any, uniforms: Any) -> Any:
    """int64 [n]: min { i : p(ids up to i) > number }. mass: float32 [n, V], see `masses`;
    uniforms: float64 [n, 1].

    Masses are float32, their sums float64: first over blocks of ids, then inside the block where
    the number falls. That takes a third of the time of one long sum for a vocabulary of 262,144.
    """
    torch = require("torch")
    if missing := -mass.shape[1] % BLOCK:
        mass = torch.nn.functional.pad(mass, (0, missing))
    blocks = mass.view(len(mass), -1, BLOCK)
    sums = blocks.sum(-1).double()
    until = sums.cumsum(1)
    goal = uniforms * until[:, -1:]
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
