"""The interfaces through which decoding uses the constructions."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Protocol, TypeVar, runtime_checkable

import numpy as np

from bpe_automata.automata.linked import ByteAutomaton
from bpe_automata.tokenizer.tokenizer import Tokenizer

State = TypeVar("State", bound=Hashable)


class Engine(Protocol[State]):
    """A token automaton whose states are made as they are visited. All are relevant: from each, an
    accepting one can be reached. It does not say what its ids spell; a `TextEngine` does."""

    @property
    def n_ids(self) -> int:
        """One more than the largest id."""

    @property
    def eos_ids(self) -> tuple[int, ...]:
        """End-of-sequence ids: never text, allowed exactly in accepting states."""

    def initial(self, prefix: Sequence[int] = ()) -> State:
        """The state after a prompt, before any text of the constraint. Raises PromptError,
        EmptyLanguageError."""

    def mask(self, state: State) -> np.ndarray:
        """The ids that can be read, end-of-sequence included: int32 [ceil(n_ids / 32)], bit i % 32
        of word i // 32 for id i. Read-only."""

    def step(self, state: State, token: int) -> State:
        """The state after an id of the mask that is not end-of-sequence."""

    def steps(self, state: State, tokens: np.ndarray) -> list[State]:
        """`step` of each of many ids of the mask, int64, none of them end-of-sequence."""

    def accepting(self, state: State) -> bool:
        """Is the text complete here?"""


@runtime_checkable
class TextEngine(Engine[State], Protocol[State]):
    """An engine that says what its ids spell: one of a tokenizer and a byte DFA."""

    tokenizer: Tokenizer

    @property
    def dfa(self) -> ByteAutomaton:
        """The bytes that ids may spell, with the prefix that the tokenizer puts before a text."""

    def dfa_state(self, state: State) -> int:
        """The state of `dfa` after what the ids spell."""
