"""The texts of sets of values, against what is valid, value by value."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support import examples, same_arrays

from bpe_automata._automata.compile import Budget, compile_regex
from bpe_automata._automata.sources import from_strings
from bpe_automata.errors import (
    ArgumentError,
    BudgetExceededError,
    SchemaTooLargeError,
    UnsupportedSchemaError,
)
from bpe_automata.schemas import _numbers as numbers
from bpe_automata.schemas import _writing as writing
from bpe_automata.schemas._json_style import JsonStyle
from bpe_automata.schemas._regularity import check_regular
from bpe_automata.schemas._values import (
    ALL,
    ALL_STRINGS,
    NONE,
    ArrayShape,
    Child,
    Counted,
    ObjectShape,
    Property,
    Term,
    Values,
    any_value,
    depth_of_anything,
    limit_recursion,
)
from bpe_automata.schemas._writing import write

NAMES = ("a", "b", "c")
SCALARS = (None, True, 0, 1, "a", "")
LAYOUTS = {"compact": {"separators": (",", ":")}, "spaced": {}, "flexible": {"indent": 2}}


# ---------------------------------------------------------------- sets of values, and a plain twin


def has(values: Values, value: object) -> bool:
    """Is a value in the set? By the definitions, with no automaton of a whole text."""
    if value is None:
        return values.null
    if isinstance(value, bool):
        return value in values.booleans
    if isinstance(value, int | float):
        return values.numbers.decimals.accepts(json.dumps(value).encode())
    if isinstance(value, str):
        return values.strings.accepts(value.encode())
    terms = values.arrays if isinstance(value, list) else values.objects
    fits = fits_array if isinstance(value, list) else fits_object
    return any(
        fits(term.shape, value) and not any(fits(n, value) for n in term.minus) for term in terms
    )


def fits_array(shape: ArrayShape, value: list) -> bool:
    most = len(value) if shape.most is None else shape.most
    spelled = [json.dumps(item) for item in value]
    return (
        shape.fewest <= len(value) <= most
        and not (shape.unique and len(set(spelled)) < len(spelled))
        and all(has(shape.item(at).values, item) for at, item in enumerate(value))
        and all(
            one.fewest <= n and (one.most is None or n <= one.most)
            for one in shape.counted
            for n in [sum(has(one.wanted.values, item) for item in value)]
        )
    )


def fits_object(shape: ObjectShape, value: dict) -> bool:
    most = len(value) if shape.most is None else shape.most
    return (
        shape.fewest <= len(value) <= most
        and all(name in value for name, given in shape.named.items() if given.required)
        and all(has(child_of(shape, name), member) for name, member in value.items())
        and all(needed in value for name, needed in shape.implied if name in value)
    )


def child_of(shape: ObjectShape, name: str) -> Values:
    if name in shape.named:
        return shape.named[name].child.values
    return next((c.values for names, c in shape.rest if names.accepts(name.encode())), NONE)


def scalars(*given: object) -> Values:
    return Values(
        None in given,
        frozenset(v for v in given if isinstance(v, bool)),
        _numbers([v for v in given if isinstance(v, int) and not isinstance(v, bool)]),
        from_strings(v for v in given if isinstance(v, str)),
        (),
        (),
    )


def _numbers(given: list[int]) -> numbers.NumberSet:
    found = numbers.NO_NUMBER
    for value in given:
        found = found | numbers.of_value(value)
    return found


def objects(*terms: Term | ObjectShape) -> Values:
    found = tuple(t if isinstance(t, Term) else Term(t) for t in terms)
    return Values(objects=found)


def arrays(*terms: Term | ArrayShape) -> Values:
    found = tuple(t if isinstance(t, Term) else Term(t) for t in terms)
    return Values(arrays=found)


SOME_SCALARS = st.sets(st.sampled_from(SCALARS), max_size=4).map(lambda s: scalars(*s))
ANY = Child.of(any_value(1))
NOBODY = Child.of(NONE)
BOUND = st.none() | st.integers(0, 3)


@st.composite
def object_shapes(draw, inside, rests):
    named = {
        name: Property(Child.of(draw(inside)), draw(st.booleans()))
        for name in draw(st.permutations(NAMES))[: draw(st.integers(0, 3))]
    }
    rest, pairs = draw(rests), [*itertools.permutations(named, 2)]
    implied = draw(st.lists(st.sampled_from(pairs), max_size=1)) if pairs else []
    fewest, most = draw(st.sampled_from((0, 0, 1, 2))), draw(BOUND)
    return ObjectShape(named, rest, fewest, most, implied=tuple(implied))


@st.composite
def array_shapes(draw, inside):
    prefix = tuple(Child.of(draw(inside)) for _ in range(draw(st.integers(0, 2))))
    rest = Child.of(draw(inside))
    counts = st.builds(Counted, inside.map(Child.of), st.integers(0, 2), BOUND)
    counted = tuple(draw(st.lists(counts, max_size=1)))
    bounds = draw(st.integers(0, 2)), draw(BOUND)
    return ArrayShape(prefix, rest, *bounds, draw(st.booleans()), counted=counted)


def rests(inside):
    """What other members may be, freely, or all or nothing."""
    open_or_not = st.sampled_from(((), ((ALL_STRINGS, ANY),)))
    some = inside.map(lambda v: ((from_strings(("c", "d")), Child.of(v)),))
    return open_or_not | some, open_or_not


@st.composite
def value_sets(draw, deep: bool = True):
    """Scalars, arrays, objects, differences of them; nested once."""
    inside = st.deferred(lambda: value_sets(deep=False)) if deep else SOME_SCALARS
    some, open_or_not = rests(SOME_SCALARS)
    found = draw(SOME_SCALARS)
    kind = draw(st.sampled_from(("object", "array", "both", "scalar")))
    o, a = (), ()
    if kind in ("object", "both"):
        o = tuple(
            Term(
                draw(object_shapes(inside, some)),
                tuple(draw(st.lists(object_shapes(SOME_SCALARS, open_or_not), max_size=2))),
            )
            for _ in range(draw(st.integers(1, 2)))
        )
    if kind in ("array", "both"):
        less = st.lists(array_shapes(SOME_SCALARS), max_size=1)
        a = (Term(draw(array_shapes(SOME_SCALARS)), tuple(draw(less))),)
    return replace(found, objects=o, arrays=a)


FLAT = [
    dict(zip(keys, found, strict=True))
    for n in range(3)
    for keys in itertools.permutations("abcd", n)
    for found in itertools.product((None, 0, "a"), repeat=n)
]
LISTS = [list(found) for n in range(4) for found in itertools.product((None, 0, "a"), repeat=n)]
DEEP = [{"b": inner, **more} for inner in (*FLAT[::9], *LISTS[::9]) for more in ({}, {"a": 0})]
VALUES = [*SCALARS, *FLAT, *LISTS, *DEEP, *({"a": 0, **v} for v in DEEP[::3])]
TWICE = ['{"a":0,"a":null}', '{"d":0,"d":null}', '{"d":null,"e":0,"d":0}', '{"c":0,"d":1,"c":0}']


def orders(value: object):
    """The value with the members of its objects in every order."""
    if isinstance(value, dict):
        for keys in itertools.permutations(value):
            for found in itertools.product(*(orders(value[key]) for key in keys)):
                yield dict(zip(keys, found, strict=True))
    elif isinstance(value, list):
        yield from map(list, itertools.product(*map(orders, value)))
    else:
        yield value


def same_members(value: object) -> str:
    return json.dumps(value, sort_keys=True)


# ---------------------------------------------------------------- laws


@examples(40)
@given(value_sets())
def test_the_texts_are_those_of_the_values(values):
    """Each accepted text is valid; each valid value has an order in which it is accepted."""
    try:
        check_regular(values)
    except UnsupportedSchemaError:
        assume(False)
    dfa = write(values, JsonStyle())
    accepted = set()
    for value in VALUES:
        text = json.dumps(value, **LAYOUTS["compact"])
        if dfa.accepts(text.encode()):
            assert has(values, value), text
            accepted.add(same_members(value))
    for text in TWICE:
        assert not dfa.accepts(text.encode()) or has(values, json.loads(text)), text
    for value in VALUES:
        if has(values, value) and same_members(value) not in accepted:
            texts = (json.dumps(v, **LAYOUTS["compact"]) for v in orders(value))
            assert any(dfa.accepts(text.encode()) for text in texts), value


@examples(15)
@given(value_sets())
def test_networks_are_written_like_automata(values):
    """However large something must be to be kept as a network, the result is the same."""
    dfa = write(values, JsonStyle())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writing, "_LARGE", 0)
        found = write(values, JsonStyle())
    assert same_arrays(found, dfa)


@examples(12)
@given(value_sets())
def test_white_space_changes_nothing_else(values):
    try:
        check_regular(values)
    except UnsupportedSchemaError:
        assume(False)
    compact, spaced, flexible = (write(values, JsonStyle(name)) for name in LAYOUTS)
    for value in VALUES[::3]:
        texts = [json.dumps(value, **layout).encode() for layout in LAYOUTS.values()]
        known = compact.accepts(texts[0])
        assert spaced.accepts(texts[1]) == known
        assert [flexible.accepts(text) for text in texts] == [known] * 3


# ---------------------------------------------------------------- single cases


def test_members_come_in_the_order_given_then_others():
    shape = ObjectShape(
        {"b": Property(Child.of(scalars(1)), True), "a": Property(Child.of(scalars(2)))},
        ((ALL_STRINGS, Child.of(scalars(3))),),
    )
    dfa = write(objects(shape), JsonStyle())
    for text in ('{"b":1}', '{"b":1,"a":2}', '{"b":1,"a":2,"c":3,"d":3}', '{"b":1,"":3}'):
        assert dfa.accepts(text.encode()), text
    for text in ("{}", '{"a":2,"b":1}', '{"b":1,"a":3}', '{"c":3,"b":1}', '{"b":1,"b":3}'):
        assert not dfa.accepts(text.encode()), text


def test_a_difference_has_one_order_and_all_spellings_of_numbers():
    """p: a number under x; n: the same, an integer, with the names the other way round."""
    p = ObjectShape(
        {
            "x": Property(Child.of(Values(numbers=numbers.ALL_NUMBERS))),
            "y": Property(ANY),
        },
        ((ALL_STRINGS, ANY),),
    )
    whole = Child.of(Values(numbers=numbers.integers()))
    n = ObjectShape(
        {"z": Property(ANY), "y": Property(ANY), "x": Property(whole, True)}, ((ALL_STRINGS, ANY),)
    )
    dfa = write(objects(Term(p, (n,))), JsonStyle())
    for text in ("{}", '{"x":1.5}', '{"x":-0.25,"y":1,"z":2}', '{"y":[]}', '{"y":1,"q":{}}'):
        assert dfa.accepts(text.encode()), text
    for text in ('{"x":1}', '{"x":1.0}', '{"x":-0.0,"y":1}', '{"x":1e5}', '{"x":15e-1}'):
        assert not dfa.accepts(text.encode()), text
    assert not dfa.accepts(b'{"z":2,"x":1.5}')  # z comes after the names of p


def test_no_item_comes_twice():
    item = Child.of(scalars("a", "b", 1, None))
    dfa = write(arrays(ArrayShape((), item, fewest=2, unique=True)), JsonStyle())
    for n in range(6):
        for found in itertools.product(("a", "b", 1, None), repeat=n):
            text = json.dumps(list(found), **LAYOUTS["compact"])
            assert dfa.accepts(text.encode()) == (n >= 2 and len(set(found)) == n), text


def test_too_many_items_to_be_told_apart_are_refused():
    many = Child.of(Values(strings=compile_regex("[a-z]{2}")))
    with pytest.raises(BudgetExceededError, match="20,000 sets"):
        write(arrays(ArrayShape((), many, unique=True)), JsonStyle())


def test_counts_of_members():
    """Named ones count exactly; others count as one for `fewest` and as many for `most`."""
    named = {name: Property(Child.of(scalars(1))) for name in "abc"}
    shape = ObjectShape(named, ((ALL_STRINGS, Child.of(scalars(1))),), fewest=2, most=3)
    dfa = write(objects(shape), JsonStyle())
    for some in itertools.product((0, 1), repeat=3):
        for others in range(4):
            keys = [key for key, there in zip("abc", some, strict=True) if there] + ["d"] * others
            text = "{" + ",".join(f'"{key}":1' for key in keys) + "}"
            expected = len(set(keys)) >= 2 and len(keys) <= 3
            assert dfa.accepts(text.encode()) == expected, text


def test_what_nothing_fits_is_empty_and_what_is_not_required_is_left_out():
    nobody = Property(NOBODY, required=True)
    assert write(objects(ObjectShape({"a": nobody})), JsonStyle()).is_empty
    assert write(NONE, JsonStyle()).is_empty
    assert write(arrays(ArrayShape((NOBODY,), ANY, fewest=1)), JsonStyle()).is_empty
    never = ObjectShape({"a": Property(NOBODY)}, ((ALL_STRINGS, ANY),))
    dfa = write(objects(never), JsonStyle())
    assert dfa.accepts(b'{"b":1}')
    assert not dfa.accepts(b'{"a":1}')


def test_anything_is_known_wherever_it_was_cut_off():
    for depth in range(3):
        made = limit_recursion(ALL, depth)
        assert made is not any_value(depth)
        assert depth_of_anything(made) == depth
        assert same_arrays(write(made, JsonStyle()), write(any_value(depth), JsonStyle()))
    for less in (
        replace(any_value(1), null=False),
        replace(any_value(1), strings=compile_regex("a*")),
        replace(any_value(1), arrays=(Term(ArrayShape((), ANY, most=3)),)),
        replace(any_value(1), objects=(Term(ObjectShape({"a": Property(ANY)})),)),
        replace(any_value(2), arrays=any_value(1).arrays),
    ):
        assert depth_of_anything(less) is None


@pytest.mark.parametrize("escapes", ["minimal", "any"])
def test_names_are_spelled_as_strings_are(escapes):
    name = 'q"\\\n\x01é'
    dfa = write(objects(ObjectShape({name: Property(ANY, True)})), JsonStyle(escapes=escapes))
    assert dfa.accepts(json.dumps({name: 1}, ensure_ascii=False, **LAYOUTS["compact"]).encode())
    ascii_only = json.dumps({name: 1}, **LAYOUTS["compact"]).encode()
    assert dfa.accepts(ascii_only) == (escapes == "any")


def test_white_space_is_bounded_and_only_where_it_is_said_to_be():
    dfa = write(any_value(2), JsonStyle("flexible"))
    for text in ("[\n  1]", "[1, 2,3]", '{ "a":[]}', "[\n]", "[ ]", '{"a": 1\n}'):
        assert dfa.accepts(text.encode()), text
    for text in (" 1", "[1 ]]", "[1 ,2]", "[\n   1]", "[  1]", '{"a" :1}', '{"a":\n1}', "[1]\n"):
        assert not dfa.accepts(text.encode()), text


def test_a_style_that_is_none_is_refused():
    with pytest.raises(ArgumentError, match="'wide'"):
        JsonStyle("wide")
    with pytest.raises(ArgumentError, match="'none'"):
        JsonStyle(escapes="none")


def test_too_large_a_shape_is_told_with_its_place():
    shape = ArrayShape((), Child.of(scalars("a" * 50)), most=4000, pointer="#/properties/many")
    with pytest.raises(SchemaTooLargeError, match="#/properties/many") as caught:
        write(arrays(shape), JsonStyle(), Budget(max_states=1000))
    assert caught.value.pointer == "#/properties/many"


def test_all_networks_together_are_limited():
    shapes = [ArrayShape((), Child.of(scalars("a" * n)), most=60) for n in range(20, 60)]
    few = Budget(max_states=2000)
    values = [arrays(shape) for shape in shapes]
    assert all(write(found, JsonStyle(), few).start for found in values)
    both = arrays(ArrayShape(tuple(map(Child.of, values)), Child.of(NONE), pointer="#/all"))
    with pytest.raises(SchemaTooLargeError, match="40,000 states"):
        write(both, JsonStyle(), few)
