"""What a model writes, and what it loses on what others wrote.

`sample`: many texts at once without a constraint, each with a prompt and a temperature of its own;
a batch is as wide as all temperatures together, for on a CPU a step of a wide batch costs hardly
more than one of a narrow batch. `fault`: are their ids the tokenizer's own? `losses`, `id_losses`:
of texts, and of ids, after others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from bpe_automata import Matcher
from bpe_automata.errors import PromptError
from experiments.files import cache_name, require
from experiments.models import LoadedModel

Settle: TypeAlias = Callable[[int, Any, Any], Any]
"""(step, masses [n, V], int64 [n] the ids that were drawn) -> int64 [n], the ids to take."""


class Text(NamedTuple):
    """ids: without what ended it; ended: by one of the ids that end a text, not by the length."""

    ids: tuple[int, ...]
    ended: bool


def fault(start: Matcher, ids: Sequence[int], ended: bool) -> int | None:
    """The index of the first id that no canonical text has there; the number of ids, where no such
    text may end; None if the text is canonical. start: a matcher of all texts, after the prompt;
    ended: did the text end there, or was it cut off?

    A text that was cut off must only be the beginning of a canonical one, for more text could
    change how its last characters are divided (GPT-2 reads two line breaks as one token at the end
    of a text, and as two before a word), and complete half a character.
    """
    matcher = start.copy()
    for place, token in enumerate(ids):
        if not matcher.allows(token):
            return place
        matcher.advance(token)
    return len(ids) if ended and not matcher.is_accepting else None


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
            mass = torch.softmax(logits[:, :n_ids] / divisors, 1)
            ids = draw(mass, thrown[:, step : step + 1])
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


def draw(mass: Any, uniforms: Any) -> Any:
    """int64 [n]: min { i : p(ids up to i) > uniform }; where rounding gives none, the last id that
    adds anything; -1 where there is no mass. mass: float32 [n, V], not normalised, its sums are
    float64; uniforms: float64 [n, 1]."""
    torch = require("torch")
    until = mass.cumsum(1, dtype=torch.float64)
    total = until[:, -1:].contiguous()
    last = torch.searchsorted(until, total)
    found = torch.minimum(torch.searchsorted(until, uniforms * total, right=True), last)
    return torch.where(total > 0, found, -1)[:, 0]  # nan is not above 0


def padded(batch: Sequence[Sequence[int]]) -> dict[str, Any]:
    """What a model reads of sequences, padded on their left: input_ids, attention_mask and
    position_ids, int64 [batch, longest]. Padding moves no position: positions count a sequence's
    own ids."""
    torch = require("torch")
    width = max(map(len, batch))
    own = torch.tensor([[0] * (width - len(each)) + [1] * len(each) for each in batch])
    return {
        "input_ids": torch.tensor([[0] * (width - len(each)) + list(each) for each in batch]),
        "attention_mask": own,
        "position_ids": (own.cumsum(1) - 1).clamp(min=0),
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
    wanted = list[tuple[tuple[int, ...], tuple[int, ...]]]()
    for prompt, text in asked:
        before, all_ = loaded.prompt_ids(prompt), loaded.prompt_ids(prompt + text)
        same = [a == b for a, b in zip(before, all_, strict=False)]
        common = max(1, same.index(False) if False in same else len(same))
        wanted += [(tuple(ids[:common]), tuple(ids[common:])) for ids in (before, all_)]
    longer = sorted({one for one in wanted if one[1]}, key=lambda one: len(one[0]) + len(one[1]))
    each = map(np.sum, id_losses(loaded.model, longer))
    found = dict.fromkeys(wanted, 0.0) | dict(zip(longer, each, strict=True))
    return [float(found[b] - found[a]) for a, b in zip(wanted[::2], wanted[1::2], strict=True)]


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
            for (_, after), own in zip(some, logits, strict=True):
                at = own[-len(after) - 1 : -1].float()
                right = torch.tensor(list(after), device=model.device)[:, None]
                nats = at.logsumexp(1) - at.gather(1, right)[:, 0]
                found.append(nats.double().cpu().numpy())
    return found
