"""A real model, writing under schemas with and without forced ids.

The model is asked through one cache, and what is forced goes through it together with the next id
that is not. Both ways of a text follow each other at once, each first in half of the cases, on one
model and one seed.
"""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

from bpe_automata import constrain
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.errors import BpeAutomataError
from bpe_automata.sampling import decode
from experiments import models
from experiments.forced_inputs import Item
from experiments.runner import Options

Row = dict[str, Any]
Job = Callable[[], Row]
TEXTS = 12
MODES = {"greedy": 0.0, "sampled": 1.0}
"""Name: temperature."""
MOST_IDS, MOST_STATES = 48, 400
CONFIG = {"texts": TEXTS, "max_new_tokens": MOST_IDS, "max_states": MOST_STATES, "modes": MODES}


class Loaded:
    """tokenizer; `model()`: a callable ids -> logits with a cache of its own, and `passes`."""

    def __init__(self, options: Options) -> None:
        from bpe_automata.integrations.transformers import CausalModel

        models.use_threads()
        loaded = models.load_model(options.model, options.device)
        self.name, self.tokenizer, self.eos_ids = loaded.name, loaded.tokenizer, loaded.eos_ids
        self.model: Callable[[], Any] = partial(CausalModel, loaded.model)


def chosen(items: Sequence[Item], seed: int) -> list[Item]:
    """A dozen of those with a small automaton, in the first style."""
    fit = [item for item in items if item.style == items[0].style and item.dfa is not None]
    small = [item for item in fit if item.dfa is not None and item.dfa.n_states <= MOST_STATES]
    return random.Random(seed).sample(small, min(TEXTS, len(small)))


def jobs(options: Options, items: Sequence[Item]) -> list[Job]:
    """A row each: every item in both modes."""
    load = cache(lambda: Loaded(options))
    pairs = [(item, mode) for item in items for mode in MODES]
    return [
        partial(compared, load, item, mode, options.seed, bool(number // len(MODES) % 2))
        for number, (item, mode) in enumerate(pairs)
    ]


def compared(load: Callable[[], Any], item: Item, mode: str, seed: int, forced_first: bool) -> Row:
    """One text, written twice."""
    if item.dfa is None:
        raise ValueError(f"{item.source.id} has no automaton")
    row: Row = {"kind": "generation", "id": item.source.id, "mode": mode, "failure": None}
    try:
        loaded = load()
        prompt = loaded.tokenizer.encode(prompt_of(item))
        ways = (True, False) if forced_first else (False, True)
        written = {way: _write(loaded, item.dfa, prompt, mode, seed, way) for way in ways}
    except BpeAutomataError as error:
        return row | {"failure": f"{type(error).__name__}: {_without_paths(str(error))[:80]}"}
    ours, plain = written[True], written[False]
    row["same"] = ours.pop("ids") == plain["ids"]
    row |= {"model": loaded.name, "ids": len(plain.pop("ids"))}
    return row | {"with": ours, "without": plain}


def _write(
    loaded: Any,
    dfa: ByteDFA,
    prompt: Sequence[int],
    mode: str,
    seed: int,
    forced: bool,
) -> Row:
    """Seconds, passes, and what came out. The constraint is new each time, so that neither way
    finds masks that the other one has made."""
    constraint = constrain(loaded.tokenizer, dfa, eos_ids=loaded.eos_ids)
    model = loaded.model()
    model((*prompt,))  # the prompt is read before the clock starts, in both ways
    before, started = model.passes, time.perf_counter()
    result = decode(
        model,
        constraint,
        prompt,
        max_new_tokens=MOST_IDS,
        temperature=MODES[mode],
        seed=seed,
        forced=forced,
    )
    spent = time.perf_counter() - started
    return {
        "seconds": spent,
        "passes": model.passes - before,
        "forced": result.forced,
        "complete": result.complete,
        "ids": list(result.ids),
    }


def _without_paths(message: str) -> str:
    """Rows are read on other machines."""
    return re.sub(r"(/[^/\s]+)+/", ".../", message)


def prompt_of(item: Item) -> str:
    """A question in the chat format of the default model, which asks for such a text."""
    schema = item.source.schema
    about = item.source.id if schema is None else json.dumps(schema)[:600]
    question = f"Give an example of a JSON object for this schema, without white space: {about}"
    return f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n"
