"""How many ids complete a text of an engine: the bounds on which `within` relies.

The *completion* of a state of the byte automaton is a short text that leads from it to acceptance:
each of its bytes leads to the nearest state. U counts the ids of one tokenization of it, which the
engine admits:

    U(state)       how many ids complete the text by that tokenization, never less than needed
    mask(state, k) = { n in the engine's mask : U(state n) < k },   and end-of-sequence

After the first id of a completion its rest is the next completion. So U falls by one with each of
its ids, and a mask that holds an id leads to masks that hold one, until the text is complete. Where
no completion may follow the last id, some texts are tried that begin with another byte. The bytes
of a text bound its ids, so while many ids remain, U is not computed, and the mask is the engine's.

Where U does not decide, a breadth-first search finds the least number of ids, or an id for a mask
that would be empty.
"""

from __future__ import annotations

import string
from collections.abc import Hashable, Iterable
from functools import lru_cache
from types import MethodType
from typing import Any, NamedTuple
from weakref import proxy

import numpy as np

from bpe_automata._budget import check, spent
from bpe_automata._kernels.bits import contained, members, packed, set_bits
from bpe_automata._limits import untouched
from bpe_automata._sharing import BYTES, BoundedMemo, Lock, locked
from bpe_automata.automata.linked import LinkedDFA
from bpe_automata.automata.parts import PLAIN
from bpe_automata.canonical.arrays import NO_TOKEN
from bpe_automata.canonical.tokens import furthest
from bpe_automata.errors import BudgetExceededError
from bpe_automata.tokenizer.tokenizer import Tokenizer

State = Hashable
Key = tuple[int, int, int]
"""A state without its last id: (byte state, text state, hypotheses)."""
NEVER = 1 << 30
_MOST_OPENED = 2000  # keys of a search
_SLACK = 8  # bytes: of a character, and of the space that a text may begin with
_UNPROVED = 64  # further bytes, where `far` may be a few less than the true number
_TOO_FAR = 1 << 20  # bytes: nothing leads to such states, which are written with others
# The size of one cached answer of each kind; the answers of a kind may take `BYTES` together.
_ENTRY_BYTES = {"leads": 1_000_000, "_sides": 30_000, "ways": 500, "_furthest": 200}
_ENTRY_BYTES |= {"_beginnings": 1500, "_next_bytes": 1500}
_MOST_TRIED = 8  # bytes that are tried besides the first one of a completion
# Bytes in the order in which completions prefer them: letters first, as one token spells many.
_ORDER = np.array(list(dict.fromkeys((*string.ascii_letters.encode(), *PLAIN, *range(256)))))


class Way(NamedTuple):
    """From a key to acceptance by `ids` ids, of which the first is `token`. free: is there a
    boundary before it? If not, it must be an id that may follow the last one."""

    ids: int
    token: int
    free: bool


class Leads(NamedTuple):
    """Where ids lead. ids: int64 [n], all that can be read at a key, without end-of-sequence;
    groups: each key that they lead to, with the indices of these ids: k for ids[k] with a boundary
    before it, n + k for ids[k] without one."""

    ids: np.ndarray
    groups: list[tuple[Key, np.ndarray]]


Came = list[tuple[np.ndarray, np.ndarray, "Came"]]
"""How a search came to a key: the last ids, whether each has no boundary before it, and how it came
to the key before them."""


class Endings:
    """The bounds for the lift, where the last id does not matter; `CanonicalEndings` adds it."""

    def __init__(self, engine: Any) -> None:
        self.engine: Any = proxy(engine)  # weak, as the engine holds these endings
        self.dfa, self.budget, self.lock = engine.dfa, engine.budget, Lock()
        self._linked = isinstance(self.dfa, LinkedDFA)
        self._far = self.dfa.far
        # One more, as an added token may be read without the space that its piece begins with.
        self._longest = 1 + max(map(len, engine.tokenizer.spellings))
        for name, size in _ENTRY_BYTES.items():
            own = MethodType(getattr(type(self), name), proxy(self))
            setattr(self, name, lru_cache(BYTES // size)(own))
        self._counts: BoundedMemo[tuple[Key, int], int] = BoundedMemo(200)
        self._shortest: BoundedMemo[State, list[int]] = BoundedMemo(500)
        self._plain_from: BoundedMemo[Key, int] = BoundedMemo(200)
        (self._seen,) = untouched((self.dfa.n_states, np.int32))

    # What the engines differ in.

    detour = 0
    """How many bytes longer than a completion the rest of a text may be after an id of a mask."""

    def split(self, state: Any) -> tuple[Key, int]:
        """(the key, the last id)."""
        return (state, 0, 0), NO_TOKEN

    def ends(self, key: Key) -> bool:
        """Is the text complete?"""
        return bool(self.dfa.accepting[key[0]])

    def leads(self, key: Key) -> Leads:
        """Where the ids lead that can be read at a key."""
        ids = np.setdiff1d(members(self.engine.mask(key[0])), self.engine.eos_ids)
        states = np.array(self.engine.steps(key[0], ids), np.int64)
        return self.grouped(ids, np.array([states << 40, np.full(len(ids), -1)]))

    def read(self, key: Key, token: int, q: int) -> list[tuple[Key, int, bool]]:
        """The keys after an id that leads to the byte state q, each with the last id, and whether
        a boundary comes before it."""
        return [] if token in self.engine.eos_ids else [((q, 0, 0), NO_TOKEN, True)]

    def may_follow(self, ids: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        """bool: may each of some tokens follow any of some ids without a boundary?"""
        return np.zeros(len(tokens), np.bool_)

    def after_last(self, token: int, bits: np.ndarray) -> None:
        """Clear, in packed ids, those that may not follow `token` without a boundary."""

    def before(self, token: int) -> np.ndarray:
        """The ids, packed, that `token` may follow without a boundary."""
        raise NotImplementedError

    # ---------------------------------------------------------------- the bounds

    def mask(self, state: State, k: int) -> np.ndarray:
        """int32 words, read-only: ids after which the text can be complete with k ids in all, and
        end-of-sequence where the state accepts."""
        if k >= self._plain_from.get(self.split(state)[0], NEVER):
            found: np.ndarray = self.engine.mask(state)
            return found
        return self._new_mask(state, k)

    @spent
    @locked
    def _new_mask(self, state: State, k: int) -> np.ndarray:
        if self._is_plain(state, k):
            plain: np.ndarray = self.engine.mask(state)
            return plain
        key, last = self.split(state)
        sides = self._sides(key, k - 1)
        bits = sides[1].copy()
        self.after_last(last, bits)
        bits |= sides[0]
        extra: Iterable[int] = ()
        if self.ends(key):
            extra = self.engine.eos_ids
        elif not bits.any():
            extra = self._searched(state, k)[:1]
        bits |= packed(extra, self.engine.n_ids)
        bits.flags.writeable = False
        return bits

    @spent
    @locked
    def needed(self, state: State, k: int) -> int:
        """k if the text is found to need at most k ids; else the least number of ids that is found
        to be enough."""
        enough = self._enough(state)
        if enough <= k or self._is_plain(state, k):
            return k
        try:
            return max(k, self.least(state))
        except BudgetExceededError:
            if enough == NEVER:
                raise
            return enough

    @spent
    @locked
    def least(self, state: State) -> int:
        """The number of ids to the nearest accepting state. Raises BudgetExceededError if the
        search for it is too long."""
        enough = self._enough(state)
        return len(self._searched(state, enough - 1)) or enough

    def _enough(self, state: State) -> int:
        """U: a number of ids that is enough, NEVER if no text is found."""
        key, last = self.split(state)
        if self.ends(key):
            return 0
        for n in range(1 + _MOST_TRIED):
            fits = [way.ids for way in self.ways(key, n) if way.free or self._may(last, way.token)]
            if fits:
                return min(fits)
        return NEVER

    # ---------------------------------------------------------------- far from the end

    def _is_plain(self, state: State, k: int) -> bool:
        """Do the lengths of texts prove that k ids are enough for every id of the engine's mask?"""
        self.engine.mask(state)  # it makes the states that its ids lead to
        key, spare = self.split(state)[0], k - 1 - self.detour - _SLACK
        found = spare >= 0 and spare >= self._furthest(key[0], self.detour)
        if found:
            self._plain_from.put(key, k)
        return found

    def _furthest(self, q: int, detour: int) -> int:
        """The most bytes to acceptance from the states that an id can lead to; if these are too
        many, from all states that were made."""
        trans, _, behind = self.dfa.steps
        depth = self._longest + detour + _SLACK
        found = int(furthest(q, depth, trans, behind, self._far, self._seen))
        if found < 0:
            n = self.dfa.n_written if self._linked else self.dfa.n_states
            found = int(self._far[:n].max(where=self._far[:n] < _TOO_FAR, initial=0))
        return self._bytes(found)

    def _bytes(self, far: int) -> int:
        return 2 * far + _UNPROVED if self._linked else far

    # ---------------------------------------------------------------- near the end

    def _sides(self, key: Key, k: int) -> np.ndarray:
        """int32 [2, words]: the ids of a key after which k ids are enough, with a boundary before
        them and without."""
        ids, groups = self.leads(key)
        admitted = np.zeros(2 * len(ids), np.bool_)
        for after, indices in groups:
            check()
            admitted[indices] = self._admitted(after, k, ids[indices % len(ids)])
        if admitted.sum() == sum(len(indices) for _, indices in groups):
            self._plain_from.put(key, k + 1)
        sides = np.zeros((2, (self.engine.n_ids + 31) // 32), np.int32)
        for bits, side in zip(sides, admitted.reshape(2, -1), strict=True):
            set_bits(bits, ids[side])
        return sides

    def _admitted(self, key: Key, k: int, ids: np.ndarray) -> np.ndarray:
        """bool: for each of some last ids, is a way of at most k ids found after it?"""
        found = np.full(len(ids), k >= 0 and self.ends(key))
        for n in range(1 + _MOST_TRIED):
            if found.all():
                break
            for way in self.ways(key, n):
                if way.ids <= k:
                    found |= way.free or contained(self.before(way.token), ids)
        return found

    def grouped(self, ids: np.ndarray, after: np.ndarray) -> Leads:
        """`Leads` of ids whose keys are `after`: int64 [2, n], each key in one word (see
        `canonical.status`), -1 for none; row 0 with a boundary, row 1 without."""
        order = after.reshape(-1).argsort()[(after < 0).sum() :]
        in_order = after.reshape(-1)[order]
        first = np.flatnonzero(np.diff(in_order, prepend=-1))
        words = in_order[first].tolist()
        keys = [(word >> 40, word >> 24 & 0xFFFF, word & 0xFFFFFF) for word in words]
        return Leads(ids, list(zip(keys, np.split(order, first[1:]), strict=False)))

    # ---------------------------------------------------------------- completions

    def ways(self, key: Key, n: int) -> list[Way]:
        """The ways that spell the completion (n = 0), or another text, which begins with the n-th
        byte that is tried."""
        found = [
            Way(1 + self._count(after, last), token, is_free)
            for token, q in self._beginnings(key[0], n)
            for after, last, is_free in self.read(key, token, q)
        ]
        return [way for way in found if way.ids < NEVER]

    def _count(self, key: Key, last: int) -> int:
        """How many ids the completion takes after a last id, by the longest tokens that lead on,
        found depth-first; NEVER if it may not follow."""
        counts, start, most = self._counts, (key, last), self._bytes(int(self._far[key[0]])) + 1
        opened = list[tuple[tuple[Key, int], list[tuple[Key, int]]]]()
        while (found := counts.get(start)) is None:
            check()
            if not opened:
                opened.append((start, self._onward(*start)))
            at, rest = opened[-1]
            while rest and counts.get(rest[-1]) == NEVER:
                rest.pop()
            then = counts.get(rest[-1]) if rest else NEVER - 1
            if self.ends(at[0]):
                then = -1
            elif then is None and len(opened) <= most:
                opened.append((rest[-1], self._onward(*rest[-1])))
                continue
            counts.put(at, NEVER if then is None else 1 + then)
            opened.pop()
        return found

    def _onward(self, key: Key, last: int) -> list[tuple[Key, int]]:
        """Where the tokens lead that begin the completion and may follow a last id, the shortest
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
        """The tokens that begin the completion of a byte state, the shortest first, and the byte
        state after each. n: which byte of `_next_bytes` comes first, 0 for the completion's own."""
        ids = self.engine.tokenizer.derived("ids by bytes", _ids_by_bytes)
        found, data = list[tuple[int, int]](), b""
        while len(data) < self._longest and (n or not self.dfa.accepting[q]):
            following = self._next_bytes(q)
            if n >= len(following):
                break
            byte, q = following[n]
            n, data = 0, data + bytes([byte])
            found += [(token, q) for token in ids.get(data, ())]
        return found

    def _next_bytes(self, q: int) -> list[tuple[int, int]]:
        """(byte, state after it). The first one is that of the completion: the one that leads
        nearest to acceptance, preferably a letter, as tokens spell many letters at once. Then come
        others to be tried: a space, and those that lead nearest to acceptance, letters last."""
        columns = np.arange(self.dfa.n_classes)
        after = self.dfa.after(np.full(len(columns), q, np.int32), columns)[self.dfa.byte_class]
        away = np.where(after > 0, self._far[after], -1).astype(np.uint32)  # the last if it is -1
        nearest, others = (
            some[away[some].argsort(kind="stable")] for some in (_ORDER, _ORDER[::-1])
        )
        bytes_ = dict.fromkeys((int(nearest[0]), 0x20, *others[:_MOST_TRIED].tolist()))
        return [(byte, int(after[byte])) for byte in bytes_ if away[byte] < NEVER]

    # ---------------------------------------------------------------- a search

    def _searched(self, state: State, most: int) -> list[int]:
        """The ids of a shortest way to acceptance; none if it takes more than `most`. It is cached
        for the states along it. Breadth-first by keys: an id that was read at a key after an
        earlier last id is not read there again. Raises BudgetExceededError over too many keys."""
        if 0 < len(cached := self._shortest.get(state, [])) <= most:
            return cached
        key, last = self.split(state)
        level: dict[Key, Came] = {key: [(np.array([last]), np.ones(1, np.bool_), [])]}
        closed: dict[Key, np.ndarray] = {}
        for _ in range(most):
            opened, level = level, {}
            if not opened:
                break
            if len(closed) > _MOST_OPENED:
                why = "the fewest ids to the end of the text were not found in them"
                raise BudgetExceededError("configurations", _MOST_OPENED, why)
            for key, came in opened.items():
                check()
                ids, groups = self.leads(key)
                n, lasts = len(ids), np.concatenate([last for last, _, _ in came])
                new = np.append(np.ones(n, np.bool_), self.may_follow(lasts, ids))
                before = closed.setdefault(key, np.zeros(2 * n, np.bool_))
                new &= ~before
                before |= new
                for after, indices in groups:
                    indices = indices[new[indices]]
                    if len(indices):
                        there = ids[indices % n], indices >= n, came
                        level.setdefault(after, []).append(there)
                        if self.ends(after):
                            return self._path(state, [there])
        return []

    def _path(self, state: State, came: Came) -> list[int]:
        """The ids that led from a state to a key; cached for the states along them."""
        found, is_bound = list[int](), False
        while came:
            token, is_bound, came = next(
                (int(token), bool(bound), before)
                for ids, bounds, before in came
                for token, bound in zip(ids, bounds, strict=True)
                if not is_bound or self._may(int(token), found[-1])
            )
            found.append(token)
        ids = found[-2::-1]  # without the last id before them
        for k, token in enumerate(ids):
            self._shortest.put(state, ids[k:])
            state = self.engine.step(state, token)
        return ids


def _ids_by_bytes(tokenizer: Tokenizer) -> dict[bytes, list[int]]:
    """The ids of each spelling, without those of added tokens."""
    found: dict[bytes, list[int]] = {}
    for token, data in enumerate(tokenizer.spellings):
        if token not in tokenizer.added_ids:
            found.setdefault(data, []).append(token)
    return found
