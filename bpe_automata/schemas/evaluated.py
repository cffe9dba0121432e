"""What `unevaluatedProperties` and `unevaluatedItems` look at.

They speak of what no keyword beside them, at any depth in place, has looked at. That is known from
the schema alone only where nothing beside them depends on the instance.
"""

from __future__ import annotations

from bpe_automata.errors import UnsupportedSchemaError
from bpe_automata.schemas.documents import Part
from bpe_automata.schemas.pointers import below

_IN_PLACE = (
    "$ref",
    "$dynamicRef",
    "$recursiveRef",
    "allOf",
    "anyOf",
    "oneOf",
    "if",
    "dependentSchemas",
    "dependencies",
)


def nothing_else_applies(part: Part, keyword: str) -> None:
    """Raises UnsupportedSchemaError if a keyword beside this one applies a schema in place."""
    others = _IN_PLACE if keyword == "unevaluatedProperties" else (*_IN_PLACE, "contains")
    for other in others:
        if other in part.schema:
            why = f"what {other} beside it has looked at depends on the value"
            raise UnsupportedSchemaError(keyword, below(part.pointer, keyword), why)
