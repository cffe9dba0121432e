"""Languages of schemas without limits: nesting, counts, orders; threads, processes, budgets."""

import gc
import json
import pickle
import random
import weakref
from concurrent.futures import ThreadPoolExecutor

import jsonschema
import numpy as np
import pytest
import yaml
from support import named, same_arrays, same_masks

from bpe_automata import constrain
from bpe_automata._budget import Budget
from bpe_automata.errors import BudgetExceededError, SchemaError
from bpe_automata.schemas import _ladders, _scalar_sets, json_schema, yaml_schema
from experiments.inputs import yaml_text

PERSON = {
    "$defs": {"person": {"type": "object", "additionalProperties": False, "required": ["name"]}},
    "$ref": "#/$defs/person",
}
PERSON["$defs"]["person"]["properties"] = {
    "name": {"type": "string", "maxLength": 9},
    "age": {"type": "integer", "minimum": 0},
    "friends": {"type": "array", "items": {"$ref": "#/$defs/person"}, "maxItems": 5},
}
LINE = {"type": "array", "items": {"enum": [0, 1]}, "minItems": 1_000, "maxItems": 1_001}


# ---------------------------------------------------------------- laws


def test_yaml_is_nested_without_limit_and_in_any_order():
    found = yaml_schema(PERSON, order="any")
    value, valid = {"name": "no"}, jsonschema.Draft202012Validator(PERSON).is_valid
    for age in range(12):
        value = {"age": age, "friends": [value, {"name": "b"}], "name": "a"}
        assert valid(value)
        assert found.accepts(yaml_text(value).encode())
    assert not found.accepts(yaml_text({"friends": [value, {"age": 1}], "name": "a"}).encode())
    rng = random.Random(0)
    for _ in range(50):
        text = found.sample(rng, 200).decode()
        value = yaml.safe_load(text)
        assert valid(value)
        assert yaml_text(value) == text


CHAIN = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 9}, "next": {"$ref": "#"}},
    "additionalProperties": False,
}
SCHEMAS = (
    CHAIN,
    {"anyOf": [{"type": "integer"}, {"type": "number", "multipleOf": 0.5}, {"enum": ["1", 1.25]}]},
    {"type": "object", "patternProperties": {"^x": {"type": "null"}, "y$": {"type": "boolean"}}},
    {"type": "array", "prefixItems": [{"type": "string"}, {"type": "null"}], "minItems": 1},
)


ALL = [(name, how) for name in ("smollm2", "mistral-v1", "gpt2") for how in ("canonical", "lift")]
SLOW = [pytest.param(*pair, marks=pytest.mark.long) for pair in ALL[3:]]


@pytest.mark.parametrize(("name", "method"), [*ALL[:3], *SLOW])
def test_masks_are_those_of_what_is_written_out(name, method, request):
    """mistral-v1 has no pretokenizer, and puts a space before a text."""
    tokenizer, compared = named(name), 0
    for schema in SCHEMAS:
        found = json_schema(schema)
        pair = found, found.to_dfa(depth=6)
        for prompt in ((), tokenizer.encode("Answer:")):
            for seed in range(4 if request.config.getoption("--long") else 1):
                compared += same_masks(tokenizer, method, *pair, 25, prompt, seed)
    assert compared > 50


# ---------------------------------------------------------------- without limits


def test_values_are_nested_without_limit():
    found = json_schema({"type": ["object", "array"]})
    text = b'{"a":[' * 1_000 + b"{}" + b"]}" * 1_000
    assert found.accepts(text)
    assert not found.accepts(text[:-1])
    deep = json_schema(PERSON)
    text = b'{"name":"","friends":[' * 500 + b'{"name":"x"}' + b"]}" * 500
    assert deep.accepts(text)
    assert not deep.accepts(text.replace(b'"x"', b"0"))


def test_nothing_is_begun_that_has_no_end():
    for none in (False, {"not": {}}):
        schema = {"items": none, "additionalProperties": none}
        found = json_schema(schema, whitespace="flexible")
        assert all(map(found.accepts, (b"[\n]", b"{ }")))
        assert not any(map(found.walk, (b"[\n ", b"{\n ")))


def test_counts_are_as_large_as_they_like():
    found = json_schema(LINE)
    for n in (999, 1_000, 1_001, 1_002):
        assert found.accepts(b"[" + b",".join([b"0"] * n) + b"]") == (n in (1_000, 1_001))
    assert len(found.shortest()) == 2 * 1_000 + 1


@pytest.mark.parametrize("method", ["canonical", "lift"])
def test_a_constraint_that_is_kept_works_for_ever(method):
    """Threads share it; what fills its automaton is let go, and masks are those of a new one."""
    # Half of the room, which is 6,000 states, is enough for the texts of all threads at once, so it
    # does not matter who comes when: a text takes 610 at most.
    tokenizer, budget = named("smollm2"), Budget(1000)
    schema = {
        "type": "object",
        "properties": {f"p{k}": {"type": "string", "maxLength": 9} for k in range(6)},
        "additionalProperties": False,
    }

    def made():
        language = json_schema(schema, order="any", budget=budget)
        return constrain(tokenizer, language, method)

    kept = made()
    first = weakref.ref(kept.engine.dfa)

    def work(seed):
        rng = random.Random(seed)
        for trial in range(25):
            matchers = [kept.matcher()] if trial % 5 else [kept.matcher(), made().matcher()]
            for _ in range(30):
                ids, *others = [matcher.allowed_ids() for matcher in matchers]
                assert all(np.array_equal(ids, other) for other in others)
                ids = np.setdiff1d(ids, tokenizer.eos_ids)
                if not ids.size:
                    break
                chosen = int(rng.choice(ids))
                for matcher in matchers:
                    matcher.advance(chosen)

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(work, range(3)))
    gc.collect()
    assert first() is None


@pytest.mark.parametrize(
    "schema",
    [
        json.loads('{"items":' * 400 + "true" + "}" * 400),
        {"enum": [f"value {k}" for k in range(100_000)]},
        {"$ref": "#"},
        {"allOf": [{"properties": {f"p{k}": {"type": "integer"}}} for k in range(500)]},
        {"type": "string", "maxLength": 10**9},
        {"not": {"not": {"properties": {"a": {"$ref": "#"}}}}},
    ],
    ids=["nested", "enum", "loop", "allOf", "maxLength", "not"],
)
def test_hostile_schemas_are_answered_or_refused(schema):
    try:
        found = json_schema(schema, budget=Budget(max_seconds=4.5))
    except SchemaError:
        pass
    else:
        assert found.live_bytes(found.start).size


# ---------------------------------------------------------------- errors, threads, processes


def test_a_picture_shows_the_way_of_a_text():
    text = '{"name":"x","friends":[{"name":"'
    found = json_schema(PERSON)
    drawing = found.picture(text).drawing
    lit = [node.label for node in drawing.nodes if node.lit]
    assert set(lit) == {str(found.walk(text[:k].encode())) for k in range(1 + len(text))}
    assert sum(edge.lit for edge in drawing.edges) >= len(lit) - 1
    assert not any(node.lit for node in found.picture().drawing.nodes)
    assert found.picture().text().startswith("the states near ")
    assert len(json_schema({}).picture("[" * 300).drawing.nodes) <= 101


def test_room_that_is_used_up_is_said_and_leaves_the_matcher_as_it_was():
    found = json_schema({"type": "array"}, budget=Budget(max_states=200))
    with pytest.raises(BudgetExceededError, match="states"):
        found.walk(b"[" * 1_000)
    assert found.accepts(b"[1]")
    tokenizer = named("smollm2")
    matcher, bracket = constrain(tokenizer, found, "lift").matcher(), tokenizer.encode("[")[0]

    def nest():
        for _ in range(3_000):
            matcher.advance(bracket)

    with pytest.raises(BudgetExceededError, match="states"):
        nest()
    state = matcher._state
    with pytest.raises(BudgetExceededError, match="states"):
        matcher.mask()
    assert matcher._state == state


def test_another_process_makes_it_again():
    found = json_schema(PERSON, order="any", whitespace="spaced")
    again = pickle.loads(pickle.dumps(found))
    for text in (b'{"age": 1, "name": ""}', b'{"name": "", "age": 1}', b'{"age": 1}', b"{}"):
        assert again.accepts(text) == found.accepts(text)
    begun = pickle.loads(pickle.dumps(found.begun_with(b"> ")))
    assert begun.accepts(b'> {"name": ""}')
    constraint = pickle.loads(pickle.dumps(constrain(named("smollm2"), found)))
    assert constraint.dfa.accepts(b'{"name": ""}')


# ---------------------------------------------------------------- long strings

PATTERNS = ("", "^(ab|c\u00e9|\U0001f600)*$", "^[a-z]+-[0-9]{2}", "^.{3}(xx)*$", '^["\\\\\\n]*a$')


@pytest.mark.parametrize("escapes", ["minimal", "any"])
@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("most", [5, 12, 31])
def test_ladders_are_the_strings_of_so_many_characters(monkeypatch, pattern, most, escapes):
    """Rungs of four characters, in place of 64, from two characters on, in place of 300."""
    schema = {"type": "string", "maxLength": most, "pattern": pattern, "minLength": most % 4}
    dfa = json_schema(schema, escapes=escapes).to_dfa()
    monkeypatch.setattr(_ladders, "_CHARACTERS", 4)
    monkeypatch.setattr(_scalar_sets, "_FEW", 2)
    _scalar_sets.of_length.cache_clear()
    _ladders.ladder.cache_clear()
    try:
        found = json_schema(schema, escapes=escapes)
    finally:
        _scalar_sets.of_length.cache_clear()
        _ladders.ladder.cache_clear()
    assert same_arrays(found.to_dfa(), dfa)
    state, twin = found.start, dfa.start
    for byte in dfa.sample(random.Random(most), 200):
        assert found.far[state] == dfa.far[twin]
        state, twin = found.step(state, byte), dfa.step(twin, byte)
    assert found.accepting[state]


def test_strings_of_a_million_characters():
    for schema in ({"maxLength": 10**6}, {"maxLength": 10**9, "minLength": 2, "pattern": "a$"}):
        found = json_schema({"type": "string", **schema})
        assert found.n_written < 2_000
        assert found.accepts(b'"' + b"b" * 9_999 + b'a"')
    both = {
        "allOf": [{"type": "string", "maxLength": 5_000}, {"maxLength": 4_000, "pattern": "^a"}]
    }
    found = json_schema({**both, "not": {"pattern": "b"}})
    assert found.accepts(b'"' + b"a" * 4_000 + b'"')
    assert not found.accepts(b'"' + b"a" * 4_001 + b'"')
    assert not found.accepts(b'"ab"')
    assert not found.accepts(b'"c"')
