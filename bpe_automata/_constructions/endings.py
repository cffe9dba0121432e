"""How soon the texts of an engine can be complete: what `within` needs to know.

    U(state)       ids that are enough: those of a short text home, by the tokenizer's own
                   tokenization (U >= the least number)
    mask(state, k) = { n in the engine's mask : U(state n) < k },   and end-of-sequence

The text home depends on the state of the byte automaton alone, and byte after byte on the state
that is reached: so the text home after its first id is the rest of it, U falls by one with each of
its ids, and a mask that holds one id leads to masks that do, until the text is complete. Bytes
bound ids: as long as many are left, this is not looked at, and the mask is the engine's own.
"""

from __future__ import annotations

import string
from abc import ABC, abstractmethod
from collections.abc import Hashable
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from bpe_automata._automata.linked import LinkedDFA
from bpe_automata._automata.parts import PLAIN
from bpe_automata._budget import Budget, check, spent
from bpe_automata._constructions.engine import TextEngine
from bpe_automata._core.endings import furthest
from bpe_automata._core.tables import fixed
from bpe_automata._core.ways_home import way_home
from bpe_automata._kernels.bits import set_bits
from bpe_automata._limits import untouched
from bpe_automata._sharing import BoundedMemo, Lock, locked
from bpe_automata.errors import BudgetExceededError

State = TypeVar("State", bound=Hashable)
Key = TypeVar("Key", bound=Hashable)
NEVER = 1 << 30
_MOST_OPENED = 2000  # configurations of a search
_SLACK = 8  # bytes: of a character, and of the space that a text may begin with
_UNPROVED = 64  # further bytes, where `far` may be a few less than the true number
_TOO_FAR = 1 << 20  # bytes: nothing leads to such states, which are written with others
_AHEAD = 64  # bytes that an id's completion may wander, beside those of the id


def _no_steps() -> np.ndarray:
    """Room for what kernels want (see `steps.want`)."""
    return np.zeros(4096, np.int64)


class Way(NamedTuple):
    """From a configuration to acceptance: so many ids, of which the first is `token`. free: is
    there a boundary before it, or must it be one that may follow the last id?"""

    ids: int
    token: int
    free: bool


class Leads(NamedTuple):
    """ids: int64, all that can be read at a configuration but end-of-sequence; free, bound: int64,
    which of the targets each leads to, with a boundary before it and without, -1 where it may not
    come so; keys: the targets; least: int64, ids that it takes from each to acceptance at least."""

    ids: np.ndarray
    free: np.ndarray
    bound: np.ndarray
    keys: list[Any]
    least: np.ndarray


class Node(NamedTuple):
    """Of a search: a configuration, and the last ids with which it is reached, by way of another
    node. free: as of `Way`, of these ids."""

    key: Any
    ids: np.ndarray
    before: Node | None
    free: bool


class Endings(ABC, Generic[State, Key]):
    """Of one engine over texts. A key is what of a state matters but for the last id."""

    def __init__(self, engine: TextEngine[State]) -> None:
        self.engine, self.dfa, self.lock = engine, engine.dfa, Lock()
        self.budget: Budget | None = getattr(engine, "budget", None)
        self.linked = isinstance(self.dfa, LinkedDFA)
        far = self.dfa.far if isinstance(self.dfa, LinkedDFA) else self.dfa.distance()
        self._accepting, self._far = fixed(self.dfa.accepting, far)
        self._steps = fixed(*self.dfa.steps)
        # One more: before an added token the space that a piece begins with may be left out.
        self._longest = 1 + max(map(len, engine.tokenizer.spellings))
        rank = np.full(256, 3, np.uint8)  # few tokens spell many letters
        upper, lower = string.ascii_uppercase.encode(), string.ascii_lowercase.encode()
        for k, some in enumerate((PLAIN, upper, lower)):
            rank[list(some)] = 2 - k
        n = self.dfa.n_states
        self._seen, chosen, lengths = untouched((n, np.int32), (n, np.int16), (n, np.int32))
        self._home = *fixed(self.dfa.accepting, far, rank), chosen, lengths
        self._eos = np.array(engine.eos_ids, dtype=np.int64)
        self._n_words = (engine.n_ids + 31) // 32
        self._leads: BoundedMemo[Key, Leads] = BoundedMemo(8 * engine.n_ids)
        self._ways: BoundedMemo[Key, list[Way]] = BoundedMemo(500)
        self._sides: BoundedMemo[tuple[Key, int], np.ndarray] = BoundedMemo(8 * self._n_words)
        self._plain_from: BoundedMemo[Key, int] = BoundedMemo(200)
        self._widest: BoundedMemo[int, int] = BoundedMemo(200)
        self._most_far, self._n_looked_at = 0, 1
        # Ways that are no text home, along which masks must go on as they have promised to.
        self._promised: dict[State, tuple[int, int]] = {}

    # What the engines differ in.

    @abstractmethod
    def key(self, state: State) -> Key:
        """What of a state matters but for the last id."""

    @abstractmethod
    def last(self, state: State) -> int: ...

    @abstractmethod
    def byte_state(self, key: Key) -> int: ...

    @abstractmethod
    def ends(self, key: Key) -> bool:
        """Is the text complete?"""

    @abstractmethod
    def find_leads(self, key: Key) -> Leads: ...

    @abstractmethod
    def find_ways(self, key: Key) -> list[Way]:
        """The fewest ids first; none where the text is complete."""

    def most(self, key: Key) -> int:
        """Ids that are enough whatever the last one was, found quickly; NEVER: none are known."""
        return 0 if self.ends(key) else NEVER

    def after_last(self, state: State) -> np.ndarray | None:
        """Packed: the ids that may follow the last one without a boundary; None: no matter."""
        return None

    def follow(self, ids: np.ndarray, token: int) -> np.ndarray:
        """bool: may a token follow each of some ids without a boundary?"""
        return np.zeros(len(ids), np.bool_)

    def follow_any(self, ids: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        """bool: may each of some tokens follow any of some ids without a boundary?"""
        return np.zeros(len(tokens), np.bool_)

    detour = 0
    """Bytes that the completion of an id of a mask may have beside those of a way home."""

    # ---------------------------------------------------------------- what is asked

    def mask(self, state: State, k: int) -> np.ndarray:
        """int32 words, read-only: ids after which the text can be complete with k ids in all, and
        end-of-sequence where the state accepts."""
        if k >= self._plain_from.get(self.key(state), NEVER):
            return self.engine.mask(state)
        return self._new_mask(state, k)

    @spent
    @locked
    def _new_mask(self, state: State, k: int) -> np.ndarray:
        key = self.key(state)
        if self._is_plain(key, k):
            return self.engine.mask(state)
        bits = self._near(state, k)
        ids, token = self._promised.get(state, (NEVER, -1))
        if ids <= k:
            set_bits(bits, np.array([token]))
        accepts = self.engine.accepting(state)
        if not accepts and not bits.any():
            found = self._search(state, k)
            if found is not None:
                self._promise(state, found)
                bits = self._packed(np.array(found[:1]))
        if accepts:
            set_bits(bits, self._eos)
        bits.flags.writeable = False
        return bits

    @spent
    @locked
    def reaches(self, state: State, k: int) -> bool:
        """Is it found that the text can be complete with k ids?"""
        key = self.key(state)
        if self._is_plain(key, k):
            return True
        enough = self.enough(state)
        if enough <= k:
            return True
        if self._least(key) > k:
            return False
        try:
            found = self._search(state, k)
        except BudgetExceededError:
            if enough == NEVER:
                raise
            return False
        if found is not None:
            self._promise(state, found)
        return found is not None

    @spent
    @locked
    def least(self, state: State) -> int:
        """Ids to the nearest accepting state. Raises BudgetExceededError where it takes a long
        search to know them."""
        enough = self.enough(state)
        if self._least(self.key(state)) >= enough:
            return enough
        found = self._search(state, enough - 1)
        return enough if found is None else len(found)

    def needed(self, state: State) -> int:
        """The fewest with which it is found."""
        try:
            return self.least(state)
        except BudgetExceededError:
            return self.enough(state)

    def enough(self, state: State) -> int:
        """U: ids that are enough, NEVER where no text home is known."""
        key, last = self.key(state), self.last(state)
        if self.ends(key):
            return 0
        promised = self._promised.get(state, (NEVER, -1))[0]
        for way in self.ways(key):
            if way.free or self.follow(np.array([last]), way.token)[0]:
                return min(way.ids, promised)
        return promised

    # ---------------------------------------------------------------- far from the end

    def _is_plain(self, key: Key, k: int) -> bool:
        """Is it known that k ids are enough for all ids of the engine's mask?"""
        if k >= self._plain_from.get(key, NEVER):
            return True
        if k <= 0:
            return False
        enough = 1 + self.detour + _SLACK
        if k >= enough + self._bytes(self._furthest()) or (
            self.detour <= _AHEAD and k >= enough + self._bytes(self._furthest_near(key))
        ):
            self._plain_from.put(key, k)
            return True
        return False

    def _bytes(self, far: int) -> int:
        return 2 * far + _UNPROVED if self.linked else far

    def _furthest(self) -> int:
        """Bytes to acceptance at most, from all states that are written down."""
        n = self.dfa.n_written if isinstance(self.dfa, LinkedDFA) else self.dfa.n_states
        if n > self._n_looked_at:
            new = self._far[self._n_looked_at : n]
            self._most_far = max(self._most_far, int(new[new < _TOO_FAR].max(initial=0)))
            self._n_looked_at = n
        return self._most_far

    def _furthest_near(self, key: Key) -> int:
        """The same, from states that an id can lead to."""
        q = self.byte_state(key)
        found = self._widest.get(q)
        if found is None:
            self.leads(key)  # whatever its ids lead to is written down then
            ahead = self._longest + _AHEAD + _SLACK
            found = int(furthest(q, ahead, self._steps, self._far, self._seen))
            found = NEVER if found < 0 else found
            self._widest.put(q, found)
        return found

    # ---------------------------------------------------------------- near the end

    def _near(self, state: State, k: int) -> np.ndarray:
        """int32 words, new: the ids of a mask for which U says so."""
        if k <= 0:
            return np.zeros(self._n_words, np.int32)
        key = self.key(state)
        sides = self._sides.get((key, k))
        if sides is None:
            sides = self._find_sides(key, k - 1)
            self._sides.put((key, k), sides)
        after = self.after_last(state)
        bits: np.ndarray = sides[0].copy() if after is None else sides[0] | (sides[1] & after)
        return bits

    def _find_sides(self, key: Key, k: int) -> np.ndarray:
        """int32 [2, words]: the ids of a configuration after which k ids are enough, with a
        boundary before them and without."""
        leads = self.leads(key)
        sure = np.zeros(len(leads.keys) + 1, np.bool_)  # the last one is of -1
        partly = dict[int, list[Way]]()
        for at in np.flatnonzero(leads.least <= k).tolist():
            check()
            target = leads.keys[at]
            if self.most(target) <= k:
                sure[at] = True
                continue
            ways = [way for way in self.ways(target) if way.ids <= k]
            sure[at] = any(way.free for way in ways)
            if ways and not sure[at]:
                partly[at] = ways
        if sure[:-1].all() and len(leads.keys):
            self._plain_from.put(key, k + 1)
        found = []
        for side in (leads.free, leads.bound):
            admitted = [leads.ids[sure[side]]]
            for at, ways in partly.items():
                ids = leads.ids[side == at]
                some = [self.follow(ids, way.token) for way in ways]
                admitted.append(ids[np.logical_or.reduce(some)])
            found.append(self._packed(np.concatenate(admitted)))
        return np.array(found)

    def _packed(self, ids: np.ndarray) -> np.ndarray:
        bits = np.zeros(self._n_words, np.int32)
        set_bits(bits, ids)
        return bits

    def leads(self, key: Key) -> Leads:
        found = self._leads.get(key)
        if found is None:
            found = self.find_leads(key)
            self._leads.put(key, found)
        return found

    def ways(self, key: Key) -> list[Way]:
        found = self._ways.get(key)
        if found is None:
            found = self.find_ways(key)
            self._ways.put(key, found)
        return found

    def home(self, q: int) -> tuple[int, np.ndarray, np.ndarray]:
        """See `way_home`: how many bytes, -1 for none; the states; the bytes."""
        room, wanted = self._bytes(int(self._far[q])) + 1, _no_steps()
        path, data = np.empty(room, np.int64), np.empty(room, np.uint8)
        n = int(way_home(q, self._steps, self._home, path, data, wanted))
        while self._enter(wanted):
            n = int(way_home(q, self._steps, self._home, path, data, wanted))
        return n, path, data

    def bytes_home(self, q: int) -> int:
        """NEVER: none."""
        if self._accepting[q]:
            return 0
        known = int(self._home[4][q]) - 1
        known = known if known >= 0 else self.home(q)[0]
        return known if known >= 0 else NEVER

    def _enter(self, wanted: np.ndarray) -> bool:
        """Write down the steps that a kernel wants. Are there any?"""
        check()
        for number in wanted[1 : 1 + int(wanted[0])].tolist():
            self.dfa.enter(number)  # type: ignore[union-attr]
        some, wanted[0] = bool(wanted[0]), 0
        return some

    # ---------------------------------------------------------------- from below

    def _least(self, key: Key) -> int:
        """Ids to acceptance at least."""
        return 0 if self.ends(key) else int(self.least_of(np.array([self.byte_state(key)]))[0])

    def least_of(self, states: np.ndarray) -> np.ndarray:
        """int64: ids that it takes at least if the text is not complete, as none has more bytes
        than the longest. (`far` of a linked automaton's first state may be one too many.)"""
        bytes_ = self._far[states].astype(np.int64) - self.linked
        return np.maximum(1, -(-bytes_ // self._longest))

    # ---------------------------------------------------------------- a search

    def _search(self, state: State, most: int) -> list[int] | None:
        """Ids of a shortest way to acceptance; None where it takes more than `most`. Breadth-first,
        by configurations: of each those ids that came with earlier last ids are not opened again.
        Raises BudgetExceededError."""
        root = Node(self.key(state), np.array([self.last(state)]), None, True)
        if self.ends(root.key):
            return []
        level, closed, depth, room = [root], dict[Key, np.ndarray](), 0, _MOST_OPENED
        while level and depth < most:
            depth += 1
            after: list[Node] = []
            for node in level:
                check()
                room -= 1
                if room < 0:
                    why = "the fewest ids to the end of the text were not found in them"
                    raise BudgetExceededError("configurations", _MOST_OPENED, why)
                leads = self.leads(node.key)
                free = node.key not in closed
                waiting = closed.get(node.key, np.flatnonzero(leads.bound >= 0))
                opened = self.follow_any(node.ids, leads.ids[waiting])
                closed[node.key] = waiting[~opened]
                sides = [(leads.free, np.flatnonzero(leads.free >= 0))] * free
                for side, which in (*sides, (leads.bound, waiting[opened])):
                    leads_to = side[which]
                    for at in np.unique(leads_to).tolist():
                        if depth + self._least(leads.keys[at]) > most:
                            continue
                        ids = leads.ids[which[leads_to == at]]
                        new = Node(leads.keys[at], ids, node, side is leads.free)
                        if self.ends(new.key):
                            return self._way_to(new)
                        after.append(new)
            level = after
        return None

    def _way_to(self, node: Node | None) -> list[int]:
        """The ids that led to a node."""
        found, free = list[int](), True
        while node is not None and node.before is not None:
            ids = node.ids if free else node.ids[self.follow(node.ids, found[-1])]
            found.append(int(ids[0]))
            node, free = node.before, node.free
        return found[::-1]

    def _promise(self, state: State, ids: list[int]) -> None:
        """Keep a way that was found for the masks along it."""
        for k, token in enumerate(ids):
            self._promised[state] = len(ids) - k, token
            state = self.engine.step(state, token)
