"""Computes the set of strings, numbers, arrays or objects that the keywords of one type allow.

  strings  minLength, maxLength, pattern, format
  numbers  minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf
  arrays   prefixItems, items, additionalItems, unevaluatedItems, minItems, maxItems, uniqueItems,
           contains, minContains, maxContains
  objects  properties, patternProperties, additionalProperties, propertyNames, required,
           unevaluatedProperties, minProperties, maxProperties
  all      enum, const

Sources: JSON Schema Validation (2020-12), section 6, and Core, sections 10 and 11.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import reduce
from typing import Any

from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.errors import (
    BudgetExceededError,
    InvalidSchemaError,
    RegexError,
    RegexSyntaxError,
    SchemaTooLargeError,
    UnsupportedSchemaError,
)
from bpe_automata.schemas._boolean import intersect_children
from bpe_automata.schemas._documents import Document, Part, refers
from bpe_automata.schemas._drafts import DEPENDENT_SCHEMAS, below
from bpe_automata.schemas._ecma import ecma_pattern
from bpe_automata.schemas._formats import SUPPORTED, format_strings
from bpe_automata.schemas._limits import as_too_large
from bpe_automata.schemas._numbers import (
    ALL_NUMBERS,
    at_least,
    at_most,
    greater_than,
    less_than,
    multiples_of,
    of_values,
)
from bpe_automata.schemas._scalar_sets import (
    ALL_STRINGS,
    canonical,
    contains,
    contains_name,
    finite,
    intersect,
    of_length,
    subtract,
    unite,
)
from bpe_automata.schemas._values import (
    ANY_ARRAY,
    ANY_OBJECT,
    ANYTHING,
    NONE,
    NOTHING,
    ArrayShape,
    Child,
    Counted,
    ObjectShape,
    Property,
    Unfinished,
    Values,
)

ReadChild = Callable[[str], Child]  # the values of the subschema at a pointer, see `Reader.child`
_MOST = 100_000  # items that a schema may require
_MAX_CLASSES = 64


def read_strings(part: Part) -> ByteDFA:
    """The strings, not escaped, that the keywords of strings allow."""
    schema, found = part.schema, ALL_STRINGS
    if schema.get("format") in SUPPORTED:
        found = format_strings(schema["format"])
    if "pattern" in schema:
        with as_too_large(part.pointer, "pattern"):
            found = intersect(found, _pattern_language(schema["pattern"], part, "pattern"))
    fewest, most = int(schema.get("minLength", 0)), schema.get("maxLength")
    if fewest or most is not None:
        with as_too_large(part.pointer, "minLength" if most is None else "maxLength"):
            found = of_length(found, fewest, None if most is None else int(most))
    return found


def _pattern_language(pattern: str, part: Part, *path: str) -> ByteDFA:
    """The strings in which a regex of ECMA-262 matches; below(part.pointer, *path) leads to it."""
    where = below(part.pointer, *path)
    try:
        with as_too_large(where):
            return canonical(ecma_pattern(pattern, agreed=part.draft.agreed))
    except RegexSyntaxError as error:
        raise InvalidSchemaError(where, str(error)) from None
    except RegexError as error:
        raise UnsupportedSchemaError(path[0], where, str(error)) from None


_OF_NUMBERS: dict[str, Callable[[Any], ByteDFA]] = {
    "minimum": at_least,
    "exclusiveMinimum": greater_than,
    "maximum": at_most,
    "exclusiveMaximum": less_than,
    "multipleOf": multiples_of,
}


def read_numbers(part: Part, only_integers: bool) -> ByteDFA:
    """The numbers that the keywords of numbers allow. only_integers: whether the type is
    `integer`."""
    schema, found = part.schema, multiples_of(1) if only_integers else ALL_NUMBERS
    for keyword, allowed in _OF_NUMBERS.items():
        if keyword not in schema or isinstance(schema[keyword], bool):
            continue
        # In draft 4, `exclusiveMinimum: true` says that the minimum itself is too small.
        exclusive = f"exclusive{keyword.capitalize()}"
        if schema.get(exclusive) is True:
            allowed = _OF_NUMBERS[exclusive]
        with as_too_large(part.pointer, keyword):
            found = intersect(found, allowed(schema[keyword]), ALL_NUMBERS)
    return found


def read_listed(values: Iterable[Any], pointer: str) -> Values:
    """The set of some JSON values."""
    of = defaultdict[type, list[Any]](list)
    for value in values:
        of[type(value)].append(value)
    return Values(
        bool(of[type(None)]),
        frozenset(of[bool]),
        of_values(of[int] + of[float]),
        finite(frozenset(of[str])),
        tuple(_array(items, pointer) for items in of[list]),
        tuple(_object(members, pointer) for members in of[dict]),
    )


def _array(items: list[Any], pointer: str) -> ArrayShape:
    prefix = tuple(_one(item, pointer) for item in items)
    return ArrayShape(prefix, NOTHING, len(prefix), len(prefix), pointer=pointer)


def _object(members: dict[str, Any], pointer: str) -> ObjectShape:
    named = {name: Property(_one(value, pointer), required=True) for name, value in members.items()}
    return ObjectShape(named, pointer=pointer)


def _one(value: Any, pointer: str) -> Child:
    """A single value, which is read only when it is needed, as it may be nested deeply."""
    return Child(lambda: read_listed((value,), pointer))


def read_array(part: Part, child: ReadChild) -> ArrayShape:
    """The arrays that all keywords of arrays but `contains` allow."""
    schema = part.schema
    keyword, others = _of_items(schema)
    listed = schema.get(keyword, [])
    prefix = tuple(child(below(part.pointer, keyword, at)) for at in range(len(listed)))
    rest = child(below(part.pointer, others)) if others in schema else ANYTHING
    fewest, most = _count(part, "minItems") or 0, _count(part, "maxItems")
    if rest.computed is NONE:  # no items but those of the prefix
        fewest = min(fewest, len(prefix) + 1)
        most = None if most is None else min(most, len(prefix))
    return ArrayShape(
        prefix,
        rest,
        fewest,
        most,
        bool(schema.get("uniqueItems")) and (most is None or most > 1),
        part.pointer,
    )


def _of_items(schema: dict[str, Any]) -> tuple[str, str]:
    """The keywords of the first items and of all others, in the older or the newer spelling."""
    is_older = isinstance(schema.get("items"), list)
    return ("items", "additionalItems") if is_older else ("prefixItems", "items")


def counted_items(part: Part, child: ReadChild) -> Counted | None:
    """The condition of `contains`, `minContains` and `maxContains`; None if they allow all."""
    schema = part.schema
    if "contains" not in schema:
        return None
    fewest, most = _count(part, "minContains"), _count(part, "maxContains")
    if fewest == 0 and most is None:
        return None
    return Counted(child(below(part.pointer, "contains")), 1 if fewest is None else fewest, most)


# Names of properties fall into classes by the patterns that they match; all properties with names
# of one class have the same set of values.

Rest = tuple[tuple[ByteDFA, Child], ...]


def read_object(part: Part, child: ReadChild, closed: bool) -> ObjectShape:
    """The objects that the keywords of objects allow. closed: see `Reader`."""
    schema = part.schema
    allowed = _allowed_names(part, child)
    patterns = _patterns(part, child)
    others = _others(part, child, closed)
    rest = _classes(allowed, patterns, others)
    by_rest = ObjectShape(rest=rest, pointer=part.pointer)
    given, required = schema.get("properties", {}), frozenset(schema.get("required", ()))
    named: dict[str, Property] = {}
    for name in given:
        own = child(below(part.pointer, "properties", name))
        allowed_name = contains_name(allowed, name, part.pointer)
        found = _of_name(name, own, patterns) if allowed_name else NOTHING
        named[name] = Property(found, name in required)
    for name in schema.get("required", ()):
        if name not in named:
            named[name] = Property(by_rest.property(name).child, required=True)
    fewest, most = _count(part, "minProperties") or 0, _count(part, "maxProperties")
    if most is not None and not rest and most >= len(named):
        most = None  # no objects have more properties
    return ObjectShape(named, rest, fewest, most, part.pointer)


def _allowed_names(part: Part, child: ReadChild) -> ByteDFA:
    if "propertyNames" not in part.schema:
        return ALL_STRINGS
    where = below(part.pointer, "propertyNames")
    try:
        return child(where).values.strings
    except Unfinished:  # names are needed at once, while other children can wait
        why = "the schema of the names leads back to the schema of the object"
        raise UnsupportedSchemaError("propertyNames", where, why) from None


def _patterns(part: Part, child: ReadChild) -> list[tuple[ByteDFA, Child]]:
    """(names, child) of each pattern of patternProperties."""
    return [
        (pattern_names(part, pattern), child(below(part.pointer, "patternProperties", pattern)))
        for pattern in part.schema.get("patternProperties", {})
    ]


def pattern_names(part: Part, pattern: str) -> ByteDFA:
    """The names that one of the patterns of patternProperties matches."""
    return _pattern_language(pattern, part, "patternProperties", pattern)


def _others(part: Part, child: ReadChild, closed: bool) -> Child:
    """The values of properties that neither `properties` nor `patternProperties` describes."""
    schema = part.schema
    if "additionalProperties" in schema:
        return child(below(part.pointer, "additionalProperties"))
    is_object_schema = schema.get("type") == "object" or "properties" in schema
    is_open = not closed or "unevaluatedProperties" in schema
    return ANYTHING if is_open or not is_object_schema else NOTHING


def _of_name(name: str, child: Child, patterns: list[tuple[ByteDFA, Child]]) -> Child:
    """The values of a named property: those that fit its own schema, and the schemas of all
    patterns that match its name."""
    for names, also in patterns:
        if contains(names, name):
            child = intersect_children(child, also)
    return child


def _classes(allowed: ByteDFA, patterns: list[tuple[ByteDFA, Child]], others: Child) -> Rest:
    """The allowed names in disjoint, nonempty classes by the patterns that they match."""
    classes: list[tuple[ByteDFA, Child | None]] = [(allowed, None)]
    for names, child in patterns:
        split: list[tuple[ByteDFA, Child | None]] = []
        for one, before in classes:
            inside = intersect(one, names)
            split.append((inside, intersect_children(before, child) if before else child))
            split.append((subtract(one, names), before))
        classes = [(one, before) for one, before in split if not one.is_empty]
        if len(classes) > _MAX_CLASSES:
            advice = "patterns that overlap make more classes of names; make them disjoint"
            raise BudgetExceededError("classes of names", _MAX_CLASSES, advice)
    found = ((one, before or others) for one, before in classes)
    return tuple((one, child) for one, child in found if child.computed is not NOTHING.computed)


def _count(part: Part, keyword: str) -> int | None:
    """The integer value of a keyword that counts (3.0 is 3); None if it is absent. Raises
    SchemaTooLargeError for more items than any text has."""
    count = int(part.schema[keyword]) if keyword in part.schema else None
    if count is not None and count > _MOST and keyword in ("minItems", "minContains"):
        advice = f"{keyword} asks for more; use a smaller one, or leave it out"
        where = below(part.pointer, keyword)
        raise SchemaTooLargeError(where, "items or members", _MOST, advice)
    return count


# `unevaluatedProperties` and `unevaluatedItems` apply to the members that neither an adjacent
# keyword has evaluated, nor a schema that such a keyword applies to the same instance. `$ref` and
# `allOf` evaluate the same members of all instances; adjacent keywords that evaluate some members
# of some instances only (`anyOf`, `if`) are refused.

_CHOOSING = frozenset(("anyOf", "oneOf", "if", *DEPENDENT_SCHEMAS))


def arrays_within(document: Document, part: Part, child: Child) -> ArrayShape:
    """The arrays whose unevaluated items are in `child`. Raises UnsupportedSchemaError, as does
    `objects_within`."""
    counts = list[int]()
    for one in _of_one_instance(document, part, "unevaluatedItems"):
        keyword, rest = _of_items(one.schema)
        if rest in one.schema or (one is not part and "unevaluatedItems" in one.schema):
            return ANY_ARRAY
        counts.append(len(one.schema.get(keyword, ())))
    return ArrayShape((ANYTHING,) * max(counts), child)


def objects_within(document: Document, part: Part, child: Child) -> ObjectShape:
    """The objects whose unevaluated members are in `child`."""
    every = list[ByteDFA]()
    for one in _of_one_instance(document, part, "unevaluatedProperties"):
        keys = one.schema.keys()
        if "additionalProperties" in keys or (one is not part and "unevaluatedProperties" in keys):
            return ANY_OBJECT
        every += [pattern_names(one, text) for text in one.schema.get("patternProperties", ())]
        every.append(finite(frozenset(one.schema.get("properties", ()))))
    names = reduce(unite, every)
    others = subtract(ALL_STRINGS, names)
    return ANY_OBJECT if others.is_empty else ObjectShape(rest=((names, ANYTHING), (others, child)))


def _of_one_instance(document: Document, part: Part, keyword: str) -> list[Part]:
    """A schema, and all schemas that it applies to the same instance."""
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
