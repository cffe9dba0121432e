"""From sets of values to automata of texts.

    L(write(V, style)) = the texts that the style gives the values of V

left out: orders of properties other than the one given, and spellings that the style does not use.
Arrays and objects are written from the inside out, each set once at each place (see `style`), as
minimal automata of their own, which are then copied into what is around them; very large ones as
networks, which are written out only once, with all that is around them.

A term p less n, m, ... is a difference of texts. It is right if p and what it has in common with
n, m, ... write a value alike, so all of them are written in one order (see `order`); and if nothing
that may be in n stays, so what is taken away is written generously: all spellings of a number, all
texts of which it is not sure how many names they have. Inside of what is taken away it is the other
way round.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from bpe_automata.automata import algebra
from bpe_automata.automata.assembly import Assembly, Network
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.automata.sources import from_strings
from bpe_automata.budget import Budget, check, spending
from bpe_automata.errors import BudgetExceededError, SchemaError, SchemaTooLargeError
from bpe_automata.schemas import numbers
from bpe_automata.schemas.boolean import meet_shapes
from bpe_automata.schemas.containers import array_texts, object_texts
from bpe_automata.schemas.leaves import least, most
from bpe_automata.schemas.style import Compound, OrderTree, Piece, Place, Style, Texts
from bpe_automata.schemas.values import (
    ALL_TEXTS,
    BOTH,
    ArrayShape,
    Child,
    ObjectShape,
    Shape,
    Term,
    Values,
    any_value,
)

# Whether a set is that of all values up to some depth, however it was made.

_DEEPEST = 16  # levels that are looked at


def anything_to(values: Values) -> int | None:
    """The d for which the set is `any_value(d)`; None if there is none (or it is very deep)."""
    depth = 0
    while depth < _DEEPEST:
        inside = _inside(values)
        if inside is None:
            return None
        if all(_is_none(child.values) for child in inside):
            return depth
        values, other = (child.values for child in inside)
        if values is not other and anything_to(values) != anything_to(other):
            return None
        depth += 1
    return None


def _inside(values: Values) -> tuple[Child, Child] | None:
    """What items and members may be, if all other things may be anything."""
    scalars = values.null and values.booleans == BOTH and values.strings is ALL_TEXTS
    if not scalars or values.numbers is not numbers.ALL:
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
    return shape.rest if free else None


def _member(shape: ObjectShape) -> Child | None:
    free = shape.fewest == 0 and shape.most is None and not shape.named and len(shape.rest) == 1
    return shape.rest[0][1] if free and shape.rest[0][0] is ALL_TEXTS else None


def _is_none(values: Values) -> bool:
    scalars = values.null or values.booleans or values.arrays or values.objects
    return not scalars and values.numbers.is_empty and values.strings.is_empty


_DEFAULT = Budget()
_REDUCED = 1_500_000  # cells of an automaton that is made minimal: below half a second
_OVERLAPPING = 6_000_000  # the same for a union: what overlaps is written more than once in it
_LARGE = 50_000  # nodes of a network that is no DFA until it is part of a whole, or compared
_LEVELS = 16  # sets inside one another that are written in one go, each in some 15 calls
_ROUNDS = 2  # all networks together may have so many times the nodes that one may have
_TOO_LARGE = "its automaton is larger; allow shorter texts or fewer items, or pass a larger Budget"
_Shape = ObjectShape | ArrayShape
_Order = OrderTree | None
_Found = TypeVar("_Found")
_Asked = tuple[Values, Place, _Order, bool]
_NOTHING = from_strings(())


class _Deeper(Exception):  # noqa: N818 - a signal, never seen by a caller
    """A set that must be written before the one that it was asked for, as calls would nest too
    deeply otherwise."""

    def __init__(self, asked: _Asked) -> None:
        self.asked = asked


def write(
    values: Values,
    style: Style,
    budget: Budget = _DEFAULT,
    order: _Order = None,
    unique_names: bool = False,
) -> ByteDFA:
    """The texts of a set of values, see above. Values must be nested to a bounded depth (`limited`
    in `depth`); order: of the names, None for that of each shape; unique_names: see `objects`.

    Minimal unless it is very large. The seconds and bytes of the budget are for all parts together,
    and so are twice its max_places. Raises SchemaTooLargeError with the place in the schema.
    """
    with spending(budget):
        return Writer(style, budget, unique_names).whole(values, order)


class Writer:
    """What has been written so far, for one style."""

    def __init__(self, style: Style, budget: Budget = _DEFAULT, unique_names: bool = False) -> None:
        self._style, self._budget, self._unique = style, budget, unique_names
        self._bytes = 0  # of all tables so far
        self._level = 0  # sets that are being written, each inside the one before
        self._nodes = 0  # of all networks so far that became automata
        self._orders: dict[int, OrderTree] = {}  # by the id of the term
        self._terms: list[Term[Any]] = []
        self._memo: dict[tuple[object, ...], tuple[object, Texts | Compound | _Shape]] = {}

    def whole(self, values: Values, order: _Order = None) -> ByteDFA:
        """The texts of a set of values, as whole texts."""

        def find() -> ByteDFA:
            return self._one(self._at_any_depth((values, self._style.root, order, False)))

        return self._guarded("#", find)

    def _at_any_depth(self, asked: _Asked) -> Texts:
        """The texts of a set, those of sets deep inside first."""
        waiting = [asked]
        while True:
            try:
                found = self._texts(*waiting[-1])
            except _Deeper as deeper:
                waiting.append(deeper.asked)
            else:
                waiting.pop()
                if not waiting:
                    return found

    def _one(self, texts: Texts) -> ByteDFA:
        pieces = texts.compounds
        if len(pieces) == 1 and not texts.scalars and isinstance(pieces[0], ByteDFA):
            return pieces[0]
        parts = Assembly()
        start, end = parts.state(), parts.state()
        parts.accept(end)
        texts.put(parts, start, end)
        return self._dfa(parts, start)

    def _made(self, parts: Assembly, start: int, largest: int = _REDUCED) -> Compound:
        """An automaton, or if it is large the network itself."""
        nodes = parts.nodes
        if nodes < _LARGE:
            return self._dfa(parts, start, largest)
        if nodes > self._budget.max_places:  # so much will not become less in something larger
            raise BudgetExceededError("states", self._budget.max_places, _TOO_LARGE)
        return _NOTHING if parts.is_empty(start) else Network(parts, start)

    def _closed(self, found: Compound) -> ByteDFA:
        """An automaton, whatever was made."""
        if isinstance(found, ByteDFA):
            return found
        key = ("closed", id(found))
        if key not in self._memo:
            self._memo[key] = (found, self._dfa(found.parts, found.start))
        return self._memo[key][1]  # type: ignore[return-value]

    def _dfa(self, parts: Assembly, start: int, largest: int = _REDUCED) -> ByteDFA:
        self._nodes += parts.nodes
        if self._nodes > _ROUNDS * self._budget.max_places:
            raise BudgetExceededError("states", _ROUNDS * self._budget.max_places, _TOO_LARGE)
        found = parts.dfa(start, self._left(), largest)
        self._bytes += found.trans.nbytes
        return found

    def _left(self) -> Budget:
        """What the parts together have left of the bytes of the budget."""
        return replace(self._budget, max_bytes=self._budget.max_bytes - self._bytes)

    def _texts(self, values: Values, place: Place, order: _Order, generous: bool) -> Texts:
        check()
        key = (id(values), place, id(order), generous)
        if key not in self._memo:
            if self._level == _LEVELS:
                raise _Deeper((values, place, order, generous))
            self._level += 1
            try:
                found = self._found(values, place, order, generous)
            finally:
                self._level -= 1
            self._memo[key] = ((values, order), found)  # kept, so that their ids stay theirs
        return self._memo[key][1]  # type: ignore[return-value]

    def _found(self, values: Values, place: Place, order: _Order, generous: bool) -> Texts:
        """The texts; those of anything at all are written once for all schemas."""
        depth = None if order or self._unique else anything_to(values)
        if depth is None:
            return self._spelled(values, place, order, generous)
        same = any_value(depth)
        find = partial(self._spelled, same, place, None, generous)
        return self._style.shared.once((place, generous), same, find)

    def _spelled(self, values: Values, place: Place, order: _Order, generous: bool) -> Texts:
        style, scalars = self._style, list[Piece]()
        if values.null:
            scalars.append(style.null())
        scalars += [style.boolean(value) for value in sorted(values.booleans)]
        if not values.numbers.is_empty:
            scalars.append(style.numbers(values.numbers, generous))
        texts = most(values.strings) if generous else least(values.strings)
        if not texts.is_empty:
            scalars.append(style.strings(texts, place))
        before, after = style.around(place)
        spelled = [piece for piece in scalars if isinstance(piece, bytes) or piece.start]
        compounds = [
            self._union(values.arrays, place, order, generous),
            self._union(values.objects, place, order, generous),
        ]
        written = [piece for piece in compounds if not _is_empty(piece)]
        return Texts(before, tuple(spelled), after, tuple(written))

    def _union(
        self, terms: tuple[Term[Shape], ...], place: Place, order: _Order, generous: bool
    ) -> Compound:
        """The texts of all terms. They are of one kind and may overlap: sorted out here, once."""
        found = [self._term(term, place, order, generous) for term in terms]
        found = [one for one in found if not _is_empty(one)]
        if len(found) == 1:
            return found[0]
        return self._made(*_choice(found), _OVERLAPPING) if found else _NOTHING

    def _term(self, term: Term[Shape], place: Place, order: _Order, generous: bool) -> Compound:
        if not term.minus:
            return self._shape(term.shape, place, order, generous)
        order = order or self._order(term)
        key = ("term", id(term), place, id(order), generous)
        if key not in self._memo:
            whole = self._shape(term.shape, place, order, generous)
            common = (self._common(term, other) for other in term.minus)
            less = [self._shape(shape, place, order, not generous) for shape in common]
            found = self._guarded(term.shape.pointer, lambda: self._difference(whole, less))
            self._memo[key] = ((term, order), found)
        return self._memo[key][1]  # type: ignore[return-value]

    def _difference(self, whole: Compound, less: list[Compound]) -> ByteDFA:
        taken = self._dfa(*_choice(less), _OVERLAPPING)
        found = algebra.difference(self._closed(whole), taken, self._left())
        self._bytes += found.trans.nbytes
        return found

    def _order(self, term: Term[Shape]) -> OrderTree:
        """Always the same one: what was written in it is known by its id."""
        tree = self._orders.get(id(term))
        if tree is None:
            tree = OrderTree((term.shape, *term.minus))
            self._orders[id(term)] = tree
            self._terms.append(term)  # so that its id stays its
        return tree

    def _common(self, term: Term[Shape], other: Shape) -> Shape:
        """What the term's shape has in common with one of its `minus`."""
        key = ("common", id(term), id(other))
        if key not in self._memo:
            self._memo[key] = ((term, other), meet_shapes(term.shape, other))
        return self._memo[key][1]  # type: ignore[return-value]

    def _shape(self, shape: _Shape, place: Place, order: _Order, generous: bool) -> Compound:
        key = (id(shape), place, id(order), generous)
        if key not in self._memo:
            found = self._guarded(
                shape.pointer, lambda: self._written(shape, place, order, generous)
            )
            self._memo[key] = ((shape, order), found)
        return self._memo[key][1]  # type: ignore[return-value]

    def _written(self, shape: _Shape, place: Place, order: _Order, generous: bool) -> Compound:
        style = self._style
        arrays = isinstance(shape, ArrayShape)
        brackets = style.arrays(place) if arrays else style.objects(place)

        def inside(child: Child, tree: _Order) -> Texts:
            return self._texts(child.values, brackets.inside, tree, generous)

        if isinstance(shape, ArrayShape):
            made = array_texts(shape, brackets, inside, order)
        else:
            unique = self._unique
            made = object_texts(shape, brackets, style, inside, order, generous, unique)
        return _NOTHING if made is None else self._made(*made)

    def _guarded(self, pointer: str, find: Callable[[], _Found]) -> _Found:
        """find(), where a budget that is exceeded is told with a place in the schema."""
        try:
            return find()
        except SchemaError:
            raise
        except BudgetExceededError as error:
            seconds = min(self._budget.max_seconds, error.limit)  # of a call around this one
            whole = {"seconds": seconds, "bytes": self._budget.max_bytes}
            limit = whole.get(error.resource, error.limit)
            raise SchemaTooLargeError(pointer, error.resource, limit, _TOO_LARGE) from error


def _choice(found: list[Compound]) -> tuple[Assembly, int]:
    """Parts that read any of them, and where they begin."""
    parts = Assembly()
    start, end = parts.state(), parts.state()
    parts.accept(end)
    for one in found:
        parts.put(start, one, end)
    return parts, start


def _is_empty(piece: Compound) -> bool:
    """Has it no text? The start of an empty DFA is the dead state; networks have one."""
    return isinstance(piece, ByteDFA) and not piece.start
