"""Sets of JSON values: their form, the constants, and what is done with them.

The form is in `shapes`, the constants in `constants`, the operations in `boolean`, `emptiness` and
`depth`; this module is the list of names that the rest of the package uses.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from bpe_automata.budget import check
from bpe_automata.schemas.boolean import (
    complement,
    difference,
    disjoint,
    intersection,
    meet_children,
    meet_shapes,
    union,
)
from bpe_automata.schemas.constants import (
    ALL,
    ALL_TEXTS,
    ANY_ARRAY,
    ANY_OBJECT,
    NO_TEXT,
    NONE,
    NOTHING,
)
from bpe_automata.schemas.emptiness import is_empty, shape_is_empty
from bpe_automata.schemas.shapes import (
    ArrayShape,
    Child,
    ObjectShape,
    Property,
    Shape,
    Term,
    Unfinished,
    Values,
)
from bpe_automata.schemas.splitting import member

# Sets of JSON values without endless nesting.
#
#     limited(V, d) = { v in V : no way down v goes more than d rounds through one loop }
#
# A loop is a schema that comes back to itself by a $ref, and "anything", whose members are
# anything. A step to an `entry` on a loop that the value above lies on too is a round; leaving the
# loop, the count begins anew. With d = 0 anything is a scalar, [] or {}.


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


__all__ = [
    "ALL",
    "ALL_TEXTS",
    "ANY_ARRAY",
    "ANY_OBJECT",
    "NONE",
    "NOTHING",
    "NO_TEXT",
    "ArrayShape",
    "Child",
    "ObjectShape",
    "Property",
    "Shape",
    "Term",
    "Unfinished",
    "Values",
    "any_value",
    "complement",
    "difference",
    "disjoint",
    "intersection",
    "is_empty",
    "limited",
    "meet_children",
    "meet_shapes",
    "member",
    "shape_is_empty",
    "union",
]
