"""The keywords of arrays: prefixItems, items, additionalItems, unevaluatedItems, minItems,
maxItems, uniqueItems; contains, minContains, maxContains.

`contains` says that some item fits, so it takes away the arrays in which none does.
"""

from __future__ import annotations

from bpe_automata.errors import UnsupportedSchemaError
from bpe_automata.schemas.constants import ANYTHING, NONE, NOTHING
from bpe_automata.schemas.documents import Part
from bpe_automata.schemas.evaluated import nothing_else_applies
from bpe_automata.schemas.pointers import below
from bpe_automata.schemas.reader import Reader, check_count, count_of
from bpe_automata.schemas.shapes import ArrayShape, Child
from bpe_automata.schemas.values import complement


def read_array(reader: Reader, part: Part) -> ArrayShape:
    """All but `contains`."""
    schema = part.schema
    keyword, others = ("prefixItems", "items")
    if isinstance(schema.get("items"), list):  # the older spelling
        keyword, others = ("items", "additionalItems")
    listed = schema.get(keyword, [])
    prefix = tuple(reader.child(below(part.pointer, keyword, at)) for at in range(len(listed)))
    rest = reader.child(below(part.pointer, others)) if others in schema else None
    rest = rest or _unevaluated(reader, part)
    fewest, most = count_of(schema, "minItems") or 0, count_of(schema, "maxItems")
    if rest.known is NONE:  # there are no more than the listed ones
        fewest = min(fewest, len(prefix) + 1)
        most = None if most is None else min(most, len(prefix))
    check_count(fewest, part.pointer, "minItems")
    check_count(most, part.pointer, "maxItems")
    return ArrayShape(
        prefix,
        rest,
        fewest,
        most,
        bool(schema.get("uniqueItems")) and (most is None or most > 1),
        part.pointer,
    )


def _unevaluated(reader: Reader, part: Part) -> Child:
    """What items may be of which `items` says nothing."""
    if "unevaluatedItems" not in part.schema or part.schema["unevaluatedItems"] is True:
        return ANYTHING
    nothing_else_applies(part, "unevaluatedItems")
    return reader.child(below(part.pointer, "unevaluatedItems"))


def lacking(reader: Reader, part: Part) -> ArrayShape | None:
    """The arrays without an item that `contains` asks for; None if it asks for none."""
    schema = part.schema
    fewest = count_of(schema, "minContains")
    if "contains" not in schema:
        return None
    if "maxContains" in schema or (fewest or 0) > 1:
        keyword = "maxContains" if "maxContains" in schema else "minContains"
        why = "the items that fit would have to be counted"
        raise UnsupportedSchemaError(keyword, below(part.pointer, keyword), why)
    if fewest == 0:
        return None
    where = below(part.pointer, "contains")
    wanted = reader.open.child(where)
    bad = NOTHING if wanted is ANYTHING else Child(lambda: complement(wanted.values))
    return ArrayShape((), bad, pointer=where)
