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
from collections.abc import Callable, Hashable
from functools import wraps
from typing import Any, Generic, NamedTuple, TypeVar, cast

import numpy as np

from bpe_automata._automata.linked import LinkedDFA
from bpe_automata._automata.parts import PLAIN
from bpe_automata._budget import Budget, check, spent
from bpe_automata._constructions.engine import TextEngine
from bpe_automata._core.canonical import NO_TOKEN
from bpe_automata._core.endings import furthest
from bpe_automata._core.tables import fixed
from bpe_automata._kernels.bits import contained, packed, set_bits
from bpe_automata._limits import untouched
from bpe_automata._sharing import BoundedMemo, Lock, locked
from bpe_automata._tokenizer.tokenizer import Tokenizer
from bpe_automata.errors import BudgetExceededError

F = TypeVar("F", bound=Callable[..., object])
State = TypeVar("State", bound=Hashable)
Key = tuple[int, int, int]
"""What of a state matters but for the last id: (byte state, text state, hypotheses)."""
NEVER = 1 << 30
_MOST_OPENED = 2000  # keys of a search
_SLACK = 8  # bytes: of a character, and of the space that a text may begin with
_UNPROVED = 64  # further bytes, where `far` may be a few less than the true number
_TOO_FAR = 1 << 20  # bytes: nothing leads to such states, which are written with others
_AHEAD = 64  # bytes that an id's completion may wander, beside those of the id
_ENTRY_BYTES = {"leads": 1_000_000, "_sides": 30_000, "ways": 500, "_furthest_near": 200}
_ENTRY_BYTES |= {"_beginnings": 1500, "_home": 1500}
_MOST_TRIED = 8  # bytes that are tried besides the first of a text home
_RANK = np.full(256, 3)
_RANK[list(PLAIN)] = 2
_RANK[list(string.ascii_uppercase.encode())] = 1
_RANK[list(string.ascii_lowercase.encode())] = 0


def remembered(find: F) -> F:
    """Keep what a method finds, by its arguments, in the memo of `self.memos` of its name."""

    @wraps(find)
    def kept(self: Any, *given: Any) -> Any:
        memo = self.memos[find.__name__]
        found = memo.get(given)
        if found is None:
            found = find(self, *given)
            memo.put(given, found)
        return found

    return cast(F, kept)


class Way(NamedTuple):
    """From a key to acceptance: so many ids, of which the first is `token`. free: is there a
    boundary before it, or must it be one that may follow the last id?"""

    ids: int
    token: int
    free: bool


class Leads(NamedTuple):
    """Where ids lead. ids: int64 [n], all that can be read at a key but end-of-sequence; keys:
    those that they lead to; places: of each, int32, the ids that lead to it: k for ids[k] with a
    boundary before it, n + k without one; least: int64 [keys], ids that it takes from each to
    acceptance at least."""

    ids: np.ndarray
    keys: list[Key]
    places: list[np.ndarray]
    least: np.ndarray


class Node(NamedTuple):
    """Of a search: a key, and the last ids with which it is reached from another node. is_bound: is
    there no boundary before them?"""

    key: Key
    ids: np.ndarray
    before: Node | None
    is_bound: bool


class Endings(ABC, Generic[State]):
    """Of one engine over texts."""

    detour = 0
    """Bytes that the completion of an id of a mask may have beside those of a text home."""

    def __init__(self, engine: TextEngine[State], lock: Lock) -> None:
        self.engine, self.dfa, self.lock = engine, engine.dfa, lock
        self.budget: Budget | None = getattr(engine, "budget", None)
        self._linked = isinstance(self.dfa, LinkedDFA)
        self._far = self.dfa.far
        self._kernel = *fixed(*self.dfa.steps), *fixed(self._far)
        self._eos = np.array(engine.eos_ids, dtype=np.int64)
        # One more: before an added token the space that a piece begins with may be left out.
        self._longest = 1 + max(map(len, engine.tokenizer.spellings))
        self.memos = {name: BoundedMemo[Any, Any](size) for name, size in _ENTRY_BYTES.items()}
        self._counts: BoundedMemo[tuple[Key, int], int] = BoundedMemo(200)
        self._plain_from: BoundedMemo[Key, int] = BoundedMemo(200)
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
    def leads(self, key: Key) -> Leads:
        """Where ids lead; to be remembered."""

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
        key, last = self.split(state)
        if self._is_plain(key, k):
            return plain
        sides = self._sides(key, k - 1)
        bits = sides[1].copy()
        self.after_last(last, bits)
        bits |= sides[0]
        accepts, extra = self.engine.accepting(state), list[int]()
        ids, token = self._promised.get(state, (NEVER, NO_TOKEN))
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
        found = self._promised.get(state, (NEVER, NO_TOKEN))[0]
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

    @remembered
    def _furthest_near(self, q: int) -> int:
        """The same, from states that an id can lead to; NEVER: these are too many."""
        *steps, far = self._kernel
        ahead = self._longest + _AHEAD + _SLACK
        found = int(furthest(q, ahead, tuple(steps), far, self._seen))
        return NEVER if found < 0 else found

    # ---------------------------------------------------------------- near the end

    @remembered
    def _sides(self, key: Key, k: int) -> np.ndarray:
        """int32 [2, words]: the ids of a key after which k ids are enough, with a boundary before
        them and without."""
        sides = np.zeros((2, (self.engine.n_ids + 31) // 32), np.int32)
        if k < 0:
            return sides
        leads = self.leads(key)
        admitted = np.zeros(2 * len(leads.ids), np.bool_)
        for at in np.flatnonzero(leads.least <= k).tolist():
            check()
            places = leads.places[at]
            admitted[places] = self._admitted(leads.keys[at], k, leads.ids[places % len(leads.ids)])
        if admitted.sum() == sum(map(len, leads.places)):
            self._plain_from.put(key, k + 1)
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

    def grouped(self, ids: np.ndarray, after: np.ndarray) -> Leads:
        """after: int64 [2, n], keys in one word (see `_core.configurations`), -1 for none."""
        order = after.reshape(-1).argsort()[(after < 0).sum() :].astype(np.int32)
        in_order = after.reshape(-1)[order]
        first = np.flatnonzero(np.diff(in_order, prepend=-1))
        words = in_order[first]
        parts = words >> 40, words >> 24 & 0xFFFF, words & 0xFFFFFF
        keys = list(zip(*(part.tolist() for part in parts), strict=True))
        least = [0 if self.ends(key) else self.least_of(key[0]) for key in keys]
        return Leads(ids, keys, np.split(order, first[1:])[: len(keys)], np.array(least, np.int64))

    # ---------------------------------------------------------------- texts home

    @remembered
    def ways(self, key: Key, n: int) -> list[Way]:
        """The ways by which the text home is read, or another text: its first byte is the n-th that
        is tried."""
        found = [
            Way(1 + self._count(after, last), token, is_free)
            for token, q in self._beginnings(key[0], n)
            for after, last, is_free in self.read(key, token, q)
        ]
        return [way for way in found if way.ids < NEVER]

    def _count(self, key: Key, last: int) -> int:
        """Ids that the text home takes after a last id, by the longest tokens that lead on;
        NEVER where it may not be read. Depth first."""
        known, start, most = self._counts, (key, last), self._bytes(int(self._far[key[0]])) + 1
        opened = list[tuple[tuple[Key, int], list[tuple[Key, int]]]]()
        while (found := known.get(start)) is None:
            check()
            if not opened:
                opened.append((start, self._onward(*start)))
            at, rest = opened[-1]
            while rest and known.get(rest[-1]) == NEVER:
                rest.pop()
            then = known.get(rest[-1]) if rest else NEVER - 1
            if self.ends(at[0]):
                then = -1
            elif then is None and len(opened) <= most:
                opened.append((rest[-1], self._onward(*rest[-1])))
                continue
            known.put(at, NEVER if then is None else 1 + then)
            opened.pop()
        return found

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

    @remembered
    def _beginnings(self, q: int, n: int) -> list[tuple[int, int]]:
        """The tokens that begin the text home from a byte state, the shortest first, and the byte
        state behind each. n: 0; or that of the byte that comes first instead, see `_home`."""
        ids = self.engine.tokenizer.derived("ids by bytes", _ids_by_bytes)
        found, data = list[tuple[int, int]](), b""
        while len(data) < self._longest and (n or not self.dfa.accepting[q]):
            home = self._home(q)
            if n >= len(home):
                break
            byte, q = home[n]
            n, data = 0, data + bytes([byte])
            found += [(token, q) for token in ids.get(data, ())]
        return found

    @remembered
    def _home(self, q: int) -> list[tuple[int, int]]:
        """The byte by which the text home goes on from a state, and where it leads: nearest to
        acceptance, of these a letter if there is one, as few tokens spell many letters. Then
        others that may be tried: a space, and those nearest to acceptance, letters last."""
        columns = np.arange(self.dfa.n_classes)
        after = self.dfa.after(np.full(len(columns), q, np.int32), columns)[self.dfa.byte_class]
        far = np.where(after > 0, self._far[after], -1).astype(np.int64)
        away = np.where(far < 0, NEVER, 4 * far)
        others = (away + (2 - _RANK) % 4).argsort(kind="stable")[:_MOST_TRIED]
        bytes_ = dict.fromkeys([int((away + _RANK).argmin()), 0x20, *others.tolist()])
        return [(byte, int(after[byte])) for byte in bytes_ if far[byte] >= 0]

    # ---------------------------------------------------------------- a search

    def _searched(self, state: State, most: int) -> list[int]:
        """Ids of a shortest way to acceptance, which are promised; none where it takes more than
        `most`. Breadth-first, by keys: of each those ids that came with earlier last ids are not
        opened again. Raises BudgetExceededError."""
        key, last = self.split(state)
        level, closed = [Node(key, np.array([last]), None, False)], dict[Key, np.ndarray]()
        room = _MOST_OPENED
        for depth in range(1, most + 1):
            opened, level = level, []
            for node in opened:
                check()
                room -= 1
                if room < 0:
                    why = "the fewest ids to the end of the text were not found in them"
                    raise BudgetExceededError("configurations", _MOST_OPENED, why)
                for new in self._opened(node, closed, most - depth):
                    if self.ends(new.key):
                        return self._promise(state, new)
                    level.append(new)
        return []

    def _opened(self, node: Node, closed: dict[Key, np.ndarray], most: int) -> list[Node]:
        """The nodes after one that do not take more than `most` ids for sure. closed: bool [2n], of
        each key the places of its leads that are opened already."""
        leads, found = self.leads(node.key), list[Node]()
        n = len(leads.ids)
        now = np.append(np.ones(n, np.bool_), self.may_follow(node.ids, leads.ids))
        before = closed.setdefault(node.key, np.zeros(2 * n, np.bool_))
        new = now & ~before
        before |= now
        for at in np.flatnonzero(leads.least <= most).tolist():
            places = leads.places[at][new[leads.places[at]]]
            for is_bound in (False, True):
                ids = leads.ids[places[(places >= n) == is_bound] % n]
                if len(ids):
                    found.append(Node(leads.keys[at], ids, node, is_bound))
        return found

    def _promise(self, state: State, node: Node) -> list[int]:
        """The ids that led to a node, kept for the masks along them."""
        ids, is_bound, at = list[int](), False, node
        while at.before is not None:
            some = at.ids.tolist()
            ids.append(next(i for i in some if not is_bound or self._may(i, ids[-1])))
            is_bound, at = at.is_bound, at.before
        ids.reverse()
        for k, token in enumerate(ids):
            self._promised[state] = len(ids) - k, token
            state = self.engine.step(state, token)
        return ids


def _ids_by_bytes(tokenizer: Tokenizer) -> dict[bytes, list[int]]:
    """The ids of each spelling, but those of added tokens."""
    found: dict[bytes, list[int]] = {}
    for token, data in enumerate(tokenizer.spellings):
        if token not in tokenizer.added_ids:
            found.setdefault(data, []).append(token)
    return found
