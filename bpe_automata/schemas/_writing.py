"""Writes the automaton of all texts, in one style, of a set of values of bounded nesting.

    L(write(V, style)) = { text of v, members in the order of the schema : v in V }

Objects and arrays are those that a linked automaton follows step by step (see `_linking`), but all
their states are written down: from the inside out, once for each set and context (see `style`), as
minimal automata that are copied into the automaton around them. Very large ones stay networks
(automata with empty transitions), which are determinized only as part of the whole.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple, TypeVar

from bpe_automata._automata.assembly import Assembly, Network
from bpe_automata._automata.dfa import ByteDFA
from bpe_automata._automata.sources import from_strings
from bpe_automata._budget import Budget, check, spending
from bpe_automata.errors import BudgetExceededError, SchemaError, SchemaTooLargeError
from bpe_automata.schemas._frames import Container, State, Text
from bpe_automata.schemas._items import Items
from bpe_automata.schemas._linking import Linker
from bpe_automata.schemas._scalar_sets import lower_bound
from bpe_automata.schemas._style import Context, Style
from bpe_automata.schemas._values import Values, any_value, depth_of_anything

_DEFAULT = Budget()
_REDUCED = 1_500_000  # entries of the table of an automaton that is minimised: below half a second
_OVERLAPPING = 6_000_000  # the same for a union, which contains what overlaps more than once
_LARGE = 50_000  # nodes of a network that is determinized only as part of a whole
_LEVELS = 16  # nested sets that are written in one recursion, each in some 15 calls
_ROUNDS = 2  # all networks together may have so many times the nodes that one may have
_TOO_LARGE = "its automaton is larger; allow shorter texts or fewer items, or pass a larger Budget"
_MOST_PLACES = 20_000  # in an object or array, but for those of items that are only counted
_TOO_MANY = (
    "each set of members or items that makes a difference has its state: let fewer depend on one "
    "another, or link the schema"
)
_Found = TypeVar("_Found")
_Request = tuple[Values, Context]
_Compound = ByteDFA | Network
_NOTHING = from_strings(())


class _Texts(NamedTuple):
    """Of a set: those of its scalars, and the language of its arrays and objects, if it has any."""

    scalars: list[Text]
    compound: _Compound | None

    def put(self, parts: Assembly, one: int, other: int) -> None:
        """Let each text lead from state `one` to state `other`."""
        if self.compound is not None:
            parts.put(one, self.compound, other)
        for text in self.scalars:
            at = one
            for k, piece in enumerate(text, 1):
                to = other if k == len(text) else parts.state()
                parts.put(at, piece, to)
                at = to


class _Deeper(Exception):  # noqa: N818 - a signal, never seen by a caller
    """A set must be written before the one that contains it, as calls would nest too deeply."""

    def __init__(self, request: _Request) -> None:
        self.request = request


def write(
    values: Values, style: Style, budget: Budget = _DEFAULT, unique_names: bool = False
) -> ByteDFA:
    """The language of a set of values of bounded nesting (see `limit_recursion`).

    unique_names: no name comes twice in an object. The automaton is minimal unless it is very
    large. The seconds and bytes of the budget, and twice its max_instructions, are for all parts
    together. Raises SchemaTooLargeError with the pointer of the schema.
    """
    with spending(budget):
        return _Writer(style, budget, unique_names).whole(values)


class _Writer:
    """Writes sets of values in one style, each of them once."""

    def __init__(self, style: Style, budget: Budget, unique_names: bool) -> None:
        self._style, self._budget, self._unique = style, budget, unique_names
        self._linker = Linker(style, "schema", unique_names)
        self._bytes = 0  # of all tables so far
        self._level = 0  # nested sets that are being written
        self._nodes = 0  # of all networks so far that were determinized
        self._texts: dict[tuple[int, Context], tuple[Values, _Texts]] = {}

    def whole(self, values: Values) -> ByteDFA:
        """The language of a set of values as whole texts."""
        return self._guarded("#", lambda: self._one(self._at_any_depth((values, self._style.root))))

    def _at_any_depth(self, request: _Request) -> _Texts:
        """The texts of a set; sets deep inside are written first."""
        waiting = [request]
        while True:
            try:
                found = self._of(*waiting[-1])
            except _Deeper as deeper:
                waiting.append(deeper.request)
            else:
                waiting.pop()
                if not waiting:
                    return found

    def _one(self, texts: _Texts) -> ByteDFA:
        if isinstance(texts.compound, ByteDFA) and not texts.scalars:
            return texts.compound
        return self._dfa(*_between(texts))

    def _made(self, parts: Assembly, start: int, largest: int = _REDUCED) -> _Compound:
        """An automaton, or the network itself if it is large."""
        if parts.nodes < _LARGE:
            return self._dfa(parts, start, largest)
        if parts.nodes > self._budget.max_instructions:  # so would what it is part of
            raise BudgetExceededError("states", self._budget.max_instructions, _TOO_LARGE)
        return _NOTHING if parts.is_empty(start) else Network(parts, start)

    def _check_nodes(self, parts: Assembly) -> None:
        most = _ROUNDS * self._budget.max_instructions
        if self._nodes + parts.nodes > most:
            raise BudgetExceededError("states", most, _TOO_LARGE)

    def _dfa(self, parts: Assembly, start: int, largest: int = _REDUCED) -> ByteDFA:
        self._check_nodes(parts)
        self._nodes += parts.nodes
        remaining = replace(self._budget, max_bytes=self._budget.max_bytes - self._bytes)
        found = parts.dfa(start, remaining, largest)
        self._bytes += found.trans.nbytes
        return found

    def _of(self, values: Values, context: Context) -> _Texts:
        """The texts of a set."""
        check()
        key = id(values), context
        if key not in self._texts:
            if self._level == _LEVELS:
                raise _Deeper((values, context))
            self._level += 1
            try:
                self._texts[key] = values, self._shared(values, context)
            finally:
                self._level -= 1
        return self._texts[key][1]

    def _shared(self, values: Values, context: Context) -> _Texts:
        """The texts of a set; those of `any_value` are shared by all schemas."""
        depth = None if self._unique else depth_of_anything(values)
        if depth is None:
            return self._written(values, context)
        same = any_value(depth)
        find = partial(self._written, same, context)
        return self._style.shared.once(("written", context), same, find)

    def _written(self, values: Values, context: Context) -> _Texts:
        value = self._linker.value(values, context)
        scalars = value.scalars
        if value.ladder:
            scalars = [*scalars, (self._style.strings(lower_bound(values.strings), context),)]
        compounds = [
            self._guarded(one.pointer, partial(self._network, one)) for one in value.containers
        ]
        compounds = [one for one in compounds if not _is_empty(one)]
        if len(compounds) > 1:
            compounds = [
                self._made(*_between(*(_Texts([], one) for one in compounds)), _OVERLAPPING)
            ]
        return _Texts(scalars, compounds[0] if compounds else None)

    def _network(self, container: Container) -> _Compound:
        """The arrays or objects of a term: states before a member or item and after one."""
        parts, brackets = Assembly(), container.brackets
        start, end, last = parts.state(), parts.state(), parts.state()
        parts.accept(end)
        parts.put(last, brackets.last, end)
        if container.may_be_empty:
            parts.put(start, brackets.empty, end)
        before, after = dict[State, int](), dict[State, int]()
        waiting = list[State]()

        def place_before(state: State) -> int:
            if state not in before:
                before[state] = parts.state()
                waiting.append(state)
            return before[state]

        def place_after(state: State) -> int:
            if state not in after:
                after[state] = parts.state()
                parts.put(after[state], brackets.between, place_before(state))
                if container.may_end(state):
                    parts.skip(after[state], last)
            return after[state]

        parts.put(start, brackets.first, place_before(container.begin))
        while waiting:
            check()
            self._check_nodes(parts)
            if len(before) > _MOST_PLACES and not isinstance(container, Items):
                raise BudgetExceededError("sets of members or items", _MOST_PLACES, _TOO_MANY)
            state = waiting.pop()
            for key, values, then in container.choices(state):
                if values is None:
                    parts.skip(before[state], place_before(then))
                    continue
                value = parts.state()
                parts.put(before[state], key, value)
                self._of(values, brackets.inside).put(parts, value, place_after(then))
        return self._made(parts, start)

    def _guarded(self, pointer: str, find: Callable[[], _Found]) -> _Found:
        """find(), with an exceeded budget reported as SchemaTooLargeError at the pointer."""
        try:
            return find()
        except SchemaError:
            raise
        except BudgetExceededError as error:
            seconds = min(self._budget.max_seconds, error.limit)  # a caller's may be fewer
            whole = {"seconds": seconds, "bytes": self._budget.max_bytes}
            limit = whole.get(error.resource, error.limit)
            raise SchemaTooLargeError(pointer, error.resource, limit, _TOO_LARGE) from error


def _between(*sets: _Texts) -> tuple[Assembly, int]:
    """A network of all their texts, and its start state."""
    parts = Assembly()
    start, end = parts.state(), parts.state()
    parts.accept(end)
    for texts in sets:
        texts.put(parts, start, end)
    return parts, start


def _is_empty(piece: _Compound) -> bool:
    """Whether it has no text. The start of an empty DFA is the dead state; a network has a text."""
    return isinstance(piece, ByteDFA) and not piece.start
