"""Arrays whose items, out of many values, must differ: the masks of linked automata are those of
the finite languages of the same texts, and `jsonschema` says which texts are valid."""

from __future__ import annotations

import gc
import itertools
import json
import pickle
import random
import threading
from collections import Counter
from typing import Any

import jsonschema
import networkx
import numpy as np
import pytest
from support import named

from bpe_automata import constrain
from bpe_automata._automata.comparing import ComparingDFA
from bpe_automata._automata.json_texts import JsonPosition, differs, first_of, name_of
from bpe_automata._automata.sources import from_strings
from bpe_automata._budget import Budget
from bpe_automata._constructions import comparing
from bpe_automata._constructions.comparing import Comparing
from bpe_automata._decoding.healing import heal
from bpe_automata.errors import (
    BudgetExceededError,
    DecodingError,
    UnsatisfiableSchemaError,
    UnsupportedFeatureError,
    UnsupportedSchemaError,
)
from bpe_automata.schemas import (
    _few_values,
    _unique_items,
    compile_json_schema,
    link_json_schema,
    link_yaml_schema,
)
from bpe_automata.schemas._few_values import can_differ
from bpe_automata.testing import added_token
from bpe_automata.testing._small import small_tokenizer

STRINGS = {"type": "array", "items": {"type": "string"}, "uniqueItems": True}
ANYTHING = {"type": "array", "uniqueItems": True}


# ---------------------------------------------------------------- random schemas


class Drawn:
    """Random schemas with finitely many texts."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def scalar(self) -> Any:
        """Some scalars; and a few constants."""
        most = self.rng.choice([1, 2, 11])
        return self.rng.choice(
            [
                {"type": "string", "pattern": "^[ab]{0,2}$"},
                {"type": "string", "pattern": '^[a"]?$'},
                {"type": "integer", "minimum": 0, "maximum": most},
                {"enum": ["a", 1, None]},
                {"enum": [True, False, 1, "1"]},
                {"const": 1},
                {"enum": [[1], [1, 2], {"a": 1}, {}]},
                {"enum": [1.5, 1]},
            ]
        )

    def item(self, depth: int) -> Any:
        """A schema of an item."""
        kind = self.rng.random()
        if depth == 0 or kind < 0.5:
            return self.scalar()
        if kind < 0.7:
            return self.array(depth - 1, unique=self.rng.random() < 0.6)
        if kind < 0.9:
            return self.object_()
        return {"anyOf": [self.item(depth - 1), self.item(depth - 1)]}

    def object_(self) -> Any:
        """Of the members a and b."""
        names = self.rng.sample(["a", "b"], self.rng.randrange(3))
        members = {name: self.scalar() for name in names}
        found = {"type": "object", "additionalProperties": False, "properties": members}
        required = self.rng.sample(names, self.rng.randrange(len(names) + 1))
        if self.rng.random() < 0.6:
            return {**found, "required": required}
        # And one other name: a second one might be the same, which only some of the texts allow.
        members["b"] = self.scalar()
        required = [*{*required, "b"}]
        others = {"additionalProperties": self.scalar(), "propertyNames": {"pattern": "^[abxy]$"}}
        return {**found, **others, "required": required, "maxProperties": 1 + len(required)}

    def array(self, depth: int, unique: bool = True) -> Any:
        """Of a few items."""
        most = 2 if depth else self.rng.choice([1, 2, 2, 3])
        found = {"type": "array", "maxItems": most, "items": self.item(depth)}
        if self.rng.random() < 0.3:
            found["prefixItems"] = [self.item(depth) for _ in range(self.rng.randrange(1, 3))]
        if self.rng.random() < 0.5:
            found["minItems"] = self.rng.randrange(most + 1)
        return {**found, "uniqueItems": True} if unique else found

    def schema(self) -> Any:
        """With an array somewhere."""
        kind = self.rng.random()
        if kind < 0.7:
            return self.array(1)
        if kind < 0.8:
            return {"anyOf": [self.array(0), self.array(0)]}
        if kind < 0.9:
            members = {"properties": {"p": self.array(1)}, "required": ["p"]}
            return {"type": "object", "additionalProperties": False, **members}
        return {"type": "array", "items": self.array(1), "maxItems": 2}

    def wide(self) -> Any:
        """An array of one or two items, each out of more than 64 values."""
        pair = {"a": {"type": "string", "pattern": "^[ab]{0,2}$"}, "b": {"type": "integer"}}
        pair["b"] |= {"minimum": 0, "maximum": 9}
        closed = {"type": "object", "additionalProperties": False, "properties": pair}
        items = self.rng.choice(
            [
                {"type": "string", "pattern": "^[ab]{0,6}$"},
                {"type": "string", "pattern": '^[a,"]{0,4}$'},
                {"type": "integer", "minimum": 0, "maximum": 99},
                {**closed, "required": self.rng.choice([["a"], [], ["a", "b"]])},
                {"type": "array", "maxItems": 2, "items": pair["a"], "uniqueItems": True},
            ]
        )
        least = self.rng.randrange(3)
        return {**ANYTHING, "maxItems": 2, "minItems": least, "items": items}


def without_unique(schema: Any) -> Any:
    """The same schema for items that may be equal."""
    if isinstance(schema, dict):
        return {k: without_unique(v) for k, v in schema.items() if k != "uniqueItems"}
    return [*map(without_unique, schema)] if isinstance(schema, list) else schema


def valid_texts(schema: Any, order: str, most: int) -> tuple[list[str], list[str]] | None:
    """(valid texts, others) of all that would be texts if items could be equal; None of many."""
    try:
        every = [*link_json_schema(without_unique(schema), order=order).strings(most)]
    except BudgetExceededError:
        return None
    judge = jsonschema.Draft202012Validator(schema)
    found: tuple[list[str], list[str]] = [], []
    for text in every:
        found[not judge.is_valid(json.loads(text))].append(text.decode())
    return found


def tokenizer_of(texts: list[str], rng: random.Random):
    """With merges that come in some texts, across all that JSON keeps apart."""
    vocabulary, merges = [chr(byte) for byte in range(32, 127)], []
    words = [list(text) for text in rng.sample(texts, min(len(texts), 30))]
    for _ in range(rng.choice([3, 10, 25, 40])):
        pairs = [pair for word in words for pair in itertools.pairwise(word)]
        pairs = [pair for pair in pairs if len(pair[0] + pair[1]) <= 9]
        pair = rng.choice(pairs) if pairs else ("[", "]")
        if pair in merges:
            continue
        merges.append(pair)
        vocabulary += ["".join(pair)] * ("".join(pair) not in vocabulary)
        for word in words:
            for at in reversed(range(len(word) - 1)):
                if tuple(word[at : at + 2]) == pair:
                    word[at : at + 2] = ["".join(pair)]
    return small_tokenizer(vocabulary, merges, added=[added_token("<end>", special=True)])


def same_masks_along(schema: Any, order: str, method: str, rng: random.Random, most: int) -> bool:
    """Compare with the language of all valid texts. Returns whether there was something to
    compare."""
    found = valid_texts(schema, order, most)
    if found is None:
        return False
    good, bad = found
    try:
        dfa = link_json_schema(schema, order=order)
    except UnsatisfiableSchemaError:
        assert not good
        return False
    except UnsupportedSchemaError:  # it is not seen how many values there are
        return False
    if not isinstance(dfa, ComparingDFA):
        return False
    for text in rng.sample(good, min(len(good), 50)):
        assert dfa.accepts(text.encode())
    for text in rng.sample(bad, min(len(bad), 50)):
        assert not dfa.accepts(text.encode())
    assert dfa.shortest().decode() in good
    assert dfa.sample(rng).decode() in good
    tokenizer = tokenizer_of(good, rng)
    end = [tokenizer.n_ids - 1]
    ours, plain = (constrain(tokenizer, one, method, end) for one in (dfa, from_strings(good)))
    for _ in range(8):
        one, other = ours.matcher(), plain.matcher()
        while True:
            assert np.array_equal(one.mask(), other.mask()), (schema, tokenizer.decode(one.ids))
            token = rng.choice(other.allowed_ids().tolist())
            if token in end:
                break
            one.advance(token)
            other.advance(token)
    return True


@pytest.mark.parametrize("order", ["schema", "any"])
def test_masks_are_those_of_all_valid_texts(order, monkeypatch):
    """By what bytes say, for sets of any size: none is taken for a small one."""
    monkeypatch.setattr(_few_values, "MAX_VALUES", 0)
    compared = 0
    for seed in range(50):
        drawn = Drawn(seed)
        compared += same_masks_along(drawn.schema(), order, "lift", drawn.rng, 2000)
    assert compared > 25


def test_ids_with_several_items(monkeypatch):
    monkeypatch.setattr(_few_values, "MAX_VALUES", 0)
    inner = {"type": "array", "maxItems": 2, "items": {"type": "integer"}}
    inner["items"] |= {"minimum": 0, "maximum": 1}
    for seed in range(25):
        schema = {**ANYTHING, "maxItems": 2, "items": {**inner, "uniqueItems": seed % 2 == 0}}
        assert same_masks_along(schema, "any", "lift", random.Random(seed), 2000)


def test_masks_of_canonical_ids_are_those_of_all_valid_texts():
    compared = 0
    for seed in range(8):
        drawn = Drawn(seed)
        compared += same_masks_along(drawn.wide(), "schema", "canonical", drawn.rng, 20_000)
    assert compared > 4


# ---------------------------------------------------------------- which items are equal

EQUAL = [
    ["[1,1.0]", "[1,1]"],
    ['["é","\\u00e9"]', '["a\\n","a\\n"]'],
    ['[{"a":1,"b":[2]},{"b":[2.0],"a":1}]', '[{"x":{}},{"x":{}}]'],
    ["[[],[]]", "[[1,[2]],[1,[2]]]", "[null,null]", "[true,true]", "[0,-0]"],
    ['["","x",""]', '[1,"1",{"1":1},1]'],
]
DIFFERENT = [
    ["[1,1.5,-1]", "[1,true]", "[0,false,null]"],
    ['["é","e"]', '["a","A","aa",""]'],
    ['[{"a":1},{"a":1,"b":2},{"b":2}]', '[{"x":{}},{"x":[]},{}]'],
    ["[[],[[]],[1]]", "[[1,2],[2,1]]", "[[1,1],[1]]"],
    ['["1",1,[1],{"1":1}]', "[[1],[1,2],[1,2,3],[2]]"],
]


@pytest.mark.parametrize("order", ["schema", "any"])
def test_items_are_equal_as_values(order):
    dfa = link_json_schema(ANYTHING, order=order, escapes="any")
    for equal in itertools.chain(*EQUAL):
        assert not dfa.accepts(equal.encode()), equal
    for different in itertools.chain(*DIFFERENT):
        assert dfa.accepts(different.encode()), different


@pytest.mark.parametrize("whitespace", ["compact", "spaced", "flexible"])
def test_arrays_are_unique_in_every_layout(whitespace):
    dfa = link_json_schema({"properties": {"a": STRINGS}}, whitespace=whitespace)
    for value, valid in (["x", "y"], True), (["x", "x"], False), (["x", "y", "x"], False):
        separators = {"compact": (",", ":"), "spaced": (", ", ": "), "flexible": (",", ": ")}
        indent = 2 if whitespace == "flexible" else None
        text = json.dumps({"a": value}, indent=indent, separators=separators[whitespace])
        assert dfa.accepts(text.encode()) == valid


def test_arrays_inside_one_another():
    """Each is compared with those around it and within."""
    dfa = link_json_schema({**ANYTHING, "items": {**ANYTHING, "items": {"type": "integer"}}})
    for text in "[[1,2],[2,1],[]]", "[[1],[1,2],[2]]":
        assert dfa.accepts(text.encode())
    for text in "[[1,1]]", "[[1,2],[1,2]]", "[[],[]]", "[[3],[1,2],[3]]":
        assert not dfa.accepts(text.encode())


def test_all_items_can_be_there():
    """What is left decides which items may come: here [1, 2] alone is left for two of them."""
    few = {"type": "integer", "minimum": 1, "maximum": 2}
    many = {"type": "integer", "minimum": 1, "maximum": 500}
    dfa = link_json_schema({**ANYTHING, "prefixItems": [many], "items": few, "minItems": 3})
    assert not dfa.accepts(b"[1,2,1]")
    assert dfa.step(dfa.walk(b"["), ord("2"))  # 20 to 29, 2 itself takes one that is needed
    assert not dfa.walk(b"[2,")
    assert dfa.accepts(b"[20,2,1]")
    with pytest.raises(UnsatisfiableSchemaError):
        link_json_schema({**ANYTHING, "items": many, "minItems": 501})
    link_json_schema({**ANYTHING, "items": many, "minItems": 500})


@pytest.mark.parametrize("fewest", [0, 1, 40, 129])
def test_a_list_of_strings_however_long_is_told_apart_by_states(fewest):
    """Each state knows how short its array can be made: by the shortest strings that are left."""
    names = ["x" * (1 + k % 7) + str(k) for k in range(130)]
    items = {"type": "array", "items": {"enum": names}, "uniqueItems": True, "minItems": fewest}
    dfa = link_json_schema(items)
    assert not isinstance(dfa, ComparingDFA)
    rng, valid = random.Random(fewest), jsonschema.Draft202012Validator(items)
    for count in (1, 2, 39, 40, 41, 129, 130):
        some = rng.sample(names, count)
        for value in some, [*some, some[0]]:
            text = json.dumps(value, separators=(",", ":")).encode()
            assert dfa.accepts(text) == valid.is_valid(value)
        begun = json.dumps(some, separators=(",", ":")).encode()[:-1]
        rest = dfa.shortest(dfa.walk(begun))
        assert valid.is_valid(json.loads(begun + rest))
        left = sorted(len(name) for name in set(names) - set(some))[: max(0, fewest - count)]
        assert len(rest) == sum(left) + 3 * len(left) + 1 == dfa.far[dfa.walk(begun)]
    with pytest.raises(UnsupportedSchemaError, match="64 values"):
        compile_json_schema(items)


def test_names_of_earlier_items_come_in_any_order_behind_those_of_the_schema():
    dfa = link_json_schema({**ANYTHING, "items": {"properties": {"p": {}}, "required": ["p"]}})
    first = '{"p":0,"x":1,"y":2}'
    for other in (
        '{"p":0,"y":2,"x":2}',
        '{"p":0,"z":0,"y":2,"x":1}',
        '{"p":0,"y":2}',
        '{"p":1,"x":1}',
    ):
        assert dfa.accepts(f"[{first},{other}]".encode()), other
    for other in '{"p":0,"y":2,"x":1}', '{"x":2,"p":0}', '{"x":1}', '{"y":2,"p":0,"x":1}':
        assert not dfa.accepts(f"[{first},{other}]".encode()), other
    dfa = link_json_schema({**ANYTHING, "items": {"properties": {"p": {}}, "type": "object"}})
    assert dfa.accepts(b'[{"p":0,"x":1},{"x":1}]')  # the first name of the schema is left out
    assert not dfa.accepts(b'[{"x":1},{"x":1,"p":0}]')


# ---------------------------------------------------------------- along a real tokenizer


def one_by_one(self, state, tokens):
    """For `Comparing._unsettled`: all ids in which items end."""
    return [one for one in tokens if state.position.ends(self.tokenizer.spellings[one])]


@pytest.mark.parametrize("method", ["canonical", "lift"])
def test_what_is_seen_of_ids_is_what_automata_say(method, monkeypatch):
    """An id in which an item ends is allowed at sight, with others or alone, or by the automaton
    that knows the item."""
    tokenizer = named("smollm2")
    pair = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}
    texts = [
        (STRINGS, '["a","-","a-","\\n","",",","\\"'),
        (ANYTHING, '[1,12,0,-0.5,[],[1],{},{"a":1},"a",null,tru'),
        ({**ANYTHING, "items": pair}, '[{"a":"x","b":1},{"b":1,"a":"x"'),
        ({**ANYTHING, "items": {**pair, "additionalProperties": False}}, '[{},{"a":"x"},{"b":1'),
        ({**ANYTHING, "items": {**ANYTHING, "items": {"type": "number"}}}, "[[1,2],[2,1],[1"),
    ]

    def masks() -> list[bytes]:
        found = []
        for schema, text in texts:
            gc.collect()  # automata, of which each reserves much of what a test may address
            matcher = constrain(tokenizer, link_json_schema(schema, order="any"), method).matcher()
            for token in tokenizer.encode(text):
                found.append(matcher.mask().tobytes())
                if not matcher.allows(token):
                    break
                matcher.advance(token)
            found.append(matcher.mask().tobytes())
        return found

    at_sight = masks()
    with monkeypatch.context() as patch:
        patch.setattr(Comparing, "_unsettled", one_by_one)
        assert masks() == at_sight
    monkeypatch.setattr(_unique_items.UniqueItems, "has_room", lambda *_: False)
    assert masks() == at_sight
    assert len(at_sight) > 60


@pytest.mark.parametrize("method", ["canonical", "lift"])
def test_random_texts_are_valid_and_end(method):
    """Items are short, and often equal to the beginning of an earlier one."""
    tokenizer, rng = named("smollm2"), random.Random(2)
    short = {"type": "string", "pattern": '^[-,"a]{0,4}$'}
    pair = {"type": "object", "properties": {"a": short}, "additionalProperties": False}
    items = {"anyOf": [short, {"type": "integer", "minimum": 0, "maximum": 99}, pair]}
    schema = {**ANYTHING, "items": items, "maxItems": 5}
    constraint = constrain(tokenizer, link_json_schema(schema), method)
    judge = jsonschema.Draft202012Validator(schema)
    for _ in range(25):
        matcher = constraint.matcher()
        while not matcher.is_finished:
            token = rng.choice(matcher.allowed_ids().tolist())
            assert matcher.allows(token)
            matcher.advance(token)
        text = tokenizer.decode([i for i in matcher.ids if i not in tokenizer.eos_ids])
        assert judge.is_valid(json.loads(text)), text


def test_matchers_go_back_and_travel():
    tokenizer = named("smollm2")
    constraint = constrain(tokenizer, link_json_schema(STRINGS))
    matcher, ids = constraint.matcher(), tokenizer.encode('["one","two","one')
    masks = []
    for token in ids:
        masks.append(matcher.mask())
        matcher.advance(token)
    assert not matcher.allows(tokenizer.encode('"]')[0])
    matcher.rollback(len(ids))
    for token, mask in zip(ids, masks, strict=True):
        assert np.array_equal(matcher.mask(), mask)
        matcher.advance(token)
    twin = pickle.loads(pickle.dumps(matcher))
    assert np.array_equal(twin.mask(), matcher.mask())
    assert pickle.loads(pickle.dumps(constraint)).dfa.accepts(b'["a"]')


def test_prompts_are_healed():
    tokenizer = named("smollm2")
    constraint = constrain(tokenizer, link_json_schema(STRINGS))
    healed = heal(constraint, tokenizer.encode("The list: "), 1)
    assert healed.healing is not None
    matcher = healed.constraint.matcher(healed.prefix)
    for token in tokenizer.encode(f'{healed.healing.text.decode()}["b","b'):
        matcher.advance(token)
    assert not matcher.allows(tokenizer.encode('"]')[0])


def test_many_threads_share_an_automaton():
    tokenizer = named("smollm2")
    texts = [json.dumps([f"{k}", f"{k}{k}", k, [k]], separators=(",", ":")) for k in range(6)]

    def seen(constraint: Any, text: str) -> list[bytes]:
        matcher, found = constraint.matcher(), []
        for token in tokenizer.encode(text):
            found.append(matcher.mask().tobytes())
            matcher.advance(token)
        return found

    alone = [seen(constrain(tokenizer, link_json_schema(ANYTHING)), text) for text in texts]
    shared, found = constrain(tokenizer, link_json_schema(ANYTHING)), {}
    threads = [
        threading.Thread(target=lambda k=k: found.update({k: seen(shared, texts[k])}))
        for k in range(len(texts))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[k] for k in range(len(texts))] == alone


def test_a_budget_ends_long_arrays_and_leaves_the_matcher():
    tokenizer = named("smollm2")
    dfa = link_json_schema(STRINGS, budget=Budget(max_states=300))
    matcher = constrain(tokenizer, dfa).matcher()
    text = json.dumps([f"item number {k}" for k in range(100)], separators=(",", ":"))

    def read_all() -> None:
        for token in tokenizer.encode(text):
            matcher.advance(token)

    with pytest.raises(BudgetExceededError):
        read_all()
    before = matcher.ids
    assert 0 < len(before) < len(tokenizer.encode(text))
    with pytest.raises(BudgetExceededError):
        matcher.advance(tokenizer.encode(text)[len(before)])
    assert matcher.ids == before


# ---------------------------------------------------------------- what is refused


def test_other_forms_are_refused():
    for make in compile_json_schema, link_yaml_schema:
        with pytest.raises(UnsupportedSchemaError, match="uniqueItems") as caught:
            make({"properties": {"a": STRINGS}})
        assert caught.value.pointer == "#/properties/a/uniqueItems"


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ({**STRINGS, "contains": {"const": "a"}}, "#/uniqueItems"),
        ({"not": STRINGS}, "#/not"),
        (
            {
                **ANYTHING,
                "minItems": 2,
                "items": {
                    "not": {"required": ["a"]},
                    "type": "object",
                    "additionalProperties": {"minProperties": 1},
                    "minProperties": 1,
                    "propertyNames": {"enum": ["a", "b"]},
                },
            },
            "#/uniqueItems",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused(schema, pointer):
    with pytest.raises(UnsupportedSchemaError) as caught:
        link_json_schema(schema)
    assert caught.value.pointer == pointer


def test_what_looks_at_all_states_is_refused():
    dfa = link_json_schema(STRINGS)
    constraint = constrain(named("smollm2"), dfa)
    for call in (
        dfa.to_dfa,
        lambda: dfa.equivalent(link_json_schema(True)),
        lambda: link_json_schema(True).equivalent(dfa),
        lambda: constraint.within(9),
        constraint.automaton,
        lambda: constraint.matcher().min_tokens_to_accept(),
    ):
        with pytest.raises(UnsupportedFeatureError):
            call()


def test_numbers_of_very_many_digits_are_not_compared():
    dfa = link_json_schema(ANYTHING)
    with pytest.raises(BudgetExceededError):
        dfa.accepts(b"[" + b"1" * 2000 + b",2]")


# ---------------------------------------------------------------- JSON texts


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_items_are_known_however_a_text_is_cut(size):
    text = '[{"a":[1,2.0,"x\\"],"]}, "bé", [], [[]] ,12 , true]'.encode()
    position, found = JsonPosition(), []
    for at in range(0, len(text), size):
        data = text[at : at + size]
        found += [position.item(data, end) for end in position.ends(data)]
        position = position.after(data)
    inner = ["1", "2.0", '"x\\"],"']
    outer = ['{"a":[1,2,"x\\"],"]}', '"bé"', "[]", "[]", "[[]]", "12", "true"]
    assert found == [name_of(one.encode()) for one in inner + outer]


def test_texts_that_may_become_a_value_do_not_differ():
    foo = name_of(b'"foo"')
    for behind in b"", b',"', b',"f', b',"foo"', b',"fo\\', b',"\\u0066', b',"f\xc3':
        assert not differs(foo, behind)
    for behind in b"]", b",1", b',"b', b',"fo"', b',"fooo', b',"\\b', b',"\\u0067':
        assert differs(foo, behind)
    number = name_of(b"-12.50")
    for behind in b",-", b",-12", b",-1.25e", b",-0.0", b",-12.5000", b",-0012":
        assert not differs(number, behind)
    for behind in b",1", b",-2", b",-12.51", b",-0.3":
        assert differs(number, behind)
    assert not differs(name_of(b"0"), b",-0")
    for begun, first in (
        *((b'"', ""), (b'"fo', "f"), (b'"\\u0066', "f"), (b'"\\u006', ""), (b'""', "end")),
        *((b"0", ""), (b"-0.0", ""), (b"-12", "1"), (b"0.05", "5"), (b"[1", ""), (b"nul", "")),
    ):
        assert first_of(begun) == first
    assert differs(name_of(b"0"), b",-01")


def test_a_dead_end_is_an_error_that_says_so(monkeypatch):
    """Where no id is left of the mask, and the text is not complete."""
    schema = {**STRINGS, "items": {"type": "string", "pattern": "^[ab]*$"}}
    constraint = constrain(small_tokenizer([*'["a,b]'], []), link_json_schema(schema), "lift")
    matcher = constraint.matcher()
    for token in constraint.tokenizer.encode('["a'):
        matcher.advance(token)
    monkeypatch.setattr(Comparing, "_leads_on", lambda *_: False)
    monkeypatch.setattr(Comparing, "_unsettled", lambda *given: given[-1])
    monkeypatch.setattr(comparing, "_ending", lambda tokenizer, _: np.full(1, -1, np.int32))
    with pytest.raises(DecodingError, match="uniqueItems"):
        matcher.mask()


LETTERS = {**STRINGS, "items": {"type": "string", "pattern": "^[ab]*$"}}


@pytest.mark.parametrize("method", ["lift", "canonical"])
def test_a_space_that_a_tokenizer_puts_in_front_may_be_left_out_by_the_lift_alone(method):
    """And items are compared with it and without."""
    letters = ["▁", *map(chr, range(33, 127))]
    before = {"replacement": "▁", "prepend_scheme": "first", "split": False}
    tokenizer = small_tokenizer(letters, [], {"type": "Metaspace", **before})
    constraint = constrain(tokenizer, link_json_schema(LETTERS), method, ())
    for text, equal in (('["a","a"]', True), ('["b","a"]', False)):
        for space in ("", "▁"):
            matcher = constraint.matcher()
            *ids, last = (letters.index(letter) for letter in space + text)
            if method == "canonical" and not space:
                assert not matcher.allows(ids[0])
                continue
            for token in ids[:-1]:
                matcher.advance(token)
            assert not equal or not matcher.allows(ids[-1]) or not _ends(matcher, ids[-1], last)
            assert equal or _ends(matcher, ids[-1], last)


def _ends(matcher, *tokens) -> bool:
    for token in tokens:
        if not matcher.allows(token):
            return False
        matcher.advance(token)
    return matcher.is_accepting


def test_values_of_very_many_levels_are_not_compared():
    linked = link_json_schema(ANYTHING)
    for text in (b"[" * 2000 + b"]" * 2000, b"[" + b'{"a":' * 500 + b"1" + b"}" * 500 + b",1]"):
        with pytest.raises(BudgetExceededError, match="200 levels"):
            linked.accepts(text)


def test_an_array_ends_in_front_of_an_item_that_there_is_not():
    """So `[]` is the only item, and there are not two."""
    only_empty = {"type": "array", "prefixItems": [False, {"type": "string"}]}
    assert link_json_schema({**ANYTHING, "items": only_empty}).accepts(b"[[]]")
    with pytest.raises(UnsatisfiableSchemaError):
        link_json_schema({**ANYTHING, "items": only_empty, "minItems": 2})


def test_values_are_chosen_as_networkx_chooses_them():
    for seed in range(500):
        rng = random.Random(seed)
        drawn = (
            (frozenset(rng.sample(range(6), rng.randint(1, 4))), rng.randint(1, 2))
            for _ in range(rng.randint(1, 6))
        )
        sets = Counter({frozenset(("number", k) for k in some): n for some, n in drawn})
        graph, left = networkx.Graph(), []
        for which, (values, items) in enumerate(sets.items()):
            left += [(which, item) for item in range(items)]
            graph.add_edges_from(((which, item), v) for item in range(items) for v in values)
        found = networkx.bipartite.maximum_matching(graph, left)
        assert can_differ(sets) == all(node in found for node in left)
