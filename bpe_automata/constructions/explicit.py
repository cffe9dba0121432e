"""The whole automaton of an engine, when it is small enough to write down."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from bpe_automata.constructions.engine import Engine
from bpe_automata.errors import BudgetExceededError
from bpe_automata.kernels.bits import members


@dataclass(frozen=True)
class Explicit:
    """states[0] is the initial one; edges: (source, id, target), numbers of states, end-of-sequence
    left out; accepting: for each state. Every state is relevant."""

    states: tuple[Hashable, ...]
    edges: tuple[tuple[int, int, int], ...]
    accepting: tuple[bool, ...]


def explore(engine: Engine[Any], state: Hashable, max_edges: int = 1_000_000) -> Explicit:
    """Every state within reach of `state`. Raises BudgetExceededError over `max_edges`."""
    numbers = {state: 0}
    states = [state]
    edges: list[tuple[int, int, int]] = []
    for source, here in enumerate(states):  # grows while we go
        for token in members(engine.mask(here)).tolist():
            if token in engine.eos_ids:
                continue
            after = engine.step(here, token)
            if after not in numbers:
                numbers[after] = len(states)
                states.append(after)
            edges.append((source, token, numbers[after]))
        if len(edges) > max_edges:
            raise BudgetExceededError("edges", max_edges, "the automaton is too large to list")
    return Explicit(tuple(states), tuple(edges), tuple(engine.accepting(s) for s in states))
