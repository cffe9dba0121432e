"""Boolean operations on sets of JSON values.

    union, intersection, difference, complement: { v : v in a or b, a and b, a and not b, not a }

Exact, and lazy below the outermost array or object. Arrays and objects are in disjunctive form, so
that an intersection multiplies terms; more than MAX_TERMS of them are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import replace
from typing import Any, cast

from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.errors import BudgetExceededError, UnsupportedSchemaError
from bpe_automata.schemas.leaves import (
    holds,
    join_numbers,
    join_texts,
    less_numbers,
    less_texts,
    listed,
    meet_numbers,
    meet_texts,
    most,
)
from bpe_automata.schemas.limits import step
from bpe_automata.schemas.values import (
    ALL,
    ANY_ARRAY,
    ANY_OBJECT,
    NONE,
    NOTHING,
    ArrayShape,
    Child,
    ObjectShape,
    Property,
    Shape,
    Term,
    Unfinished,
    Values,
    child_is_empty,
    is_empty,
    shape_is_empty,
)

# The difference of two shapes as a union of shapes, where there is one.
#
#     p - n = union of { v in p : v breaks c } over the conditions c that n consists of
#
# A condition on a named member, on the item at one place, or on how many there are is broken in a way
# that is a shape again. That some member or item out of many breaks one is not, then there is None.

Less = Callable[[Values, Values], Values]
_PLACES = 16  # items that are looked at one by one


def split(shape: Shape, other: Shape, less: Less) -> list[Shape] | None:
    """Shapes whose union is `shape` less `other`; None where no such shapes are found.
    less: the difference of two sets of values."""
    if isinstance(shape, ObjectShape) and isinstance(other, ObjectShape):
        pieces = _split_object(shape, other, less)
    elif isinstance(shape, ArrayShape) and isinstance(other, ArrayShape):
        pieces = _split_array(shape, other, less)
    else:
        raise TypeError("an object and an array are never compared")
    return None if pieces is None else [p for p in pieces if not shape_is_empty(p)]


def member(shape: ObjectShape, name: str) -> Property:
    """What the shape says of the property `name`, in `named` or not."""
    found = shape.named.get(name)
    if found is not None:
        return found
    for names, child in shape.rest:
        if holds_name(names, name, shape.pointer):
            return Property(child)
    return Property(NOTHING)


def holds_name(names: ByteDFA, name: str, pointer: str) -> bool:
    """Is a name in a set? Raises UnsupportedSchemaError if that is not known."""
    if holds(names, name) != holds(most(names), name):
        why = f"it is not decided whether the name {name!r} is of the format"
        raise UnsupportedSchemaError("format", pointer, why)
    return holds(names, name)


def _split_object(shape: ObjectShape, other: ObjectShape, less: Less) -> list[ObjectShape] | None:
    if _rest_may_break(shape, other, less):
        return None
    pieces = []
    for name in [*shape.named, *(n for n in other.named if n not in shape.named)]:
        have, need = member(shape, name), member(other, name)
        if need.required and not have.required:
            pieces.append(_with(shape, name, Property(NOTHING)))
        bad = _bad(have.child, need.child, less)
        if bad is not None:
            pieces.append(_with(shape, name, Property(bad, required=True)))
    if other.most is not None and (shape.most is None or shape.most > other.most):
        more = max(shape.fewest, other.most + 1)
        why = "maxProperties"
        pieces.append(replace(shape, fewest=more, pointer=other.pointer, counting=why))
    return pieces + _too_few(shape, other)


def _with(shape: ObjectShape, name: str, found: Property) -> ObjectShape:
    return replace(shape, named={**shape.named, name: found})


def _bad(have: Child, need: Child, less: Less) -> Child | None:
    """What `have` may hold and `need` may not; None if that is nothing."""
    if have is need:
        return None
    bad = Child(lambda: less(have.values, need.values))
    return None if child_is_empty(bad) else bad


def _rest_may_break(shape: ObjectShape, other: ObjectShape, less: Less) -> bool:
    """May a member that neither shape names break a condition of `other`?"""
    if shape.rest == other.rest:
        return False
    named = listed(frozenset((*shape.named, *other.named)))
    for names, have in shape.rest:
        left = less_texts(names, named)
        for theirs, need in other.rest:
            if meet_texts(left, theirs).is_empty:
                continue
            if _bad(have, need, less) is not None:
                return True
            left = less_texts(left, theirs)
        if not left.is_empty and not child_is_empty(have):
            return True
    return False


def _split_array(shape: ArrayShape, other: ArrayShape, less: Less) -> list[ArrayShape] | None:
    if other.unique and not shape.unique and (shape.most is None or shape.most > 1):
        return None
    places = max(len(shape.prefix), len(other.prefix))
    if _bad(shape.rest, other.rest, less) is not None:
        if shape.most is None or shape.most > _PLACES:
            return None
        places = max(places, shape.most)
    if shape.most is not None:
        places = min(places, shape.most)
    pieces = []
    for at in range(places):
        bad = _bad(shape.item(at), other.item(at), less)
        if bad is not None:
            pieces.append(_with_item(shape, at, bad))
    if other.most is not None and (shape.most is None or shape.most > other.most):
        pieces.append(replace(shape, fewest=max(shape.fewest, other.most + 1)))
    return pieces + _too_few(shape, other)


def _with_item(shape: ArrayShape, at: int, bad: Child) -> ArrayShape:
    """The arrays of the shape whose item `at` is there, and is `bad`."""
    before = tuple(shape.item(i) for i in range(at))
    prefix = (*before, bad, *shape.prefix[at + 1 :])
    return replace(shape, prefix=prefix, fewest=max(shape.fewest, at + 1))


def _too_few(shape: Shape, other: Shape) -> list[Shape]:
    """[those with fewer members or items than `other` asks for], or nothing."""
    if other.fewest <= shape.fewest:
        return []
    most = other.fewest - 1 if shape.most is None else min(shape.most, other.fewest - 1)
    return [replace(shape, most=most)]


Terms = tuple[Term[Shape], ...]

MAX_TERMS = 1024
_PIECES = 4  # a difference is split up to here; beyond, automata are subtracted
_WIDEST = (ANY_ARRAY, ANY_OBJECT)
_OPEN = object()  # stands for an answer that is being looked for


def union(one: Values, other: Values) -> Values:
    """{ v : v in one or v in other }. These four raise BudgetExceededError."""
    if one is other or one is ALL or other is NONE:
        return one
    if other is ALL or one is NONE:
        return other
    return Values(
        one.null or other.null,
        one.booleans | other.booleans,
        join_numbers(one.numbers, other.numbers),
        join_texts(one.strings, other.strings),
        _joined(one.arrays, other.arrays),
        _joined(one.objects, other.objects),
        one.loops | other.loops,
        one.entry or other.entry,
    )


def intersection(one: Values, other: Values) -> Values:
    """{ v : v in one and v in other }."""
    if one is other or other is ALL or one is NONE:
        return one
    if one is ALL or other is NONE:
        return other
    return _remembered(one, other, "and", _intersection)


def difference(one: Values, other: Values) -> Values:
    """{ v : v in one and not v in other }."""
    if one is other or other is ALL or one is NONE:
        return NONE
    if other is NONE:
        return one
    if one is ALL:  # lives for ever, and so would all that it remembers
        return complement(other)
    return _remembered(one, other, "less", _difference)


def complement(values: Values) -> Values:
    """{ v : not v in values }."""
    if values is ALL or values is NONE:
        return NONE if values is ALL else ALL
    back = _once(values, "not", lambda: _difference(ALL, values))
    back.memo["not"] = values
    return cast(Values, back)


def disjoint(one: Values, other: Values) -> bool:
    """Is it sure that no value is in both?"""
    return is_empty(intersection(one, other))


def _remembered(
    one: Values, other: Values, name: str, find: Callable[[Values, Values], Values]
) -> Values:
    """find(one, other), which is kept with `one`; `other` is kept too, so that its id stays its."""
    found = _once(one, (name, id(other)), lambda: (find(one, other), other))[0]
    if name == "and":
        other.memo[(name, id(one))] = (found, one)
    return cast(Values, found)


def _once(values: Values, key: Hashable, find: Callable[[], Any]) -> Any:
    """find(), or what it gave before. Raises Unfinished if it is asked for while it is being found:
    a recursive schema asks whether a part of the answer is empty, and must do without."""
    if key not in values.memo:
        values.memo[key] = _OPEN
        try:
            values.memo[key] = find()
        finally:
            if values.memo[key] is _OPEN:
                del values.memo[key]
    if values.memo[key] is _OPEN:
        raise Unfinished("a set that is made of itself")
    return values.memo[key]


def _intersection(one: Values, other: Values) -> Values:
    return Values(
        one.null and other.null,
        one.booleans & other.booleans,
        meet_numbers(one.numbers, other.numbers),
        meet_texts(one.strings, other.strings),
        _met(one.arrays, other.arrays),
        _met(one.objects, other.objects),
        one.loops | other.loops,
        one.entry or other.entry,
    )


def _difference(one: Values, other: Values) -> Values:
    return Values(
        one.null and not other.null,
        one.booleans - other.booleans,
        less_numbers(one.numbers, other.numbers),
        less_texts(one.strings, other.strings),
        _less(one.arrays, other.arrays),
        _less(one.objects, other.objects),
        one.loops | other.loops,
        one.entry or other.entry,
    )


def _joined(one: Terms[Shape], other: Terms[Shape]) -> Terms[Shape]:
    """Both, each term once; if one of them is everything, only that."""
    for term in one + other:
        if term.shape in _WIDEST and not term.minus:
            return (term,)
    return _few(one + tuple(term for term in other if not any(term is seen for seen in one)))


def _met(one: Terms[Shape], other: Terms[Shape]) -> Terms[Shape]:
    for widest, kept in ((one, other), (other, one)):
        if len(widest) == 1 and widest[0].shape in _WIDEST and not widest[0].minus:
            return kept
    if len(one) * len(other) > 64 * MAX_TERMS:
        raise _too_many()
    return _few(found for a in one for b in other for found in _met_terms(a, b))


def _met_terms(one: Term[Shape], other: Term[Shape]) -> list[Term[Shape]]:
    """[one and other], or nothing."""
    step()
    if one is other:
        return [one]
    shape = meet_shapes(one.shape, other.shape)
    if shape_is_empty(shape):
        return []
    terms = [Term(shape)]
    for minus in one.minus + tuple(n for n in other.minus if not any(n is m for m in one.minus)):
        terms = [left for term in terms for left in _less_shape(term, minus)]
    return terms


def _less(one: Terms[Shape], other: Terms[Shape]) -> Terms[Shape]:
    for theirs in other:
        one = _few(left for term in one for left in _less_term(term, theirs))
    return one


def _less_term(term: Term[Shape], other: Term[Shape]) -> list[Term[Shape]]:
    """p - (n - k) = (p - n) + (p and k)."""
    if term is other:
        return []
    found = _less_shape(term, other.shape)
    for kept in other.minus:
        found += _met_terms(term, Term(meet_shapes(other.shape, kept)))
    return found


def _less_shape(term: Term[Shape], other: Shape) -> list[Term[Shape]]:
    """The term less one more shape: split if that takes few pieces, else noted down."""
    step()
    if shape_is_empty(meet_shapes(term.shape, other)):
        return [term]
    pieces = split(term.shape, other, difference)
    if pieces is None or len(pieces) > _PIECES:
        return [Term(term.shape, term.minus + (other,))]  # noqa: RUF005 - mypy needs this form
    return [left for piece in pieces for left in _again(piece, term.minus)]


def _again(shape: Shape, minus: tuple[Shape, ...]) -> list[Term[Shape]]:
    """The shape less all of `minus`, of which some may have become needless."""
    kept = tuple(n for n in minus if not shape_is_empty(meet_shapes(shape, n)))
    return [Term(shape, kept)]


def meet_shapes(one: Shape, other: Shape) -> Shape:
    """{ v : v has both shapes }; the order of names is that of the first, then of the second."""
    if one is other or other in _WIDEST:
        return one
    if one in _WIDEST:
        return other
    if isinstance(one, ObjectShape) and isinstance(other, ObjectShape):
        return _meet_objects(one, other)
    if isinstance(one, ArrayShape) and isinstance(other, ArrayShape):
        return _meet_arrays(one, other)
    raise TypeError("an object and an array are never compared")


def _meet_objects(one: ObjectShape, other: ObjectShape) -> ObjectShape:
    names = [*one.named, *(name for name in other.named if name not in one.named)]
    named = {name: _meet_members(member(one, name), member(other, name)) for name in names}
    rest = []
    for mine, a in one.rest:
        for theirs, b in other.rest:
            both = meet_texts(mine, theirs)
            if not both.is_empty:
                rest.append((both, meet_children(a, b)))
    most = _fewer(one.most, other.most)
    more = one if one.fewest >= other.fewest else other
    return ObjectShape(named, tuple(rest), more.fewest, most, more.pointer, more.counting)


def _meet_members(one: Property, other: Property) -> Property:
    return Property(meet_children(one.child, other.child), one.required or other.required)


def _meet_arrays(one: ArrayShape, other: ArrayShape) -> ArrayShape:
    places = range(max(len(one.prefix), len(other.prefix)))
    return ArrayShape(
        tuple(meet_children(one.item(at), other.item(at)) for at in places),
        meet_children(one.rest, other.rest),
        max(one.fewest, other.fewest),
        _fewer(one.most, other.most),
        one.unique or other.unique,
        other.pointer if other.unique else one.pointer,
    )


def meet_children(one: Child, other: Child) -> Child:
    """What may stand at a place of which both say something."""
    if one is other or other.known is ALL or one is NOTHING:
        return one
    if one.known is ALL or other is NOTHING:
        return other
    return Child(lambda: intersection(one.values, other.values))


def _fewer(one: int | None, other: int | None) -> int | None:
    return min((most for most in (one, other) if most is not None), default=None)


def _few(terms: Iterable[Term[Shape]]) -> Terms[Shape]:
    found = []
    for term in terms:
        found.append(term)
        if len(found) > MAX_TERMS:
            raise _too_many()
    return tuple(found)


def _too_many() -> BudgetExceededError:
    advice = "alternatives multiply under allOf, oneOf, not, if or dependencies; use fewer of them"
    return BudgetExceededError("terms", MAX_TERMS, advice)


# `oneOf`: the values that are in exactly one of some sets.
#
#     exactly_one(A) = union over i of  A_i - union over j != i of A_j
#
# Texts and numbers are counted in one go: what was seen once, and what was seen at all. Arrays and
# objects of each branch are taken less those of the others; branches that exclude each other, as
# most do by a type or a constant, cost nothing.
