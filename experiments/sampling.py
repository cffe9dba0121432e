"""Draws of ids, the first fault of a text, and a model's losses.

`draw`: ids from random numbers; `fault`: where a text leaves the tokenizer's own ids; `losses`,
`id_losses`: of texts, and of ids, after others. Texts are drawn by `experiments.batched`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bpe_automata import Matcher
from experiments.files import require
from experiments.models import LoadedModel


def fault(start: Matcher, ids: Sequence[int], ended: bool) -> int | None:
    """The index of the first id that no canonical text has there; the number of ids, if a canonical
    text may not end there; None if the text is canonical. start: a matcher of all texts, after the
    prompt; ended: did the text end there, or was it cut off?

    A text that was cut off need only be the beginning of a canonical one, because more text could
    change how its last characters are divided (GPT-2 reads two line breaks as one token at the end
    of a text, and as two before a word), or complete half a character."""
    matcher = start.copy()
    for index, token in enumerate(ids):
        if not matcher.allows(token):
            return index
        matcher.advance(token)
    return len(ids) if ended and not matcher.is_accepting else None


def draw(mass: Any, uniforms: Any) -> Any:
    """int64 [n]: min { i : p(ids up to i) > uniform }; if rounding gives none, the last id with any
    mass; -1 if there is no mass. mass: float32 [n, V], not normalised, summed in float64; uniforms:
    float64 [n, 1]."""
    torch = require("torch")
    until = mass.cumsum(1, dtype=torch.float64)
    total = until[:, -1:].contiguous()
    last = torch.searchsorted(until, total)
    found = torch.minimum(torch.searchsorted(until, uniforms * total, right=True), last)
    return torch.where(total > 0, found, -1)[:, 0]  # nan is not above 0


def padded(batch: Sequence[Sequence[int]]) -> dict[str, Any]:
    """A model's inputs for sequences that are padded on the left: input_ids, attention_mask and
    position_ids, int64 [batch, longest]. Positions count a sequence's own ids, without padding."""
    torch = require("torch")
    width = max(map(len, batch))
    own = torch.tensor([[0] * (width - len(each)) + [1] * len(each) for each in batch])
    return {
        "input_ids": torch.tensor([[0] * (width - len(each)) + list(each) for each in batch]),
        "attention_mask": own,
        "position_ids": (own.cumsum(1) - 1).clamp(min=0),
    }


def last_logits(model: Any, batch: Sequence[Sequence[int]], kept: int) -> Any:
    """[batch, kept, V], in the model's dtype: logits after each of the last `kept` ids of sequences
    that are read in one pass."""
    inputs = {name: values.to(model.device) for name, values in padded(batch).items()}
    with require("torch").inference_mode():
        return model(**inputs, use_cache=False, logits_to_keep=kept).logits


# Losses, in nats.

AT_ONCE = 8
"""Texts that a model reads at a time."""


def losses(loaded: LoadedModel, asked: Sequence[tuple[str, str]]) -> list[float]:
    """For each (prompt, text), in nats: log p(encode(prompt)) - log p(encode(prompt + text)). The
    common beginning of both, mostly the whole prompt, cancels. The first id of all is taken as
    given, whether it is a start id or not."""
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
    """For each (before, after), both not empty: -log p of each id of `after`, nats, float64."""
    torch, found = require("torch"), list[np.ndarray]()
    for start in range(0, len(asked), AT_ONCE):
        some = asked[start : start + AT_ONCE]
        kept = max(len(after) for _, after in some) + 1
        logits = last_logits(model, [[*before, *after] for before, after in some], kept)
        for (_, after), own in zip(some, logits, strict=True):
            at = own[-len(after) - 1 : -1].float()
            right = torch.tensor(list(after), device=model.device)[:, None]
            nats = at.logsumexp(1) - at.gather(1, right)[:, 0]
            found.append(nats.double().cpu().numpy())
    return found
