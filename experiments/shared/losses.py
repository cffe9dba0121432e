"""The loss of texts after prompts, as a model reads them in ids of its own tokenizer's `encode`, or
in any ids that spell them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from experiments.models import LoadedModel
from experiments.run.files import require
from experiments.shared.free_texts import padded

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
