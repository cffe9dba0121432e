"""Builds the automaton of all texts, in one style, of a set of values.

    L(write(V, style)) = { text of v in the style, with properties in one order : v in V }

Arrays and objects are written from the inside out, once for each set and context (see `style`), as
minimal automata that are copied into the automaton around them. Very large ones stay networks,
which are determinized only as part of the whole.

A term p - n - m ... is written as a difference of languages. That is exact under two conditions: p
and its intersections with n, m, ... write a value in the same way, so all use one order of names
(see `NameOrder`); and no text of n remains, so an upper bound of n is written: all spellings of a
number, and all texts with an undecided number of names. Inside n, what n itself subtracts is
written as a lower bound again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from bpe_automata._automata import algebra
from bpe_automata._automata.assembly import Assembly, Network
from bpe_automata._automata.dfa import ByteDFA
from bpe_automata._automata.sources import from_strings
from bpe_automata._budget import Budget, check, spending
from bpe_automata.errors import BudgetExceededError, SchemaError, SchemaTooLargeError
from bpe_automata.schemas import _numbers as numbers
from bpe_automata.schemas._boolean import intersect_shapes
from bpe_automata.schemas._containers import array_network, object_network
from bpe_automata.schemas._scalar_sets import lower_bound, upper_bound
from bpe_automata.schemas._style import Compound, Context, NameOrder, Piece, Spellings, Style
from bpe_automata.schemas._values import (
    ALL_STRINGS,
    BOOLEANS,
    ArrayShape,
    Child,
    ObjectShape,
    Shape,
    Term,
    Values,
    any_value,
)

# A set that equals `any_value(d)`, however it was computed, is written only once for all schemas.

_DEEPEST = 16  # levels that are compared


def depth_of_anything(values: Values) -> int | None:
    """The d with which the set equals `any_value(d)`; None if there is none below 16."""
    depth = 0
    while depth < _DEEPEST:
        inside = _inside(values)
        if inside is None:
            return None
        if all(_is_none(child.values) for child in inside):
            return depth
        values, other = (child.values for child in inside)
        if values is not other and depth_of_anything(values) != depth_of_anything(other):
            return None
        depth += 1
    return None


def _inside(values: Values) -> tuple[Child, Child] | None:
    """The children of items and properties of a set with all scalars, arrays and objects; None for
    other sets."""
    scalars = values.null and values.booleans == BOOLEANS and values.strings is ALL_STRINGS
    if not scalars or values.numbers is not numbers.ALL_NUMBERS:
        return None
    if len(values.arrays) != 1 or len(values.objects) != 1:
        return None
    array, members = values.arrays[0], values.objects[0]
    if array.minus or members.minus:
        return None
    item, member = _item(array.shape), _member(members.shape)
    return None if item is None or member is None else (item, member)


def _item(shape: ArrayShape) -> Child | None:
    free = shape.fewest == 0 and shape.most is None and not shape.unique and not shape.prefix
    return shape.rest if free and not shape.counted else None


def _member(shape: ObjectShape) -> Child | None:
    free = shape.fewest == 0 and shape.most is None and not shape.named and len(shape.rest) == 1
    return shape.rest[0][1] if free and shape.rest[0][0] is ALL_STRINGS else None


def _is_none(values: Values) -> bool:
    scalars = values.null or values.booleans or values.arrays or values.objects
    return not scalars and values.numbers.is_empty and values.strings.is_empty


_DEFAULT = Budget()
_REDUCED = 1_500_000  # entries of the table of an automaton that is minimised: below half a second
_OVERLAPPING = 6_000_000  # the same for a union, which contains what overlaps more than once
_LARGE = 50_000  # nodes of a network that is determinized only as part of a whole, or to compare
_LEVELS = 16  # nested sets that are written in one recursion, each in some 15 calls
_ROUNDS = 2  # all networks together may have so many times the nodes that one may have
_TOO_LARGE = "its automaton is larger; allow shorter texts or fewer items, or pass a larger Budget"
_Shape = ObjectShape | ArrayShape
_Order = NameOrder | None
_Found = TypeVar("_Found")
_Request = tuple[Values, Context, _Order, bool]
_NOTHING = from_strings(())


class _Deeper(Exception):  # noqa: N818 - a signal, never seen by a caller
    """A set must be written before the one that contains it, as calls would nest too deeply."""

    def __init__(self, request: _Request) -> None:
        self.request = request


def write(
    values: Values,
    style: Style,
    budget: Budget = _DEFAULT,
    order: _Order = None,
    unique_names: bool = False,
) -> ByteDFA:
    """The language of a set of values of bounded nesting (see `limit_recursion`).

    order: of the names, None for that of each shape. unique_names: no name comes twice in an
    object. The automaton is minimal unless it is very large. The seconds and bytes of the budget,
    and twice its max_instructions, are for all parts together. Raises SchemaTooLargeError with the
    pointer of the schema.
    """
    with spending(budget):
        return Writer(style, budget, unique_names).whole(values, order)


class Writer:
    """Writes sets of values in one style, each of them once."""

    def __init__(self, style: Style, budget: Budget = _DEFAULT, unique_names: bool = False) -> None:
        self._style, self._budget, self._unique = style, budget, unique_names
        self._bytes = 0  # of all tables so far
        self._level = 0  # nested sets that are being written
        self._nodes = 0  # of all networks so far that were determinized
        self._orders: dict[int, NameOrder] = {}  # by the id of the term
        self._terms: list[Term[Any]] = []
        self._memo: dict[tuple[object, ...], tuple[object, Spellings | Compound | _Shape]] = {}

    def whole(self, values: Values, order: _Order = None) -> ByteDFA:
        """The language of a set of values as whole texts."""

        def find() -> ByteDFA:
            return self._one(self._at_any_depth((values, self._style.root, order, False)))

        return self._guarded("#", find)

    def compounds(self, values: Values, context: Context) -> list[ByteDFA]:
        """The languages of the arrays and objects of a set."""
        found = self._at_any_depth((values, context, None, False))
        return [self._determinized(piece) for piece in found.compounds]

    def _at_any_depth(self, request: _Request) -> Spellings:
        """The texts of a set; sets deep inside are written first."""
        waiting = [request]
        while True:
            try:
                found = self._spellings(*waiting[-1])
            except _Deeper as deeper:
                waiting.append(deeper.request)
            else:
                waiting.pop()
                if not waiting:
                    return found

    def _one(self, spellings: Spellings) -> ByteDFA:
        pieces = spellings.compounds
        if len(pieces) == 1 and not spellings.scalars and isinstance(pieces[0], ByteDFA):
            return pieces[0]
        parts = Assembly()
        start, end = parts.state(), parts.state()
        parts.accept(end)
        spellings.put(parts, start, end)
        return self._dfa(parts, start)

    def _made(self, parts: Assembly, start: int, largest: int = _REDUCED) -> Compound:
        """An automaton, or the network itself if it is large."""
        nodes = parts.nodes
        if nodes < _LARGE:
            return self._dfa(parts, start, largest)
        if (
            nodes > self._budget.max_instructions
        ):  # it would exceed the budget as part of a whole, too
            raise BudgetExceededError("states", self._budget.max_instructions, _TOO_LARGE)
        return _NOTHING if parts.is_empty(start) else Network(parts, start)

    def _determinized(self, found: Compound) -> ByteDFA:
        """An automaton, also of a network."""
        if isinstance(found, ByteDFA):
            return found
        key = ("determinized", id(found))
        if key not in self._memo:
            self._memo[key] = (found, self._dfa(found.parts, found.start))
        return self._memo[key][1]  # type: ignore[return-value]

    def _dfa(self, parts: Assembly, start: int, largest: int = _REDUCED) -> ByteDFA:
        self._nodes += parts.nodes
        if self._nodes > _ROUNDS * self._budget.max_instructions:
            raise BudgetExceededError("states", _ROUNDS * self._budget.max_instructions, _TOO_LARGE)
        found = parts.dfa(start, self._remaining(), largest)
        self._bytes += found.trans.nbytes
        return found

    def _remaining(self) -> Budget:
        """The budget with the bytes that the parts so far have not used."""
        return replace(self._budget, max_bytes=self._budget.max_bytes - self._bytes)

    def _spellings(self, values: Values, context: Context, order: _Order, upper: bool) -> Spellings:
        check()
        key = (id(values), context, id(order), upper)
        if key not in self._memo:
            if self._level == _LEVELS:
                raise _Deeper((values, context, order, upper))
            self._level += 1
            try:
                found = self._found(values, context, order, upper)
            finally:
                self._level -= 1
            self._memo[key] = ((values, order), found)  # keeping both keeps their ids unique
        return self._memo[key][1]  # type: ignore[return-value]

    def _found(self, values: Values, context: Context, order: _Order, upper: bool) -> Spellings:
        """The texts of a set; those of `any_value` are shared by all schemas."""
        depth = None if order or self._unique else depth_of_anything(values)
        if depth is None:
            return self._spelled(values, context, order, upper)
        same = any_value(depth)
        find = partial(self._spelled, same, context, None, upper)
        return self._style.shared.once((context, upper), same, find)

    def _spelled(self, values: Values, context: Context, order: _Order, upper: bool) -> Spellings:
        style, scalars = self._style, list[Piece]()
        if values.null:
            scalars.append(style.null())
        scalars += [style.boolean(value) for value in sorted(values.booleans)]
        if not values.numbers.is_empty:
            scalars.append(style.numbers(values.numbers, upper))
        strings = upper_bound(values.strings) if upper else lower_bound(values.strings)
        if not strings.is_empty:
            scalars.append(style.strings(strings, context))
        before, after = style.around(context)
        spelled = [piece for piece in scalars if isinstance(piece, bytes) or piece.start]
        compounds = [
            self._union(values.arrays, context, order, upper),
            self._union(values.objects, context, order, upper),
        ]
        written = [piece for piece in compounds if not _is_empty(piece)]
        return Spellings(before, tuple(spelled), after, tuple(written))

    def _union(
        self, terms: tuple[Term[Shape], ...], context: Context, order: _Order, upper: bool
    ) -> Compound:
        """The language of all terms, which may overlap."""
        found = [self._term(term, context, order, upper) for term in terms]
        found = [one for one in found if not _is_empty(one)]
        if len(found) == 1:
            return found[0]
        return self._made(*_choice(found), _OVERLAPPING) if found else _NOTHING

    def _term(self, term: Term[Shape], context: Context, order: _Order, upper: bool) -> Compound:
        if not term.minus:
            return self._shape(term.shape, context, order, upper)
        order = order or self._order(term)
        key = ("term", id(term), context, id(order), upper)
        if key not in self._memo:
            whole = self._shape(term.shape, context, order, upper)
            common = (self._common(term, other) for other in term.minus)
            less = [self._shape(shape, context, order, not upper) for shape in common]
            found = self._guarded(term.shape.pointer, lambda: self._difference(whole, less))
            self._memo[key] = ((term, order), found)
        return self._memo[key][1]  # type: ignore[return-value]

    def _difference(self, whole: Compound, less: list[Compound]) -> ByteDFA:
        taken = self._dfa(*_choice(less), _OVERLAPPING)
        found = algebra.difference(self._determinized(whole), taken, self._remaining())
        self._bytes += found.trans.nbytes
        return found

    def _order(self, term: Term[Shape]) -> NameOrder:
        """The order of names of a term, always the same object: memos use its id."""
        tree = self._orders.get(id(term))
        if tree is None:
            tree = NameOrder((term.shape, *term.minus))
            self._orders[id(term)] = tree
            self._terms.append(term)  # so that its id stays unique
        return tree

    def _common(self, term: Term[Shape], other: Shape) -> Shape:
        """The intersection of a term's shape with one of its `minus`, always the same object."""
        key = ("common", id(term), id(other))
        if key not in self._memo:
            self._memo[key] = ((term, other), intersect_shapes(term.shape, other))
        return self._memo[key][1]  # type: ignore[return-value]

    def _shape(self, shape: _Shape, context: Context, order: _Order, upper: bool) -> Compound:
        key = (id(shape), context, id(order), upper)
        if key not in self._memo:
            found = self._guarded(
                shape.pointer, lambda: self._written(shape, context, order, upper)
            )
            self._memo[key] = ((shape, order), found)
        return self._memo[key][1]  # type: ignore[return-value]

    def _written(self, shape: _Shape, context: Context, order: _Order, upper: bool) -> Compound:
        style = self._style
        arrays = isinstance(shape, ArrayShape)
        brackets = style.arrays(context) if arrays else style.objects(context)

        def inside(child: Child, tree: _Order) -> Spellings:
            return self._spellings(child.values, brackets.inside, tree, upper)

        if isinstance(shape, ArrayShape):
            made = array_network(shape, brackets, inside, order)
        else:
            unique = self._unique
            made = object_network(shape, brackets, style, inside, order, upper, unique)
        return _NOTHING if made is None else self._made(*made)

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


def _choice(found: list[Compound]) -> tuple[Assembly, int]:
    """A network of their union, and its start state."""
    parts = Assembly()
    start, end = parts.state(), parts.state()
    parts.accept(end)
    for one in found:
        parts.put(start, one, end)
    return parts, start


def _is_empty(piece: Compound) -> bool:
    """Whether it has no text. The start of an empty DFA is the dead state; a network has a text."""
    return isinstance(piece, ByteDFA) and not piece.start
