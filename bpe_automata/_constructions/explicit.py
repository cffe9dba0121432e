"""Writes down the whole automaton of an engine, where it is small enough.

The way back, an engine that runs an automaton, is `_decoding.token_table.Listed`.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from bpe_automata._budget import check
from bpe_automata._constructions.engine import TextEngine
from bpe_automata._kernels.bits import members
from bpe_automata._token_automata.automaton import TokenAutomaton
from bpe_automata.errors import BudgetExceededError

State = TypeVar("State", bound=Hashable)
_ADVICE = "the automaton is too large to list; raise max_edges, or ask the engine step by step"


@dataclass(frozen=True)
class Explored(Generic[State]):
    """states: the engine's, in the order of discovery; state i of `automaton` is states[i]."""

    automaton: TokenAutomaton
    states: tuple[State, ...]


def explore(engine: TextEngine[Any], state: Hashable, max_edges: int = 1_000_000) -> TokenAutomaton:
    """{ ids : the engine accepts after them, from `state` }, end-of-sequence left out.

    States are numbered in the order of their discovery, breadth-first by id; each of them is
    relevant. The alphabet is all ids of the tokenizer that are not end-of-sequence. Raises
    BudgetExceededError over `max_edges`.
    """
    return explored(engine, state, max_edges).automaton


def explored(
    engine: TextEngine[State], state: State, max_edges: int = 1_000_000
) -> Explored[State]:
    """`explore`, with the engine's own states. Raises BudgetExceededError over `max_edges`."""
    numbers = _Numbers[State]()
    eos = np.array(engine.eos_ids, dtype=np.int64)
    rows: list[tuple[np.ndarray, np.ndarray]] = []
    n_edges = 0
    numbers[state]  # number 0
    for here in numbers.states:  # grows while we go
        check()
        tokens = members(engine.mask(here))
        tokens = tokens[~np.isin(tokens, eos)] if len(eos) and engine.accepting(here) else tokens
        n_edges += len(tokens)
        if n_edges > max_edges:
            raise BudgetExceededError("edges", max_edges, _ADVICE)
        targets = np.array([numbers[after] for after in engine.steps(here, tokens)], dtype=np.int32)
        rows.append((tokens.astype(np.int32), targets))
    accepting = np.array([engine.accepting(here) for here in numbers.states])
    return Explored(_automaton(engine, rows, accepting, eos), tuple(numbers.states))


class _Numbers(dict[State, int]):
    """Numbers states as they are first asked for."""

    def __init__(self) -> None:
        self.states: list[State] = []

    def __missing__(self, state: State) -> int:
        self.states.append(state)
        return self.setdefault(state, len(self.states) - 1)


def _automaton(
    engine: TextEngine[Any],
    rows: list[tuple[np.ndarray, np.ndarray]],
    accepting: np.ndarray,
    eos: np.ndarray,
) -> TokenAutomaton:
    offsets = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum([len(symbols) for symbols, _ in rows], out=offsets[1:])
    symbols, targets = (np.concatenate(column) for column in zip(*rows, strict=True))
    alphabet = np.setdiff1d(np.arange(engine.n_ids), eos)
    spellings = engine.tokenizer.spellings
    return TokenAutomaton(0, accepting, offsets, symbols, targets, alphabet, spellings)
