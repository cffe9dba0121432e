"""The product of a byte DFA with a tokenizer's canonical automaton: rows of masks, made when they
are first asked for."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bpe_automata._automata.dfa import ByteDFA
from bpe_automata._automata.linked import ByteAutomaton, LinkedDFA
from bpe_automata._budget import check
from bpe_automata._core.configurations import EVERY_ID, EVERY_MADE, NONE_KNOWN
from bpe_automata._core.every_id import live_at
from bpe_automata._core.reader import Reader
from bpe_automata._core.regions import region
from bpe_automata._core.rows import compose, judge, read_row
from bpe_automata._core.search import search_each
from bpe_automata._core.slices import MOST_FEW, Slice
from bpe_automata._core.status import B
from bpe_automata._core.steps import (
    COUNTS,
    DONE,
    FAILED,
    FOUND,
    HINTS,
    KEY,
    KLASS,
    LISTED,
    MET,
    N_FAILED,
    NEED,
    NEED_CONFIGURATIONS,
    NEED_ROWS,
    NEED_SEARCH,
    NEED_SET,
    NEED_STEPS,
    NEED_TIME,
    NEED_VISITED,
    OPEN,
    OUT,
    PAIRS,
    PARTLY,
    ROWS,
    SKIP,
    SLOTS,
    STATUS,
    TOKEN,
    VALUES,
    WANTED,
    WITHIN,
)
from bpe_automata._core.tables import NO_ADDED, SCRATCH, Arrays, TokenizerTables, fixed
from bpe_automata._kernels.bits import set_bits
from bpe_automata._kernels.geometry import POSITION
from bpe_automata._kernels.numba_hashing import with_room
from bpe_automata._limits import untouched
from bpe_automata._sharing import BoundedMemo, locked

_QUOTA = 2000  # calls of `candidates` in one call of a kernel, doubled where they are too few
_ROOM = 4096  # configurations, at first
_ALONG = 1000  # tokens: so many are read one by one in a tenth of the time of all
_NONE = np.empty(0, np.int32)
_NONE_PACKED = np.empty((2, 0), np.int32)


class Row(NamedTuple):
    """Ids that can be read at a configuration, with a boundary before them and without: packed
    int32 [2, words], or [2, 0]; free, bound int32, further ones. Not to be written to."""

    packed: np.ndarray
    free: np.ndarray
    bound: np.ndarray

    def holds(self, token: int) -> tuple[bool, bool]:
        """Can an id be read, with a boundary before it, without one?"""
        found = [bool((ids == token).any()) for ids in (self.free, self.bound)]
        if self.packed.shape[1]:
            word, bit = token >> 5, token & 31
            found = [
                f or bool(row[word] >> bit & 1) for f, row in zip(found, self.packed, strict=True)
            ]
        return found[0], found[1]


class Product(Reader):
    """Of one byte automaton and one tokenizer. A configuration is (q, a, H)."""

    tables: TokenizerTables

    def __init__(
        self,
        tables: TokenizerTables,
        dfa: ByteAutomaton,
        added: Arrays,
        *,
        good: np.ndarray | None = None,
        ends: bool = True,
        sliced: bool = True,
    ) -> None:
        """added: see `tokens.added_steps`. good: uint8 [n_states], the states known to lead to
        acceptance by steady atoms; by default found along shortest texts. ends: False where no
        state is to count as accepting. sliced: False where wide states are read in full."""
        n, shape = dfa.n_states, (dfa.n_states, 3, len(tables.chars[2]))
        made = untouched((n, np.uint8), (shape, np.uint64), (n, np.bool_), (n, np.uint8))
        known, looks, never, unknown = made
        far = dfa.far
        if good is None:
            good = dfa.plain.view(np.uint8) if isinstance(dfa, LinkedDFA) else unknown
        accepting, far = fixed(dfa.accepting if ends else never, far)
        super().__init__(tables, dfa, tables.chars, (accepting, good, known, looks, far))
        self.added, self._sliced = added, sliced
        self._memo = self._empty_memo()
        self._visited = self._visited_with(1024)
        self._rows: BoundedMemo[tuple[int, int, int], Row] = BoundedMemo(4096)
        self._live: BoundedMemo[tuple[int, Slice, bytes], bool] = BoundedMemo(200)

    def _empty_memo(self) -> tuple[Any, ...]:
        """`memo` of the kernels: slots, values, met, counts, rows, hints."""
        slots, n_words = 4 * _ROOM, -(-len(self.tables.pairs[2]) // 64)
        met = np.zeros((_ROOM, 4), np.int64)
        met[:, OPEN] = NONE_KNOWN
        return (
            np.full(slots, -1, np.int64),
            np.zeros(slots, np.int32),
            met,
            np.zeros(3, np.int64),
            np.zeros((64, n_words), np.uint64),
            np.full(len(self.text[0]), -1, np.int32),
        )

    def _visited_with(self, room: int) -> tuple[Any, ...]:
        slots = 4 * room  # room is a power of two, as slots are found by a mask
        return (
            np.full(slots, -1, np.int64),
            np.zeros(1, np.int64),
            np.zeros(slots, np.int64),
            np.zeros(slots, np.int64),
            np.zeros(room, np.int64),
            np.zeros(2, np.int64),
        )

    def _kit(self) -> tuple[Any, ...]:
        t = self.tables
        base = self.steps, self.text, self.chars, self.states
        return base, t.sets.current(), t.trie, self.added, t.pairs

    def _scratch(self) -> tuple[Any, ...]:
        t, n_words = self.tables, self._memo[ROWS].shape[1]
        n = len(t.trie[0]) + len(self.added[4]) + 1
        return SCRATCH.of(n, t.deepest, n_words, t.n_ids)

    # ---------------------------------------------------------------- rows

    def row(self, q: int, a: int, H: int) -> Row:
        """The ids that can be read at a configuration. Raises BudgetExceededError."""
        found = self._rows.get((q, a, H))
        return found if found is not None else self._new_row(q, a, H)

    @locked
    def _new_row(self, q: int, a: int, H: int) -> Row:
        found = self._rows.get((q, a, H))
        if found is None:
            found = self._read(q, a, H)
            self._rows.put((q, a, H), found)
        return found

    def _read(self, q: int, a: int, H: int) -> Row:
        packed, part, few = _NONE_PACKED, self.tables.trie, _NONE
        if self._sliced and self.tables.sets.utf8_row(H) == 0:
            taken = self._taken(q, a, H)
            if taken is not None:
                packed, few, part = taken
        return self.read_part(q, a, H, packed, part, few)

    def _taken(self, q: int, a: int, H: int) -> tuple[np.ndarray, np.ndarray, Arrays] | None:
        """What a slice says of a row: (`Row.packed`, ids that are to be read one by one, the trie
        of the others)."""
        found = self.slice_of(q)
        if found is None:
            return None
        slice_, length = found
        if not slice_.is_worth_it():
            return None
        taken = slice_.taken(a, H, loop_product)
        if taken is None:
            return None
        if taken.singly is not None:
            return taken.surely, taken.singly, slice_.rest
        if self._all_live(q, slice_, length, taken.needs):
            return taken.perhaps, taken.few, slice_.rest
        if len(taken.few) + len(taken.later) > MOST_FEW:
            return None
        return taken.surely, np.union1d(taken.few, taken.later), slice_.rest

    def _all_live(self, q: int, slice_: Slice, length: int, needs: np.ndarray) -> bool:
        """Is every id live at all states near q with the sets that tokens of a slice lead to?"""
        key = q, slice_, needs.tobytes()
        found = self._live.get(key)
        if found is None:
            base = self.steps, self.tables.text, self.chars, self.states
            given = q, slice_.K, slice_.wide, self.tables.kinds, length, base
            states = self._written(region, *given)
            found = len(states) > 0 and bool(self.ask(live_at, states, needs))
            self._live.put(key, found)
        return found

    @locked
    def ask(self, kernel: Any, *arguments: Any) -> Any:
        """Call a kernel that returns (code, answer) until it is done, and give it what it lacks.
        It takes `arguments`, and behind them `work`."""
        quota, budget = np.array([_QUOTA]), _QUOTA
        while True:
            room = self._emptied()
            given = self._memo, self._kit(), room, self._visited, self.tables.deepest, quota
            code, answer = kernel(*arguments, given)
            if code == DONE:
                return answer
            check()
            budget = 2 * budget if code == NEED_TIME else budget
            quota[0] = budget
            self._give(code, room)

    # ---------------------------------------------------------------- of a loop: see `slices`

    def judged(self, rows: np.ndarray, H: int) -> np.ndarray:
        """int64 [2, n]: the configurations that tokens lead to from the start and a hypothesis set,
        -1 for none, with a boundary before each and without. rows: see `read_tokens`."""
        numbers = np.empty((2, len(rows)), np.int64)
        self.tables.sets.know(H)
        self.ask(judge, rows, H, numbers)
        return numbers

    def configurations(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The keys and statuses of configurations, 0 where there is none."""
        met, at = numbers >= 0, np.maximum(numbers, 0)
        found = np.where(met[..., None], self._memo[MET][at], 0)
        return found[..., KEY], found[..., STATUS]

    def characters_behind(self, sets: np.ndarray) -> np.ndarray:
        """bool [n, kinds]: the kinds of characters that may end where each set is, inside one, and
        behind which a boundary may come, and acceptance is within reach."""
        after, looks = self.chars[3], self.states[3][self.dfa.start]
        lead_on = (after & looks[B]).any(axis=3).reshape(-1, after.shape[2]).astype(np.float32)
        inside = self.tables.sets.current()[0][sets, WITHIN:].view(np.uint8)
        members = np.unpackbits(inside, axis=-1, count=after.shape[1], bitorder="little")
        found: np.ndarray = members.reshape(len(sets), len(lead_on)) @ lead_on > 0
        return found

    def settled(self, ids: np.ndarray, c: np.ndarray, calls: int) -> np.ndarray:
        """int: is each of some ids live at a configuration, by its number? 1: yes, -1: no, 0: at
        most so many calls of `candidates` for each do not tell."""
        found, pairs = self._known_live(ids, c), c << 20 | ids + 1
        open_ = pairs[~found & (self._memo[MET][c, STATUS] == PARTLY)]
        open_ = open_[~np.isin(open_, self._visited[FAILED])]
        if len(open_) and calls:
            self.ask(search_each, open_, calls)
            found = self._known_live(ids, c)
        return np.where(found, 1, np.where(np.isin(pairs, self._visited[FAILED]), -1, 0))

    def _known_live(self, ids: np.ndarray, c: np.ndarray) -> np.ndarray:
        """bool: `is_live` of each id at a configuration."""
        dead, rows = self._memo[MET][c, OPEN], self._memo[ROWS]
        at = self.tables.pairs[0][ids, POSITION].astype(np.int64)
        row = rows[np.maximum(dead, 0), at >> 6] >> (at & 63).astype(np.uint64)
        in_row = (dead >= 0) & (row & np.uint64(1) == 0)
        found: np.ndarray = (dead == EVERY_ID) | ((at >= 0) & (in_row | (dead == EVERY_MADE)))
        return found

    def read_part(
        self, q: int, a: int, H: int, packed: np.ndarray, part: Arrays, few: np.ndarray
    ) -> Row:
        """A row of which `packed` is known, the tokens of the trie `part` and the ids `few`, int32,
        are not."""
        t = self.tables
        t.sets.know(H)
        while True:
            room = self._emptied()
            given = self._memo, self._kit(), part, room, self._visited, t.deepest, room[OUT]
            code, n, m = read_row(q, a, H, few.astype(np.int64), t.by_id, *given)
            if code == DONE:
                return Row(packed, room[OUT][0, :n].copy(), room[OUT][1, :m].copy())
            check()
            self._give(code, room, n)
            if code == NEED_STEPS and 0 < n <= _ALONG:
                self._enter_along(q, part, room[FOUND][-n:, 0])

    def _enter_along(self, q: int, part: Arrays, stuck: np.ndarray) -> None:
        """Enter the states along the tokens behind some nodes of a trie, if they are few: each byte
        may lead to a state that is new, for which the whole trie need not be read again."""
        nodes = part[0]
        behind = np.concatenate([nodes[node : nodes[node, SKIP]] for node in stuck.tolist()])
        tokens = behind[behind[:, KLASS] != 0, TOKEN].astype(np.int64)
        if len(tokens) <= _ALONG:
            self.step_each(q, 0, 0, tokens)

    def _emptied(self) -> tuple[Any, ...]:
        room = self._scratch()
        room[WANTED][0] = room[NEED][0] = 0
        return room

    def _give(self, code: int, room: tuple[Any, ...], n: int = 1) -> None:
        """Find what a kernel lacks: sets, steps, searches of n pairs, or room in a table."""
        if code == NEED_SET:
            for number in room[NEED][1 : 1 + int(room[NEED][0])].tolist():
                self.tables.sets.know(number)
        elif code == NEED_STEPS:
            self._enter(room[WANTED])
        elif code == NEED_SEARCH:
            self.ask(search_each, np.sort(room[PAIRS][:n]), 0)
        elif code == NEED_TIME:
            pass
        elif code == NEED_CONFIGURATIONS:
            before = self._memo[MET]
            met = np.zeros((4 * len(before), 4), np.int64)
            met[:, OPEN] = NONE_KNOWN
            met[: len(before)] = before
            table = with_room(self._memo[SLOTS], self._memo[VALUES], 2 * len(met))
            self._memo = *table, met, *self._memo[COUNTS:]
        elif code == NEED_ROWS:
            rows = self._memo[ROWS]
            more = np.zeros((4 * len(rows), rows.shape[1]), np.uint64)
            more[: len(rows)] = rows
            self._memo = *self._memo[:ROWS], more, *self._memo[HINTS:]
        elif code == NEED_VISITED:
            new = self._visited_with(4 * len(self._visited[LISTED]))
            failed = self._visited[FAILED]
            slots, _ = with_room(failed, np.zeros(len(failed), np.int32), len(new[0]) // 2)
            new[N_FAILED][0] = (failed >= 0).sum()
            self._visited = slots, *new[1:]
        else:  # NEED_ROOM
            SCRATCH.grow()

    def statuses(self) -> dict[tuple[int, int, int], int]:
        """What is known of the configurations that were met, for tests: see `steps`."""
        found = self._memo[MET][: int(self._memo[COUNTS][0]), [KEY, STATUS]].tolist()
        return {(k >> 40, k >> 24 & 0xFFFF, k & 0xFFFFFF): s for k, s in found if s}

    @property
    def detour(self) -> int:
        """The most bytes of the ids by which it was found that acceptance can be reached, until it
        is reached whatever the last id was; those of slices included."""
        loops = [one.detour for one in list(self.tables.slices.values())]
        return max([int(self._memo[COUNTS][2]), *loops])

    # ---------------------------------------------------------------- masks

    def mask(self, q: int, a: int, H: int, last: int, ends: np.ndarray) -> np.ndarray:
        """int32 words: the ids after a last id (-1: none) and `ends`, int32."""
        row, mask = self.row(q, a, H), np.empty((self.tables.n_ids + 31) >> 5, np.int32)
        if last >= 0 and not self.tables.reachable[last]:
            last = -1
        compose(row.packed, row.free, row.bound, last, self.tables.follow, ends, mask)
        return mask

    def sides(self, q: int, a: int, H: int) -> tuple[np.ndarray, np.ndarray]:
        """int32 words, twice: the ids of a row with a boundary before them, and without one."""
        row, both = self.row(q, a, H), np.zeros((2, (self.tables.n_ids + 31) >> 5), np.int32)
        if row.packed.shape[1]:
            both[:] = row.packed
        set_bits(both[0], row.free.astype(np.int64))
        set_bits(both[1], row.bound.astype(np.int64))
        return both[0], both[1]

    # ---------------------------------------------------------------- steps

    def after_each(self, q: int, a: int, H: int, tokens: np.ndarray) -> np.ndarray:
        """int64 [n, 2]: the states of the byte automaton and of the text automaton after each token
        of a row (int64), 0 where there is none."""
        return self.step_each(q, a, self.tables.sets.utf8_row(H), tokens)


def loop_product(tables: TokenizerTables, dfa: ByteDFA, ends: bool) -> Product:
    """The product of a loop: one that never ends, read by steady atoms alone, or any text."""
    good = np.ones(dfa.n_states, np.uint8)
    good[0] = 0
    found = Product(tables, dfa, NO_ADDED, good=good, ends=ends, sliced=False)
    found.text = found.text if ends else tables.steady_text
    return found
