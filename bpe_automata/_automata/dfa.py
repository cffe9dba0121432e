"""The byte DFA, the form in which every regex, set of strings or foreign automaton is used.

L(dfa) = { w in bytes* : start --w--> accepting }
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from bpe_automata._budget import check
from bpe_automata._kernels.distance import NEVER, distances
from bpe_automata._kernels.links import Steps
from bpe_automata._limits import NUMBERS, check_fits
from bpe_automata._sharing import Immutable, cached
from bpe_automata.errors import BpeAutomataError, BudgetExceededError, EmptyLanguageError

if TYPE_CHECKING:
    from bpe_automata.viz import Edge, Picture

_STOP = 1 / 8  # chance that a sample ends in an accepting state that could go on
_SMALLER = "too large a table: use smaller repeat counts, or split the language"


class BrokenAutomatonError(BpeAutomataError):
    """Arrays that are not an automaton; the message holds the offending value."""


@dataclass(frozen=True, eq=False)
class ByteDFA(Immutable):
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
        return Steps(self.trans, self.byte_class, np.zeros(0, np.int32))

    @property
    def is_empty(self) -> bool:
        """Whether no string is accepted."""
        return bool(self.distance()[self.start] == NEVER)

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

    def accepts(self, data: bytes) -> bool:
        """Whether `data` is in the language."""
        return bool(self.accepting[self.walk(data)])

    def distance(self) -> np.ndarray:
        """int32 [n_states]: bytes to the nearest accepting state, -1 where there is none."""
        return self._distance

    @cached
    def _distance(self) -> np.ndarray:
        return distances(self.trans, self.accepting)

    def shortest(self, state: int | None = None) -> bytes | None:
        """The first string in length-lexicographic order, from `state` (the start by default); None
        if there is none."""
        return self._shortest if state is None else self._shortest_from(state)

    @cached
    def _shortest(self) -> bytes | None:
        return self._shortest_from(self.start)

    def _shortest_from(self, state: int) -> bytes | None:
        if self._distance[state] == NEVER:
            return None
        found = bytearray()
        while not self.accepting[state]:
            row = self.trans[state][self.byte_class]
            byte = int(np.argmax(self._distance[row] == self._distance[state] - 1))
            found.append(byte)
            state = int(row[byte])
        return bytes(found)

    def sample(self, rng: random.Random, max_bytes: int = 64) -> bytes:
        """A random accepted string: a walk that turns home when `max_bytes` come near.

        Longer than `max_bytes` only if the shortest string is. Raises EmptyLanguageError.
        """
        if self.is_empty:
            raise EmptyLanguageError("the automaton accepts nothing, so there is no sample")
        found, state = bytearray(), self.start
        while True:
            check()
            live = self.live_bytes(state)
            after = self._distance[self.trans[state, self.byte_class[live]]]
            near = live[after < max_bytes - len(found)]
            if self.accepting[state] and (not near.size or rng.random() < _STOP):
                return bytes(found)
            if not near.size:
                near = live[after == self._distance[state] - 1]
            found.append(int(near[rng.randrange(near.size)]))
            state = self.step(state, found[-1])

    def strings(self, limit: int) -> Iterator[bytes]:
        """All accepted strings in length-lexicographic order.

        Raises BudgetExceededError as soon as there must be more than `limit` of them; so always,
        for an infinite language.
        """
        yielded, level = 0, [] if self.is_empty else [(b"", self.start)]
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
                    live = self.live_bytes(state).tolist()
                    successors[state] = [(bytes((b,)), self.step(state, b)) for b in live]
            level = [(word + b, to) for word, state in level for b, to in successors[state]]

    def picture(self, path: bytes | str | None = None) -> Picture:
        """The automaton drawn, without its dead state; the way of `path` is highlighted.

        Over 40 states or 120 arrows, what is drawn is the first 40 states of the path and the first
        12 after the start, with the arrows of the path and those from the start to the 12.
        """
        return _picture(self, path)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return self.picture()._repr_mimebundle_()

    def live_bytes(self, state: int) -> np.ndarray:
        """int64: the bytes that keep an accepting state in reach, in order."""
        return np.flatnonzero(self._distance[self.trans[state]][self.byte_class] != NEVER)


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


# The automaton as a drawing: edges merged by target and labelled by ranges of bytes. Who draws none
# does not wait for `viz`, which is imported where it is used.

_MOST_STATES, _MOST_ARROWS, _MOST_SUCCESSORS = 40, 120, 12


def _picture(dfa: ByteDFA, path: bytes | str | None) -> Picture:
    """See `ByteDFA.picture`."""
    from bpe_automata.viz import Drawing, Edge, Node, Picture

    data = path.encode("utf-8", "surrogateescape") if isinstance(path, str) else path
    route = _route(dfa, data or b"")
    states = _reached(dfa)
    arrows = _arrows(dfa, states) if len(states) <= _MOST_STATES else {}
    small = len(states) <= _MOST_STATES and len(arrows) <= _MOST_ARROWS
    if not small:
        states, arrows = _summarised(dfa, route)
    position = {state: i for i, state in enumerate(states)}
    steps, lit = set(pairwise(route)), set(route if data is not None else ())
    nodes = tuple(
        Node(str(state), bool(dfa.accepting[state]), state == dfa.start, state in lit)
        for state in states
    )
    edges = tuple(
        Edge(position[p], position[q], byte_ranges(labels), (p, q) in steps)
        for (p, q), labels in arrows.items()
    )
    parts = [] if small else [*_left_out(dfa, route, edges)]
    if dfa.is_empty:
        parts.append("accepts nothing")
    if data is not None:
        parts.append(_verdict(dfa, data, route))
    return Picture(Drawing(nodes, edges, "; ".join(parts)))


def byte_ranges(values: Iterable[int]) -> str:
    """Ascending bytes as "0-9, _, a-z": visible, \\xc3 for those that are no ASCII."""
    from bpe_automata.viz import edge_label, visible

    runs: list[list[int]] = []
    for value in values:
        if runs and runs[-1][-1] == value - 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    labels = []
    for run in runs:
        ends = [visible(bytes((value,))) for value in (run[0], run[-1])]
        labels += ["-".join(ends)] if len(run) > 2 else ends[: len(run)]
    return edge_label(labels)


def _reached(dfa: ByteDFA) -> list[int]:
    """The start and the live states after it, breadth-first; at most one more than are drawn."""
    found = [dfa.start]
    for state in found:
        found += dict.fromkeys(to for _, to in _row(dfa, state) if to not in found)
        if len(found) > _MOST_STATES:
            break
    return found[: _MOST_STATES + 1]


def _row(dfa: ByteDFA, state: int) -> list[tuple[int, int]]:
    """(byte, next state), bytes ascending, where acceptance stays in reach."""
    after = dfa.trans[state][dfa.byte_class]
    live = np.flatnonzero(dfa.distance()[after] != NEVER)
    return list(zip(live.tolist(), after[live].tolist(), strict=True))


def _arrows(dfa: ByteDFA, sources: Iterable[int]) -> dict[tuple[int, int], list[int]]:
    """(source, target) -> bytes, ascending."""
    found: dict[tuple[int, int], list[int]] = {}
    for state in sources:
        for byte, target in _row(dfa, state):
            found.setdefault((state, target), []).append(byte)
    return found


def _summarised(
    dfa: ByteDFA, route: list[int]
) -> tuple[list[int], dict[tuple[int, int], list[int]]]:
    """The first states on the route, and the first successors of the start; only the arrows of the
    route and those of the start to the latter."""
    successors = dict.fromkeys(target for _, target in _row(dfa, dfa.start))
    first, most = list(dict.fromkeys(route))[:_MOST_STATES], list(successors)[:_MOST_SUCCESSORS]
    steps = [step for step in dict.fromkeys(pairwise(route)) if {*step} <= {*first}]
    wanted = dict.fromkeys((*steps[:_MOST_STATES], *((dfa.start, target) for target in most)))
    arrows = _arrows(dfa, dict.fromkeys(source for source, _ in wanted))
    return list(dict.fromkeys((*first, *most))), {step: arrows[step] for step in wanted}


def _left_out(dfa: ByteDFA, route: list[int], edges: tuple[Edge, ...]) -> Iterator[str]:
    """What the caption of a summary says of what is drawn."""
    whose = "of the start and of the path" if len(route) > 1 else "of the start"
    yield f"{dfa.n_states - 1:,} states, too large to draw: only arrows {whose} are shown"
    states, arrows = len({*route}), len({*pairwise(route)})
    lit = sum(edge.lit for edge in edges)
    if states > _MOST_STATES:
        yield f"the first {_MOST_STATES} of {states:,} states of the path"
    elif lit < arrows:
        yield f"the first {lit} of {arrows:,} arrows of the path"


def _route(dfa: ByteDFA, data: bytes) -> list[int]:
    """The states of a text, as long as acceptance stays in reach."""
    found = [dfa.start]
    for byte in data:
        after = dfa.step(found[-1], byte)
        if dfa.distance()[after] == NEVER:
            break
        found.append(after)
    return found


def _verdict(dfa: ByteDFA, data: bytes, route: list[int]) -> str:
    """What becomes of a text."""
    from bpe_automata.viz import visible

    read = len(route) - 1
    if read < len(data):
        return f"{visible(data)}: no match goes on with {visible(data[read : read + 1])} at {read}"
    return f"{visible(data)}: {'match' if dfa.accepting[route[-1]] else 'ends too early'}"
