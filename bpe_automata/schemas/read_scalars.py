"""The keywords of strings and numbers, and `enum` and `const`, which list values of any kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from functools import lru_cache, reduce
from typing import Any, TypeVar

from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.budget import check
from bpe_automata.errors import (
    InvalidSchemaError,
    RegexError,
    RegexSyntaxError,
    UnsupportedSchemaError,
)
from bpe_automata.schemas.constants import ALL_NUMBERS, ALL_TEXTS, NO_NUMBER, NOTHING
from bpe_automata.schemas.documents import Part
from bpe_automata.schemas.drafts import below as pointer_below
from bpe_automata.schemas.formats import SUPPORTED, at_most_format, format_texts
from bpe_automata.schemas.leaves import (
    Bounded,
    bounded,
    canonical,
    join_numbers,
    listed,
    meet_numbers,
    meet_texts,
)
from bpe_automata.schemas.limits import as_too_large
from bpe_automata.schemas.numbers import (
    NumberSet,
    above,
    at_least,
    at_most,
    below,
    integers,
    multiples_of,
    of_value,
)
from bpe_automata.schemas.shapes import ArrayShape, Child, ObjectShape, Property, Term, Values
from bpe_automata.schemas.strings import ecma_pattern, within_length


def read_strings(part: Part) -> ByteDFA:
    """minLength, maxLength, pattern, format."""
    schema, found = part.schema, ALL_TEXTS
    if schema.get("format") in SUPPORTED:
        found = _of_format(schema["format"])
    if "pattern" in schema:
        with _at(part, "pattern"):
            found = meet_texts(found, pattern_texts(schema["pattern"], part.pointer, "pattern"))
    fewest, most = int(schema.get("minLength", 0)), schema.get("maxLength")
    if fewest or most is not None:
        with _at(part, "minLength" if most is None else "maxLength"):
            found = _within(found, fewest, None if most is None else int(most))
    return found


def _at(part: Part, keyword: str) -> AbstractContextManager[None]:
    """Inside, a budget that is exceeded is told with the place of a keyword."""
    return as_too_large(pointer_below(part.pointer, keyword))


@lru_cache(maxsize=len(SUPPORTED))
def _of_format(name: str) -> ByteDFA:
    return bounded(format_texts(name), at_most_format(name))


@lru_cache(maxsize=128)
def _within(texts: ByteDFA, fewest: int, most: int | None) -> ByteDFA:
    if isinstance(texts, Bounded):
        low, high = (_within(bound, fewest, most) for bound in (texts.least, texts.most))
        return bounded(low, high)
    return canonical(within_length(texts, fewest, most))


def pattern_texts(pattern: str, pointer: str, *way: str) -> ByteDFA:
    """The texts that a regex of ECMA-262 matches somewhere. pointer, way: where it stands."""
    where = pointer_below(pointer, *way)
    try:
        with as_too_large(where):
            return canonical(ecma_pattern(pattern))
    except RegexSyntaxError as error:
        raise InvalidSchemaError(where, str(error)) from None
    except RegexError as error:
        raise UnsupportedSchemaError(way[0], where, str(error)) from None


_BOUNDS: tuple[tuple[str, Callable[[Any], NumberSet], Callable[[Any], NumberSet]], ...] = (
    ("inimum", at_least, above),
    ("aximum", at_most, below),
)


def read_numbers(part: Part, only_integers: bool) -> NumberSet:
    """minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf; and whether the type is
    `integer`."""
    schema, found = part.schema, ALL_NUMBERS
    if only_integers:
        found = integers(by_text=part.draft.integers_by_text)
    for name, inclusive, exclusive in _BOUNDS:
        bound, other = schema.get("m" + name), schema.get("exclusiveM" + name)
        if bound is not None:
            with _at(part, "m" + name):
                # `exclusiveMinimum: true` is how draft 4 says that the minimum itself is out
                found = meet_numbers(found, (exclusive if other is True else inclusive)(bound))
        if other is not None and not isinstance(other, bool):
            with _at(part, "exclusiveM" + name):
                found = meet_numbers(found, exclusive(other))
    if "multipleOf" in schema:
        with _at(part, "multipleOf"):
            found = meet_numbers(found, multiples_of(schema["multipleOf"]))
    return found


def read_listed(values: Iterable[Any], pointer: str) -> Values:
    """{ v : v is one of some JSON values }"""
    texts, numbers, booleans, null = set(), [], set(), False
    arrays: list[Term[ArrayShape]] = []
    objects: list[Term[ObjectShape]] = []
    for value in values:
        check()
        if value is None:
            null = True
        elif isinstance(value, bool):
            booleans.add(value)
        elif isinstance(value, str):
            texts.add(value)
        elif isinstance(value, list | tuple):
            arrays.append(Term(_array(value, pointer)))
        elif isinstance(value, dict):
            objects.append(Term(_object(value, pointer)))
        else:
            numbers.append(of_value(value))
    strings = listed(frozenset(texts))
    joined = _joined(numbers, join_numbers, NO_NUMBER)
    return Values(null, frozenset(booleans), joined, strings, tuple(arrays), tuple(objects))


def _array(items: list[Any] | tuple[Any, ...], pointer: str) -> ArrayShape:
    prefix = tuple(_one(item, pointer) for item in items)
    return ArrayShape(prefix, NOTHING, len(prefix), len(prefix), pointer=pointer)


def _object(members: dict[str, Any], pointer: str) -> ObjectShape:
    named = {name: Property(_one(value, pointer), required=True) for name, value in members.items()}
    return ObjectShape(named, pointer=pointer)


def _one(value: Any, pointer: str) -> Child:
    """A single value. What is inside of it is read when it is asked for: it may be deep."""
    return Child(lambda: read_listed((value,), pointer))


T = TypeVar("T")


def _joined(found: list[T], join: Callable[[T, T], T], nothing: T) -> T:
    """All joined, two by two: automata of many numbers are joined with ones of their size."""
    while len(found) > 1:
        pairs = zip(found[::2], found[1::2], strict=False)
        odd = found[-1:] if len(found) % 2 else []
        found = [join(a, b) for a, b in pairs] + odd
    return reduce(join, found, nothing)
