"""The keywords of objects: properties, patternProperties, additionalProperties, propertyNames,
unevaluatedProperties, required, minProperties, maxProperties.

Names fall into classes by the patterns that they match; the members of one class fit one child.
"""

from __future__ import annotations

from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.errors import BudgetExceededError, UnsupportedSchemaError
from bpe_automata.schemas.boolean import meet_children
from bpe_automata.schemas.constants import ALL_TEXTS, ANYTHING, NONE, NOTHING
from bpe_automata.schemas.documents import Part
from bpe_automata.schemas.drafts import below
from bpe_automata.schemas.leaves import holds, less_texts, meet_texts, most
from bpe_automata.schemas.read_scalars import pattern_texts
from bpe_automata.schemas.reader import Reader, check_count, count_of
from bpe_automata.schemas.shapes import ArrayShape, Child, ObjectShape, Property, Unfinished
from bpe_automata.schemas.splitting import holds_name, member
from bpe_automata.schemas.values import complement

# The keywords of arrays: prefixItems, items, additionalItems, unevaluatedItems, minItems,
# maxItems, uniqueItems; contains, minContains, maxContains.
#
# `contains` says that some item fits, so it takes away the arrays in which none does.

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


_MAX_CLASSES = 64
_FEW_NAMES = 32  # names by a pattern that are taken one by one, where members must be counted

Rest = tuple[tuple[ByteDFA, Child], ...]


def read_object(reader: Reader, part: Part) -> ObjectShape:
    """All of them."""
    schema = part.schema
    allowed = _allowed_names(reader, part)
    patterns = _patterns(reader, part)
    others = _others(reader, part)
    rest = _classes(allowed, patterns, others)
    by_rest = ObjectShape(rest=rest, pointer=part.pointer)
    given, required = schema.get("properties", {}), frozenset(schema.get("required", ()))
    named: dict[str, Property] = {}
    for name in given:
        child = reader.child(below(part.pointer, "properties", name))
        allowed_name = holds_name(allowed, name, part.pointer)
        found = _of_name(name, child, patterns) if allowed_name else NOTHING
        named[name] = Property(found, name in required)
    for name in schema.get("required", ()):
        if name not in named:
            named[name] = Property(member(by_rest, name).child, required=True)
    fewest, most = count_of(schema, "minProperties") or 0, count_of(schema, "maxProperties")
    if most is not None and not rest and most >= len(named):
        most = None  # there are no more names
    check_count(most, part.pointer, "maxProperties")
    if fewest > 1:
        rest = _few_others(named, rest, part.pointer)
    return ObjectShape(named, rest, fewest, most, part.pointer)


def _allowed_names(reader: Reader, part: Part) -> ByteDFA:
    if "propertyNames" not in part.schema:
        return ALL_TEXTS
    where = below(part.pointer, "propertyNames")
    try:
        return reader.child(where).values.strings
    except Unfinished:  # names are needed at once, where other children can wait
        why = "the schema of the names leads back to the schema of the object"
        raise UnsupportedSchemaError("propertyNames", where, why) from None


def _patterns(reader: Reader, part: Part) -> list[tuple[ByteDFA, Child]]:
    """(names, child) of each pattern of patternProperties."""
    return [
        (
            pattern_texts(pattern, part.pointer, "patternProperties", pattern),
            reader.child(below(part.pointer, "patternProperties", pattern)),
        )
        for pattern in part.schema.get("patternProperties", {})
    ]


def _others(reader: Reader, part: Part) -> Child:
    """What members may be that neither a name nor a pattern speaks of."""
    schema = part.schema
    if "additionalProperties" in schema:
        return reader.child(below(part.pointer, "additionalProperties"))
    if "unevaluatedProperties" in schema:
        if schema["unevaluatedProperties"] is True:
            return ANYTHING
        nothing_else_applies(part, "unevaluatedProperties")
        return reader.child(below(part.pointer, "unevaluatedProperties"))
    is_object_schema = schema.get("type") == "object" or "properties" in schema
    return NOTHING if reader.closed and is_object_schema else ANYTHING


def _of_name(name: str, child: Child, patterns: list[tuple[ByteDFA, Child]]) -> Child:
    """What a named property may be, by its own schema and by the patterns that its name matches."""
    for names, also in patterns:
        if holds(names, name):
            child = meet_children(child, also)
    return child


def _classes(allowed: ByteDFA, patterns: list[tuple[ByteDFA, Child]], others: Child) -> Rest:
    """The allowed names by the patterns that they match: disjoint classes, none of them empty."""
    classes: list[tuple[ByteDFA, Child | None]] = [(allowed, None)]
    for names, child in patterns:
        split: list[tuple[ByteDFA, Child | None]] = []
        for known, before in classes:
            inside = meet_texts(known, names)
            split.append((inside, meet_children(before, child) if before else child))
            split.append((less_texts(known, names), before))
        classes = [(known, before) for known, before in split if not known.is_empty]
        if len(classes) > _MAX_CLASSES:
            advice = "patterns that overlap make more classes of names; make them disjoint"
            raise BudgetExceededError("classes of names", _MAX_CLASSES, advice)
    found = ((known, before or others) for known, before in classes)
    return tuple((known, child) for known, child in found if child.known is not NOTHING.known)


def _few_others(named: dict[str, Property], rest: Rest, pointer: str) -> Rest:
    """Put other names that are few into `named`, so that how many there are can be told; the rest
    that remains."""
    many = []
    for names, child in rest:
        try:
            listed = [text.decode() for text in most(names).strings(_FEW_NAMES)]
        except BudgetExceededError:
            many.append((names, child))
        else:
            for name in listed:
                if name not in named and holds_name(names, name, pointer):
                    named[name] = Property(child)
    return tuple(many)
