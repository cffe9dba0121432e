"""Why no value is valid: the deepest schema found that has none, although one is needed there."""

from __future__ import annotations

from collections.abc import Iterator

from bpe_automata.errors import UnsatisfiableSchemaError
from bpe_automata.schemas.emptiness import is_empty
from bpe_automata.schemas.loops import references
from bpe_automata.schemas.pointers import below
from bpe_automata.schemas.reader import Reader

_WHY = "no value is valid under this schema"
_NO_TEXT = (
    "no value that is valid under this schema can be written: it would be nested too deeply, has "
    "no spelling in this style, or is too close to one that is not valid (a rounded number, or a "
    "text of which it is not decided whether it is of a format)"
)


def unsatisfiable(reader: Reader) -> UnsatisfiableSchemaError:
    """The error for a schema whose automaton accepts nothing."""
    pointer, seen = "#", set[str]()
    if not is_empty(reader.values("#")):
        return UnsatisfiableSchemaError(pointer, _NO_TEXT)
    while True:
        seen.add(pointer)
        causes = (p for p in _needed(reader, pointer) if p not in seen)
        cause = next((p for p in causes if is_empty(reader.child(p).values)), None)
        if cause is None:
            return UnsatisfiableSchemaError(pointer, _WHY)
        pointer = cause


def _needed(reader: Reader, pointer: str) -> Iterator[str]:
    """The schemas without which the one at a pointer has no value, though there may be more."""
    part = reader.document.part(pointer)
    if not isinstance(part.schema, dict):
        return
    for keyword in references(part):
        yield reader.document.target(part, keyword).pointer
    if part.draft.ref_alone and "$ref" in part.schema:
        return
    for at in range(len(part.schema.get("allOf", ()))):
        yield below(pointer, "allOf", at)
    for keyword in ("anyOf", "oneOf"):
        branches = part.schema.get(keyword, ())
        if len(branches) == 1:
            yield below(pointer, keyword, 0)
    if part.schema.get("type") == "object":
        for name in part.schema.get("required", ()):
            if name in part.schema.get("properties", {}):
                yield below(pointer, "properties", name)
    some = part.schema.get("type") == "array" and part.schema.get("minItems", 0) > 0
    if some and isinstance(part.schema.get("items"), dict | bool):
        yield below(pointer, "items")
