"""The one interface that every construction gives to the decoding floor."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Protocol, TypeVar

import numpy as np

from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.tokenizer import Tokenizer

State = TypeVar("State", bound=Hashable)


class Engine(Protocol[State]):
    """A token automaton whose states are visited lazily. Only relevant states exist: from each,
    an accepting one can be reached."""

    tokenizer: Tokenizer
    dfa: ByteDFA
    """The bytes that ids may spell, with the prefix that the tokenizer puts before a text."""

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

    def dfa_state(self, state: State) -> int:
        """Where in `dfa` the state is."""
