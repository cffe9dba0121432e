"""A budget of ids: what can be complete in time.

    { w : the inner engine accepts w, |w| <= max_tokens },      end-of-sequence not counted

A state is (inner state, ids left). Every id of a mask can be followed by a complete text within the
ids that are left after it, and no other id is in it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar, cast

import numpy as np

from bpe_automata._arguments import at_least
from bpe_automata._automata.linked import explicit
from bpe_automata._budget import Budget
from bpe_automata._constructions.cartesian_merge import CartesianMerge
from bpe_automata._constructions.engine import Engine, TextEngine, travelling
from bpe_automata._constructions.horizon import GraphHorizon, Horizon
from bpe_automata._constructions.horizon_graph import NEVER, Facts, Spread
from bpe_automata._constructions.horizon_lift import LiftHorizon
from bpe_automata._constructions.horizon_product import ProductReader
from bpe_automata._constructions.lift import Lift
from bpe_automata._kernels.bits import has, members, set_bits
from bpe_automata._kernels.edges import by_group, members_of
from bpe_automata._sharing import BoundedMemo, Immutable
from bpe_automata.errors import BudgetExceededError, BudgetTooSmallError

State = TypeVar("State", bound=Hashable)
_ATTRIBUTE = "_horizon_of_bpe_automata"


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
        self.tokenizer, self.dfa = engine.tokenizer, explicit(engine.dfa, "`within`")
        super().__init__(engine, max_tokens)

    def dfa_state(self, state: tuple[State, int]) -> int:
        return self.inner.dfa_state(state[0])


def min_tokens(engine: Engine[Any], state: Hashable) -> int:
    """Ids from a relevant state to the nearest accepting one, end-of-sequence not counted. A budget
    plays no part: what is within it is no farther for it.

    Raises BudgetExceededError for an engine that is not of this package and is too large,
    UnsupportedFeatureError for one over a linked automaton."""
    if isinstance(engine, Within):
        return min_tokens(engine.inner, cast("tuple[Hashable, int]", state)[0])
    if hasattr(engine, "dfa"):
        explicit(engine.dfa, "counting the ids to the end of a text")
    return horizon_of(engine).least(state)


def horizon_of(engine: Engine[Any]) -> Horizon[Any]:
    """What is known of how many ids it takes from an engine's states to acceptance. It is kept as
    an attribute of the engine, or, where that has no room for attributes, made anew."""
    attributes = getattr(engine, "__dict__", {})
    if _ATTRIBUTE not in attributes:
        attributes.setdefault(_ATTRIBUTE, _horizon(engine))
    found: Horizon[Any] = attributes[_ATTRIBUTE]
    return found


def _horizon(engine: Engine[Any]) -> Horizon[Any]:
    if isinstance(engine, Lift):
        return LiftHorizon(engine)
    if isinstance(engine, CartesianMerge):
        return GraphHorizon(ProductReader(engine), engine.tables.lock, engine.budget)
    return GraphHorizon(EngineReader(engine), budget=getattr(engine, "budget", None))


# The horizon of an engine that is not of this package: what is searched are its states, step by
# step.

_MOST_EDGES = 50_000_000


class Groups(NamedTuple):
    """keys: int64, where each group leads; start int32 [groups + 1] into ids: its ids."""

    keys: np.ndarray
    start: np.ndarray
    ids: np.ndarray


class EngineReader(Generic[State]):
    """Any engine, asked step by step. Raises BudgetExceededError over many transitions."""

    def __init__(self, engine: Engine[State], max_edges: int = _MOST_EDGES) -> None:
        self._engine = engine
        self._eos = np.array(engine.eos_ids, dtype=np.int64)
        self._groups: BoundedMemo[int, Groups] = BoundedMemo(4 * engine.n_ids)
        self._states: list[State] = []
        self._numbers: dict[State, int] = {}
        self._seen: set[int] = set()
        self._edges, self._most = 0, max_edges

    def key(self, state: State) -> int:
        if state not in self._numbers:
            self._states.append(state)  # first: an interrupt leaves no number without its state
            self._numbers[state] = len(self._states) - 1
        return self._numbers[state]

    def facts(self, keys: np.ndarray) -> Facts:
        accepting = np.array([self._engine.accepting(self._states[key]) for key in keys.tolist()])
        lower = np.where(accepting, 0, 1)
        final = np.where(accepting, 0, NEVER)
        true = np.full(len(keys), True)
        return Facts(lower, final, true, lower, true)

    def groups(self, key: int) -> Groups:
        """Where the ids of a configuration lead."""
        state = self._states[key]
        ids = members(self._engine.mask(state))
        if self._engine.accepting(state):
            ids = ids[~np.isin(ids, self._eos)]
        if key not in self._seen:  # groups that were forgotten are found again
            self._seen.add(key)
            self._edges += len(ids)
        if self._edges > self._most:
            raise BudgetExceededError(
                "transitions", self._most, "the engine is too large to be searched for its ends"
            )
        keys = np.array([self.key(after) for after in self._engine.steps(state, ids)], dtype=int)
        distinct, which = np.unique(keys, return_inverse=True)
        return Groups(distinct, *by_group(which.reshape(-1), ids, len(distinct)))

    @property
    def partial(self) -> bool:
        return False

    def spread(self, key: int, k: int) -> Spread:
        keys = self._kept(key).keys
        return Spread(keys, np.full(len(keys), -1))

    def step(self, key: int, token: int) -> tuple[int, int]:
        state = self._states[key]
        if not has(self._engine.mask(state), token):
            return -1, -1
        return self.key(self._engine.steps(state, np.array([token]))[0]), -1

    def members(self, key: int, k: int, groups: np.ndarray) -> np.ndarray:
        found = self._kept(key)
        return members_of(groups, found.start, found.ids)

    def look(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return np.full(len(keys), False), np.full(len(keys), True), np.full(len(keys), NEVER)

    def unsure(self, key: int, k: int) -> None:
        return None

    def lower(self, keys: np.ndarray, k: int) -> np.ndarray:
        return np.zeros(len(keys), dtype=np.int32)

    def least(self, key: int) -> int:
        return 0

    def near(self, key: int) -> int:
        return NEVER

    def goal(self, key: int) -> np.ndarray | None:
        return None

    def reached_by(self, key: int, ids: np.ndarray) -> np.ndarray:
        return self.universe(key)

    def following(self, ids: np.ndarray, candidates: np.ndarray) -> np.ndarray:
        return ids

    def narrow(self, ids: np.ndarray, candidates: np.ndarray) -> int:
        candidates[:] = False
        return 0

    def outside(self, ids: np.ndarray, dead: np.ndarray) -> np.ndarray:
        return ids[:0] if dead[0] else ids

    @property
    def n_words(self) -> int:
        return (self._engine.n_ids + 31) // 32

    def universe(self, key: int) -> np.ndarray:
        return np.full(1, True)  # all ids or none

    def before(self, state: State) -> tuple[int, int | None]:
        return self.key(state), None

    def at_most(self, key: int) -> int:
        return NEVER

    def bounded(self, key: int, k: int) -> bool:
        return False

    def plain(self, state: State) -> np.ndarray:
        return self._engine.mask(state)

    def mask(self, state: State, free: np.ndarray, bound: np.ndarray) -> np.ndarray:
        bits = free.copy()
        if self._engine.accepting(state):
            set_bits(bits, self._eos)
        return bits

    def _kept(self, key: int) -> Groups:
        found = self._groups.get(key)
        if found is None:
            found = self.groups(key)
            self._groups.put(key, found)
        return found
