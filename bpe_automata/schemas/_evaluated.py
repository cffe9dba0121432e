"""Computes what `unevaluatedProperties` and `unevaluatedItems` allow.

They apply to the members that no keyword beside them, and no schema that these apply to the same
instance, has looked at. A *way* to be valid is a choice of subschemas that are valid: what these
have looked at is known. As a further valid subschema can only look at more, and so allow more,

    v is valid  iff  for some way, v is in all of its subschemas, and the members of v that these do
                     not look at have values of the keyword

so no way needs to exclude the others. Source: JSON Schema Core (2020-12), section 11.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from bpe_automata._automata.dfa import ByteDFA
from bpe_automata.errors import BudgetExceededError
from bpe_automata.schemas._boolean import complement, intersection, union
from bpe_automata.schemas._documents import Document, Part, references
from bpe_automata.schemas._drafts import DEPENDENT_SCHEMAS, below
from bpe_automata.schemas._keywords import ReadChild, pattern_names
from bpe_automata.schemas._limits import step
from bpe_automata.schemas._scalar_sets import finite, subtract_strings, unite_strings
from bpe_automata.schemas._values import (
    ALL_STRINGS,
    ANY_ARRAY,
    ANY_OBJECT,
    ANYTHING,
    NO_STRING,
    NONE,
    ArrayShape,
    Child,
    ObjectShape,
    Values,
    having,
    is_empty,
)

_MAX_WAYS = 256


@dataclass(frozen=True)
class Evaluated:
    """What has been looked at: the members with some names; the first `items` items, None for all
    of them, and the items with a value of any of `contained`."""

    names: ByteDFA = NO_STRING
    items: int | None = 0
    contained: tuple[Child, ...] = ()

    def __or__(self, other: Evaluated) -> Evaluated:
        every = self.items is None or other.items is None
        return Evaluated(
            unite_strings(self.names, other.names),
            None if every else max(self.items or 0, other.items or 0),
            () if every else tuple(dict.fromkeys(self.contained + other.contained)),
        )


_Way = tuple[Values, Evaluated]
_CONTAINERS = Values(arrays=(ANY_ARRAY,), objects=(ANY_OBJECT,))


class Ways:
    """The ways to be valid under each schema of a document, of arrays and objects only.

    values: the set of the schema at a pointer. child: the same for an item or a property.
    """

    def __init__(
        self, document: Document, values: Callable[[str], Values], child: ReadChild
    ) -> None:
        self._document, self._values, self._child = document, values, child
        self._known: dict[str, list[_Way]] = {}

    def within(self, part: Part, found: Values, keyword: str, child: Child) -> Values:
        """The values of `found`, all valid under the other keywords of the schema, whose members
        that have not been looked at are in `child`. Raises BudgetExceededError."""
        kept = NONE
        for values, evaluated in self._beside(part):
            allowed = _only(evaluated, keyword, child)
            kept = union(kept, intersection(intersection(found, values), allowed))
        if keyword == "unevaluatedItems":
            return replace(found, arrays=kept.arrays)
        return replace(found, objects=kept.objects)

    def _of(self, pointer: str) -> list[_Way]:
        pointer = self._document.part(pointer).pointer
        if pointer not in self._known:
            values, part = self._values(pointer), self._document.part(pointer)
            ways = self._beside(part, with_unevaluated=True)
            self._known[pointer] = _few((intersection(way, values), seen) for way, seen in ways)
        return self._known[pointer]

    def _beside(self, part: Part, with_unevaluated: bool = False) -> list[_Way]:
        """What the keywords of a schema look at."""
        schema = part.schema
        if not isinstance(schema, dict):
            return [(_CONTAINERS, Evaluated())]
        if part.draft.ref_alone and "$ref" in schema:
            return self._of(self._document.target(part, "$ref").pointer)
        ways = [(_CONTAINERS, self._own(part, with_unevaluated))]
        for keyword in references(part):
            ways = _both(ways, self._of(self._document.target(part, keyword).pointer))
        for at in range(len(schema.get("allOf", ()))):
            ways = _both(ways, self._of(below(part.pointer, "allOf", at)))
        for at in range(len(schema.get("anyOf", ()))):
            ways = _few(ways + _both(ways, self._of(below(part.pointer, "anyOf", at))))
        for choice in self._choices(part):
            ways = _few(ways + _both(ways, choice))
        return ways

    def _choices(self, part: Part) -> Iterable[list[_Way]]:
        """The ways of oneOf, if and dependentSchemas. None of them may be taken, as what nothing
        looks at is the least that is allowed."""
        schema, here = part.schema, part.pointer
        branches = (below(here, "oneOf", at) for at in range(len(schema.get("oneOf", ()))))
        yield [way for branch in branches for way in self._of(branch)]
        if "if" in schema:
            condition = below(here, "if")
            yes, no = self._of(condition), [(complement(self._values(condition)), Evaluated())]
            if "then" in schema:
                yes = _few(yes + _both(yes, self._of(below(here, "then"))))
            yield yes + (_both(no, self._of(below(here, "else"))) if "else" in schema else [])
        for keyword in DEPENDENT_SCHEMAS:
            for name, needed in schema.get(keyword, {}).items():
                if isinstance(needed, dict | bool):
                    inside = self._of(below(here, keyword, name))
                    yield _both([(having(name), Evaluated())], inside)

    def _own(self, part: Part, with_unevaluated: bool) -> Evaluated:
        """What the keywords of a schema look at that do not apply to the same instance."""
        keywords = set(part.schema)
        if not with_unevaluated:
            keywords -= {"unevaluatedProperties", "unevaluatedItems"}
        items = _items(part.schema, keywords)
        contained: tuple[Child, ...] = ()
        if "contains" in keywords and part.draft.number >= 2020 and items is not None:
            contained = (self._child(below(part.pointer, "contains")),)
        return Evaluated(_names(part, keywords), items, contained)


def _names(part: Part, keywords: set[str]) -> ByteDFA:
    """The names of the members that some keywords of a schema look at."""
    if keywords & {"additionalProperties", "unevaluatedProperties"}:
        return ALL_STRINGS
    patterns = (pattern_names(part, one) for one in part.schema.get("patternProperties", ()))
    return reduce(unite_strings, patterns, finite(frozenset(part.schema.get("properties", ()))))


def _items(schema: dict[str, Any], keywords: set[str]) -> int | None:
    """How many items some keywords of a schema look at; None for all."""
    listed, rest = schema.get("prefixItems", []), "items"
    if isinstance(schema.get("items"), list):  # the older spelling
        listed, rest = schema["items"], "additionalItems"
    return None if keywords & {rest, "unevaluatedItems"} else len(listed)


def _both(some: list[_Way], others: list[_Way]) -> list[_Way]:
    """The ways that are one of each."""
    return _few(
        (intersection(one, other), seen | also) for one, seen in some for other, also in others
    )


def _few(ways: Iterable[_Way]) -> list[_Way]:
    """The same ways, those that look at the same joined. Raises BudgetExceededError."""
    found: dict[tuple[object, ...], _Way] = {}
    for values, seen in ways:
        step()
        if is_empty(values):
            continue
        key = (id(seen.names), seen.items, *map(id, seen.contained))
        before = found.get(key, (NONE, seen))
        found[key] = (union(before[0], values), before[1])
        if len(found) > _MAX_WAYS:
            advice = "alternatives look at more sets of members; use fewer of them under anyOf"
            raise BudgetExceededError("ways to be valid", _MAX_WAYS, advice)
    return list(found.values())


def _only(seen: Evaluated, keyword: str, child: Child) -> Values:
    """The arrays or objects with values of `child` where nothing has been looked at."""
    if keyword == "unevaluatedItems":
        allowed = (child, *seen.contained)
        rest = child
        if seen.contained:
            rest = Child(lambda: reduce(union, (one.values for one in allowed)))
        shape = ANY_ARRAY
        if seen.items is not None:
            shape = ArrayShape((ANYTHING,) * seen.items, rest)
        return Values(arrays=(shape,))
    others = subtract_strings(ALL_STRINGS, seen.names)
    members = ANY_OBJECT
    if not others.is_empty:
        members = ObjectShape(rest=((seen.names, ANYTHING), (others, child)))
    return Values(objects=(members,))
