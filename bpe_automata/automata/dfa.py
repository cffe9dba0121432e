"""The byte DFA, the form in which every regex, set of strings or foreign automaton is used.

L(dfa) = { w in bytes* : start --w--> accepting }
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from bpe_automata._budget import Budget, check, spent
from bpe_automata._kernels.distance import NEVER, distances
from bpe_automata._limits import NUMBERS, check_fits
from bpe_automata._sharing import Immutable, cached
from bpe_automata.errors import BpeAutomataError, BudgetExceededError, EmptyLanguageError

if TYPE_CHECKING:
    from bpe_automata.viz import Picture

_STOP = 1 / 8  # chance that a sample ends in an accepting state that could go on
_SMALLER = "too large a table: use smaller repeat counts, or split the language"


class BrokenAutomatonError(BpeAutomataError):
    """Arrays that are not an automaton; the message holds the offending value."""


class ByteLanguage(Immutable):
    """What explicit and linked automata share. start: a state. byte_class: uint8 [256]. Over all
    states, of which 0 is dead: accepting bool; far int32, bytes to the nearest accepting state,
    NEVER where there is none."""

    is_linked: ClassVar[bool]
    budget: Budget | None = None  # of each call
    tree: Any = None  # of joins with named parts, see `trees.JoinTree`
    if TYPE_CHECKING:  # what each kind has of its own

        @property
        def start(self) -> int: ...
        @property
        def byte_class(self) -> np.ndarray: ...
        @property
        def accepting(self) -> np.ndarray: ...
        @property
        def far(self) -> np.ndarray: ...
        def step(self, state: int, byte: int) -> int: ...
        def after(self, states: np.ndarray, columns: np.ndarray) -> np.ndarray: ...
        def walk(self, data: bytes, state: int | None = None) -> int: ...
        def live_bytes(self, state: int) -> np.ndarray: ...

    def accepts(self, data: bytes) -> bool:
        """Whether `data` is in the language."""
        return bool(self.accepting[self.walk(data)])

    def successors(self, state: int) -> dict[int, int]:
        """The state after each byte that keeps an accepting state in reach, in order."""
        live, after = self.row(state)
        return dict(zip(live.tolist(), after.tolist(), strict=True))

    def row(self, state: int) -> tuple[np.ndarray, np.ndarray]:
        """(its live bytes; the state after each)."""
        live = self.live_bytes(state)
        return live, self.after(np.full(len(live), state), self.byte_class[live])

    @spent
    def shortest(self, state: int | None = None) -> bytes | None:
        """The first string in length-lexicographic order, from `state` (the start by default); None
        if there is none."""
        return self._shortest if state is None else self._shortest_from(state)

    @cached
    def _shortest(self) -> bytes | None:
        return self._shortest_from(self.start)

    def _shortest_from(self, state: int) -> bytes | None:
        if self.far[state] == NEVER:
            return None
        found = bytearray()
        while not self.accepting[state]:
            check()
            live, after = self.row(state)
            nearest = int(np.argmin(self.far[after]))
            found.append(int(live[nearest]))
            state = int(after[nearest])
        return bytes(found)

    @spent
    def sample(self, rng: random.Random, max_bytes: int = 64) -> bytes:
        """A random accepted string: a walk that turns home when `max_bytes` come near.

        Longer than `max_bytes` only if the shortest string is. Raises EmptyLanguageError.
        """
        if self.far[self.start] == NEVER:
            raise EmptyLanguageError("the automaton accepts nothing, so there is no sample")
        found, state = bytearray(), self.start
        while True:
            check()
            live, after = self.row(state)
            far = self.far[after]
            near = live[far < max_bytes - len(found)]
            if self.accepting[state] and (not near.size or rng.random() < _STOP):
                return bytes(found)
            if not near.size:
                near = live[far == far.min()]
            found.append(int(near[rng.randrange(near.size)]))
            state = self.step(state, found[-1])

    def strings(self, limit: int) -> Iterator[bytes]:
        """All accepted strings in length-lexicographic order.

        Raises BudgetExceededError as soon as there must be more than `limit` of them; so always,
        for an infinite language.
        """
        yielded, level = 0, [] if self.far[self.start] == NEVER else [(b"", self.start)]
        successors: dict[int, list[tuple[bytes, int]]] = {}
        while level:
            # Each prefix of the level can be completed, and to different strings.
            if yielded + len(level) > limit:
                raise BudgetExceededError("strings", limit, "the language holds more")
            for prefix, state in level:
                check()
                if self.accepting[state]:
                    yielded += 1
                    yield prefix
                if state not in successors:
                    after = self.successors(state).items()
                    successors[state] = [(bytes((byte,)), to) for byte, to in after]
            level = [(word + b, to) for word, state in level for b, to in successors[state]]

    def picture(self, path: bytes | str | None = None) -> Picture:
        """The automaton drawn, without its dead state; the way of `path` is highlighted.

        A linked automaton, or one of over 40 states or 120 arrows, is drawn near the first 100
        bytes of `path` (the start by default; of a linked one, the shortest string): the states on
        the way with the arrows from them, to at most 40 states.
        """
        from bpe_automata.viz import Drawing, Picture, visible
        from bpe_automata.viz._automata import LONGEST_PATH, byte_ranges, drawn

        given = path.encode("utf-8", "surrogateescape") if isinstance(path, str) else path
        data, shortest = given or b"", self.shortest()
        near = shortest or b"" if given is None and self.is_linked else data
        view = drawn(
            self, near, lambda found, _: byte_ranges(found), given is not None, not self.is_linked
        )
        near, read = near[:LONGEST_PATH], len(view.route) - 1
        caption = [] if view.is_whole else [f"the states near {visible(near, 40) or 'the start'}"]
        if shortest is None:
            caption.append("accepts nothing")
        if given is not None and read == LONGEST_PATH < len(data):
            caption.append(f"the first {LONGEST_PATH} bytes of {len(data):,}")
        elif read < len(data):
            wrong = visible(data[read : read + 1])
            caption.append(f"{visible(data)}: no match goes on with {wrong} at {read}")
        elif given is not None:
            end = "match" if self.accepting[view.route[-1]] else "ends too early"
            caption.append(f"{visible(data)}: {end}")
        return Picture(Drawing(view.nodes, view.edges, "; ".join(caption)))

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return self.picture()._repr_mimebundle_()


class Steps(NamedTuple):
    """trans int32 [n_states, columns], byte_class uint8 [256]: where each state leads. Of a linked
    automaton an entry may be -1 - the number of a step that leaves what was written down at once;
    behind int32 [steps]: the state that such a step leads to, 0: not written down yet."""

    trans: np.ndarray
    byte_class: np.ndarray
    behind: np.ndarray

    def resolved(self, entries: np.ndarray) -> np.ndarray:
        """int64: the states that some entries of `trans` lead to; below 0 for a step to a state
        that is not written down."""
        found = entries.astype(np.int64)
        away = np.flatnonzero(entries < 0)
        behind = self.behind[-1 - found.flat[away]]
        found.flat[away] = np.where(behind > 0, behind, found.flat[away])
        return found


@dataclass(frozen=True, eq=False)
class ByteDFA(ByteLanguage):
    """{ w in bytes* : start --w--> accepting }, complete, with dead state 0.

    trans: int32 [n_states, n_classes], C-contiguous; row 0 is all 0.
    byte_class: uint8 [256], the column of each byte. accepting: bool [n_states]. start: a state,
    0 iff the language is empty. Raises BrokenAutomatonError if the arrays contradict each other,
    or have over 256 columns, and BudgetExceededError for a table of over 2**31 - 1 cells.

    What `compile_regex`, `from_strings` and `from_interegular` return is moreover minimal, trimmed
    and numbered breadth-first by byte, so equal languages have equal arrays.
    """

    trans: np.ndarray
    byte_class: np.ndarray
    accepting: np.ndarray
    start: int
    is_linked = False

    def __post_init__(self) -> None:
        _check_arrays(self.trans, self.byte_class, self.accepting)
        n_states, n_classes = self.trans.shape
        _need(n_classes <= 256, lambda: f"{n_classes} columns for 256 bytes")
        check_fits("cells", self.trans.size, NUMBERS, _SMALLER)
        top, low, high = self.byte_class.max(), self.trans.min(), self.trans.max()
        _need(0 <= self.start < n_states, lambda: f"start {self.start} of {n_states} states")
        _need(top < n_classes, lambda: f"byte class {top}")
        _need(not self.trans[0].any() and not self.accepting[0], lambda: "state 0 is not dead")
        _need(low >= 0 and high < n_states, lambda: f"states {low}..{high}, of {n_states}")

    @property
    def n_states(self) -> int:
        """The number of states, the dead one included."""
        return self.trans.shape[0]

    @property
    def n_classes(self) -> int:
        """The number of columns."""
        return self.trans.shape[1]

    @cached
    def steps(self) -> Steps:
        """The same for kernels."""
        trans, byte_class = self.trans, self.byte_class
        if byte_class.dtype != np.uint8:  # perhaps there are columns of no byte
            columns, byte_class = np.unique(byte_class, return_inverse=True)
            trans, byte_class = np.ascontiguousarray(trans[:, columns]), byte_class.astype(np.uint8)
        return Steps(trans, byte_class, np.zeros(0, np.int32))

    @property
    def is_empty(self) -> bool:
        """Whether no string is accepted."""
        return bool(self.far[self.start] == NEVER)

    def step(self, state: int, byte: int) -> int:
        """The state after one byte."""
        return int(self.trans[state, self.byte_class[byte]])

    def after(self, states: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """int32: the state after a byte of a column from each of many states."""
        found: np.ndarray = self.trans[states, columns]
        return found

    def walk(self, data: bytes, state: int | None = None) -> int:
        """The state after some bytes, from `state` (the start by default)."""
        state = self.start if state is None else state
        for column in self.byte_class[np.frombuffer(data, np.uint8)].tolist():
            state = self.trans[state, column]
        return int(state)

    @cached
    def far(self) -> np.ndarray:
        """int32 [n_states]: bytes to the nearest accepting state, NEVER where there is none."""
        return distances(self.trans, self.accepting)

    def live_bytes(self, state: int) -> np.ndarray:
        """int64: the bytes that keep an accepting state in reach, in order."""
        return np.flatnonzero(self.far[self.trans[state]][self.byte_class] != NEVER)


def _check_arrays(trans: np.ndarray, byte_class: np.ndarray, accepting: np.ndarray) -> None:
    """Types and shapes."""
    good = trans.dtype == np.int32 and trans.ndim == 2 and trans.size and trans.flags.c_contiguous
    _need(bool(good), lambda: f"trans is {trans.dtype} {trans.shape}, not int32 [n, k]")
    good = byte_class.dtype in (np.uint8, np.uint16) and byte_class.shape == (256,)
    _need(good, lambda: f"byte_class is {byte_class.dtype} {byte_class.shape}, not uint8 (256,)")
    rows = trans.shape[:1]
    good = accepting.dtype == np.bool_ and accepting.shape == rows
    _need(good, lambda: f"accepting is {accepting.dtype} {accepting.shape}, not bool {rows}")


def _need(condition: bool, found: Callable[[], str]) -> None:
    """Words are made only when they are needed: automata are made by the thousand."""
    if not condition:
        raise BrokenAutomatonError(f"not a byte automaton: {found()}")
