"""The two loops that know forced ids: `sampling.decode` over any model, `generate` of transformers.

Each writes one text, and says in how many seconds and forward passes. The constraint is new each
time, so that no way of writing finds masks that another one has made.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from bpe_automata import Constraint, constrain
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.sampling import decode
from experiments.run.executors import Row
from experiments.run.files import require
from experiments.shared.models import LoadedModel, causal


@dataclass(frozen=True)
class Asked:
    """dfa: what is to be written; prompt: ids; temperature: 0 is greedy; most_ids: end-of-sequence
    included."""

    dfa: ByteDFA
    prompt: tuple[int, ...]
    temperature: float
    seed: int
    most_ids: int

    def constraint(self, loaded: LoadedModel) -> Constraint:
        """Without any mask made yet."""
        return constrain(loaded.tokenizer, self.dfa, eos_ids=loaded.eos_ids)


Loop = Callable[[LoadedModel, Asked, bool], Row]
"""(what is loaded, what is asked, with forced ids?) -> seconds, passes, and what came out."""


def with_decode(loaded: LoadedModel, asked: Asked, forced: bool) -> Row:
    """The model reads the prompt before the clock starts, in both ways."""
    constraint, model = asked.constraint(loaded), causal(loaded)
    model(asked.prompt)
    before, started = model.passes, time.perf_counter()
    result = decode(
        model,
        constraint,
        asked.prompt,
        max_new_tokens=asked.most_ids,
        temperature=asked.temperature,
        seed=asked.seed,
        forced=forced,
    )
    seconds = time.perf_counter() - started
    return {
        "seconds": seconds,
        "passes": model.passes - before,
        "forced": result.forced,
        "ids": list(result.ids),
    }


def with_generate(loaded: LoadedModel, asked: Asked, forced: bool) -> Row:
    """The prompt is read within the first pass, and its time, in both ways."""
    hosts, torch = require("bpe_automata.integrations.transformers"), require("torch")
    constraint = asked.constraint(loaded)
    inputs = hosts.padded([list(asked.prompt)], loaded.eos_ids[0])
    inputs = {name: tensor.to(loaded.model.device) for name, tensor in inputs.items()}
    torch.manual_seed(asked.seed)
    with _counted(loaded.model) as passes:
        started = time.perf_counter()
        masks = hosts.ConstraintLogitsProcessor(constraint, **inputs)
        loop = hosts.ForcedDecoding(masks) if forced else None
        out = loaded.model.generate(
            **inputs,
            custom_generate=loop,
            logits_processor=[masks],
            max_new_tokens=asked.most_ids,
            eos_token_id=list(loaded.eos_ids),
            pad_token_id=loaded.eos_ids[0],
            **_law(asked.temperature),
        )
        ids = out[0, len(asked.prompt) :].tolist()  # waits for the device
        seconds = time.perf_counter() - started
    count = loop.forced[0] if loop else 0
    text = ids[:-1] if ids[-1] in loaded.eos_ids else ids  # `decode` does not give the end back
    return {"seconds": seconds, "passes": len(passes), "forced": count, "ids": text}


def _law(temperature: float) -> Row:
    """The whole law of the model: what its generation config cuts off is not cut off."""
    if not temperature:
        return {"do_sample": False}
    return {"do_sample": True, "temperature": temperature, "top_k": 0, "top_p": 1.0}


@contextmanager
def _counted(model: Any) -> Iterator[list[None]]:
    """A list that grows by one with each forward pass of a model of torch."""
    passes: list[None] = []
    handle = model.register_forward_pre_hook(lambda module, args: passes.append(None))
    try:
        yield passes
    finally:
        handle.remove()
