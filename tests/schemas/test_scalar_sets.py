"""Sets of strings that are no automata until one is needed: against their strings."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import examples, same_arrays

from bpe_automata._automata.algebra import difference
from bpe_automata._automata.dfa import ByteDFA
from bpe_automata._automata.sources import from_strings
from bpe_automata.schemas._ecma import listed
from bpe_automata.schemas._escapes import json_string
from bpe_automata.schemas._json_style import JsonStyle
from bpe_automata.schemas._scalar_sets import (
    Bounded,
    bounded,
    contains,
    finite,
    intersect_strings,
    lower_bound,
    subtract_strings,
    unite_strings,
    upper_bound,
)
from bpe_automata.schemas._strings import ecma_pattern
from bpe_automata.schemas._values import ALL_STRINGS

STRINGS = ("", "a", "b", "ab", "\u00e9", "aaa")
some = st.frozensets(st.sampled_from(STRINGS), max_size=4)
plain = st.one_of(
    some.map(finite),
    some.map(lambda strings: subtract_strings(ALL_STRINGS, finite(strings))),
    st.sampled_from(("^a*$", "^[^a]", "b")).map(ecma_pattern),
)
sets = st.one_of(
    plain,
    st.builds(lambda a, b: bounded(intersect_strings(a, b), a), plain, plain),
)
Operation = Callable[[ByteDFA, ByteDFA], ByteDFA]
OPERATIONS: tuple[tuple[Operation, Callable[[bool, bool], bool]], ...] = (
    (intersect_strings, lambda a, b: a and b),
    (unite_strings, lambda a, b: a or b),
    (subtract_strings, lambda a, b: a and not b),
)


@given(sets, sets, st.sampled_from(OPERATIONS))
@examples(200)
def test_operations(
    one: ByteDFA, other: ByteDFA, chosen: tuple[Operation, Callable[[bool, bool], bool]]
) -> None:
    operation, of_strings = chosen
    found, less = operation(one, other), operation is subtract_strings
    for bound, others in ((lower_bound, upper_bound), (upper_bound, lower_bound)):
        of_other = others if less else bound
        for string in (*STRINGS, "other"):
            expected = of_strings(contains(bound(one), string), contains(of_other(other), string))
            assert contains(bound(found), string) == expected
            assert bound(found).accepts(string.encode()) == expected
    assert found.is_empty == upper_bound(found).is_empty


def test_an_upper_bound_waits() -> None:
    asked = []
    strings = Bounded(finite(frozenset("a")), partial(asked.append, "asked"))  # type: ignore[arg-type]
    assert not strings.is_empty
    assert strings.accepts(b"a")
    assert not asked


@pytest.mark.parametrize(
    ("pattern", "strings"),
    [
        ("^$", {""}),
        ("^gulp@1$", {"gulp@1"}),
        (r"^a\.b\-c\/$", {"a.b-c/"}),
        ("^(on|off|)$", {"on", "off", ""}),
        ("^(?:\u00e9|a\nb)$", {"\u00e9", "a\nb"}),
    ],
)
def test_patterns_that_spell_out_their_strings(pattern: str, strings: set[str]) -> None:
    assert listed(pattern) == strings
    assert same_arrays(ecma_pattern(pattern), from_strings(strings))


@pytest.mark.parametrize(
    "pattern",
    ["a", "^a", "^a|b$", "^(a|b)c$", "^a.$", r"^\d$", "^[a]$", "^a{2}$", r"^a\|b$", "^(a)|(b)$"],
)
def test_other_patterns(pattern: str) -> None:
    assert listed(pattern) is None


@examples(100)
@given(st.frozensets(st.text(st.characters(exclude_categories=["Cs"]), max_size=4), min_size=1))
def test_a_set_of_strings_is_spelled_without_its_automaton(strings: frozenset[str]) -> None:
    lazy = finite(strings)
    spelled = JsonStyle().strings(lazy, 0)
    slowly = json_string(from_strings(strings))
    assert difference(spelled, slowly).is_empty
    assert difference(slowly, spelled).is_empty


def test_the_size_of_a_large_set_of_strings_is_not_asked() -> None:
    lazy = finite(frozenset(str(pow(3, k, 10**9 + 7)) for k in range(2000)))
    JsonStyle().strings(lazy, 0)
    assert "_written" not in vars(lazy)
