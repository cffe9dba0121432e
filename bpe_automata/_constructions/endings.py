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
from bpe_automata._constructions.cartesian_merge import CartesianMerge, ProductState
from bpe_automata._constructions.engine import TextEngine
from bpe_automata._constructions.lift import Lift
from bpe_automata._core.endings import (
    furthest,
    may_come,
    may_follow_any,
    nearest_character,
    put_all,
    reached,
    spellings,
    targets,
    way_home,
)
from bpe_automata._core.sets import NONE
from bpe_automata._core.tables import fixed
from bpe_automata._kernels.bits import members, set_bits
from bpe_automata._limits import untouched
from bpe_automata._sharing import BoundedMemo, Lock, cached, locked
from bpe_automata.errors import BudgetExceededError

State = TypeVar("State", bound=Hashable)
Key = TypeVar("Key", bound=Hashable)
NEVER = 1 << 30
_MOST_EXPLORED = 2000  # states
_MOST_SPELLED = 1 << 22  # slots of the table of `spellings`
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
        self._lower: dict[int, int] = {}
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
    def trie(self) -> tuple[tuple[np.ndarray, ...], int]:
        """(`trie` of `reached`, the depth of the deepest node): of the ids of text."""

    @abstractmethod
    def added_after(self, q: int) -> list[int]:
        """The states of the byte automaton after added tokens."""

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
        self._explore(self.byte_state(key), enough)
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
        enough, q = self.enough(state), self.byte_state(self.key(state))
        self._explore(q, enough)
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
        return 0 if self.ends(key) else self._least_from(self.byte_state(key))

    def _least_from(self, q: int) -> int:
        """Ids to acceptance at least, if the text is not complete."""
        known = self._lower.get(q)
        return max(1, int(self.least_of(np.array([q]))[0]) if known is None else known)

    def least_of(self, states: np.ndarray) -> np.ndarray:
        """int64: ids that it takes at least, as none has more bytes than the longest. (`far` of a
        linked automaton's first state may be one too many.)"""
        return -((self.linked - self._far[states].astype(np.int64)) // self._longest)

    def _explore(self, q: int, most: int) -> None:
        """Bound from below, better, by what any tokens do, whatever BPE says of them: in the states
        that at most so many of them lead to, but for those over a number."""
        if q in self._lower:
            return
        trie, deepest = self.trie()
        (trie, wanted), after = (fixed(*trie), _no_steps()), dict[int, list[int]]()
        level = [q]
        while level and most > 0:
            most -= 1
            further = dict[int, None]()
            for state in level[: max(0, _MOST_EXPLORED - len(after))]:
                given = self._steps, trie, deepest, self._seen, wanted
                found = reached(state, *given)
                while self._enter(wanted):
                    found = reached(state, *given)
                after[state] = [*found.tolist(), *self.added_after(state)]
                further.update(dict.fromkeys(after[state]))
            level = [state for state in further if state not in after]
        before = dict[int, list[int]]()
        for state, targets_ in after.items():
            for target in targets_:
                before.setdefault(target, []).append(state)
        waiting: dict[int, list[int]] = {}  # states by what is known of them, the nearest first
        for state in {*before, *after}:
            known = self._least_from(state) if state not in after else NEVER
            known = 0 if self._accepting[state] else known
            if known < NEVER:
                waiting.setdefault(known, []).append(state)
        self._spread(before, waiting, after)

    def _spread(
        self, before: dict[int, list[int]], waiting: dict[int, list[int]], open_: dict[int, Any]
    ) -> None:
        done = set[int]()
        while waiting:
            check()
            known = min(waiting)
            for state in waiting.pop(known):
                if state in done:
                    continue
                done.add(state)
                if state in open_:
                    self._lower[state] = known
                nearer = [one for one in before.get(state, ()) if one not in done]
                if nearer:
                    waiting.setdefault(known + 1, []).extend(nearer)

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

    def trie(self) -> tuple[tuple[np.ndarray, ...], int]:
        label, depth, skip, _, klass = self.product.tables.trie[:5]
        return (label, depth, skip, klass), self.product.tables.deepest

    def added_after(self, q: int) -> list[int]:
        from_, behind, _, _, start, data, ids = self.product.added
        if not len(ids):
            return []
        spelled = [data[start[k] : start[k + 1]].tobytes() for k in np.flatnonzero(ids >= 0)]
        after = [self.product.after(int(from_[q]), text) for text in spelled]
        return [int(behind[one]) for one in after if one]

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
        return Leads(ids, free, bound, found, np.where(ended, 0, np.maximum(1, least)))

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

    def trie(self) -> tuple[tuple[np.ndarray, ...], int]:
        tables = self.engine.reader.tables
        label, depth, skip, token, klass = tables.trie[:5]
        read = np.where(np.isin(token, self._eos), 0, klass).astype(np.int32)
        return (label, depth, skip, read), tables.deepest

    def added_after(self, q: int) -> list[int]:
        reader = self.engine.reader
        after = reader.after_added(q, reader.added)
        return after[after > 0].tolist()

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
        least = np.where(self._accepting[keys], 0, np.maximum(1, self.least_of(keys)))
        return Leads(ids, free.reshape(-1), np.full(len(ids), -1), keys.tolist(), least)
