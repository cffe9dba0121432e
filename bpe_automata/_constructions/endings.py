"""How soon the texts of an engine can be complete: what `within` needs to know.

    U(state)       ids that are enough: those of a short text home, by the tokenizer's own
                   tokenization (U >= the least number)
    mask(state, k) = { n in the engine's mask : U(state n) < k },   and end-of-sequence

The text home depends on the state of the byte automaton alone, and byte after byte on the state
that is reached: so the text home after its first id is the rest of it, U falls by one with each of
its ids, and a mask that holds one id leads to masks that do, until the text is complete. Where no
text home may follow the last id, some texts are tried that begin with another byte. Bytes bound
ids: as long as many are left, none of this is looked at, and the mask is the engine's own.

What U does not settle is searched for, breadth-first: the least number, and a way where a mask
would be empty. Of such a way every id is remembered, as it may be no text home.
"""

from __future__ import annotations

import string
from abc import ABC, abstractmethod
from collections.abc import Hashable
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from bpe_automata._automata.linked import LinkedDFA
from bpe_automata._automata.parts import PLAIN
from bpe_automata._budget import Budget, check, spent
from bpe_automata._constructions.cartesian_merge import CartesianMerge, ProductState
from bpe_automata._constructions.engine import TextEngine
from bpe_automata._constructions.lift import Lift
from bpe_automata._core.endings import furthest, may_follow_any
from bpe_automata._core.tables import fixed
from bpe_automata._kernels.bits import contained, members, packed, set_bits
from bpe_automata._limits import untouched
from bpe_automata._sharing import BoundedMemo, Lock, locked
from bpe_automata._tokenizer.tokenizer import Tokenizer
from bpe_automata.errors import BudgetExceededError

State = TypeVar("State", bound=Hashable)
Key = tuple[int, int, int]
"""What of a state matters but for the last id: (byte state, text state, hypotheses)."""
NEVER = 1 << 30
_NO_TOKEN = -1
_MOST_OPENED = 2000  # keys of a search
_SLACK = 8  # bytes: of a character, and of the space that a text may begin with
_UNPROVED = 64  # further bytes, where `far` may be a few less than the true number
_TOO_FAR = 1 << 20  # bytes: nothing leads to such states, which are written with others
_AHEAD = 64  # bytes that an id's completion may wander, beside those of the id
_MOST_TRIED = 8  # bytes that are tried besides the first of a text home


class Way(NamedTuple):
    """From a key to acceptance: so many ids, of which the first is `token`. free: is there a
    boundary before it, or must it be one that may follow the last id?"""

    ids: int
    token: int
    free: bool


class Leads(NamedTuple):
    """Where ids lead. ids: int64 [n], all that can be read at a key but end-of-sequence; after:
    int64 [2, n], which of `keys` each leads to, with a boundary before it and without, -1 where it
    may not come so; places: of each key, int64, where it stands in `after`, which is taken as one
    row; least: int64 [keys], ids that it takes from each to acceptance at least."""

    ids: np.ndarray
    after: np.ndarray
    keys: list[Key]
    places: list[np.ndarray]
    least: np.ndarray


class Node(NamedTuple):
    """Of a search: a key, and the last ids with which it is reached from another node, with a
    boundary before them (side 0) or without (side 1)."""

    key: Key
    ids: np.ndarray
    before: Node | None
    side: int


class Endings(ABC, Generic[State]):
    """Of one engine over texts."""

    detour = 0
    """Bytes that the completion of an id of a mask may have beside those of a text home."""

    def __init__(self, engine: TextEngine[State], lock: Lock) -> None:
        self.engine, self.dfa, self.lock = engine, engine.dfa, lock
        self.budget: Budget | None = getattr(engine, "budget", None)
        self._linked = isinstance(self.dfa, LinkedDFA)
        self._far = self.dfa.far if isinstance(self.dfa, LinkedDFA) else self.dfa.distance()
        self._kernel = *fixed(*self.dfa.steps), *fixed(self._far)
        self._eos = np.array(engine.eos_ids, dtype=np.int64)
        self._ids: dict[bytes, list[int]] = engine.tokenizer.derived("ids by bytes", _ids_by_bytes)
        # One more: before an added token the space that a piece begins with may be left out.
        self._longest = 1 + max(map(len, engine.tokenizer.spellings))
        size = 4 * engine.n_ids
        self._leads: BoundedMemo[Key, Leads] = BoundedMemo(3 * size)
        self._sides: BoundedMemo[tuple[Key, int], np.ndarray] = BoundedMemo(size // 16)
        self._ways: BoundedMemo[tuple[Key, int], list[Way]] = BoundedMemo(500)
        self._counts: BoundedMemo[tuple[Key, int], int] = BoundedMemo(200)
        self._homes: BoundedMemo[int, list[tuple[int, int]]] = BoundedMemo(1500)
        self._spelled: BoundedMemo[tuple[int, int], list[tuple[int, int]]] = BoundedMemo(1500)
        self._plain_from: BoundedMemo[Key, int] = BoundedMemo(200)
        self._widest: BoundedMemo[int, int] = BoundedMemo(200)
        (self._seen,) = untouched((self.dfa.n_states, np.int32))
        self._most_far, self._n_looked_at = 0, 1
        # Ways that are no text home, along which masks must go on as they have promised to.
        self._promised: dict[State, tuple[int, int]] = {}

    # What the engines differ in.

    @abstractmethod
    def split(self, state: State) -> tuple[Key, int]:
        """A key, and the last id."""

    @abstractmethod
    def ends(self, key: Key) -> bool:
        """Is the text complete?"""

    @abstractmethod
    def find_leads(self, key: Key) -> Leads: ...

    @abstractmethod
    def read(self, key: Key, token: int, q: int) -> list[tuple[Key, int, bool]]:
        """The keys after an id that leads to the byte state q, each with the last id, and whether
        a boundary comes before it."""

    def may_follow(self, ids: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        """bool: may each of some tokens follow any of some ids without a boundary?"""
        return np.zeros(len(tokens), np.bool_)

    def after_last(self, token: int, bits: np.ndarray) -> None:
        """Clear in packed ids those that may not follow one without a boundary."""

    def before(self, token: int) -> np.ndarray:
        """Packed: the ids that one may follow without a boundary."""
        raise NotImplementedError

    # ---------------------------------------------------------------- what is asked

    def mask(self, state: State, k: int) -> np.ndarray:
        """int32 words, read-only: ids after which the text can be complete with k ids in all, and
        end-of-sequence where the state accepts."""
        if k >= self._plain_from.get(self.split(state)[0], NEVER):
            return self.engine.mask(state)
        return self._new_mask(state, k)

    @spent
    @locked
    def _new_mask(self, state: State, k: int) -> np.ndarray:
        plain = self.engine.mask(state)  # what its ids lead to is written down then
        if self._is_plain(self.split(state)[0], k):
            return plain
        accepts, extra = self.engine.accepting(state), list[int]()
        bits = self._near(state, k)
        ids, token = self._promised.get(state, (NEVER, _NO_TOKEN))
        if ids <= k:
            extra.append(token)
        elif not accepts and not bits.any():
            extra += self._searched(state, k)[:1]
        bits |= packed([*extra, *self._eos] if accepts else extra, self.engine.n_ids)
        bits.flags.writeable = False
        return bits

    @spent
    @locked
    def reaches(self, state: State, k: int) -> bool:
        """Is it found that the text can be complete with k ids?"""
        key = self.split(state)[0]
        if self.ends(key) or self._is_plain(key, k):
            return True
        enough = self.enough(state)
        if enough <= k or self.least_of(key[0]) > k:
            return enough <= k
        try:
            return bool(self._searched(state, k))
        except BudgetExceededError:
            if enough == NEVER:
                raise
            return False

    @spent
    @locked
    def least(self, state: State) -> int:
        """Ids to the nearest accepting state. Raises BudgetExceededError where it takes a long
        search to know them."""
        enough = self.enough(state)
        if enough == 0 or self.least_of(self.split(state)[0][0]) >= enough:
            return enough
        return len(self._searched(state, enough - 1)) or enough

    def needed(self, state: State) -> int:
        """The fewest with which it is found."""
        try:
            return self.least(state)
        except BudgetExceededError:
            return self.enough(state)

    def enough(self, state: State) -> int:
        """U: ids that are enough, NEVER where no text home is known."""
        key, last = self.split(state)
        if self.ends(key):
            return 0
        found = self._promised.get(state, (NEVER, _NO_TOKEN))[0]
        for n in range(1 + _MOST_TRIED):
            ways = self.ways(key, n)
            fits = [way.ids for way in ways if way.free or self._may(last, way.token)]
            if fits:
                return min(found, *fits)
        return found

    def least_of(self, q: int) -> int:
        """Ids that it takes at least from a byte state where the text is not complete, as none has
        more bytes than the longest. (`far` of a linked automaton's first state may be one too
        many.)"""
        return max(1, -(-(int(self._far[q]) - self._linked) // self._longest))

    # ---------------------------------------------------------------- far from the end

    def _is_plain(self, key: Key, k: int) -> bool:
        """Is it known that k ids are enough for all ids of the engine's mask?"""
        enough = 1 + self.detour + _SLACK
        if k < enough:
            return False
        found = k >= enough + self._bytes(self._furthest()) or (
            self.detour <= _AHEAD and k >= enough + self._bytes(self._furthest_near(key[0]))
        )
        if found:
            self._plain_from.put(key, k)
        return found

    def _bytes(self, far: int) -> int:
        return 2 * far + _UNPROVED if self._linked else far

    def _furthest(self) -> int:
        """Bytes to acceptance at most, from all states that are written down."""
        n = self.dfa.n_written if isinstance(self.dfa, LinkedDFA) else self.dfa.n_states
        if n > self._n_looked_at:
            new = self._far[self._n_looked_at : n]
            self._most_far = max(self._most_far, int(new[new < _TOO_FAR].max(initial=0)))
            self._n_looked_at = n
        return self._most_far

    def _furthest_near(self, q: int) -> int:
        """The same, from states that an id can lead to; NEVER: these are too many."""
        found = self._widest.get(q)
        if found is None:
            *steps, far = self._kernel
            ahead = self._longest + _AHEAD + _SLACK
            found = int(furthest(q, ahead, tuple(steps), far, self._seen))
            found = NEVER if found < 0 else found
            self._widest.put(q, found)
        return found

    # ---------------------------------------------------------------- near the end

    def _near(self, state: State, k: int) -> np.ndarray:
        """int32 words, new: the ids of a mask for which U says so."""
        key, last = self.split(state)
        sides = self._sides.get((key, k))
        if sides is None:
            sides = self._find_sides(key, k - 1)
            self._sides.put((key, k), sides)
        bound = sides[1].copy()
        self.after_last(last, bound)
        return sides[0] | bound

    def _find_sides(self, key: Key, k: int) -> np.ndarray:
        """int32 [2, words]: the ids of a key after which k ids are enough, with a boundary before
        them and without."""
        leads = self.leads(key)
        admitted = np.zeros(2 * len(leads.ids), np.bool_)
        for at in np.flatnonzero(leads.least <= k).tolist():
            check()
            places = leads.places[at]
            admitted[places] = self._admitted(leads.keys[at], k, leads.ids[places % len(leads.ids)])
        if np.array_equal(admitted, leads.after.reshape(-1) >= 0):
            self._plain_from.put(key, k + 1)
        sides = np.zeros((2, (self.engine.n_ids + 31) // 32), np.int32)
        for bits, side in zip(sides, admitted.reshape(2, -1), strict=True):
            set_bits(bits, leads.ids[side])
        return sides

    def _admitted(self, key: Key, k: int, ids: np.ndarray) -> np.ndarray:
        """bool: is a way of at most k ids found after each of some last ids?"""
        found = np.zeros(len(ids), np.bool_)
        if self.ends(key):
            return ~found
        for n in range(1 + _MOST_TRIED):
            for way in self.ways(key, n):
                if way.ids <= k and way.free:
                    return np.ones(len(ids), np.bool_)
                if way.ids <= k:
                    found |= contained(self.before(way.token), ids)
            if found.all():
                break
        return found

    def leads(self, key: Key) -> Leads:
        found = self._leads.get(key)
        if found is None:
            found = self.find_leads(key)
            self._leads.put(key, found)
        return found

    def _grouped(self, ids: np.ndarray, after: np.ndarray) -> Leads:
        """after: int64 [2, n], keys in one word (see `_core.configurations`), -1 for none."""
        order = after.reshape(-1).argsort(kind="stable")
        order = order[(after < 0).sum() :]
        words, first = np.unique(after.reshape(-1)[order], return_index=True)
        places, at = np.split(order, first[1:]) if len(words) else [], np.full_like(after, -1)
        at.reshape(-1)[order] = np.repeat(np.arange(len(words)), list(map(len, places)))
        texts, sets = words >> 24 & 0xFFFF, words & 0xFFFFFF
        keys = list(zip((words >> 40).tolist(), texts.tolist(), sets.tolist(), strict=True))
        least = [0 if self.ends(key) else self.least_of(key[0]) for key in keys]
        return Leads(ids, at, keys, places, np.array(least, np.int64))

    # ---------------------------------------------------------------- texts home

    def ways(self, key: Key, n: int) -> list[Way]:
        """The ways by which the text home is read, or another text: its first byte is the n-th that
        is tried."""
        found = self._ways.get((key, n))
        if found is None:
            counted = [
                Way(1 + self._count(after, last), token, is_free)
                for token, q in self._beginnings(key[0], n)
                for after, last, is_free in self.read(key, token, q)
            ]
            found = [way for way in counted if way.ids < NEVER]
            self._ways.put((key, n), found)
        return found

    def _count(self, key: Key, last: int) -> int:
        """Ids that the text home takes after a last id, by the longest tokens that lead on;
        NEVER where it may not be read. Depth first."""
        known, most = self._counts, self._bytes(int(self._far[key[0]])) + 1
        opened, count = [(key, last)], known.get((key, last))
        waiting = [self._onward(key, last)] if count is None else []
        while waiting:
            check()
            rest = waiting[-1]
            while rest and known.get(rest[-1]) == NEVER:
                rest.pop()
            if self.ends(opened[-1][0]):
                count = 0
            elif not rest:
                count = NEVER
            elif (then := known.get(rest[-1])) is not None:
                count = 1 + then
            elif len(opened) <= most:
                opened.append(rest[-1])
                waiting.append(self._onward(*rest[-1]))
                continue
            else:
                count = NEVER
            known.put(opened.pop(), count)
            waiting.pop()
        return NEVER if count is None else count

    def _onward(self, key: Key, last: int) -> list[tuple[Key, int]]:
        """Where the tokens lead that begin the text home and may follow a last id, the shortest
        first."""
        return [
            (after, then)
            for token, q in self._beginnings(key[0], 0)
            for after, then, is_free in self.read(key, token, q)
            if is_free or self._may(last, token)
        ]

    def _may(self, last: int, token: int) -> bool:
        return bool(self.may_follow(np.array([last]), np.array([token]))[0])

    def _beginnings(self, q: int, n: int) -> list[tuple[int, int]]:
        """The tokens that begin the text home from a byte state, the shortest first, and the byte
        state behind each. n: 0; or that of the byte that comes first instead, see `_home`."""
        found = self._spelled.get((q, n))
        if found is None:
            found, data, state, which = [], b"", q, n
            while len(data) < self._longest and (which or not self.dfa.accepting[state]):
                home = self._home(state)
                if which >= len(home):
                    break
                byte, state = home[which]
                which, data = 0, data + bytes([byte])
                found += [(token, state) for token in self._ids.get(data, ())]
            self._spelled.put((q, n), found)
        return found

    def _home(self, q: int) -> list[tuple[int, int]]:
        """The byte by which the text home goes on from a state, and where it leads: nearest to
        acceptance, of these a letter if there is one, as few tokens spell many letters. Then
        others that may be tried: a space, and those nearest to acceptance, letters last."""
        found = self._homes.get(q)
        if found is None:
            columns = np.arange(self.dfa.n_classes)
            after = self.dfa.after(np.full(len(columns), q, np.int32), columns)[self.dfa.byte_class]
            far = np.where(after > 0, self._far[after], -1).astype(np.int64)
            away = np.where(far < 0, NEVER, 4 * far)
            first = int((away + _RANK).argmin())
            others = (away + (2 - _RANK) % 4).argsort(kind="stable")[:_MOST_TRIED]
            bytes_ = dict.fromkeys([first, 0x20, *others.tolist()])
            found = [(byte, int(after[byte])) for byte in bytes_ if far[byte] >= 0]
            self._homes.put(q, found)
        return found

    # ---------------------------------------------------------------- a search

    def _searched(self, state: State, most: int) -> list[int]:
        """Ids of a shortest way to acceptance, which are promised; none where it takes more than
        `most`. Breadth-first, by keys: of each those ids that came with earlier last ids are not
        opened again. Raises BudgetExceededError."""
        key, last = self.split(state)
        level, closed = [Node(key, np.array([last]), None, 0)], dict[Key, np.ndarray]()
        room = _MOST_OPENED
        for depth in range(1, most + 1):
            opened, level = level, []
            for node in opened:
                check()
                room -= 1
                if room < 0:
                    why = "the fewest ids to the end of the text were not found in them"
                    raise BudgetExceededError("configurations", _MOST_OPENED, why)
                for new, least in self._opened(node, closed):
                    if self.ends(new.key):
                        return self._promise(state, new)
                    if depth + least <= most:
                        level.append(new)
        return []

    def _opened(self, node: Node, closed: dict[Key, np.ndarray]) -> list[tuple[Node, int]]:
        """The nodes after one, and the ids that they take at least. closed: of each key the places
        of the bound ids that are not opened yet."""
        leads, found = self.leads(node.key), list[tuple[Node, int]]()
        bound = closed.get(node.key)
        free = np.flatnonzero(leads.after[0] >= 0) if bound is None else np.empty(0, np.int64)
        bound = np.flatnonzero(leads.after[1] >= 0) if bound is None else bound
        may = self.may_follow(node.ids, leads.ids[bound])
        closed[node.key] = bound[~may]
        for side, places in enumerate((free, bound[may])):
            leads_to = leads.after[side, places]
            for at in np.unique(leads_to).tolist():
                ids = leads.ids[places[leads_to == at]]
                found.append((Node(leads.keys[at], ids, node, side), int(leads.least[at])))
        return found

    def _promise(self, state: State, node: Node) -> list[int]:
        """The ids that led to a node, kept for the masks along them."""
        ids, side, at = list[int](), 0, node
        while at.before is not None:
            fits = (token for token in at.ids.tolist() if side == 0 or self._may(token, ids[-1]))
            ids.append(next(fits))
            side, at = at.side, at.before
        ids.reverse()
        for k, token in enumerate(ids):
            self._promised[state] = len(ids) - k, token
            state = self.engine.step(state, token)
        return ids


class CanonicalEndings(Endings[ProductState]):
    """Those of `CartesianMerge`."""

    engine: CartesianMerge

    def __init__(self, engine: CartesianMerge) -> None:
        super().__init__(engine, engine.product.lock)
        self.product, self.canonical = engine.product, engine.canonical
        self._pairs = self.product.tables.pairs
        self._reachable = packed(np.flatnonzero(self.canonical.derivation.reachable), engine.n_ids)

    @property
    def detour(self) -> int:  # type: ignore[override]
        return self.product.detour

    def split(self, state: ProductState) -> tuple[Key, int]:
        return state[:3], state.last

    def ends(self, key: Key) -> bool:
        return self.engine.accepting(ProductState(*key, _NO_TOKEN))

    def read(self, key: Key, token: int, q: int) -> list[tuple[Key, int, bool]]:
        text = self.canonical.text_after(key[1], key[2], token)
        if text < 0 or not self.canonical.usable[token]:
            return []
        number = self.canonical.actions.of_token[token]
        free, bound = (int(side[number]) for side in self.canonical.sets.successors(key[2]))
        sides = ((free, True), (bound, False))
        return [((q, text, H), token, is_free) for H, is_free in sides if H >= 0]

    def find_leads(self, key: Key) -> Leads:
        bits = self.product.sides(*key)
        ids = members(bits[0] | bits[1])
        reached = self.product.after_each(*key, ids)
        place = reached[:, 0] << 40 | reached[:, 1] << 24
        classes = self.canonical.actions.of_token[ids]
        after = np.empty((2, len(ids)), np.int64)
        for k, sets in enumerate(self.canonical.sets.successors(key[2])):
            after[k] = np.where(contained(bits[k], ids), place | sets[classes], -1)
        for k in np.flatnonzero(np.isin(ids, list(self.engine.tokenizer.added_ids))).tolist():
            q, text, H, _ = self.engine.step(ProductState(*key, _NO_TOKEN), int(ids[k]))
            after[:, k] = q << 40 | text << 24 | H, -1
        return self._grouped(ids, after)

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
        return (state, 0, 0), _NO_TOKEN

    def ends(self, key: Key) -> bool:
        return bool(self.dfa.accepting[key[0]])

    def read(self, key: Key, token: int, q: int) -> list[tuple[Key, int, bool]]:
        return [] if token in self.engine.eos_ids else [((q, 0, 0), _NO_TOKEN, True)]

    def find_leads(self, key: Key) -> Leads:
        ids = members(self.engine.mask(key[0]))
        ids = ids[~np.isin(ids, self._eos)]
        states = np.array(self.engine.steps(key[0], ids), np.int64)
        return self._grouped(ids, np.array([states << 40, np.full(len(ids), -1)]))


def _ids_by_bytes(tokenizer: Tokenizer) -> dict[bytes, list[int]]:
    """The ids of each spelling, but those of added tokens."""
    found: dict[bytes, list[int]] = {}
    for token, data in enumerate(tokenizer.spellings):
        if token not in tokenizer.added_ids:
            found.setdefault(data, []).append(token)
    return found


def _ranks() -> np.ndarray:
    rank = np.full(256, 3)
    letters = string.ascii_uppercase.encode(), string.ascii_lowercase.encode()
    for k, some in enumerate((PLAIN, *letters)):
        rank[list(some)] = 2 - k
    return rank


_RANK = _ranks()
