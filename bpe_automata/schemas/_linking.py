"""Builds the linked automaton of all texts of a set of values in a style (see `automata.linked`).

    value      a rule, see `automata.rounds`: its scalars, and its objects and arrays
    object     after each member, what may come next: a node for each set of remaining members
    array      after each item, a comma or the end: a node for each count that matters

The stack of a rule says which object or array a value is in, which members or items came before it,
and what surrounds that. So values may be nested and counted without limit, and members may come in
any order: only nodes that a text has led to are written down. Texts of several shapes of a union
may begin alike, or be the same: a value that may be in several objects is read once, in one stack
that has a frame for each of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bpe_automata._budget import check
from bpe_automata._sharing import cached
from bpe_automata.automata.parts import BYTE, FAR
from bpe_automata.automata.rounds import Edge, Repeat, length
from bpe_automata.errors import BudgetExceededError
from bpe_automata.schemas._items import ComparedItems, DistinctItems, Items
from bpe_automata.schemas._ladders import ladder
from bpe_automata.schemas._members import Objects
from bpe_automata.schemas._nets import END, LONGEST, VALUE, Container, Order, node
from bpe_automata.schemas._regularity import uncontained
from bpe_automata.schemas._scalar_sets import Finite, Limited, lower_bound
from bpe_automata.schemas._style import Context, Piece, Style
from bpe_automata.schemas._values import ArrayShape, Values

_MANY = 8  # of more shapes than this, those that others contain are dropped


class Linker:
    """Makes the rules of all sets of values of one schema, each when it is first entered."""

    def __init__(
        self, style: Style, order: Order, unique_names: bool, depth: int | None = None
    ) -> None:
        """depth: how many objects and arrays may be around a value, None for no limit. (Lengths are
        those without a limit, so some states may lead to no end.)"""
        self.style, self.order, self.unique = style, order, unique_names
        self._depth = depth
        self._values: dict[tuple[int, Context, int | None], _Value] = {}
        self._lengths: dict[int, int] = {}
        self._measured: dict[int, _Value] = {}  # while their lengths are found

    def texts(self, values: Values) -> Repeat | None:
        """The rule that reads the texts of a set; None if it has none."""
        is_empty = self.length(values) >= FAR
        return None if is_empty else self.rule(values, self.style.root, self._depth)

    def rule(self, values: Values, context: Context, depth: int | None) -> Repeat:
        """See `Linking.rule`."""
        return self._value(values, context, depth).rule

    def scalars(self, values: Values, context: Context) -> list[tuple[Piece, ...]]:
        """See `Linking.scalars`."""
        return self._value(values, context, None).scalars

    def _value(self, values: Values, context: Context, depth: int | None) -> _Value:
        key = id(values), context, depth
        if key not in self._values:
            self._values[key] = _Value(values, context, depth, self)
        return self._values[key]

    def length(self, values: Values) -> int:
        """See `Linking.length`. It is the same in all contexts. Since sets may contain themselves,
        the lengths of all sets that are needed begin as FAR, and fall until none changes."""
        if id(values) not in self._lengths:
            self._lengths[id(values)] = FAR
            is_first = not self._measured
            self._measured[id(values)] = self._value(values, self.style.root, None)
            if is_first:
                try:
                    self._measure()
                except BaseException:
                    for key in self._measured:
                        del self._lengths[key]
                    raise
                finally:
                    self._measured = {}
        return self._lengths[id(values)]

    def _measure(self) -> None:
        """Find the lengths of the sets in `_measured`, and of the sets that these need."""
        changed = True
        while changed:
            check()
            n, changed = len(self._measured), False
            for key, one in list(self._measured.items()):
                nearer = one.length()
                changed |= nearer < self._lengths[key]
                self._lengths[key] = nearer
            changed |= len(self._measured) > n
        if any(LONGEST * BYTE < self._lengths[key] < FAR for key in self._measured):
            raise BudgetExceededError("bytes", LONGEST, "the shortest text is longer")


class _Value:
    """The texts of a set in a context. The set is kept alive, so that its id stays unique."""

    def __init__(self, values: Values, context: Context, depth: int | None, linker: Linker) -> None:
        self._values, self._context, self._depth, self._linker = values, context, depth, linker

    @cached
    def rule(self) -> Repeat:
        """See `Linking.rule`."""
        far = self._linker.length(self._values)
        return Repeat(node(self._edges, False, far, VALUE), 1, 1)

    def length(self) -> int:
        """See `Linking.length`."""
        lengths = [length(text) for text in self.scalars]
        lengths += [one.length() for one in self._containers]
        lengths += [length(what) + to.far for what, to in self._long_strings]
        return min(lengths, default=FAR)

    def _edges(self) -> Iterator[Edge]:
        """The scalars, and the beginnings of arrays and objects."""
        yield from ((text, END) for text in self.scalars)
        is_deepest = self._depth == 0
        for one in self._containers:
            if one.length() < FAR:
                yield from one.edges(is_deepest)
        yield from self._long_strings

    @cached
    def _containers(self) -> list[Container[Any]]:
        """A container for each shape."""
        style, linker, found = self._linker.style, self._linker, list[Container[Any]]()
        objects = self._values.objects
        depth = None if self._depth is None else self._depth - 1
        for shape in uncontained(objects) if len(objects) > _MANY else objects:
            found.append(Objects(shape, style.objects(self._context), linker, depth))
        for items in self._values.arrays:
            made = _kind_of(items)
            found.append(made(items, style.arrays(self._context), linker, depth))
        return found

    @cached
    def scalars(self) -> list[tuple[Piece, ...]]:
        """The texts that are neither arrays nor objects, without those of `_long_strings`."""
        style, values = self._linker.style, self._values
        pieces: list[Piece] = [style.null()] if values.null else []
        pieces += [style.boolean(value) for value in sorted(values.booleans)]
        if not values.numbers.is_empty:
            pieces.append(style.numbers(values.numbers))
        strings = lower_bound(values.strings)
        if isinstance(strings, Finite) and len(strings.elements) == 1:
            pieces.append(style.string(*strings.elements))
        elif not strings.is_empty and not self._long_strings:
            pieces.append(style.strings(strings, self._context))
        before, after = style.around(self._context)
        return [
            tuple(one for one in (before, piece, after) if one != b"")
            for piece in pieces
            if isinstance(piece, bytes) or piece.start
        ]

    @cached
    def _long_strings(self) -> list[Edge]:
        """The strings, if they have a `maxLength` too large to write them out: see `_ladders`."""
        strings, style = lower_bound(self._values.strings), self._linker.style
        if not isinstance(strings, Limited) or not style.quotes:
            return []
        found = ladder(style.strings(strings.base, self._context), strings.most)
        return [(b'"', found.begin())] if found else []


def _kind_of(shape: ArrayShape) -> type[Items | DistinctItems | ComparedItems]:
    differ = shape.unique and (shape.most is None or shape.most > 1)
    if shape.counted or (differ and shape.prefix):
        return ComparedItems
    return DistinctItems if differ else Items
