"""Objects of several terms that are read together: the same languages as when each is read apart,
with few states."""

from __future__ import annotations

import json
import random

import jsonschema
import numpy as np
import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st
from support import examples, named, same_arrays
from test_linking import begins, linked
from test_writing import LAYOUTS, VALUES, has, orders, value_sets

from bpe_automata import constrain
from bpe_automata._automata.linked import LinkedDFA
from bpe_automata.errors import UnsupportedSchemaError
from bpe_automata.schemas import link_json_schema, link_yaml_schema
from bpe_automata.schemas._json_style import JsonStyle
from bpe_automata.schemas._linking import Linker
from bpe_automata.schemas._regularity import check_regular
from bpe_automata.schemas._united import UnitedMembers
from bpe_automata.schemas._values import Values
from bpe_automata.schemas._writing import write
from bpe_automata.schemas._yaml_style import YamlStyle

KINDS = [f"kind {k}" for k in range(48)]
FIELDS = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["type"],
        "anyOf": [
            {"properties": {"type": {"const": one}, f"own {k % 5}": {"enum": [k, "a", "b"]}}}
            for k, one in enumerate(KINDS)
        ],
        "properties": {"tags": {"type": "array", "items": {"type": ["string", "null"]}}},
    },
}


@st.composite
def unions(draw):
    """Of the objects of some sets."""
    some = draw(st.lists(value_sets(), min_size=2, max_size=4))
    return Values(objects=tuple(term for one in some for term in one.objects))


@examples(40)
@given(unions())
def test_what_is_read_together_is_what_is_written_out(values):
    found, style = linked(values), JsonStyle()
    written = write(values, style)
    assert (found is None) == written.is_empty
    if found is not None:
        assert same_arrays(found.to_dfa(), written)
        assert len(found.shortest()) == len(written.shortest())
        read = Linker(style, "schema", False).value(values, style.root)._read
        event(f"together: {any(isinstance(one, UnitedMembers) for one in read)}")


@examples(10)
@given(unions())
def test_yaml_is_read_together_as_it_is_written_out(values):
    written, begin = write(values, YamlStyle()), begins(values, YamlStyle())
    assert bool(begin) != written.is_empty
    if begin:
        found, rng = LinkedDFA(begin, np.arange(256, dtype=np.uint8)), random.Random(0)
        for one, other in ((found, written), (written, found)):
            assert other.accepts(one.shortest())
            assert all(other.accepts(one.sample(rng, 40)) for _ in range(10))


@examples(25)
@given(unions())
def test_in_any_order_a_text_is_accepted_iff_its_value_is_valid(values):
    try:
        check_regular(values)
    except UnsupportedSchemaError:
        assume(False)
    found = linked(values, "any")
    for value in VALUES[::3]:
        valid = has(values, value)
        for other in orders(value):
            text = json.dumps(other, **LAYOUTS["compact"]).encode()
            assert (found is not None and found.accepts(text)) == valid, text


@pytest.mark.parametrize("order", ["any", "schema"])
def test_kinds_are_told_apart_by_a_member_that_comes_last(order):
    """Each value decides which kinds are left, and their names still belong to them alone."""
    found, valid = link_json_schema(FIELDS, order=order), jsonschema.Draft202012Validator(FIELDS)
    for k, kind in enumerate(KINDS[:12]):
        for own in (k, k + 1, "a", "c"):
            value = [{f"own {k % 5}": own, "tags": ["x", None], "type": kind}]
            text = json.dumps(value, separators=(",", ":")).encode()
            if order == "any":
                assert found.accepts(text) == valid.is_valid(value), text
            value = [{"type": kind, f"own {k % 5}": own, "tags": ["x", None]}]
            text = json.dumps(value, separators=(",", ":")).encode()
            assert not found.accepts(text) or valid.is_valid(value), text


@pytest.mark.parametrize("order", ["any", "schema"])
def test_kinds_in_yaml_have_all_that_is_around_their_values(order):
    kinds = [
        {"properties": {"t": {"const": f"k{k}"}, "v": {"enum": [f"w{k}", "w"]}}} for k in range(5)
    ]
    closed = {"type": "object", "required": ["t"], "additionalProperties": False}
    found = link_yaml_schema({"anyOf": [{**closed, **one} for one in kinds]}, order=order)
    for text, valid in (
        *(("t: k1\n", True), ("t: k4\nv: w4\n", True), ("t: k1\nv: w\n", True)),
        *(("t: k1\nv: w2\n", False), ("t:k1", False), ("t: k1", False)),
    ):
        assert found.accepts(text.encode()) == valid, text
    assert found.accepts(found.shortest())


def test_few_states_are_written_down():
    """Of 48 kinds, an instance for all of them, and one for each value that they have in common."""
    found = link_json_schema(FIELDS, order="any")
    assert found.accepts(
        b'[{"tags":["abc",null,"d"],"other":{"a":[1]},"own 3":"a","type":"kind 8"}]'
    )
    assert found.n_written < 1_500


def test_a_value_in_many_contexts_is_entered_once():
    """That of a member of 81 terms, which differ in the names that they ask for."""
    pairs = [[f"a{k}", f"b{k}"] for k in range(4)]
    one_of_each = [
        {"oneOf": [{"required": [name]} for name in pair] + [none(pair)]} for pair in pairs
    ]
    inner = {"type": "array", "items": {"type": "object"}}
    schema = {"type": "object", "properties": {"x": inner}, "allOf": one_of_each}
    found = link_json_schema(schema, order="any")
    assert found.accepts(b'{"x":[{"c":[1,{"d":"text"}]},{}],"a0":1,"b3":2}')
    assert not found.accepts(b'{"x":[{"c":[1,{"d":"text"}]},{}],"a0":1,"b0":2}')
    assert found.n_written < 1_500


def none(names):
    return {"not": {"anyOf": [{"required": [name]} for name in names]}}


@pytest.mark.parametrize("method", ["canonical", "lift"])
def test_masks_do_not_depend_on_what_is_read_together(monkeypatch, method):
    tokenizer, read = named("smollm2"), b'[{"tags":["ab"],"own 3":"a","type":"kind 8"}]'
    masks = []
    for n in (2, 1000):  # so many terms are needed
        with monkeypatch.context() as patch:
            patch.setattr("bpe_automata.schemas._united._FEWEST", n)
            matcher = constrain(tokenizer, link_json_schema(FIELDS, order="any"), method).matcher()
            masks.append([])
            for token in tokenizer.encode(read.decode()):
                masks[-1].append(matcher.mask().tobytes())
                matcher.advance(token)
    assert masks[0] == masks[1]
