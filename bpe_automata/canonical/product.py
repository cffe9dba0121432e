"""The product of a byte DFA with a tokenizer's canonical automaton: rows of masks, each made when
it is first needed."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bpe_automata._budget import check
from bpe_automata._kernels.bits import set_bits
from bpe_automata._kernels.hashing import lengthened, with_room
from bpe_automata._limits import untouched
from bpe_automata._sharing import BoundedMemo, locked
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.automata.linked import ByteAutomaton, LinkedDFA
from bpe_automata.canonical.arrays import (
    CONFIG,
    DONE,
    EVERY_ID,
    EVERY_MADE,
    NEED_CONFIGURATIONS,
    NEED_ROOM,
    NEED_ROWS,
    NEED_SEARCH,
    NEED_SET,
    NEED_STEPS,
    NEED_TIME,
    NEED_VISITED,
    NONE_PROVED,
    PARTLY,
    WITHIN,
    B,
    Room,
    Trie,
    Work,
)
from bpe_automata.canonical.reader import Reader
from bpe_automata.canonical.regions import region
from bpe_automata.canonical.rows import added_tokens, compose, judge, live_at, made_row, row_holds
from bpe_automata.canonical.search import search_each
from bpe_automata.canonical.sets import words
from bpe_automata.canonical.slices import MOST_FEW, Slice
from bpe_automata.canonical.tables import NO_ADDED, ROOMS, Arrays, TokenizerTables
from bpe_automata.canonical.tokens import read_trie, step_each

_QUOTA = 2000  # calls of `candidates` in one call of a kernel, doubled where they are too few
_ROOM = 1024  # configurations, at first
_NONE = np.empty(0, np.int32)
_NO_READS = np.empty((0, 4), np.int32)
_NONE_PACKED = np.empty((2, 0), np.int32)


class Row(NamedTuple):
    """Ids that can be read at a configuration, with a boundary before them and without: packed
    int32 [2, words], or [2, 0]; free, bound int32, further ids. Not to be written to."""

    packed: np.ndarray
    free: np.ndarray
    bound: np.ndarray

    def holds(self, token: int) -> tuple[bool, bool]:
        """(can an id be read with a boundary before it, can it without one)."""
        found: tuple[bool, bool] = row_holds(*self, token)
        return found


class Product(Reader):
    """The product of one byte automaton and one tokenizer. A configuration is (q, a, H): a state of
    the byte automaton, one of the text automaton, a set of hypotheses. An id is *live* at a
    configuration if acceptance can still be reached where it was the last id."""

    tables: TokenizerTables

    def __init__(
        self,
        tables: TokenizerTables,
        dfa: ByteAutomaton,
        added: Arrays,
        *,
        text: Arrays | None = None,
        good: np.ndarray | None = None,
        ends: bool = True,
        sliced: bool = True,
    ) -> None:
        """added: see `Work`. text: `tables.text`, or another text automaton over the same atoms.
        good: uint8 [n_states], states from which steady atoms lead to acceptance; by default found
        along shortest texts. ends: if False, no state counts as accepting. sliced: if False, wide
        states are read in full."""
        n, shape = dfa.n_states, (dfa.n_states, 3, len(tables.chars[2]))
        made = untouched((n, np.uint8), (shape, np.uint64), (n, np.bool_), (n, np.uint8))
        looked, self._looks, never, unsettled = made
        if good is None:
            good = unsettled
            if isinstance(dfa, LinkedDFA):
                good = (dfa.tagged if tables.reads_tags(dfa.marks.tags, added) else dfa.plain).view(
                    np.uint8
                )
        accepting = dfa.accepting if ends else never
        super().__init__(tables, dfa)
        states = accepting, good, looked, self._looks, dfa.far
        given = text or tables.text, tables.chars, states, tables.trie, tables.pairs, added
        self.base = self._work = Work(dfa.steps, *given, tables.deepest)
        self._room_for = len(tables.trie.nodes_array) + len(added[4]) + 1, tables.deepest
        self._counts, self._sliced = np.zeros(3, np.int64), sliced
        self._has_added = len(added[4]) > 0
        self._work.remember(self._counts, np.full(len(tables.text[0]), -1, np.int32))
        nothing = np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, CONFIG)
        self._work.remember_configs(*nothing)
        self._set_configs(_ROOM)
        self._work.remember_rows(np.zeros((64, -(-len(tables.order) // 64)), np.uint64))
        self._set_failed(np.full(_ROOM, -1, np.int64))
        self._sets: Arrays = ()
        self._rows: BoundedMemo[tuple[int, int, int], Row] = BoundedMemo(4096)
        self._live: BoundedMemo[tuple[int, Slice, bytes], bool] = BoundedMemo(200)

    def _set_configs(self, room: int) -> None:
        """Make room for so many configurations, a power of two."""
        configs = np.zeros(room, CONFIG)
        configs["open"] = NONE_PROVED
        work = self._work
        configs[: len(work.configs_array)] = work.configs_array
        table = with_room(work.slots_array, work.values_array, 2 * room)
        work.remember_configs(*table, configs)

    def _set_failed(self, failed: np.ndarray) -> None:
        n_failed = int((failed >= 0).sum())
        self._work.remember_visited(failed, n_failed, np.zeros((3, len(failed)), np.int64))

    def _emptied(self) -> Room:
        """Empty room for a kernel, which now also has all hypothesis sets found so far."""
        sets = self.tables.sets.current()
        if sets is not self._sets:
            self._work.use_sets(*sets)
            self._sets = sets
        room = ROOMS.of(*self._room_for, self._work.rows_array.shape[1])
        room.empty()
        return room

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

    def _taken(self, q: int, a: int, H: int) -> tuple[np.ndarray, np.ndarray, Trie] | None:
        """A row as far as a slice has it: (`Row.packed`, ids to be read one by one, the trie of the
        others); None without a slice."""
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
            given = q, slice_.K, slice_.wide, self.tables.kinds, length, self.base
            states = self._written(region, *given)
            found = len(states) > 0 and bool(self.ask(live_at, states, needs))
            self._live.put(key, found)
        return found

    @locked
    def ask(self, kernel: Any, *arguments: Any) -> Any:
        """Call a kernel that returns (code, answer), each time giving it what it lacks, until it is
        done. It takes `arguments`, then the `Work` and a `Room`."""
        budget = _QUOTA
        while True:
            room, self._work.quota = self._emptied(), budget
            code, answer = kernel(*arguments, self._work, room)
            if code == DONE:
                return answer
            check()
            budget = 2 * budget if code == NEED_TIME else budget
            self._give(code, room)

    # ---------------------------------------------------------------- for a loop: see `slices`

    def judged(self, rows: np.ndarray, H: int) -> np.ndarray:
        """int64 [2, n]: the configurations that tokens lead to from the start and a hypothesis set,
        -1 for none, with a boundary before each and without. rows: see `judge`."""
        numbers = np.empty((2, len(rows)), np.int64)
        self.tables.sets.know(H)
        self.ask(judge, rows, H, numbers)
        return numbers

    def configurations(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The keys and statuses of configurations, 0 where there is none."""
        are_there, at = numbers >= 0, np.maximum(numbers, 0)
        keys, statuses = self._work.configs_array["key"][at], self._work.configs_array["status"][at]
        return np.where(are_there, keys, 0), np.where(are_there, statuses, 0)

    def characters_behind(self, sets: np.ndarray) -> np.ndarray:
        """bool [n, kinds]: for each set, inside a character, the kinds that this character may have
        so that a boundary may come after it and acceptance is within reach."""
        after, looks = self.tables.chars[3], self._looks[self.dfa.start]
        lead_on = words((after & looks[B]).any(axis=3).transpose(2, 0, 1))
        some, which = np.unique(sets, return_inverse=True)
        inside = self.tables.sets.current()[0][some, WITHIN:]
        found: np.ndarray = (inside[:, None] & lead_on).any(axis=(2, 3))[which]
        return found

    def settled(self, ids: np.ndarray, c: np.ndarray, calls: int) -> np.ndarray:
        """int: is each of some ids live at a configuration, given by its number? 1: yes, -1: no, 0:
        not decided with at most `calls` calls of `candidates` for each."""
        found, pairs = self._proved_live(ids, c), c << 20 | ids + 1
        open_ = pairs[~found & (self._work.configs_array["status"][c] == PARTLY)]
        open_ = open_[~np.isin(open_, self._work.failed_array)]
        if len(open_) and calls:
            self.ask(search_each, open_, calls)
            found = self._proved_live(ids, c)
        return np.where(found, 1, np.where(np.isin(pairs, self._work.failed_array), -1, 0))

    def _proved_live(self, ids: np.ndarray, c: np.ndarray) -> np.ndarray:
        """bool: `is_live` of each id at a configuration."""
        open_, at = self._work.configs_array["open"][c], self.tables.positions[ids].astype(np.int64)
        row = self._work.rows_array[np.maximum(open_, 0), at >> 6] >> (at & 63).astype(np.uint64)
        in_row = (open_ >= 0) & (row & np.uint64(1) == 0)
        found: np.ndarray = (open_ == EVERY_ID) | ((at >= 0) & (in_row | (open_ == EVERY_MADE)))
        return found

    def read_part(
        self, q: int, a: int, H: int, packed: np.ndarray, part: Trie, few: np.ndarray
    ) -> Row:
        """A row whose `packed` is given. The tokens of the trie `part` and the ids `few`, int32,
        are still to be read."""
        t = self.tables
        t.sets.know(H)
        row0, before, stuck = t.sets.utf8_row(H), list[np.ndarray](), _NO_READS
        if len(few):
            given = few.astype(np.int64), q, a, row0, t.by_id, self.base, t.trie
            before.append(self._written(step_each, *given))
        while True:
            room = self._emptied()
            n, n_stuck = read_trie(q, a, row0, stuck, part, self._work, room)
            if not n_stuck:
                break
            before.append(room.reads[:n].copy())
            stuck = room.reads[-n_stuck:].copy()
            check()
            self._enter(room.wanted)
        reads = np.concatenate([*before, room.reads[:n]]) if before else room.reads[:n]
        made = len(reads)
        if self._has_added:
            reads = reads.copy()  # other kernels write over the room
            reads = np.concatenate([reads, self.ask(added_tokens, q, a, H)])
            room = self._emptied()
        code, found = made_row(reads, made, H, self._work, room)
        if code != DONE:
            reads = reads.copy()
            self._give(code, room)
            found = self.ask(made_row, reads, made, H)
        return Row(packed, *found)

    def _give(self, code: int, room: Room) -> None:
        """Find what a kernel lacks: sets, steps, searches, or room in a table."""
        if code == NEED_SET:
            for number in room.sets_needed():
                self.tables.sets.know(number)
        elif code == NEED_STEPS:
            self._enter(room.wanted)
        elif code == NEED_SEARCH:
            self.ask(search_each, np.sort(room.pairs[: room.n_pairs]), 0)
        elif code == NEED_CONFIGURATIONS:
            self._set_configs(4 * len(self._work.configs_array))
        elif code == NEED_ROWS:
            rows = self._work.rows_array
            self._work.remember_rows(lengthened(rows, 4 * len(rows)))
        elif code == NEED_VISITED:
            failed = self._work.failed_array
            nothing = np.zeros(len(failed), np.int32)
            self._set_failed(with_room(failed, nothing, 2 * len(failed))[0])
        elif code == NEED_ROOM:
            ROOMS.grow()
        elif code != NEED_TIME:
            raise AssertionError(f"a kernel needs {code}")

    def statuses(self) -> dict[tuple[int, int, int], int]:
        """For tests: the statuses found for the visited configurations, see `arrays.ALIVE`."""
        configs = self._work.configs_array[: self._counts[0]]
        found = zip(configs["key"].tolist(), configs["status"].tolist(), strict=True)
        return {(k >> 40, k >> 24 & 0xFFFF, k & 0xFFFFFF): s for k, s in found if s}

    @property
    def detour(self) -> int:
        """The most bytes that a proof so far had to read to come to a configuration from which
        acceptance can be reached whatever the last id was. Includes slices."""
        return max(self.own_detour, self.tables.detour)

    @property
    def own_detour(self) -> int:
        """The same without slices."""
        return int(self._counts[2])

    # ---------------------------------------------------------------- masks

    def mask(self, q: int, a: int, H: int, last: int, ends: np.ndarray) -> np.ndarray:
        """int32 [words]: the ids that may follow a last id (-1: none), packed, with the ids `ends`
        (int32) added."""
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
    """The product of a loop. ends: if True, it reads any text, and the text may end; if False, it
    reads steady atoms only, and no text ends."""
    good = np.ones(dfa.n_states, np.uint8)
    good[0] = 0
    text = None if ends else tables.steady_text
    return Product(tables, dfa, NO_ADDED, text=text, good=good, ends=ends, sliced=False)
