"""Computes `oneOf`: the values that are in exactly one of some sets.

    exactly_one(A) = union over i of  A_i - union over j != i of A_j

Strings and numbers take one pass, which remembers what was seen once and what was seen at all.
From the arrays and objects of each branch those of the others are subtracted, but for the branches
that a constant tells apart, as most do: a union of 300 tools, each with its name, is read in
linear time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial, reduce
from typing import TypeVar

from bpe_automata.schemas._boolean import difference, union
from bpe_automata.schemas._numbers import ALL_NUMBERS
from bpe_automata.schemas._scalar_sets import (
    Finite,
    subtract,
    unite,
)
from bpe_automata.schemas._values import NO_TEXT, NONE, Unfinished, Values

_ANY = object()  # stands for sets that no constant tells apart
_TRIED = 4  # names that may tell the branches apart

T = TypeVar("T")


def exactly_one(branches: Sequence[Values], others: Sequence[Values]) -> Values:
    """{ v : v in branches[i] for some i, and in others[j] for no j != i }, where branches[i] and
    others[i] differ in arrays and objects alone. Raises BudgetExceededError."""
    if len(branches) == 1:
        return branches[0]
    found = reduce(union, _structured(branches, others), NONE)
    nulls = sum(v.null for v in others)
    return replace(
        found,
        null=nulls == 1 and any(v.null for v in branches),
        booleans=frozenset(b for b in (False, True) if sum(b in v.booleans for v in others) == 1),
        numbers=_exactly_once(
            [v.numbers for v in branches],
            partial(unite, every=ALL_NUMBERS),
            partial(subtract, every=ALL_NUMBERS),
            NO_TEXT,
        ),
        strings=_exactly_once([v.strings for v in branches], unite, subtract, NO_TEXT),
    )


def _structured(branches: Sequence[Values], others: Sequence[Values]) -> list[Values]:
    """The arrays and objects of each branch that are in no other, but for those of which no
    constant tells them apart."""
    found = [_bare(branch) for branch in branches]
    bare = found if others is branches else [_bare(other) for other in others]
    shapes = [shape for values in bare for shape in values.objects]
    names = Counter(name for one in shapes for name, m in one.named.items() if m.required)
    tried = [[_constants(v, name) for v in bare] for name, _ in names.most_common(_TRIED)]
    keys = min(tried, key=lambda key: key.count(None), default=[None] * len(bare))
    having: dict[object, set[int]] = {}
    for j, constants in enumerate(keys):
        for constant in (_ANY,) if constants is None else constants:
            having.setdefault(constant, set()).add(j)

    def rivals(i: int) -> list[int]:
        if bare[i].arrays or keys[i] is None:
            return [j for j in range(len(bare)) if j != i]
        sharing = (having[constant] for constant in keys[i] or ())
        return sorted(set().union(having.get(_ANY, ()), *sharing) - {i})

    return [
        reduce(difference, (bare[j] for j in rivals(i)), branch)
        for i, branch in enumerate(found)
        if branch.arrays or branch.objects
    ]


def _constants(values: Values, name: str) -> frozenset[object] | None:
    """All values that a required member has; None if it may be missing, or has others than a few
    strings, true, false and null. (A number has many spellings, of which no list is kept.)"""
    found: set[object] = set()
    for shape in values.objects:
        member = shape.named.get(name)
        if member is None or not member.required:
            return None
        try:
            given = member.child.values
        except Unfinished:  # the schema refers back to what is being read
            return None
        strings = given.strings
        if given.arrays or given.objects or not given.numbers.is_empty:
            return None
        if isinstance(strings, Finite):
            found |= strings.elements
        elif not strings.is_empty:
            return None
        found.update(given.booleans, (None,) if given.null else ())
    return frozenset(found)


def _bare(values: Values) -> Values:
    """The arrays and objects of a set."""
    return replace(values, null=False, booleans=frozenset(), numbers=NO_TEXT, strings=NO_TEXT)


def _exactly_once(
    sets: list[T], join: Callable[[T, T], T], less: Callable[[T, T], T], nothing: T
) -> T:
    """The elements that are in exactly one of some sets."""
    once, seen = nothing, nothing
    for found in sets:
        once, seen = join(less(once, found), less(found, seen)), join(seen, found)
    return once
