"""Refuses sets of values whose texts no automaton can describe exactly.

An automaton cannot tell whether a name comes twice. In a text that repeats a name which is not
listed, all values of that name must be allowed, so the one that a parser keeps is allowed too, and
the text is accepted rightly. But such names cannot be counted, see `_check_count`; and items out of
many values cannot be compared with one another.
"""

from __future__ import annotations

from bpe_automata._budget import check
from bpe_automata.errors import (
    UnsupportedSchemaError,
)
from bpe_automata.schemas._drafts import below
from bpe_automata.schemas._few_values import MAX_VALUES, apart, single_values
from bpe_automata.schemas._limits import as_too_large, step
from bpe_automata.schemas._values import (
    ObjectShape,
    Shape,
    Values,
    child_is_empty,
)

_NOT_UNIQUE = (
    f"items out of more than {MAX_VALUES} values would have to be compared with one another. Leave "
    'the keyword out of the schema, or give loosen=("uniqueItems",), which does so'
)


def check_regular(values: Values) -> None:
    """Check a set and everything inside, each set once. Raises UnsupportedSchemaError, with the
    pointer of the schema that no automaton can express; SchemaTooLargeError where the check takes
    more steps than `limits` allows."""
    seen, waiting = dict[int, Values](), [values]
    while waiting:
        here = waiting.pop()
        if id(here) in seen:
            continue
        check()
        seen[id(here)] = here
        for array in here.arrays:
            _check_shape(array)
            with as_too_large(array.pointer):
                counts = [one.wanted.values for one in array.counted]
                for item in (*array.prefix, array.rest):  # by those that are counted
                    waiting += [part for part, _ in apart(item.values, counts)]
        for found in here.objects:
            _check_shape(found)
            with as_too_large(found.pointer):
                waiting += [member.child.values for member in found.named.values()]
                waiting += [child.values for _, child in found.rest]


def _check_shape(shape: Shape) -> None:
    """Check what one shape counts and compares."""
    step()
    if isinstance(shape, ObjectShape):
        _check_count(shape)
        return
    differ = shape.unique and (shape.most is None or shape.most > 1)
    if differ and single_values(shape) is None:
        where = below(shape.pointer, "uniqueItems")
        raise UnsupportedSchemaError("uniqueItems", where, _NOT_UNIQUE)


def _check_count(shape: ObjectShape) -> None:
    """Raises UnsupportedSchemaError if the count needs more than one property that is not named:
    those might all have one name."""
    if shape.fewest <= len(shape.required) + 1 or all(
        child_is_empty(child) for _, child in shape.rest
    ):
        return
    why = "members beyond the named ones would have to be told apart to be counted"
    where = below(shape.pointer, shape.counting)
    raise UnsupportedSchemaError(shape.counting, where, why)
