"""The ways home of the two engines: what `endings` asks of `CartesianMerge` and of `Lift`."""

from __future__ import annotations

import numpy as np

from bpe_automata._constructions.cartesian_merge import CartesianMerge, ProductState
from bpe_automata._constructions.endings import NEVER, Endings, Leads, Way
from bpe_automata._constructions.lift import Lift
from bpe_automata._core.endings import may_come, may_follow_any, targets
from bpe_automata._core.sets import NONE
from bpe_automata._core.ways_home import nearest_character, put_all, spellings
from bpe_automata._kernels.bits import members
from bpe_automata._sharing import BoundedMemo, cached

_MOST_SPELLED = 1 << 22  # slots of the table of `spellings`


class CanonicalEndings(Endings[ProductState, tuple[int, int, int]]):
    """Those of `CartesianMerge`. A key is (state, text, hypotheses)."""

    engine: CartesianMerge

    def __init__(self, engine: CartesianMerge) -> None:
        super().__init__(engine)
        self.product, self.canonical = engine.product, engine.canonical
        self.lock = self.product.lock
        self._behind: BoundedMemo[tuple[int, int, int], tuple[int, int]] = BoundedMemo(300)
        self._table = self._table_for(1 << 12)

    @property
    def detour(self) -> int:  # type: ignore[override]
        return self.product.detour

    def key(self, state: ProductState) -> tuple[int, int, int]:
        return state[:3]

    def last(self, state: ProductState) -> int:
        return state.last

    def byte_state(self, key: tuple[int, int, int]) -> int:
        return key[0]

    def ends(self, key: tuple[int, int, int]) -> bool:
        return self.engine.accepting(ProductState(*key, -1))

    def most(self, key: tuple[int, int, int]) -> int:
        return 0 if self.ends(key) else self._behind_boundary(key)[1]

    def _behind_boundary(self, key: tuple[int, int, int]) -> tuple[int, int]:
        """A byte that may come with a boundary before it, such that every text may come behind it,
        and the bytes home, it included; or (-1, NEVER)."""
        found = self._behind.get(key)
        if found is None:
            byte, n = int(self.product.ask(nearest_character, *key)), NEVER
            if byte >= 0:
                n = min(NEVER, 1 + self.bytes_home(self.product.after(key[0], bytes([byte]))))
            found = byte, n
            self._behind.put(key, found)
        return found

    def find_ways(self, key: tuple[int, int, int]) -> list[Way]:
        if self.ends(key):
            return []
        q, a, H = key
        byte, most = self._behind_boundary(key)
        ways = [(-1, self.bytes_home(q)), (byte, most if byte >= 0 else NEVER)]
        if not self.product.tables.harmless[a]:  # it may have to begin with a space
            after = self.product.after(q, b" ")
            ways.append((0x20, 1 + self.bytes_home(after) if after else NEVER))
        found = set[Way]()
        for byte, n in ways:
            if n < NEVER:
                found.update(self._spelled(q, byte, a, H, n))
        return sorted(found)

    def _spelled(self, q: int, begin: int, a: int, H: int, n: int) -> list[Way]:
        while True:
            given = self._home, self._table, self.product.tables.by_id, n
            rows = self.product.ask(spellings, q, begin, a, H, *given)
            ones, twos, values, count = self._table
            if 2 * count[0] < len(ones):
                return [Way(ids, token, free == 1) for ids, token, free in rows.tolist()]
            held = ones >= 0
            self._table = self._table_for(4 * len(ones))
            if 4 * len(ones) <= _MOST_SPELLED:
                put_all(ones[held], twos[held], values[held], self._table)

    def _table_for(self, slots: int) -> tuple[np.ndarray, ...]:
        """Room for what `spellings` finds; it is forgotten when it is too much."""
        slots = slots if slots <= _MOST_SPELLED else 1 << 12
        none = np.full(slots, -1, np.int64)
        return none, none.copy(), np.zeros(slots, np.int32), np.zeros(1, np.int64)

    def find_leads(self, key: tuple[int, int, int]) -> Leads:
        row = self.product.row(*key)
        live = np.array([self._packed(ids) for ids in (row.free, row.bound)])
        if row.base.shape[1]:
            live |= row.base
        rows, numbers = self.product.ask(targets, *key, live)
        ids, free, bound = rows.T.astype(np.int64)
        keys = list(zip((numbers >> 40).tolist(), (numbers >> 24 & 0xFFFF).tolist(), strict=True))
        sets = (numbers & 0xFFFFFF).tolist()
        found = [(q, a, H) for (q, a), H in zip(keys, sets, strict=True)]
        added = [int(t) for t in row.free if self.canonical.is_added(int(t))]
        for token in added:
            found.append(self.engine.step(ProductState(*key, -1), token)[:3])
        more = np.arange(len(found) - len(added), len(found))
        ids, free = np.append(ids, np.array(added, np.int64)), np.append(free, more)
        bound = np.append(bound, np.full(len(added), -1))
        least = self.least_of(np.array([q for q, _, _ in found], np.int64))
        ended = np.array([self.ends(one) for one in found], np.bool_)
        return Leads(ids, free, bound, found, np.where(ended, 0, least))

    def after_last(self, state: ProductState) -> np.ndarray:
        return self.engine.followers(state, np.full(self._n_words, -1, np.int32))

    def follow(self, ids: np.ndarray, token: int) -> np.ndarray:
        found: np.ndarray = may_come(ids, token, self.product.tables.pairs)
        return found

    def follow_any(self, ids: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        found: np.ndarray = may_follow_any(ids, tokens, self.product.tables.pairs)
        return found


class LiftEndings(Endings[int, int]):
    """Those of `Lift`. A key is a state."""

    engine: Lift

    @cached
    def _ids(self) -> dict[bytes, int]:
        """An id of text for each spelling."""
        spelled = enumerate(self.engine.tokenizer.spellings)
        unread = self.engine.tokenizer.added_ids.union(self.engine.eos_ids)
        return {data: token for token, data in spelled if token not in unread}

    def key(self, state: int) -> int:
        return state

    def last(self, state: int) -> int:
        return NONE

    def byte_state(self, key: int) -> int:
        return key

    def ends(self, key: int) -> bool:
        return bool(self._accepting[key])

    def find_ways(self, key: int) -> list[Way]:
        n, path, data = self.home(key)
        text, found = data[: max(n, 0)].tobytes(), list[Way]()
        fewest = [NEVER] * n + [0]
        for at in range(n - 1, -1, -1):  # from the end, for all states on the way
            known = self._ways.get(int(path[at]))
            if known is None:
                known = found = []
                for end in range(at + 1, min(n, at + self._longest) + 1):
                    token = self._ids.get(text[at:end], -1)
                    if token >= 0 and fewest[end] + 1 < fewest[at]:
                        fewest[at], found[:] = fewest[end] + 1, [Way(fewest[end] + 1, token, True)]
                self._ways.put(int(path[at]), found)
            fewest[at], found = known[0].ids if known else NEVER, known
        return found

    def find_leads(self, key: int) -> Leads:
        ids = members(self.engine.mask(key))
        ids = ids[~np.isin(ids, self._eos)]
        after = np.array(self.engine.steps(key, ids), np.int64)
        keys, free = np.unique(after, return_inverse=True)
        least = np.where(self._accepting[keys], 0, self.least_of(keys))
        return Leads(ids, free.reshape(-1), np.full(len(ids), -1), keys.tolist(), least)
