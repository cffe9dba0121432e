"""The loop of `sampling.decode`, with a clock between its parts and a choice of forced ids.

    repeat: read the ids that are known; ask the model after them; draw one id under the mask

The model keeps its cache: ids that are known go through it in one pass, with the next one that is
drawn. Each id takes one uniform number from the generator, also one that is known, so the text is
the same with and without `certain` ids.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from bpe_automata.constructions import TextEngine
from bpe_automata.decoding.chopping import chop
from bpe_automata.decoding.forced import Forced, forced_tokens
from bpe_automata.kernels.bits import only
from bpe_automata.sampling.logits import Model, draw, log_probabilities

T = TypeVar("T")
Known = Callable[[TextEngine[Any], Any, Sequence[int], int], Forced[Any]]
"""(engine, state, ids that led there with the prompt, most) -> the ids that come next, and the
state that they lead to."""


def nothing(engine: TextEngine[Any], state: Any, before: Sequence[int], most: int) -> Forced[Any]:
    """The model is asked for every id."""
    return Forced((), state)


def certain(engine: TextEngine[Any], state: Any, before: Sequence[int], most: int) -> Forced[Any]:
    """As long as one id only is possible; end-of-sequence too."""
    run = forced_tokens(engine, state, most)
    end = only(engine.mask(run.state)) if len(run.ids) < most else -1
    return Forced((*run.ids, end), run.state) if end in engine.eos_ids else run


def heuristic(engine: TextEngine[Any], state: Any, before: Sequence[int], most: int) -> Forced[Any]:
    """What `chop` appends."""
    ids = chop(engine, state, before)[:most]
    for token in ids:
        state = engine.step(state, token)
    return Forced(ids, state)


@dataclass
class Written:
    """ids: end-of-sequence included; runs: how many ids were known at once, each time; passes: of
    the model; seconds: all of them, and of them `model` and `masks` (what is known included; the
    rest is drawing)."""

    ids: list[int] = field(default_factory=list)
    runs: list[int] = field(default_factory=list)
    passes: int = 0
    seconds: float = 0.0
    model: float = 0.0
    masks: float = 0.0

    def timed(self, part: str, call: Callable[..., T], *given: Any) -> T:
        """Call it, on the clock of a part."""
        started = time.perf_counter()
        found = call(*given)
        setattr(self, part, getattr(self, part) + time.perf_counter() - started)
        return found


def write(
    model: Model,
    engine: TextEngine[Any],
    prompt: Sequence[int],
    known: Known,
    *,
    most_ids: int,
    temperature: float,
    seed: int,
) -> Written:
    """One text of the engine after the prompt, which the model should have read already.

    Raises what the model raises, PromptError and LogitsError.
    """
    found, rng, started = Written(), np.random.default_rng(seed), time.perf_counter()
    state = found.timed("masks", engine.initial, prompt)
    while True:
        before, room = [*prompt, *found.ids], most_ids - len(found.ids)
        run = found.timed("masks", known, engine, state, before, room)
        if run.ids:
            found.runs.append(len(run.ids))
            found.ids += run.ids
            rng.random(len(run.ids))
            state = run.state
        bits = found.timed("masks", engine.mask, state)
        if len(found.ids) == most_ids or _over(engine, found.ids) or not bits.any():
            break
        logits = found.timed("model", model, [*prompt, *found.ids])
        found.passes += 1
        law = log_probabilities(logits, engine.n_ids, temperature)
        allowed = np.unpackbits(bits.view(np.uint8), count=engine.n_ids, bitorder="little")
        token, _ = draw(law, allowed.view(bool), rng.random(), greedy=not temperature)
        found.ids.append(token)
        if len(found.ids) == most_ids or _over(engine, found.ids):
            break
        state = found.timed("masks", engine.step, state, token)
    found.seconds = time.perf_counter() - started
    return found


def _over(engine: TextEngine[Any], ids: Sequence[int]) -> bool:
    return bool(ids) and ids[-1] in engine.eos_ids
