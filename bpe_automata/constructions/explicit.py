"""The explicit automaton of an engine, if it is small enough.

Conversely, `decoding.token_table.Listed` is an engine that runs an explicit automaton.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from bpe_automata._budget import check
from bpe_automata._kernels.bits import members
from bpe_automata.constructions.engine import TextEngine
from bpe_automata.errors import BudgetExceededError
from bpe_automata.token_automata.automaton import TokenAutomaton

State = TypeVar("State", bound=Hashable)
_ADVICE = "the automaton is too large to list; raise max_edges, or ask the engine step by step"


@dataclass(frozen=True)
class Explored(Generic[State]):
    """states: those of the engine, in order of discovery; state i of `automaton` is states[i]."""

    automaton: TokenAutomaton
    states: tuple[State, ...]


def explore(engine: TextEngine[Any], state: Hashable, max_edges: int = 1_000_000) -> TokenAutomaton:
    """{ ids : the engine accepts after them, from `state` }, without end-of-sequence.

    States are numbered in order of discovery, breadth-first by id; all are relevant. The alphabet
    is all ids of the tokenizer that are not end-of-sequence. Raises BudgetExceededError over
    `max_edges`.
    """
    return explored(engine, state, max_edges).automaton


def explored(
    engine: TextEngine[State], state: State, max_edges: int = 1_000_000
) -> Explored[State]:
    """`explore`, with the engine's own states. Raises BudgetExceededError over `max_edges`."""
    numbers, states, eos = {state: 0}, [state], np.array(engine.eos_ids, dtype=np.int64)
    symbols, targets, accepting, offsets = list[np.ndarray](), list[int](), list[bool](), [0]
    for here in states:  # grows while we go
        check()
        tokens = members(engine.mask(here))
        accepting.append(engine.accepting(here))
        if accepting[-1]:
            tokens = tokens[~np.isin(tokens, eos)]
        offsets.append(offsets[-1] + len(tokens))
        if offsets[-1] > max_edges:
            raise BudgetExceededError("edges", max_edges, _ADVICE)
        symbols.append(tokens)
        for after in engine.steps(here, tokens):
            targets.append(numbers.setdefault(after, len(states)))
            states += [after] * (targets[-1] == len(states))
    arrays = np.array(accepting), np.array(offsets), np.concatenate(symbols), np.array(targets, int)
    alphabet = np.setdiff1d(np.arange(engine.n_ids), eos)
    found = TokenAutomaton(0, *arrays, alphabet, engine.tokenizer.spellings)
    return Explored(found, tuple(states))
