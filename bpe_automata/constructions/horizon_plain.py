"""The horizon of any engine: a node is a state, and nothing depends on the last id."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from bpe_automata.constructions.engine import Engine
from bpe_automata.constructions.horizon_graph import NEVER, Facts, Spread
from bpe_automata.constructions.memo import BoundedMemo
from bpe_automata.errors import BudgetExceededError
from bpe_automata.kernels.bits import has, members, set_bits
from bpe_automata.kernels.edges import by_group, members_of

State = TypeVar("State", bound=Hashable)
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
        """Where the ids of a node lead."""
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

    def following(self, ids: np.ndarray, suspects: np.ndarray) -> np.ndarray:
        return ids

    def narrow(self, ids: np.ndarray, suspects: np.ndarray) -> int:
        suspects[:] = False
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
