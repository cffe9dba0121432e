"""What a model writes, and what it loses on what others wrote.

`sample`: many texts at once without a constraint, each with a prompt and a temperature of its own;
a batch is as wide as all temperatures together, for on a CPU a step of a wide batch costs hardly
more than one of a narrow batch. `losses`, `id_losses`: of texts, and of ids, after others.
`Reader`: logits for the loops of `bpe_automata.sampling`, over a cache that goes back.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from bpe_automata._decoding.drafts import common_length
from bpe_automata.errors import PromptError
from experiments.files import cache_name, require
from experiments.models import LoadedModel

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


# What a model loses, in nats.

AT_ONCE = 8
"""Texts that a model reads at a time."""


def losses(loaded: LoadedModel, asked: Sequence[tuple[str, str]]) -> list[float]:
    """In nats, of (prompt, text): log p(encode(prompt)) - log p(encode(prompt + text)). What both
    begin with adds nothing; mostly that is the whole prompt."""
    wanted: list[tuple[tuple[int, ...], int]] = []
    for prompt, text in asked:
        before, all_ = loaded.prompt_ids(prompt), loaded.prompt_ids(prompt + text)
        same = [a == b for a, b in zip(before, all_, strict=False)]
        common = max(1, same.index(False) if False in same else len(same))
        wanted += [(tuple(before), common), (tuple(all_), common)]
    found = dict.fromkeys(wanted, 0.0)
    longer = sorted((one for one in found if len(one[0]) > one[1]), key=lambda one: len(one[0]))
    for start in range(0, len(longer), AT_ONCE):
        some = longer[start : start + AT_ONCE]
        found |= dict(zip(some, _log_probs(loaded, some), strict=True))
    return [found[a] - found[b] for a, b in zip(wanted[::2], wanted[1::2], strict=True)]


def _log_probs(loaded: LoadedModel, some: Sequence[tuple[tuple[int, ...], int]]) -> Any:
    """Of (ids, first): that of the ids from `first` on, given those before."""
    torch, device = require("torch"), loaded.model.device
    kept = max(len(ids) - first for ids, first in some) + 1
    inputs = {name: v.to(device) for name, v in padded([ids for ids, _ in some]).items()}
    with torch.inference_mode():
        logits = loaded.model(**inputs, use_cache=False, logits_to_keep=kept).logits
        sums = []
        for (ids, first), own in zip(some, logits, strict=True):
            at = own[first - len(ids) - 1 : -1].float()
            right = torch.tensor(ids[first:], device=device)[:, None]
            each = at.gather(1, right)[:, 0] - at.logsumexp(1)
            sums.append(float(each.double().sum()))
    return sums


def id_losses(model: Any, asked: Sequence[tuple[Sequence[int], Sequence[int]]]) -> list[np.ndarray]:
    """Of (before, after), at least one id each: -log p of each id of `after`, nats, float64."""
    torch, found = require("torch"), list[np.ndarray]()
    for start in range(0, len(asked), AT_ONCE):
        some = asked[start : start + AT_ONCE]
        batch = padded([[*before, *after] for before, after in some])
        inputs = {name: values.to(model.device) for name, values in batch.items()}
        kept = max(len(after) for _, after in some) + 1
        with torch.inference_mode():
            logits = model(**inputs, use_cache=False, logits_to_keep=kept).logits
        for (_, after), own in zip(some, logits.double().log_softmax(-1), strict=True):
            right = torch.tensor(list(after), device=model.device)[:, None]
            found.append(-own[-len(after) - 1 : -1].gather(1, right)[:, 0].cpu().numpy())
    return found


# One text at a time, several after the same beginning.


class Reader:
    """ids -> the logits behind them, float32 [V]. What they have in common with those of the call
    before is not read again. (`integrations.transformers.CausalModel` does so only where layers
    that see a window are exact, too; here ids must be fewer than any window.)"""

    def __init__(self, model: Any) -> None:
        self._model, self._ids = model, list[int]()
        self._cache = require("transformers").DynamicCache()

    def __call__(self, ids: Sequence[int]) -> np.ndarray:
        torch, ids = require("torch"), list(ids)
        kept = min(common_length(self._ids, ids), len(ids) - 1)
        if kept < len(self._ids):
            self._cache.crop(kept - len(self._ids))
        self._ids = ids
        rest = torch.tensor([self._ids[kept:]], device=self._model.device)
        with torch.inference_mode():
            read = self._model(
                input_ids=rest, **{cache_name(): self._cache}, use_cache=True, logits_to_keep=1
            )
        found: np.ndarray = read.logits[0, -1].float().cpu().numpy()
        return found
