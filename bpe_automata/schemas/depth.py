"""Sets of JSON values without endless nesting.

    limited(V, d) = { v in V : no way down v goes more than d rounds through one loop }

A loop is a schema that comes back to itself by a $ref, and "anything", whose members are anything.
A step to an `entry` on a loop that the value above lies on too is a round; leaving the loop, the
count begins anew. With d = 0 anything is a scalar, [] or {}.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from bpe_automata.budget import check
from bpe_automata.schemas.constants import ALL, NONE
from bpe_automata.schemas.shapes import (
    ArrayShape,
    Child,
    ObjectShape,
    Property,
    Term,
    Values,
)


def limited(values: Values, depth: int) -> Values:
    """The values of the set in which no loop is gone through more than `depth` times; lazy. What a
    term is less of stays as it is: it takes away no more than it should."""
    return _Limit(depth).values(values, depth)


@lru_cache(maxsize=64)
def any_value(depth: int) -> Values:
    """Every value whose arrays and objects are nested at most `depth` times inside the first."""
    return limited(ALL, depth)


class _Limit:
    """The sets that are made for one depth, each once."""

    def __init__(self, depth: int) -> None:
        self._depth = depth
        self._made: dict[tuple[int, int], tuple[Values, Values]] = {}

    def values(self, values: Values, left: int) -> Values:
        key = (id(values), left)
        if key not in self._made:
            arrays = tuple(Term(self._array(t.shape, values, left), t.minus) for t in values.arrays)
            objects = tuple(
                Term(self._object(t.shape, values, left), t.minus) for t in values.objects
            )
            found = replace(values, arrays=arrays, objects=objects, memo={})
            self._made[key] = (found, values)  # the second, so that its id stays its
        return self._made[key][0]

    def _array(self, shape: ArrayShape, above: Values, left: int) -> ArrayShape:
        check()
        prefix = tuple(self._child(child, above, left) for child in shape.prefix)
        return replace(shape, prefix=prefix, rest=self._child(shape.rest, above, left))

    def _object(self, shape: ObjectShape, above: Values, left: int) -> ObjectShape:
        check()
        named = {
            name: Property(self._child(member.child, above, left), member.required)
            for name, member in shape.named.items()
        }
        rest = tuple((names, self._child(child, above, left)) for names, child in shape.rest)
        return replace(shape, named=named, rest=rest)

    def _child(self, child: Child, above: Values, left: int) -> Child:
        return Child(lambda: self._below(child.values, above, left))

    def _below(self, values: Values, above: Values, left: int) -> Values:
        if not values.loops & above.loops:
            return self.values(values, self._depth)
        if not values.entry:
            return self.values(values, left)
        return self.values(values, left - 1) if left else NONE
