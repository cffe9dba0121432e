"""The law of the reader: a text is accepted iff it is one of a valid instance, by jsonschema."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from budget import examples
from hypothesis import event, given
from hypothesis import strategies as st
from made_schemas import instances, schemas, texts

from bpe_automata.errors import UnsatisfiableSchemaError, UnsupportedSchemaError
from bpe_automata.schemas import compile_json_schema

jsonschema = pytest.importorskip("jsonschema")
DEPTH = 4  # deeper than any instance
# Not draft 4, which has neither boolean schemas nor an exclusiveMinimum that is a number.
OLDER = (
    "http://json-schema.org/draft-06/schema#",
    "http://json-schema.org/draft-07/schema#",
    "https://json-schema.org/draft/2019-09/schema",
)


def check(schema: Any, values: list[Any]) -> None:
    kind = jsonschema.validators.validator_for(schema)  # 2020-12 without a $schema
    valid = kind(schema, format_checker=kind.FORMAT_CHECKER).is_valid
    try:
        dfa = compile_json_schema(schema, depth=DEPTH)
    except UnsupportedSchemaError as error:
        event(f"refused: {error.keyword}")
        return
    except UnsatisfiableSchemaError:
        event("unsatisfiable")
        assert not any(map(valid, values))
        return
    found = [any(dfa.accepts(text.encode()) for text in texts(value)) for value in values]
    assert dict(enumerate(found)) == dict(enumerate(map(valid, values))), values
    rng = random.Random(len(values))
    for _ in range(5):
        text = dfa.sample(rng, 60).decode()
        try:
            assert valid(json.loads(text)), text
        except OverflowError:  # theirs: 1e999 is an infinity, of which they take no multiple
            event("a number beyond the doubles")


@examples(30)
@given(schemas, st.lists(instances, min_size=5, max_size=15))
def test_a_text_is_accepted_iff_its_instance_is_valid(schema: Any, values: list[Any]) -> None:
    check(schema, values)


@examples(15)
@given(st.sampled_from(OLDER), schemas, st.lists(instances, min_size=5, max_size=15))
def test_so_it_is_in_older_drafts(draft: str, schema: Any, values: list[Any]) -> None:
    check({"$schema": draft, "allOf": [schema]}, values)


@pytest.mark.long
@examples(50)
@given(schemas, st.lists(instances, min_size=20, max_size=60))
def test_a_text_is_accepted_iff_its_instance_is_valid_on_many(
    schema: Any, values: list[Any]
) -> None:
    check(schema, values)
