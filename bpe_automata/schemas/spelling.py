"""The texts of one set of values at one place, still in parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from bpe_automata.automata.assembly import Assembly, Network
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.schemas.shapes import ArrayShape, Child, ObjectShape, Values
from bpe_automata.schemas.splitting import member
from bpe_automata.schemas.style import Piece
from bpe_automata.sharing import cached

# One order of names for several sets of values, at every place inside them.
#
# A difference of sets of texts is the set of texts of the difference only if a value has the same
# texts in both. So in a term that has a `minus`, all shapes are written with the names that any of
# them knows in one order: those of the term's own shape first, then new ones as they come up.

_Shape = ObjectShape | ArrayShape


class OrderTree:
    """The names at one place in order, and the trees of the places inside. Found when asked for:
    the shapes may go on for ever."""

    def __init__(self, shapes: Iterable[_Shape]) -> None:
        self._shapes = tuple({id(shape): shape for shape in shapes}.values())
        self._members: dict[str, OrderTree | None] = {}

    @cached
    def names(self) -> tuple[str, ...]:
        """All names that some shape knows."""
        return tuple(dict.fromkeys(name for shape in self._objects for name in shape.named))

    def member(self, name: str) -> OrderTree | None:
        """The tree of the property with this name, which is one of `names`. None: no order is
        needed there, since nobody names a property."""
        if name not in self._members:
            self._members[name] = _below(member(shape, name).child for shape in self._objects)
        return self._members[name]

    @cached
    def rest(self) -> OrderTree | None:
        """The tree of all other properties; see `member`."""
        return _below(child for shape in self._objects for _, child in shape.rest)

    @cached
    def item(self) -> OrderTree | None:
        """The tree of all items; see `member`."""
        arrays = [shape for shape in self._shapes if isinstance(shape, ArrayShape)]
        return _below(child for shape in arrays for child in _items(shape))

    @cached
    def _objects(self) -> list[ObjectShape]:
        return [shape for shape in self._shapes if isinstance(shape, ObjectShape)]


def _below(children: Iterable[Child]) -> OrderTree | None:
    """The tree of the places where these stand."""
    found = list({id(child.values): child.values for child in children}.values())
    if _nameless(found):
        return None
    return OrderTree(shape for values in found for shape in _shapes(values))


def _nameless(pending: list[Values]) -> bool:
    """Does no shape in these sets, at any depth, name a property?"""
    pending = list(pending)
    seen = {id(values) for values in pending}
    while pending:
        for shape in _shapes(pending.pop()):
            if isinstance(shape, ObjectShape) and shape.named:
                return False
            for child in _children(shape):
                if id(child.values) not in seen:
                    seen.add(id(child.values))
                    pending.append(child.values)
    return True


def _shapes(values: Values) -> list[_Shape]:
    found: list[_Shape] = [shape for term in values.objects for shape in (term.shape, *term.minus)]
    return found + [shape for term in values.arrays for shape in (term.shape, *term.minus)]


def _children(shape: _Shape) -> list[Child]:
    if isinstance(shape, ArrayShape):
        return _items(shape)
    return [child for _, child in shape.rest]


def _items(shape: ArrayShape) -> list[Child]:
    """What its items may be; never asked of places that no item reaches."""
    known = list(shape.prefix if shape.most is None else shape.prefix[: shape.most])
    long = shape.most is None or shape.most > len(shape.prefix)
    return [*known, shape.rest] if long else known


Compound = ByteDFA | Network  # of arrays or objects; a network where a DFA would be very large


@dataclass(frozen=True, eq=False)
class Texts:
    """before s after, for each spelling s of a scalar, and the texts of arrays and objects."""

    before: Piece
    scalars: tuple[Piece, ...]
    after: Piece
    compounds: tuple[Compound, ...]

    @property
    def is_empty(self) -> bool:
        """Is there no text?"""
        return not self.scalars and not self.compounds

    def put(self, parts: Assembly, one: int, other: int) -> None:
        """Any of the texts leads from place `one` to place `other` of `parts`."""
        for compound in self.compounds:
            parts.put(one, compound, other)
        if not self.scalars:
            return
        if self.before != b"":
            one, begin = parts.state(), one
            parts.put(begin, self.before, one)
        if self.after != b"":
            other, end = parts.state(), other
            parts.put(other, self.after, end)
        for piece in self.scalars:
            parts.put(one, piece, other)


# The texts of what may stand inside an array or object, in the order of names that is given.
Inside = Callable[[Child, OrderTree | None], Texts]
