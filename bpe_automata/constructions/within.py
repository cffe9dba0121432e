"""A limit on ids: texts that are complete within so many.

    { w : the inner engine accepts w, |w| <= max_tokens },      end-of-sequence not counted

A state is (inner state, remaining ids). After every id of a mask the remaining ids suffice to
complete the text, and no mask is empty before the text is complete. Near the end a mask may lack
ids: it has those after which a short completion is found (see `endings`).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Generic, TypeVar, cast

import numpy as np

from bpe_automata._arguments import at_least
from bpe_automata._budget import check
from bpe_automata._kernels.bits import contained, members, packed
from bpe_automata._sharing import Immutable
from bpe_automata.canonical.arrays import NO_TOKEN
from bpe_automata.canonical.pairs import may_follow_any
from bpe_automata.constructions.cartesian_merge import CartesianMerge, ProductState
from bpe_automata.constructions.endings import Endings, Key, Leads
from bpe_automata.constructions.engine import Engine, TextEngine
from bpe_automata.constructions.lift import Lift
from bpe_automata.errors import BudgetExceededError, BudgetTooSmallError, UnsupportedFeatureError

State = TypeVar("State", bound=Hashable)
_ATTRIBUTE = "_endings_of_bpe_automata"
_MOST_STATES = 1_000_000


class Within(Immutable, Generic[State]):
    """A `TextEngine` that limits the ids of another one."""

    def __init__(self, engine: TextEngine[State], max_tokens: int) -> None:
        """If `engine` is itself a `Within`, the smaller limit counts. Raises ArgumentError, and
        UnsupportedFeatureError for an engine that is not of this package."""
        most = at_least(0, max_tokens, "max_tokens")
        if isinstance(engine, Within):
            engine, most = engine.inner, min(most, engine.max_tokens)
        self.inner, self.max_tokens, self.endings = engine, most, endings_of(engine)
        self.tokenizer, self.dfa, self.n_ids = engine.tokenizer, engine.dfa, engine.n_ids
        self.eos_ids, self.budget = engine.eos_ids, self.endings.budget

    def __reduce__(self) -> tuple[object, ...]:
        return Within, (self.inner, self.max_tokens)

    def initial(self, prefix: Sequence[int] = ()) -> tuple[State, int]:
        """Raises what the inner engine raises, and BudgetTooSmallError."""
        state = self.inner.initial(prefix)
        needed = self.endings.needed(state, self.max_tokens)
        if needed > self.max_tokens:
            raise BudgetTooSmallError(needed, self.max_tokens)
        return state, self.max_tokens

    def mask(self, state: tuple[State, int]) -> np.ndarray:
        return self.endings.mask(*state)

    def step(self, state: tuple[State, int], token: int) -> tuple[State, int]:
        return self.inner.step(state[0], token), state[1] - 1

    def steps(self, state: tuple[State, int], tokens: np.ndarray) -> list[tuple[State, int]]:
        remaining = state[1] - 1
        return [(after, remaining) for after in self.inner.steps(state[0], tokens)]

    def accepting(self, state: tuple[State, int]) -> bool:
        return self.inner.accepting(state[0])

    def dfa_state(self, state: tuple[State, int]) -> int:
        return self.inner.dfa_state(state[0])


class CanonicalEndings(Endings):
    """For the canonical engine, where the last id matters: some ids may follow it only with a
    boundary before them."""

    engine: CartesianMerge

    def __init__(self, engine: CartesianMerge) -> None:
        super().__init__(engine)
        self.lock = engine.product.lock
        self._canonical, derivation = engine.canonical, engine.canonical.derivation
        self._pairs = engine.product.tables.pairs
        self._reachable = packed(np.flatnonzero(derivation.reachable), engine.n_ids)

    @property
    def detour(self) -> int:  # type: ignore[override]
        return self.engine.product.detour

    def split(self, state: ProductState) -> tuple[Key, int]:
        return state[:3], state.last

    def ends(self, key: Key) -> bool:
        return self.engine.accepting(ProductState(*key, NO_TOKEN))

    def leads(self, key: Key) -> Leads:
        bits = self.engine.product.sides(*key)
        ids = members(bits[0] | bits[1])
        reached = self.engine.product.after_each(*key, ids)
        states = reached[:, 0] << 40 | reached[:, 1] << 24
        classes = self._canonical.actions.of_token[ids]
        after = np.empty((2, len(ids)), np.int64)
        for k, sets in enumerate(self._canonical.sets.successors(key[2])):
            after[k] = np.where(contained(bits[k], ids), states | sets[classes], -1)
        for k in np.flatnonzero(np.isin(ids, list(self.engine.tokenizer.added_ids))).tolist():
            q, text, H, _ = self.engine.step(ProductState(*key, NO_TOKEN), int(ids[k]))
            after[:, k] = q << 40 | text << 24 | H, -1
        return self.grouped(ids, after)

    def read(self, key: Key, token: int, q: int) -> list[tuple[Key, int, bool]]:
        text = self._canonical.text_after(key[1], key[2], token)
        if text < 0 or not self._canonical.usable[token]:
            return []
        number = self._canonical.actions.of_token[token]
        free, bound = (int(side[number]) for side in self._canonical.sets.successors(key[2]))
        sides = ((free, True), (bound, False))
        return [((q, text, H), token, is_free) for H, is_free in sides if H >= 0]

    def may_follow(self, ids: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        found: np.ndarray = may_follow_any(ids, tokens, self._pairs)
        return found

    def after_last(self, token: int, bits: np.ndarray) -> None:
        self.engine.followers(ProductState(0, 0, 0, token), bits)

    def before(self, token: int) -> np.ndarray:
        bits = self._reachable.copy()
        if self._canonical.derivation.reachable[token]:
            self._canonical.geometry.clear_predecessors(token, bits)
            return bits
        return np.zeros_like(bits)


def endings_of(engine: Engine[Any]) -> Endings:
    """The endings of an engine, cached as its attribute. Raises UnsupportedFeatureError."""
    if not isinstance(engine, CartesianMerge | Lift):
        why = "a budget of ids needs one that `constrain` made"
        raise UnsupportedFeatureError(f"the engine {type(engine).__name__}", why)
    if _ATTRIBUTE not in engine.__dict__:
        made = CanonicalEndings(engine) if isinstance(engine, CartesianMerge) else Endings(engine)
        engine.__dict__.setdefault(_ATTRIBUTE, made)
    return cast(Endings, engine.__dict__[_ATTRIBUTE])


def min_tokens(engine: Engine[Any], state: Hashable) -> int:
    """The least number of ids from a relevant state to an accepting one, end-of-sequence not
    counted. The limit of a `Within` does not change it. A breadth-first search finds it, which goes
    no farther than a tokenized completion (see `endings`).

    Raises BudgetExceededError if the search is too long, and for an engine that is not of this
    package if it is too large."""
    if isinstance(engine, Within):
        return min_tokens(engine.inner, cast("tuple[Hashable, int]", state)[0])
    if isinstance(engine, CartesianMerge | Lift):
        return endings_of(engine).least(state)
    far, waiting = {state: 0}, [state]
    for here in waiting:  # grows
        check()
        if engine.accepting(here):
            return far[here]
        for after in engine.steps(here, members(engine.mask(here))):
            if after not in far:
                far[after] = far[here] + 1
                waiting.append(after)
        if len(far) > _MOST_STATES:
            break
    why = "the engine is too large to be searched for its ends"
    raise BudgetExceededError("states", _MOST_STATES, why)
