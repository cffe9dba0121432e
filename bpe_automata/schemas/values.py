"""Sets of JSON values: their form, the constants, and what is done with them.

The form is in `shapes`, the constants in `constants`, the operations in `boolean`, `emptiness` and
`depth`; this module is the list of names that the rest of the package uses.
"""

from __future__ import annotations

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
from bpe_automata.schemas.depth import any_value, limited
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
