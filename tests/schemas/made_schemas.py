"""Schemas and instances made at random, small enough to meet one another."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import hypothesis.strategies as st

NAMES = ("a", "b", "c")
OTHERS = ("x1", "x2", "y")
TEXTS = ("", "a", "ab", "b1", "é", "long text", "2024-02-29", "1.2.3.4", "23:59:59Z")
NUMBERS = (0, 1, 2, -3, 10, 0.5, 2.0, -1.5)

scalars = st.sampled_from((None, False, True, *NUMBERS, *TEXTS))
instances = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(NAMES + OTHERS), inner, max_size=3)
    ),
    max_leaves=5,
)

_types = st.sampled_from(("null", "boolean", "integer", "number", "string", "array", "object"))
_leaves = st.one_of(
    st.booleans(),
    st.just({}),
    st.builds(lambda t: {"type": t}, _types),
    st.builds(lambda t: {"type": t}, st.lists(_types, min_size=1, max_size=3, unique=True)),
    st.builds(lambda v: {"enum": v}, st.lists(instances, min_size=1, max_size=3)),
    st.builds(lambda v: {"const": v}, instances),
    st.builds(lambda low, k: {k: low}, st.sampled_from(NUMBERS), st.sampled_from(
        ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"))),
    st.builds(lambda d: {"multipleOf": d}, st.sampled_from((1, 2, 0.5, 3))),
    st.builds(lambda p: {"pattern": p}, st.sampled_from(("a", "^b", "[0-9]$", "^..$"))),
    st.builds(lambda f: {"format": f}, st.sampled_from(("date", "time", "ipv4", "email"))),
    st.builds(lambda k, n: {k: n}, st.sampled_from(("minLength", "maxLength")), st.integers(0, 3)),
)  # fmt: skip


def _some(**optional: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Any of some keywords."""
    return st.fixed_dictionaries({}, optional=optional)


def _with(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    names = st.lists(st.sampled_from(NAMES + OTHERS[:1]), max_size=2, unique=True)
    few = st.lists(inner, min_size=1, max_size=3)
    objects = _some(
        type=st.just("object"),
        properties=st.dictionaries(st.sampled_from(NAMES), inner, max_size=3),
        patternProperties=st.dictionaries(st.sampled_from(("^x", "1$", "a|y")), inner, max_size=2),
        additionalProperties=inner,
        required=names,
        maxProperties=st.integers(0, 3),
        minProperties=st.integers(0, 2),
        propertyNames=st.sampled_from(({"maxLength": 1}, {"pattern": "^[ax]"}, {"enum": ["a"]})),
    )
    arrays = _some(
        type=st.just("array"),
        items=inner,
        prefixItems=st.lists(inner, min_size=1, max_size=2),
        minItems=st.integers(0, 2),
        maxItems=st.integers(0, 3),
        contains=inner,
        minContains=st.integers(0, 1),
        uniqueItems=st.booleans(),
    )
    either = _some(**dict.fromkeys(("anyOf", "oneOf", "allOf"), few)) | _some(
        **dict.fromkeys(("not", "if", "then", "else"), inner),
        dependentRequired=st.dictionaries(st.sampled_from(NAMES), names, max_size=2),
        dependentSchemas=st.dictionaries(st.sampled_from(NAMES), inner, max_size=1),
    )
    both = st.builds(lambda one, other: {**one, **other}, objects | arrays, either)
    return st.one_of(objects, arrays, either, both)


schemas = st.recursive(_leaves, _with, max_leaves=6)


def texts(value: Any) -> Iterator[str]:
    """A value as compact JSON, with the members of its objects in every order, and a whole number
    with its fraction and without."""
    if isinstance(value, dict):
        for order in itertools.permutations(value):
            for inner in itertools.product(*(list(texts(value[name])) for name in order)):
                members = (
                    f"{json.dumps(n, ensure_ascii=False)}:{t}"
                    for n, t in zip(order, inner, strict=True)
                )
                yield "{" + ",".join(members) + "}"
    elif isinstance(value, list):
        for inner in itertools.product(*(list(texts(item)) for item in value)):
            yield "[" + ",".join(inner) + "]"
    else:
        yield json.dumps(value, ensure_ascii=False)
        if isinstance(value, float) and value.is_integer():
            yield str(int(value))
