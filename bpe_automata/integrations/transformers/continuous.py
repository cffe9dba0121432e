"""Continuous batching, where no logits processor of a caller is honoured.

In transformers 5.23 (`generation/continuous_batching/`), a manager builds its own list of
processors from the generation config. What a caller gives is never looked at:

| call | what becomes of `logits_processor=[...]` |
|---|---|
| `generate(cache_implementation="paged", ...)` | not handed on, without a word |
| `generate_batch(...)` | swallowed by `**kwargs`, without a word |
| `model._get_logits_processor` overridden | asked `supports_continuous_batching`: refused |
| written into the manager's list | called with one id per sequence: refused |

The first two cannot be refused by the processor, which nobody asks. `only_plain_batching` refuses
them on the model; and `ConstraintLogitsProcessor.result` refuses ids about which it was not asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from bpe_automata.integrations.transformers.rows import continuous_batching

_ENTRY = "init_continuous_batching"


@contextmanager
def only_plain_batching(model: Any) -> Iterator[None]:
    """Inside, every way into continuous batching of this model raises UnsupportedFeatureError.

    All of them, `generate(cache_implementation="paged")` and `generate_batch` too, go through the
    model's `init_continuous_batching`; inside, that is shadowed on this one model and, where it
    wraps another (as PEFT does), on whatever model in it generates.
    """

    def refuse(*_: object, **__: object) -> None:
        raise continuous_batching()

    shadowed = _generating(model)
    before = [vars(one).get(_ENTRY) for one in shadowed]
    for one in shadowed:
        setattr(one, _ENTRY, refuse)
    try:
        yield
    finally:
        for one, own in zip(shadowed, before, strict=True):
            delattr(one, _ENTRY)
            if own is not None:
                setattr(one, _ENTRY, own)


def _generating(model: Any) -> list[Any]:
    """The model, that whose `generate` it lends, and those of its parts that can generate."""
    parts = model.modules() if isinstance(model, torch.nn.Module) else ()
    inner = (part for part in parts if hasattr(type(part), _ENTRY))
    found = [model, getattr(model.generate, "__self__", model), *inner]
    return list({id(one): one for one in found}.values())
