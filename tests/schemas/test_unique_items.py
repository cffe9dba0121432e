"""Arrays whose items must differ: out of few values or of a list of strings they are told apart,
out of others they are refused, unless `loosen` leaves the keyword out; against `jsonschema`."""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import jsonschema
import pytest
from support.values import spelled

from bpe_automata.automata.sources import from_strings
from bpe_automata.errors import (
    ArgumentError,
    LoosenedSchemaWarning,
    UnsatisfiableSchemaError,
    UnsupportedSchemaError,
)
from bpe_automata.schemas import json_schema, yaml_schema

STRINGS = {"type": "array", "items": {"type": "string"}, "uniqueItems": True}
FUNCTIONS = (json_schema, yaml_schema)
LOOSEN = ("uniqueItems",)


@pytest.mark.parametrize("fewest", [0, 1, 40, 129])
def test_a_list_of_strings_however_long_is_told_apart_by_states(fewest):
    """Each state knows how short its array can be made: by the shortest strings that are left."""
    names = ["x" * (1 + k % 7) + str(k) for k in range(130)]
    items = {"type": "array", "items": {"enum": names}, "uniqueItems": True, "minItems": fewest}
    dfa = json_schema(items)
    rng, valid = random.Random(fewest), jsonschema.Draft202012Validator(items)
    for count in (1, 2, 39, 40, 41, 129, 130):
        some = rng.sample(names, count)
        for value in some, [*some, some[0]]:
            assert dfa.accepts(spelled(value)) == valid.is_valid(value)
        begun = spelled(some)[:-1]
        rest = dfa.shortest(dfa.walk(begun))
        assert valid.is_valid(json.loads(begun + rest))
        left = sorted(len(name) for name in set(names) - set(some))[: max(0, fewest - count)]
        assert len(rest) == sum(left) + 3 * len(left) + 1 == dfa.far[dfa.walk(begun)]


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize("make", FUNCTIONS)
@pytest.mark.parametrize(
    "items", [{"type": "string"}, {"type": "integer"}, {}, STRINGS, {"enum": [[1]]}]
)
def test_items_out_of_many_values_are_refused_with_the_way_out(make, items):
    with pytest.raises(UnsupportedSchemaError) as caught:
        make({"properties": {"a": {**STRINGS, "items": items}}})
    error = caught.value
    assert (error.keyword, error.pointer) == ("uniqueItems", "#/properties/a/uniqueItems")
    assert 'loosen=("uniqueItems",)' in str(error)


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ({**STRINGS, "contains": {"const": "a"}}, "#/uniqueItems"),
        ({**STRINGS, "prefixItems": [{"enum": ["a"]}]}, "#/uniqueItems"),
        ({"oneOf": [STRINGS, {**STRINGS, "items": {"type": "null"}}]}, "#/oneOf/0/uniqueItems"),
        ({"not": STRINGS}, "#/not"),
    ],
)
def test_so_are_they_beside_other_keywords(schema, pointer):
    with pytest.raises(UnsupportedSchemaError) as caught:
        json_schema(schema)
    assert caught.value.pointer == pointer


# ---------------------------------------------------------------- what is loosened


@pytest.mark.parametrize("make", FUNCTIONS)
def test_the_keyword_is_left_out_and_that_is_said_once(make):
    """The automaton is that of the schema without it."""
    schema = {"properties": {"a": STRINGS, "b": {**STRINGS, "minItems": 1}}, "type": "object"}
    plain = {"type": "array", "items": {"type": "string"}}
    without = {**schema, "properties": {"a": plain, "b": {**plain, "minItems": 1}}}
    with pytest.warns(LoosenedSchemaWarning, match="#/properties/a/uniqueItems") as said:
        found = make(schema, loosen=LOOSEN)
    assert [one.filename for one in said] == [__file__]
    expected, rng = make(without), random.Random(0)
    for _ in range(20):
        assert expected.accepts(found.sample(rng))
        assert found.accepts(expected.sample(rng))


@pytest.mark.parametrize("loosen", ["uniqueItems", ("minItems",), ("uniqueItems", 1), None, {}])
def test_other_keywords_are_not_left_out(loosen):
    with pytest.raises(ArgumentError, match="loosen"):
        json_schema(STRINGS, loosen=loosen)


ARRAYS = [[*some] for n in range(4) for some in itertools.product(["a", "b", 1], repeat=n)]
VALUES = [*ARRAYS, "a", 1, {}, *({"p": value} for value in (*ARRAYS[::3], "a"))]
"""What the schemas below tell apart."""


def drawn(rng: random.Random, depth: int) -> Any:
    """A schema with arrays whose items must differ, below whatever takes values away."""
    kind = rng.random()
    if depth == 0 or kind < 0.3:
        items = rng.choice([{}, {"type": "string"}, {"type": "integer"}, {"enum": ["a", 1]}])
        found = {"type": "array", "items": items, "uniqueItems": rng.random() < 0.8}
        return {**found, "minItems": rng.randrange(3)}
    inner = [drawn(rng, depth - 1) for _ in range(2)]
    if kind < 0.5:
        return {"type": "object", "properties": {"p": inner[0]}, "required": ["p"]}
    if kind < 0.65:
        return {"not": inner[0]}
    return {rng.choice(["oneOf", "oneOf", "anyOf", "allOf"]): inner}


@pytest.mark.filterwarnings("ignore::bpe_automata.errors.LoosenedSchemaWarning")
@pytest.mark.parametrize(
    ("schema", "texts", "others"),
    [
        ({"not": STRINGS}, ["1", '["a","a"]', '["a","b"]', "[1]"], ["[]", '["a"]']),
        ({"oneOf": [STRINGS, {**STRINGS, "items": {"type": "null"}}]},
         ['["a","a"]', "[null]", "[null,null]"], ["[]", "1", '["a",null]']),
        ({"oneOf": [{"type": "array"}, {**STRINGS, "items": {}}]}, ["[1,1]", "[1,2]"],
         ["[]", "[1]", "1"]),
    ],
)  # fmt: skip
def test_what_is_taken_away_is_no_more_than_the_schema_says(schema, texts, others):
    """Of arrays whose items differ, those with one item at most."""
    dfa = json_schema(schema, loosen=LOOSEN)
    assert [dfa.accepts(text.encode()) for text in texts + others] == (
        [True] * len(texts) + [False] * len(others)
    )


@pytest.mark.filterwarnings("ignore::bpe_automata.errors.LoosenedSchemaWarning")
def test_what_is_valid_is_accepted_however_it_is_loosened():
    compiled = loosened = 0
    for seed in range(300):
        schema = drawn(random.Random(seed), 3)
        judge = jsonschema.Draft202012Validator(schema)
        try:
            dfa = json_schema(schema, loosen=LOOSEN)
        except UnsupportedSchemaError:  # what is taken away from what is taken away, as a rule
            continue
        except UnsatisfiableSchemaError:
            dfa = from_strings(())
        compiled += 1
        for value in VALUES:
            accepted = dfa.accepts(spelled(value))
            assert accepted or not judge.is_valid(value), (schema, value)
            loosened += accepted and not judge.is_valid(value)
    assert compiled > 200
    assert loosened > 1000


@pytest.mark.parametrize(
    ("schema", "right", "wrong"),
    [
        ({"items": {"enum": [1, 1.5]}}, "[1.50,1]", "[1.5,1.50]"),
        ({"prefixItems": [{"enum": [1]}, {}], "maxItems": 1}, "[1]", "[1,1]"),
    ],
)
def test_unique_items_that_are_few(schema: dict[str, Any], right: str, wrong: str) -> None:
    found = json_schema({"type": "array", "uniqueItems": True, **schema})
    assert found.accepts(right.encode())
    assert not found.accepts(wrong.encode())
