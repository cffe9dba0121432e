"""`oneOf`: the values that are in exactly one of some sets.

    exactly_one(A) = union over i of  A_i - union over j != i of A_j

Texts and numbers are counted in one go: what was seen once, and what was seen at all. Arrays and
objects of each branch are taken less those of the others; branches that exclude each other, as most
do by a type or a constant, cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from typing import TypeVar

from bpe_automata.schemas.boolean import difference, union
from bpe_automata.schemas.constants import NO_NUMBER, NO_TEXT, NONE
from bpe_automata.schemas.leaves import (
    join_numbers,
    join_texts,
    less_numbers,
    less_texts,
)
from bpe_automata.schemas.shapes import Values

T = TypeVar("T")


def exactly_one(branches: Sequence[Values], others: Sequence[Values]) -> Values:
    """{ v : v in branches[i] for some i, and in others[j] for no j != i }; branches[i] is a part of
    others[i]. Raises BudgetExceededError."""
    if len(branches) == 1:
        return branches[0]
    found = reduce(union, _structured(branches, others), NONE)
    nulls = sum(v.null for v in others)
    return replace(
        found,
        null=nulls == 1 and any(v.null for v in branches),
        booleans=frozenset(b for b in (False, True) if sum(b in v.booleans for v in others) == 1),
        numbers=_once([v.numbers for v in branches], join_numbers, less_numbers, NO_NUMBER),
        strings=_once([v.strings for v in branches], join_texts, less_texts, NO_TEXT),
        memo={},
    )


def _structured(branches: Sequence[Values], others: Sequence[Values]) -> list[Values]:
    """The arrays and objects of each branch, less those of the others."""
    found = [_bare(branch) for branch in branches]
    bare = found if others is branches else [_bare(other) for other in others]
    some = [(j, other) for j, other in enumerate(bare) if other.arrays or other.objects]
    return [
        reduce(difference, (other for j, other in some if j != i), branch)
        for i, branch in enumerate(found)
        if branch.arrays or branch.objects
    ]


def _bare(values: Values) -> Values:
    """Only arrays and objects."""
    return replace(
        values, null=False, booleans=frozenset(), numbers=NO_NUMBER, strings=NO_TEXT, memo={}
    )


def _once(sets: list[T], join: Callable[[T, T], T], less: Callable[[T, T], T], nothing: T) -> T:
    """What is in exactly one of some sets."""
    once, seen = nothing, nothing
    for found in sets:
        once, seen = join(less(once, found), less(found, seen)), join(seen, found)
    return once
