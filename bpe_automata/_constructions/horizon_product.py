"""The horizon of CartesianMerge.

A configuration is (state pair, hypothesis set), and whether anything can be bound to what was read
last: after an added token nothing can, nor at the beginning of a text. What ids lead to alike is a
group: those of one token class that lead to one state pair.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bpe_automata._automata.linked import explicit
from bpe_automata._constructions.canonical import NO_TOKEN
from bpe_automata._constructions.cartesian_merge import CartesianMerge, ProductState
from bpe_automata._constructions.horizon_graph import NEVER, Facts, Spread
from bpe_automata._constructions.horizon_lift import LiftHorizon
from bpe_automata._core.sets import BEGINNING, NONE
from bpe_automata._kernels.bits import set_bits
from bpe_automata._kernels.distance import longest_ways
from bpe_automata._kernels.edges import Vocabulary, members_of
from bpe_automata._kernels.geometry import all_positions, narrow, outside, placed, which_follow
from bpe_automata._kernels.product import ALIVE, DEAD
from bpe_automata._kernels.references import packed
from bpe_automata._kernels.watch import watched
from bpe_automata._sharing import BoundedMemo, cached

_UNBOUND = 1
_FEW_IDS = 64
_ADDED = 0  # the class of added tokens, which have none
_NO_IDS = np.empty(0, dtype=np.int64)


class _Groups(NamedTuple):
    """Groups of one state pair: class and state pair after, int64; added tokens come last."""

    token_classes: np.ndarray
    state_pairs: np.ndarray
    n_added: int = 0


class _Ids(NamedTuple):
    """start: int32 [groups + 1] into ids, int32."""

    start: np.ndarray
    ids: np.ndarray


_Opened = tuple[int, int, int]  # state pair, UTF-8 row, ids left


class ProductReader:
    """A `Reader` of canonical states. A key is state pair << 32 | set << 1 | can nothing be
    bound?"""

    def __init__(self, engine: CartesianMerge) -> None:
        self._engine, self._tables, self._relevance = engine, engine.tables, engine.relevance
        self._canonical = engine.canonical
        self._eos = np.array([i for i in engine.eos_ids if 0 <= i < engine.n_ids], dtype=np.int64)
        self._groups: dict[_Opened, _Groups] = {}
        self._ids: BoundedMemo[_Opened, _Ids] = BoundedMemo(4 * engine.n_ids)
        self._few = engine.n_ids // 64
        self._few_ids: BoundedMemo[_Opened, _Ids] = BoundedMemo(4 * self._few)

    @property
    def _n_positions(self) -> int:
        return len(self._tables.forbidden_sets.before.order)

    @cached
    def _lift(self) -> LiftHorizon:
        """That of all tokenizations, which take no more ids than the tokenizer's own."""
        return LiftHorizon(self._engine.lift())

    @cached
    def _near(self) -> Vocabulary:
        """With what the lift says of how near acceptance is, and will say."""
        towards = self._lift.towards_of(self._canonical.trie, self._canonical.nodes.token_class)
        return self._tables.vocabulary._replace(towards=towards)

    # ------------------------------------------------------------ states

    def key(self, state: ProductState) -> int:
        return _key(state.state_pair, state.hypotheses)

    def before(self, state: ProductState) -> tuple[int, int | None]:
        last = state.last
        if last == NO_TOKEN or not self._canonical.derivation.reachable[last]:
            return self.key(state) | _UNBOUND, None
        return self.key(state), last

    def at_most(self, key: int) -> int:
        state_pairs, numbers = np.array([key >> 32]), np.array([(key & 0xFFFFFFFF) >> 1])
        return int(self._tables.at_most(state_pairs, numbers)[0])

    def bounded(self, key: int, k: int) -> bool:
        state = self._tables.memo.state[key >> 32]
        if (
            explicit(self._engine.dfa, "a shortest way").distance()[state] > k
        ):  # as most are that are large, and bounded
            return False
        return bool(self._longest[state] <= k)

    @cached
    def _longest(self) -> np.ndarray:
        """int32 [n_states], ids, of which each spells a byte at least."""
        dfa, prefixed = self._engine.dfa, self._engine.prefixed
        own = np.arange(dfa.n_states)
        silent = (np.where(s == own, 0, s) for s in (prefixed.added_from, prefixed.after_added))
        steps = [dfa.steps.trans, *(s[:, None].astype(np.int32) for s in silent if s.any())]
        return watched(longest_ways, np.concatenate(steps, axis=1))

    def plain(self, state: ProductState) -> np.ndarray:
        return self._engine.mask(state)

    def mask(self, state: ProductState, free: np.ndarray, bound: np.ndarray) -> np.ndarray:
        bits = np.zeros_like(free)
        _, last = self.before(state)
        if last is not None:
            bits = bound.copy()
            self._canonical.geometry.clear_followers(last, bits)
        bits |= free
        if self._engine.accepting(state):
            set_bits(bits, self._eos)
        return bits

    # ------------------------------------------------------------ configurations

    def facts(self, keys: np.ndarray) -> Facts:
        state_pairs, numbers = keys >> 32, (keys & 0xFFFFFFFF) >> 1
        memo, text = self._tables.memo, self._canonical.pipeline.text
        states = memo.state[state_pairs]
        lower, hint = self._lift.at_least[states], self._lift.hint[states]
        ends, which = np.unique(numbers, return_inverse=True)
        ending = np.array([self._canonical.sets.ends(int(number)) for number in ends])
        accepts = (lower == 0) & text.ends[memo.text_state[state_pairs]] & ending[which.reshape(-1)]
        lower[(lower == 0) & ~accepts] = 1
        return Facts(lower, np.where(accepts, 0, NEVER), accepts, hint, accepts)

    def look(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        unbound = keys & _UNBOUND == 1
        state_pairs, numbers = keys >> 32, (keys & 0xFFFFFFFF) >> 1
        status = self._tables.statuses(state_pairs, numbers)
        final = self._tables.at_most(state_pairs, numbers)
        whole = (status == ALIVE) | (final < NEVER)
        return (status == DEAD) | (unbound & ~whole), whole, final

    def unsure(self, key: int, k: int) -> list[int]:
        state_pair, number = key >> 32, (key & 0xFFFFFFFF) >> 1
        free, bound = self._relevance.readable(state_pair, number)
        state_pairs, numbers = self._tables.unsure(state_pair, number, (free, bound), k)
        found = state_pairs << 32 | numbers << 1
        if self._canonical.sets.ends(number):
            after = self._tables.added_steps(state_pair)[1]
            after = after[self._tables.at_most(after, np.full_like(after, BEGINNING)) > k]
            found = np.append(found, after << 32 | BEGINNING << 1 | _UNBOUND)
        distinct: list[int] = np.unique(found).tolist()
        return distinct

    def lower(self, keys: np.ndarray, k: int) -> np.ndarray:
        states, which = np.unique(self._tables.memo.state[keys >> 32], return_inverse=True)
        return self._lift.lower(states, k)[which.reshape(-1)]

    def least(self, key: int) -> int:
        return self._lift.least(int(self._tables.memo.state[key >> 32]))

    def near(self, key: int) -> int:
        return int(self._lift.at_most[self._tables.memo.state[key >> 32]])

    def goal(self, key: int) -> np.ndarray | None:
        return self._relevance.dead((key >> 32, (key & 0xFFFFFFFF) >> 1))

    def reached_by(self, key: int, ids: np.ndarray) -> np.ndarray:
        left_at = self._tables.forbidden_sets.left_at
        if key & _UNBOUND or (left_at[ids] < 0).any():  # all last ids are alike
            return all_positions(self._n_positions)
        return placed(ids, left_at, self._n_positions)

    def following(self, ids: np.ndarray, candidates: np.ndarray) -> np.ndarray:
        if len(ids) > _FEW_IDS and np.bitwise_count(candidates).sum() > _FEW_IDS:
            return ids  # to tell them apart costs more than to ask about all
        found = watched(which_follow, ids, candidates, packed(self._tables.forbidden_sets))
        return ids[found]

    def narrow(self, ids: np.ndarray, candidates: np.ndarray) -> int:
        return int(watched(narrow, ids, candidates, packed(self._tables.forbidden_sets)))

    def outside(self, ids: np.ndarray, dead: np.ndarray) -> np.ndarray:
        return outside(ids, dead, self._tables.forbidden_sets.left_at)

    @property
    def n_words(self) -> int:
        return self._canonical.geometry.n_words

    def universe(self, key: int) -> np.ndarray:
        utf8_row = self._canonical.sets.sets[(key & 0xFFFFFFFF) >> 1].utf8_row
        if utf8_row == 0:
            return all_positions(self._n_positions)
        ids = self._tables.ids_ending_in(utf8_row)
        return placed(ids, self._tables.forbidden_sets.left_at, self._n_positions)

    @property
    def partial(self) -> bool:
        return True

    def spread(self, key: int, k: int) -> Spread:
        state_pair, number = key >> 32, (key & 0xFFFFFFFF) >> 1
        sets = self._canonical.sets
        groups = self._groups_at((state_pair, sets.sets[number].utf8_row, k))
        base = groups.state_pairs << 32
        free, bound = (
            np.where(after == NONE, -1, base | (after.astype(np.int64) << 1))
            for after in sets.after(number, groups.token_classes)
        )
        added = groups.n_added
        if added:
            after_added = base[-added:] | BEGINNING << 1 | _UNBOUND
            free[-added:] = after_added if sets.ends(number) else -1
            bound[-added:] = -1
        if key & _UNBOUND:
            bound[:] = -1
        return Spread(free, bound)

    def step(self, key: int, token: int) -> tuple[int, int]:
        canonical, state_pair, number = self._canonical, key >> 32, (key & 0xFFFFFFFF) >> 1
        if canonical.is_added(token):
            return -1, -1
        free, bound = canonical.sets.after(number, canonical.actions.of_token[token : token + 1])
        sides = free[0], NONE if key & _UNBOUND else bound[0]
        if sides == (NONE, NONE):
            return -1, -1
        state_pair = self._tables.state_pair_after(state_pair, number, token)
        if state_pair < 0:
            return -1, -1
        with_boundary, without = (
            -1 if n == NONE else state_pair << 32 | int(n) << 1 for n in sides
        )
        return with_boundary, without

    def members(self, key: int, k: int, groups: np.ndarray) -> np.ndarray:
        at = key >> 32, self._canonical.sets.sets[(key & 0xFFFFFFFF) >> 1].utf8_row, k
        found = self._few_ids.get(at) or self._ids.get(at)
        if found is None:
            found = self._again(at)
            self._put(at, found)
        return members_of(groups, found.start, found.ids)

    def _groups_at(self, at: _Opened) -> _Groups:
        found = self._groups.get(at)
        return self._opened(at) if found is None else found

    def _opened(self, at: _Opened) -> _Groups:
        """What is left out depends on how much is known of the lift by now."""
        state_pair, utf8_row, k = at
        state_pairs, token_classes, start, ids = self._tables.edges(
            state_pair, utf8_row, self._near, k - 1
        )
        more, after = self._tables.added_steps(state_pair) if utf8_row == 0 else (_NO_IDS, _NO_IDS)
        # Each added token is a group of its own.
        groups = _Groups(
            np.append(token_classes, np.full(len(more), _ADDED)),
            np.append(state_pairs, after),
            len(more),
        )
        self._groups[at] = groups
        self._put(at, _listed(start, ids, more))
        return groups

    def _put(self, at: _Opened, found: _Ids) -> None:
        (self._few_ids if len(found.ids) <= self._few else self._ids).put(at, found)

    def _again(self, at: _Opened) -> _Ids:
        """The ids of groups that were forgotten: no two groups of a state pair have one state pair
        after and class, and the edges with nothing left out have all of them, under the same state
        pairs whether it is read in the trie or in a collapsed one."""
        state_pair, utf8_row, _ = at
        before = self._groups_at(at)
        state_pairs, token_classes, start, ids = self._tables.edges(state_pair, utf8_row)
        n = len(before.token_classes) - before.n_added
        have = state_pairs << 32 | token_classes
        wanted = before.state_pairs[:n] << 32 | before.token_classes[:n]
        order = np.argsort(have)
        found = np.minimum(np.searchsorted(have, wanted, sorter=order), len(have) - 1)
        groups = order[found]
        if (have[groups] != wanted).any():
            raise RuntimeError("ids lead to other state_pairs than before")
        ends = np.cumsum(start[groups + 1] - start[groups])
        more = self._tables.added_steps(state_pair)[0] if before.n_added else _NO_IDS
        kept = members_of(groups, start, ids).astype(np.int32)
        return _listed(np.append(0, ends).astype(np.int32), kept, more)


def _listed(start: np.ndarray, ids: np.ndarray, added: np.ndarray) -> _Ids:
    """Those of groups, and then those that are groups of their own."""
    return _Ids(
        np.append(start, len(ids) + 1 + np.arange(len(added), dtype=np.int32)),
        np.append(ids, added.astype(np.int32)),
    )


def _key(state_pair: int, number: int) -> int:
    return state_pair << 32 | number << 1
