"""A whole schema: its own keywords, and those that apply other schemas in the same place.

v is valid  iff  v has the type and fits the keywords of its type, and `enum` and `const`,
                 and $ref, allOf, anyOf, oneOf, not, if, dependentRequired, dependentSchemas
"""

from __future__ import annotations

from functools import reduce

from bpe_automata.schemas.boolean import exactly_one
from bpe_automata.schemas.checks import types_of
from bpe_automata.schemas.constants import (
    ALL_NUMBERS,
    ALL_TEXTS,
    ANY_ARRAY,
    ANY_OBJECT,
    ANYTHING,
    BOTH,
    NO_NUMBER,
    NO_TEXT,
    NOTHING,
)
from bpe_automata.schemas.documents import Part
from bpe_automata.schemas.drafts import below
from bpe_automata.schemas.loops import references
from bpe_automata.schemas.read_containers import lacking, read_array, read_object
from bpe_automata.schemas.read_scalars import read_listed, read_numbers, read_strings
from bpe_automata.schemas.reader import Reader
from bpe_automata.schemas.shapes import ArrayShape, ObjectShape, Property, Term, Values
from bpe_automata.schemas.values import ALL, NONE, difference, intersection, is_empty, union

_STRINGS = frozenset(("pattern", "minLength", "maxLength", "format"))
_BOUNDS = frozenset(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"))
_ARRAYS = frozenset(
    (
        "prefixItems",
        "items",
        "additionalItems",
        "unevaluatedItems",
        "minItems",
        "maxItems",
        "uniqueItems",
    )
)
_OBJECTS = frozenset(
    (
        "properties",
        "patternProperties",
        "additionalProperties",
        "unevaluatedProperties",
        "propertyNames",
        "required",
        "minProperties",
        "maxProperties",
    )
)
_OF_ONE_TYPE = _STRINGS | _BOUNDS | _ARRAYS | _OBJECTS | {"type"}


def read_part(reader: Reader, part: Part) -> Values:
    """What a schema that is an object allows."""
    schema = part.schema
    if part.draft.ref_alone and "$ref" in schema:
        return _referred(reader, part, "$ref")
    found = _own(reader, part)
    if "const" in schema:
        found = intersection(found, read_listed((schema["const"],), part.pointer))
    if "enum" in schema:
        found = intersection(found, read_listed(schema["enum"], part.pointer))
    for keyword in references(part):
        found = intersection(found, _referred(reader, part, keyword))
    for apply in (_all_of, _any_of, _one_of, _not, _if, _contains, _dependent):
        found = apply(reader, part, found)
    return found


def _referred(reader: Reader, part: Part, keyword: str) -> Values:
    return reader.values(reader.document.target(part, keyword).pointer)


def _own(reader: Reader, part: Part) -> Values:
    """`type` and the keywords that speak of one type."""
    schema, types = part.schema, types_of(part.schema)
    if not schema.keys() & _OF_ONE_TYPE:
        return ALL
    is_number = bool(types & {"number", "integer"})
    numbers = ALL_NUMBERS if is_number else NO_NUMBER
    if is_number and ("number" not in types or _BOUNDS & schema.keys()):
        numbers = read_numbers(part, "number" not in types)
    strings = ALL_TEXTS if "string" in types else NO_TEXT
    if "string" in types and _STRINGS & schema.keys():
        strings = read_strings(part)
    arrays: tuple[Term[ArrayShape], ...] = (Term(ANY_ARRAY),) if "array" in types else ()
    if arrays and _ARRAYS & schema.keys():
        arrays = (Term(read_array(reader, part)),)
    objects: tuple[Term[ObjectShape], ...] = (Term(ANY_OBJECT),) if "object" in types else ()
    if objects and (_OBJECTS & schema.keys() or reader.closed):
        objects = (Term(read_object(reader, part)),)
    return Values(
        "null" in types,
        BOTH if "boolean" in types else frozenset(),
        numbers,
        strings,
        arrays,
        objects,
    )


def _branches(reader: Reader, part: Part, keyword: str) -> list[Values]:
    count = len(part.schema[keyword])
    return [reader.values(below(part.pointer, keyword, at)) for at in range(count)]


def _all_of(reader: Reader, part: Part, found: Values) -> Values:
    if "allOf" not in part.schema:
        return found
    return reduce(intersection, _branches(reader, part, "allOf"), found)


def _any_of(reader: Reader, part: Part, found: Values) -> Values:
    if "anyOf" not in part.schema:
        return found
    branches = (intersection(found, branch) for branch in _branches(reader, part, "anyOf"))
    return reduce(union, branches, NONE)


def _one_of(reader: Reader, part: Part, found: Values) -> Values:
    if "oneOf" not in part.schema:
        return found
    branches = [intersection(found, v) for v in _branches(reader, part, "oneOf")]
    if reader.open is reader:
        return exactly_one(branches, branches)
    others = [intersection(found, v) for v in _branches(reader.open, part, "oneOf")]
    return exactly_one(branches, others)


def _not(reader: Reader, part: Part, found: Values) -> Values:
    if "not" not in part.schema:
        return found
    return difference(found, reader.open.values(below(part.pointer, "not")))


def _if(reader: Reader, part: Part, found: Values) -> Values:
    schema = part.schema
    if "if" not in schema or not schema.keys() & {"then", "else"}:
        return found
    condition = reader.open.values(below(part.pointer, "if"))
    yes, no = intersection(found, condition), difference(found, condition)
    if "then" in schema and not is_empty(yes):
        yes = intersection(yes, reader.values(below(part.pointer, "then")))
    if "else" in schema and not is_empty(no):
        no = intersection(no, reader.values(below(part.pointer, "else")))
    return union(yes, no)


def _contains(reader: Reader, part: Part, found: Values) -> Values:
    bad = lacking(reader, part) if "contains" in part.schema and found.arrays else None
    return found if bad is None else difference(found, _only_array(bad))


def _dependent(reader: Reader, part: Part, found: Values) -> Values:
    """dependentRequired, dependentSchemas, and `dependencies`, which is both."""
    for keyword in ("dependentRequired", "dependentSchemas", "dependencies"):
        for name, needed in part.schema.get(keyword, {}).items():
            way = below(part.pointer, keyword, name)
            if isinstance(needed, dict | bool):
                found = _when_there(found, name, reader.values(way), way)
            else:
                for other in [needed] if isinstance(needed, str) else needed:
                    if other == name:
                        continue
                    found = difference(found, _only_object(_lacks(name, other, way)))
    return found


def _when_there(found: Values, name: str, then: Values, pointer: str) -> Values:
    """Objects with the property `name` must be in `then`."""
    there = _with(name, pointer)
    with_it, without = intersection(found, there), difference(found, there)
    return union(without, intersection(with_it, then))


def _with(name: str, pointer: str) -> Values:
    named = {name: Property(ANYTHING, required=True)}
    return _only_object(ObjectShape(named, ANY_OBJECT.rest, pointer=pointer))


def _lacks(name: str, other: str, pointer: str) -> ObjectShape:
    """The objects with the property `name` and without `other`."""
    named = {other: Property(NOTHING)} | {name: Property(ANYTHING, required=True)}
    return ObjectShape(named, ANY_OBJECT.rest, pointer=pointer)


def _only_object(shape: ObjectShape) -> Values:
    return Values(False, frozenset(), NO_NUMBER, NO_TEXT, (), (Term(shape),))


def _only_array(shape: ArrayShape) -> Values:
    return Values(False, frozenset(), NO_NUMBER, NO_TEXT, (Term(shape),), ())
