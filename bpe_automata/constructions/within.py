"""A budget of ids: what can be complete in time.

    { w : the inner engine accepts w, |w| <= max_tokens },      end-of-sequence not counted

A state is (inner state, ids left). Every id of a mask can be followed by a complete text within the
ids that are left after it, and no other id is in it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Generic, TypeVar, cast

import numpy as np

from bpe_automata.arguments import at_least
from bpe_automata.budget import Budget
from bpe_automata.constructions.engine import Engine, TextEngine, travelling
from bpe_automata.constructions.horizon import GraphHorizon, Horizon
from bpe_automata.constructions.horizon_plain import EngineReader
from bpe_automata.errors import BudgetTooSmallError
from bpe_automata.sharing import Immutable

State = TypeVar("State", bound=Hashable)
_BESIDE = "_horizon_of_bpe_automata"


class Within(Immutable, Generic[State]):
    """An `Engine` around another one."""

    def __init__(self, engine: Engine[State], max_tokens: int) -> None:
        """Of an engine that has a budget already the smaller one counts. Raises ArgumentError."""
        budget = at_least(0, max_tokens, "max_tokens")
        if isinstance(engine, Within):
            engine, budget = engine.inner, min(budget, engine.max_tokens)
        self.inner, self.max_tokens = engine, budget
        self.inner_horizon: Horizon[State] = horizon_of(engine)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (travelling(self.inner), self.max_tokens)

    @property
    def budget(self) -> Budget | None:
        """Of each call, that of the inner engine."""
        return getattr(self.inner, "budget", None)

    @property
    def n_ids(self) -> int:
        return self.inner.n_ids

    @property
    def eos_ids(self) -> tuple[int, ...]:
        return self.inner.eos_ids

    def initial(self, prefix: Sequence[int] = ()) -> tuple[State, int]:
        """Raises what the inner engine raises, and BudgetTooSmallError."""
        state = self.inner.initial(prefix)
        if not self.inner_horizon.reaches(state, self.max_tokens):
            raise BudgetTooSmallError(self.inner_horizon.least(state), self.max_tokens)
        return state, self.max_tokens

    def mask(self, state: tuple[State, int]) -> np.ndarray:
        return self.inner_horizon.mask(*state)

    def step(self, state: tuple[State, int], token: int) -> tuple[State, int]:
        return self.inner.step(state[0], token), state[1] - 1

    def steps(self, state: tuple[State, int], tokens: np.ndarray) -> list[tuple[State, int]]:
        left = state[1] - 1
        return [(after, left) for after in self.inner.steps(state[0], tokens)]

    def accepting(self, state: tuple[State, int]) -> bool:
        return self.inner.accepting(state[0])


class TextWithin(Within[State]):
    """The same around an engine that knows what its ids spell; a `TextEngine`."""

    inner: TextEngine[State]

    def __init__(self, engine: TextEngine[State], max_tokens: int) -> None:
        super().__init__(engine, max_tokens)
        self.tokenizer, self.dfa = engine.tokenizer, engine.dfa

    def dfa_state(self, state: tuple[State, int]) -> int:
        return self.inner.dfa_state(state[0])


def min_tokens(engine: Engine[Any], state: Hashable) -> int:
    """Ids from a relevant state to the nearest accepting one, end-of-sequence not counted. A budget
    plays no part: what is within it is no farther for it.

    Raises BudgetExceededError for an engine that is not of this package and is too large."""
    if isinstance(engine, Within):
        return min_tokens(engine.inner, cast("tuple[Hashable, int]", state)[0])
    return horizon_of(engine).least(state)


def horizon_of(engine: Engine[Any]) -> Horizon[Any]:
    """What is known of how far an engine's states are from acceptance. The engines of this package
    have one of their own; that of any other is kept beside it, or, where it has no room for
    attributes, found anew."""
    own = getattr(engine, "horizon", None)
    if isinstance(own, Horizon):
        return own
    beside = getattr(engine, "__dict__", {})
    if _BESIDE not in beside:
        budget = getattr(engine, "budget", None)
        beside.setdefault(_BESIDE, GraphHorizon(EngineReader(engine), budget=budget))
    found: Horizon[Any] = beside[_BESIDE]
    return found
