"""The keywords of objects: properties, patternProperties, additionalProperties, propertyNames,
unevaluatedProperties, required, minProperties, maxProperties.

Names fall into classes by the patterns that they match; the members of one class fit one child.
"""

from __future__ import annotations

from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.errors import BudgetExceededError, UnsupportedSchemaError
from bpe_automata.schemas.boolean import meet_children
from bpe_automata.schemas.constants import ALL_TEXTS, ANYTHING, NOTHING
from bpe_automata.schemas.documents import Part
from bpe_automata.schemas.evaluated import nothing_else_applies
from bpe_automata.schemas.leaves import holds, less_texts, meet_texts, most
from bpe_automata.schemas.pointers import below
from bpe_automata.schemas.read_scalars import pattern_texts
from bpe_automata.schemas.reader import Reader, check_count, count_of
from bpe_automata.schemas.shapes import Child, ObjectShape, Property, Unfinished
from bpe_automata.schemas.splitting import holds_name, member

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
