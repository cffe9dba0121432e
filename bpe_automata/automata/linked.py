"""Linked automata: byte automata that are made of parts, and written down where they are visited.

    part       a small DFA whose accepting states are exits, with labels
    context    what surrounds a copy of a part: it says what follows each exit
    instance   a block of a part, up to 64 of its rows, in a context: states, numbered when the
               block is first entered
    state      one of an instance; or, where what was read so far may have left a part or not, a set
               of such states

Parts are made once and serve all contexts: the rows of a block are computed once, relative to the
first of them, and each instance gets a copy that is shifted to its states. Contexts may be
infinitely many, such as those of a schema that contains itself: what no text has led to takes no
memory. Of a set the next states are sets again (the subset construction, one state at a time), so
the automaton is deterministic although parts may overlap. From every state acceptance can be
reached: whoever makes parts leaves out what cannot.

The arrays never move. From the start they have room for six times `Budget.max_states` states, or
for fewer where their rows are wide (see `linked_store`); pages that nobody writes to take no
memory. A state is "written down" when it is added to them, and a "step away" leaves its instance. A
kernel that comes to a step which is not written down yet returns its number, for `LinkedDFA.enter`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from bpe_automata._arguments import at_least
from bpe_automata._budget import Budget, check, spending, spent
from bpe_automata._kernels.blocks import merged_row
from bpe_automata._sharing import Lock, locked
from bpe_automata.automata.algebra import concatenation
from bpe_automata.automata.assembly import alphabet, reduced
from bpe_automata.automata.dfa import ByteDFA, ByteLanguage
from bpe_automata.automata.linked_store import Written, members_of, packed_set
from bpe_automata.automata.part_tables import table_of
from bpe_automata.automata.parts import BYTE, Continuation, Covers, Marks, Part
from bpe_automata.automata.rounds import Repeat
from bpe_automata.automata.trees import Joined
from bpe_automata.errors import BpeAutomataError, BudgetExceededError, UnsupportedFeatureError

_DEFAULT = Budget()
_TOO_FAR = "the shortest text needs more of them; pass a larger Budget"
_ENDLESS = (
    'the automaton is larger, or has no end: of a schema give a depth, and order="schema" for one '
    "order of the members; or pass a larger Budget"
)
_WAVE = 4096  # states whose rows are made at once


class LinkedDFA(ByteLanguage):
    """{ w in bytes* : start --w--> accepting }, with the dead state 0, written down when visited.

    byte_class uint8 [256], as of a `ByteDFA`. Over all states, of which `n_states` have room:
    accepting bool; far int32, bytes to the nearest accepting state or a few less, NEVER of state 0;
    plain bool, is `far` surely reached by `PLAIN` bytes alone? tagged bool, by those and the tags
    of `marks`? All states but 0 lead to acceptance. Shared by any number of threads. `to_dfa`
    writes all of it down, where that ends.
    """

    is_empty, is_linked = False, True
    start: int
    budget: Budget
    byte_class: np.ndarray
    accepting: np.ndarray
    far: np.ndarray
    depth = 0  # of joins in one another
    nested: Callable[[int], LinkedDFA] | None = None
    """Makes the automaton of the values of a depth, see `to_dfa`."""

    def __init__(
        self,
        begin: Sequence[Continuation],
        byte_class: np.ndarray,
        budget: Budget = _DEFAULT,
        readable: np.ndarray | None = None,
        *,
        lock: Lock | None = None,
        origin: tuple[Callable[..., LinkedDFA], tuple[Any, ...]] | None = None,
        rule: Repeat | None = None,
        marks: Marks = Marks(),  # noqa: B008 - immutable
    ) -> None:
        """begin: where texts begin. byte_class: uint8 [256], columns that distinguish what its
        parts do. budget: about six times its states may be written down. readable: bool [256], the
        bytes by which each state must lead to acceptance, all by default: entering a part where
        that is not so raises UnsupportedFeatureError. lock: held while parts are made and entered.
        origin: a function and its arguments that make the automaton anew, in another process.
        rule: what reads its texts, but for the empty one, so that it can be joined with others.
        Raises BudgetExceededError where the shortest text has more bytes than there is room for
        states."""
        self.lock = lock or Lock()
        self._origin, self.rule, self.marks = origin, rule, marks
        self._readable = None if readable is None or readable.all() else readable
        self.budget, self.byte_class = budget, byte_class
        self._begin = tuple(begin)
        self._written = written = Written(byte_class, budget, self._readable)
        self.steps, self.accepting = written.steps, written.accepting
        self.far, self.plain, self.tagged = written.far, written.plain, written.tagged
        self._members: dict[int, bytes] = {}  # of states that are sets
        self._state_of: dict[bytes, int] = {}
        self._step_of: dict[bytes, int] = {}  # the number of a step to a set
        states, ends = self._closed((), self._begin)
        self.start = self._state(states, ends)
        if self.far[self.start] >= self.n_states:  # those along a shortest text are all different
            raise BudgetExceededError("states", self.n_states, _TOO_FAR)

    def __reduce__(self) -> tuple[Callable[..., LinkedDFA], tuple[Any, ...]]:
        if self._origin is None:
            why = "its parts are functions of this process: give it an origin"
            raise UnsupportedFeatureError("making this linked automaton anew", why)
        return self._origin

    @property
    def n_states(self) -> int:
        """How many states there is room for."""
        return len(self.accepting)

    @property
    def n_classes(self) -> int:
        """The number of columns."""
        return self.steps.trans.shape[1]

    @property
    def n_written(self) -> int:
        """The number of states that are written down, the dead one included."""
        return self._written.count

    def step(self, state: int, byte: int) -> int:
        """The state after one byte. Raises BudgetExceededError."""
        after = self._written.after(state, int(self.byte_class[byte]))
        return after if after >= 0 else self.enter(-1 - after)

    def after(self, states: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """int32: the state after a byte of a column from each of many states, int32. Raises
        BudgetExceededError."""
        entries = self.steps.resolved(self.steps.trans[states, columns])
        return self._entered(entries).astype(np.int32)

    @spent
    def walk(self, data: bytes, state: int | None = None) -> int:
        """The state after some bytes, from `state` (the start by default)."""
        state = self.start if state is None else state
        for byte in memoryview(data):
            check()
            state = self.step(state, byte)
        return state

    def live_bytes(self, state: int) -> np.ndarray:
        """int64: the bytes that keep an accepting state in reach, in order."""
        return np.flatnonzero(self.steps.trans[state, self.byte_class])

    def equivalent(self, other: ByteAutomaton, budget: Budget = _DEFAULT) -> bytes | None:
        """None if the languages are equal; else the first text, in length-lexicographic order, that
        is in one only. Raises BudgetExceededError for more pairs of states than the budget has
        states: so it may be where there are infinitely many."""
        both = self.byte_class.astype(np.int64) * 256 + other.byte_class
        some = sorted(np.unique(both, return_index=True)[1].tolist())
        pair = self.start, other.start
        before: dict[tuple[int, int], tuple[tuple[int, int], bytes]] = {pair: (pair, b"")}
        pairs = [pair]
        with spending(budget):
            for pair in pairs:
                check()
                if self.accepting[pair[0]] != other.accepting[pair[1]]:
                    found = list[bytes]()
                    while pair != pairs[0]:
                        pair, byte = before[pair]
                        found.append(byte)
                    return b"".join(reversed(found))
                for byte in some:
                    after = self.step(pair[0], byte), other.step(pair[1], byte)
                    if after not in before:
                        before[after] = pair, bytes((byte,))
                        pairs.append(after)
                if len(pairs) > budget.max_states:
                    advice = "the automata are larger, or have no end; pass a larger Budget"
                    raise BudgetExceededError("pairs of states", budget.max_states, advice)
        return None

    def to_dfa(self, budget: Budget = _DEFAULT, *, depth: int | None = None) -> ByteDFA:
        """All of it, built in full: minimal and trimmed. depth: of a schema, only the values that
        are inside of at most so many objects and arrays (empty ones are not counted), so that
        there is an end to the states. Raises BudgetExceededError if more states are found, before
        they are minimised, than ten times those of the budget, or than there is room for, as
        always if there are infinitely many; and UnsupportedFeatureError for the depth of what is no
        schema."""
        if depth is not None:
            if self.nested is None:
                why = "only the values of a schema are counted by their depth: leave it out"
                raise UnsupportedFeatureError("the depth of this linked automaton", why)
            return self.nested(at_least(0, depth, "depth")).to_dfa(budget)
        with spending(budget):
            n, waves = 2, [np.array([0, self.start])]  # in the order in which they are visited
            number = np.zeros(self.n_states, np.int32)
            number[self.start] = 1
            rows = list[np.ndarray]()
            for wave in waves:
                check()
                row = self._entered(self.steps.resolved(self.steps.trans[wave]))
                new = np.unique(row[(number[row] == 0) & (row > 0)])
                if n + len(new) > budget.max_instructions:
                    raise BudgetExceededError("states", budget.max_instructions, _ENDLESS)
                number[new] = np.arange(n, n + len(new))
                n += len(new)
                waves += np.split(new, range(_WAVE, len(new), _WAVE)) if len(new) else []
                rows.append(number[row])
            table = np.ascontiguousarray(np.concatenate(rows)), self.byte_class
            return reduced(table, self.accepting[np.concatenate(waves)], 1, budget)

    def _entered(self, found: np.ndarray) -> np.ndarray:
        """Some entries, int64, with the states that steps away lead to."""
        is_away = found < 0
        away, which = np.unique(found[is_away], return_inverse=True)
        entered = np.array([self.enter(-1 - entry) for entry in away.tolist()], np.int64)
        found[is_away] = entered[which.reshape(-1)]
        return found

    def live_by(self, readable: np.ndarray) -> LinkedDFA:
        """The same automaton, of which every state leads to acceptance by some bytes (bool [256])
        alone: entering a part where that is not so raises UnsupportedFeatureError."""
        origin = LinkedDFA.live_by, (self, readable)
        return self._like(self._begin, self.byte_class, readable, origin)

    @locked
    def state_before(self, byte: int) -> int:
        """A copy of the start, from which `byte` leads to the start. Its `far` is a bound."""
        if (self.byte_class == self.byte_class[byte]).sum() != 1:
            raise BpeAutomataError(f"byte {byte} has no column of its own")
        row = self._merged((self.start,))
        row[self.byte_class[byte]] = self.start
        ends, length = bool(self.accepting[self.start]), self._written.length(self.start) + BYTE
        return self._written.new_state(ends, length, row)

    def begun_with(self, data: bytes) -> LinkedDFA:
        """The automaton that reads `data` first."""
        if not data:
            return self
        rest = self._written.length(self.start)
        table = table_of([((data,), 0)])
        part = Part(table, table.far({0: 0}), lambda *_: self._begin, lambda _: rest)
        columns = alphabet([self.byte_class], data)[0].astype(np.uint8)
        origin = LinkedDFA.begun_with, (self, data)
        found = self._like([(part, None)], columns, self._readable, origin)
        if self.tree is not None:
            found.tree = Joined((concatenation(data), self.tree))
        return found

    def _like(
        self,
        begin: Sequence[Continuation],
        byte_class: np.ndarray,
        readable: np.ndarray | None,
        origin: tuple[Callable[..., LinkedDFA], tuple[Any, ...]],
    ) -> LinkedDFA:
        """Another one over the same nets."""
        given = begin, byte_class, self.budget, readable
        found = LinkedDFA(*given, lock=self.lock, origin=origin, marks=self.marks)
        found.tree = self.tree
        return found

    def anew(self) -> LinkedDFA:
        """The same automaton, of which nothing is written down yet. Raises UnsupportedFeatureError
        where it has no origin."""
        make, given = self.__reduce__()
        return make(*given)

    @property
    def is_nearly_full(self) -> bool:
        """Is more than half of the room for states or steps used up?"""
        return self._written.is_nearly_full

    # What is written down.

    @locked
    def enter(self, number: int) -> int:
        """The state that a step away leads to, by its number. Raises BudgetExceededError."""
        entered = int(self.steps.behind[number])
        if entered:
            return entered
        led, ends = self._written.led(number)
        if len(led) == 1 and not ends and not self._written.is_exit(led[0]):
            self._written.lead_into(number, led[0])
            return led[0]
        states, then = self._closed(led)
        state = self._state(states, ends or then)
        if state in self._members:
            # Kept before it was closed, so that the contexts can be joined with those of others.
            self._members[state] = packed_set(led, ends)
        self.steps.behind[number] = state
        return state

    def _closed(
        self, states: Iterable[int], continuations: Iterable[Continuation] = ()
    ) -> tuple[tuple[int, ...], bool]:
        """(states, may a text end): the given states, those where the continuations begin, and
        whatever follows the exits among them; without states that read nothing."""
        waiting, seen, ends = list(states), dict[int, bool](), False
        joining: dict[int, tuple[Part, list[Any]]] = {}  # by the part
        while True:
            check()
            for part, context in continuations:
                if part is None:
                    ends = True
                elif part.joined is None:
                    waiting.append(self._written.entered(part, context, part.table.start))
                else:
                    joining.setdefault(id(part), (part, []))[1].append(context)
            if not waiting and joining:
                part, contexts = joining.pop(min(joining, key=lambda k: joining[k][0].rank))
                one = part.joined(contexts) if part.joined else None
                waiting.append(self._written.entered(part, one, part.table.start))
            if not waiting:
                reading = sorted(state for state, reads in seen.items() if reads)
                return tuple(self._uncovered(reading) if len(reading) > 1 else reading), ends
            continuations = self._behind(waiting.pop(), seen)

    def _uncovered(self, states: list[int]) -> list[int]:
        """Some states without those of contexts that another one covers."""
        alike: dict[tuple[int, ...], list[tuple[int, Any, Covers]]] = {}
        for state in states:
            instance = self._written.instance_at(state)
            part, at = instance.part, instance.at(state)
            if part.covers:
                key = id(part.family), id(part.table), at
                alike.setdefault(key, []).append((state, instance.context, part.covers))
        covered = set[int]()
        for group in alike.values():
            for state, context, covers in group:
                check()
                for other, wider, _ in group:
                    if other != state and other not in covered and covers(wider, context):
                        covered.add(state)
        return [state for state in states if state not in covered] if covered else states

    def _behind(self, state: int, seen: dict[int, bool]) -> Iterable[Continuation]:
        """What follows a state, if it is an exit and was not seen before. seen: does it read?"""
        if state in seen:
            return ()
        instance = self._written.instance_at(state)
        at, part = instance.at(state), instance.part
        labels = part.table.exits.get(at, ())
        seen[state] = not labels or part.reads(at)
        return [one for label in labels for one in part.follow(instance.context, label)]

    def _state(self, states: tuple[int, ...], ends: bool) -> int:
        """The state for some states with all that follows them."""
        if not states and not ends:
            return 0
        if len(states) == 1 and not ends and not self._written.is_exit(states[0]):
            return states[0]
        key = packed_set(states, ends)
        found = self._state_of.get(key)
        if found is None:
            length = 0 if ends else min(map(self._written.length, states))
            found = self._written.new_state(ends, length, self._merged(states))
            self._members[found] = key
            self._state_of[key] = found
        return found

    def _merged(self, states: tuple[int, ...]) -> np.ndarray:
        """The row of a set: int64 [columns], states and -1 - the numbers of steps."""
        given = np.array(states, np.int64), self.steps.trans, self.steps.behind
        row, which, several = merged_row(*given)
        entries = np.array([0, *map(self._step_to, several)])
        return np.where(which > 0, entries[which], row)

    def _step_to(self, entries: tuple[int, ...]) -> int:
        """The entry of a step to several others at once."""
        found, ends = set[int](), False
        for entry in entries:
            if entry < 0:
                states, then = self._written.led(-1 - entry)
            else:
                kept = self._members.get(entry)
                states, then = members_of(kept) if kept else ((entry,), False)
            found.update(states)
            ends |= then
        key = packed_set(sorted(found), ends)
        number = self._step_of.get(key)
        if number is None:
            number = self._step_of[key] = self._written.new_step(key)
        return int(self.steps.behind[number]) or -1 - number


ByteAutomaton = ByteDFA | LinkedDFA


def explicit(automaton: ByteAutomaton, feature: str) -> ByteDFA:
    """The automaton, for what looks at all of its states. feature: what that is. Raises
    UnsupportedFeatureError for a linked one."""
    if isinstance(automaton, LinkedDFA):
        why = "it looks at all states: give what `to_dfa` of the automaton returns"
        raise UnsupportedFeatureError(f"{feature} of a linked automaton", why)
    return automaton
