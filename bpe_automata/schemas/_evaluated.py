"""What `unevaluatedProperties` and `unevaluatedItems` apply to: the members that no keyword beside
them, and no schema that these apply to the same instance, has looked at.

`$ref` and `allOf` look at the same members of all instances. Keywords that look at some members of
some instances only (`anyOf`, `if`) are refused beside these. Source: JSON Schema Core (2020-12),
section 11.
"""

from __future__ import annotations

from functools import reduce

from bpe_automata._automata.dfa import ByteDFA
from bpe_automata.errors import UnsupportedSchemaError
from bpe_automata.schemas._documents import Document, Part, refers
from bpe_automata.schemas._drafts import DEPENDENT_SCHEMAS, below
from bpe_automata.schemas._keywords import pattern_names
from bpe_automata.schemas._scalar_sets import ALL_STRINGS, finite, subtract, unite
from bpe_automata.schemas._values import (
    ANY_ARRAY,
    ANY_OBJECT,
    ANYTHING,
    ArrayShape,
    Child,
    ObjectShape,
)

_CHOOSING = frozenset(("anyOf", "oneOf", "if", *DEPENDENT_SCHEMAS))


def arrays_within(document: Document, part: Part, child: Child) -> ArrayShape:
    """The arrays whose items that have not been looked at are in `child`. Raises
    UnsupportedSchemaError, as does the other one."""
    counts = list[int]()
    for one in _beside(document, part, "unevaluatedItems"):
        listed, rest = one.schema.get("prefixItems", []), "items"
        if isinstance(one.schema.get("items"), list):  # the older spelling
            listed, rest = one.schema["items"], "additionalItems"
        if rest in one.schema or (one is not part and "unevaluatedItems" in one.schema):
            return ANY_ARRAY
        counts.append(len(listed))
    return ArrayShape((ANYTHING,) * max(counts), child)


def objects_within(document: Document, part: Part, child: Child) -> ObjectShape:
    """The objects whose members that have not been looked at are in `child`."""
    every = list[ByteDFA]()
    for one in _beside(document, part, "unevaluatedProperties"):
        keys = one.schema.keys()
        if "additionalProperties" in keys or (one is not part and "unevaluatedProperties" in keys):
            return ANY_OBJECT
        every += [pattern_names(one, text) for text in one.schema.get("patternProperties", ())]
        every.append(finite(frozenset(one.schema.get("properties", ()))))
    names = reduce(unite, every)
    others = subtract(ALL_STRINGS, names)
    return ANY_OBJECT if others.is_empty else ObjectShape(rest=((names, ANYTHING), (others, child)))


def _beside(document: Document, part: Part, keyword: str) -> list[Part]:
    """A schema, and all that it applies to the same instance."""
    found = [part]
    for one in found:
        schema = one.schema
        if not isinstance(schema, dict):
            continue
        choosing = sorted(_CHOOSING & schema.keys())
        if keyword == "unevaluatedItems" and "contains" in schema and one.draft.number >= 2020:
            choosing.append("contains")
        if choosing:
            why = f"which members {choosing[0]} looks at depends on the instance"
            raise UnsupportedSchemaError(keyword, below(part.pointer, keyword), why)
        found += [document.target(one)] if refers(one) else []
        branches = range(len(schema.get("allOf", ())))
        found += [document.part(below(one.pointer, "allOf", at)) for at in branches]
    return [one for one in found if isinstance(one.schema, dict)]
