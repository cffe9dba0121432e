"""A budget of ids: what can be complete in time.

    { w : the inner engine accepts w, |w| <= max_tokens },      end-of-sequence not counted

A state is (inner state, ids left). After every id of a mask the text can be completed with the ids
that are left then, and no mask is empty before the text is complete. `CartesianMerge` and `Lift`
may leave ids out: near the end they allow those alone after which a short text home is found (see
`endings`). Engines from elsewhere are searched in full (`ExploredEndings`) and leave none out.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Generic, TypeVar, cast

import numpy as np

from bpe_automata._arguments import at_least
from bpe_automata._budget import Budget, check, spent
from bpe_automata._constructions.cartesian_merge import CartesianMerge
from bpe_automata._constructions.endings import NEVER, Endings
from bpe_automata._constructions.engine import Engine, TextEngine, travelling
from bpe_automata._constructions.lift import Lift
from bpe_automata._constructions.ways_home import CanonicalEndings, LiftEndings
from bpe_automata._kernels.bits import members, packed
from bpe_automata._sharing import Immutable, Lock, locked
from bpe_automata.errors import BudgetExceededError, BudgetTooSmallError

State = TypeVar("State", bound=Hashable)
_ATTRIBUTE = "_endings_of_bpe_automata"
_MOST_EDGES = 50_000_000


class Within(Immutable, Generic[State]):
    """An `Engine` around another one."""

    def __init__(self, engine: Engine[State], max_tokens: int) -> None:
        """Of an engine that has a budget already the smaller one counts. Raises ArgumentError."""
        budget = at_least(0, max_tokens, "max_tokens")
        if isinstance(engine, Within):
            engine, budget = engine.inner, min(budget, engine.max_tokens)
        self.inner, self.max_tokens = engine, budget
        self.endings: AnyEndings = endings_of(engine)

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
        if not self.endings.reaches(state, self.max_tokens):
            raise BudgetTooSmallError(self.endings.needed(state), self.max_tokens)
        return state, self.max_tokens

    def mask(self, state: tuple[State, int]) -> np.ndarray:
        return self.endings.mask(*state)

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
        self.tokenizer, self.dfa = engine.tokenizer, engine.dfa
        super().__init__(engine, max_tokens)

    def dfa_state(self, state: tuple[State, int]) -> int:
        return self.inner.dfa_state(state[0])


def min_tokens(engine: Engine[Any], state: Hashable) -> int:
    """Ids from a relevant state to the nearest accepting one, end-of-sequence not counted. A budget
    plays no part: what is within it is no farther for it. It is searched for, breadth-first, where
    a short text home and the length of the longest token leave a doubt.

    Raises BudgetExceededError where that takes too long, and for an engine that is not of this
    package and is too large."""
    if isinstance(engine, Within):
        return min_tokens(engine.inner, cast("tuple[Hashable, int]", state)[0])
    return endings_of(engine).least(state)


def endings_of(engine: Engine[Any]) -> AnyEndings:
    """It is kept as an attribute of the engine, or, where that has no room for attributes, made
    anew."""
    attributes = getattr(engine, "__dict__", {})  # a throwaway one where the engine has none
    if _ATTRIBUTE not in attributes:
        attributes.setdefault(_ATTRIBUTE, _endings(engine))
    return cast(AnyEndings, attributes[_ATTRIBUTE])


def _endings(engine: Engine[Any]) -> AnyEndings:
    if isinstance(engine, CartesianMerge):
        return CanonicalEndings(engine)
    return LiftEndings(engine) if isinstance(engine, Lift) else ExploredEndings(engine)


class ExploredEndings(Generic[State]):
    """Of an engine that is not of this package: all of its states are visited, step by step, from
    the first that is asked for. Exact."""

    def __init__(self, engine: Engine[State], max_edges: int = _MOST_EDGES) -> None:
        """Over `max_edges` transitions calls raise BudgetExceededError."""
        self._engine, self._most, self.lock = engine, max_edges, Lock()
        self.budget: Budget | None = getattr(engine, "budget", None)
        self._eos = np.array(engine.eos_ids, dtype=np.int64)
        self._far: dict[State, int] = {}

    @spent
    @locked
    def least(self, state: State) -> int:
        if state not in self._far:
            self._explore(state)
        return self._far[state]

    def reaches(self, state: State, k: int) -> bool:
        return self.least(state) <= k

    needed = least

    def mask(self, state: State, k: int) -> np.ndarray:
        """Exactly the ids after which k ids in all are enough."""
        ids, accepts = self._readable(state), self._engine.accepting(state)
        near = [self.least(after) < k for after in self._engine.steps(state, ids)]
        kept = ids[np.array(near, np.bool_)]
        bits = packed([*kept, *self._eos] if accepts else kept, self._engine.n_ids)
        bits.flags.writeable = False
        return bits

    def _readable(self, state: State) -> np.ndarray:
        """The ids that can be read, end-of-sequence left out."""
        ids = members(self._engine.mask(state))
        return ids[~np.isin(ids, self._eos)] if self._engine.accepting(state) else ids

    def _explore(self, state: State) -> None:
        """Find the distances of all states that can be reached, backwards from acceptance."""
        before: dict[State, list[State]] = {state: []}
        n_edges, waiting = 0, [state]
        for here in waiting:  # grows
            check()
            ids = self._readable(here)
            n_edges += len(ids)
            if n_edges > self._most:
                why = "the engine is too large to be searched for its ends"
                raise BudgetExceededError("transitions", self._most, why)
            for after in set(self._engine.steps(here, ids)):
                if after not in before:
                    before[after] = []
                    waiting.append(after)
                before[after].append(here)
        nearest = [one for one in before if self._engine.accepting(one)]
        far = dict.fromkeys(nearest, 0)
        for here in nearest:  # grows
            for one in before[here]:
                if one not in far:
                    far[one] = far[here] + 1
                    nearest.append(one)
        self._far.update({one: far.get(one, NEVER) for one in before})


AnyEndings = Endings[Any] | ExploredEndings[Any]
