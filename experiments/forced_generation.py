"""A real model, writing under schemas with and without forced ids.

In both loops that can do so (see `forced_loops`), what is forced goes through the model's cache
together with the next id that is not. Both ways of a text follow each other at once, each first in
half of the cases, on one model and one seed.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

from bpe_automata.errors import BpeAutomataError
from experiments import models
from experiments.forced_inputs import Item
from experiments.forced_loops import Asked, Loop, with_decode, with_generate
from experiments.runner import Options

Row = dict[str, Any]
Job = Callable[[], Row]
TEXTS = 10
MODES = {"greedy": 0.0, "sampled": 1.0}
"""Name: temperature."""
MOST_IDS, MOST_STATES = 48, 400
LOOPS: dict[str, Loop] = {"decode": with_decode, "generate": with_generate}
CONFIG = {"texts": TEXTS, "max_new_tokens": MOST_IDS, "max_states": MOST_STATES, "modes": MODES}
CONFIG |= {"loops": list(LOOPS)}


class Loaded:
    """tokenizer; `hosted`: a model of transformers; `model()`: a callable ids -> logits over it,
    with a cache of its own, and `passes`."""

    def __init__(self, options: Options) -> None:
        from bpe_automata.integrations.transformers import CausalModel

        models.use_threads()
        loaded = models.load_model(options.model, options.device)
        self.name, self.tokenizer, self.eos_ids = loaded.name, loaded.tokenizer, loaded.eos_ids
        self.hosted = loaded.model
        self.model: Callable[[], Any] = partial(CausalModel, loaded.model)


def chosen(items: Sequence[Item], seed: int) -> list[Item]:
    """A few of those with a small automaton, in the first style."""
    fit = [item for item in items if item.style == items[0].style and item.dfa is not None]
    small = [item for item in fit if item.dfa is not None and item.dfa.n_states <= MOST_STATES]
    return random.Random(seed).sample(small, min(TEXTS, len(small)))


def jobs(options: Options, items: Sequence[Item]) -> list[Job]:
    """A row each: every item in both modes, in both loops."""
    load = cache(lambda: Loaded(options))
    return [
        partial(compared, load, item, loop, mode, options.seed, bool(number % 2))
        for number, item in enumerate(items)
        for loop in LOOPS
        for mode in MODES
    ]


def compared(
    load: Callable[[], Any], item: Item, loop: str, mode: str, seed: int, forced_first: bool
) -> Row:
    """One text, written twice by one loop."""
    if item.dfa is None:
        raise ValueError(f"{item.source.id} has no automaton")
    row: Row = {"kind": "generation", "id": item.source.id, "loop": loop, "mode": mode}
    try:
        loaded = load()
        prompt = tuple(loaded.tokenizer.encode(prompt_of(item)))
        asked = Asked(item.dfa, prompt, MODES[mode], seed, MOST_IDS)
        ways = (True, False) if forced_first else (False, True)
        written = {way: LOOPS[loop](loaded, asked, way) for way in ways}
    except BpeAutomataError as error:
        return row | {"failure": f"{type(error).__name__}: {error}"}
    ours, plain = written[True], written[False]
    row |= {"failure": None, "same": ours.pop("ids") == plain["ids"]}
    row |= {"model": loaded.name, "ids": len(plain.pop("ids"))}
    return row | {"with": ours, "without": plain}


def prompt_of(item: Item) -> str:
    """A question in the chat format of the default model, which asks for such a text."""
    schema = item.source.schema
    about = item.source.id if schema is None else json.dumps(schema)[:600]
    question = f"Give an example of a JSON object for this schema, without white space: {about}"
    return f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n"
