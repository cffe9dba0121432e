"""The ways home of the two engines: what `endings` asks of `CartesianMerge` and of `Lift`."""

from __future__ import annotations

import numpy as np

from bpe_automata._constructions.cartesian_merge import CartesianMerge, ProductState
from bpe_automata._constructions.endings import Endings, Key, Leads, remembered
from bpe_automata._constructions.lift import Lift
from bpe_automata._core.canonical import NO_TOKEN
from bpe_automata._core.endings import may_follow_any
from bpe_automata._kernels.bits import contained, members, set_bits
from bpe_automata._sharing import Lock


class CanonicalEndings(Endings[ProductState]):
    """Those of `CartesianMerge`."""

    engine: CartesianMerge

    def __init__(self, engine: CartesianMerge) -> None:
        super().__init__(engine, engine.product.lock)
        self.product, self.canonical = engine.product, engine.canonical
        self._pairs = self.product.tables.pairs
        self._reachable = np.zeros((engine.n_ids + 31) // 32, np.int32)
        set_bits(self._reachable, np.flatnonzero(self.canonical.derivation.reachable))

    @property
    def detour(self) -> int:  # type: ignore[override]
        return self.product.detour

    def split(self, state: ProductState) -> tuple[Key, int]:
        return state[:3], state.last

    def ends(self, key: Key) -> bool:
        return self.engine.accepting(ProductState(*key, NO_TOKEN))

    def read(self, key: Key, token: int, q: int) -> list[tuple[Key, int, bool]]:
        text = self.canonical.text_after(key[1], key[2], token)
        if text < 0 or not self.canonical.usable[token]:
            return []
        number = self.canonical.actions.of_token[token]
        free, bound = (int(side[number]) for side in self.canonical.sets.successors(key[2]))
        sides = ((free, True), (bound, False))
        return [((q, text, H), token, is_free) for H, is_free in sides if H >= 0]

    @remembered
    def leads(self, key: Key) -> Leads:
        bits = self.product.sides(*key)
        ids = members(bits[0] | bits[1])
        reached = self.product.after_each(*key, ids)
        place = reached[:, 0] << 40 | reached[:, 1] << 24
        classes = self.canonical.actions.of_token[ids]
        after = np.empty((2, len(ids)), np.int64)
        for k, sets in enumerate(self.canonical.sets.successors(key[2])):
            after[k] = np.where(contained(bits[k], ids), place | sets[classes], -1)
        for k in np.flatnonzero(np.isin(ids, list(self.engine.tokenizer.added_ids))).tolist():
            q, text, H, _ = self.engine.step(ProductState(*key, NO_TOKEN), int(ids[k]))
            after[:, k] = q << 40 | text << 24 | H, -1
        return self.grouped(ids, after)

    def may_follow(self, ids: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        found: np.ndarray = may_follow_any(ids, tokens, self._pairs)
        return found

    def after_last(self, token: int, bits: np.ndarray) -> None:
        self.engine.followers(ProductState(0, 0, 0, token), bits)

    def before(self, token: int) -> np.ndarray:
        bits = self._reachable.copy()
        if self.canonical.derivation.reachable[token]:
            self.canonical.geometry.clear_predecessors(token, bits)
            return bits
        return np.zeros_like(bits)


class LiftEndings(Endings[int]):
    """Those of `Lift`, where the last id does not matter."""

    engine: Lift

    def __init__(self, engine: Lift) -> None:
        super().__init__(engine, Lock())

    def split(self, state: int) -> tuple[Key, int]:
        return (state, 0, 0), NO_TOKEN

    def ends(self, key: Key) -> bool:
        return bool(self.dfa.accepting[key[0]])

    def read(self, key: Key, token: int, q: int) -> list[tuple[Key, int, bool]]:
        return [] if token in self.engine.eos_ids else [((q, 0, 0), NO_TOKEN, True)]

    @remembered
    def leads(self, key: Key) -> Leads:
        ids = members(self.engine.mask(key[0]))
        ids = ids[~np.isin(ids, self._eos)]
        states = np.array(self.engine.steps(key[0], ids), np.int64)
        return self.grouped(ids, np.array([states << 40, np.full(len(ids), -1)]))
