"""Sets of strings that are no automata until one is needed: against their strings."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st
from support import examples

from bpe_automata._automata.dfa import ByteDFA
from bpe_automata.schemas._ecma import ecma_pattern
from bpe_automata.schemas._scalar_sets import (
    ALL_STRINGS,
    bounded,
    contains,
    finite,
    intersect,
    lower_bound,
    subtract,
    unite,
    upper_bound,
)

STRINGS = ("", "a", "b", "ab", "\u00e9", "aaa")
some = st.frozensets(st.sampled_from(STRINGS), max_size=4)
plain = st.one_of(
    some.map(finite),
    some.map(lambda strings: subtract(ALL_STRINGS, finite(strings))),
    st.sampled_from(("^a*$", "^[^a]", "b")).map(ecma_pattern),
)
sets = st.one_of(
    plain,
    st.builds(lambda a, b: bounded(intersect(a, b), a), plain, plain),
)
Operation = Callable[[ByteDFA, ByteDFA], ByteDFA]
OPERATIONS: tuple[tuple[Operation, Callable[[bool, bool], bool]], ...] = (
    (intersect, lambda a, b: a and b),
    (unite, lambda a, b: a or b),
    (subtract, lambda a, b: a and not b),
)


@given(sets, sets, st.sampled_from(OPERATIONS))
@examples(200)
def test_operations(
    one: ByteDFA, other: ByteDFA, chosen: tuple[Operation, Callable[[bool, bool], bool]]
) -> None:
    operation, of_strings = chosen
    found, less = operation(one, other), operation is subtract
    for bound, others in ((lower_bound, upper_bound), (upper_bound, lower_bound)):
        of_other = others if less else bound
        for string in (*STRINGS, "other"):
            expected = of_strings(contains(bound(one), string), contains(of_other(other), string))
            assert contains(bound(found), string) == expected
            assert bound(found).accepts(string.encode()) == expected
    assert found.is_empty == upper_bound(found).is_empty
