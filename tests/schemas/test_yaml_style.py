"""Block YAML: the text of a value is read back, is accepted, and is the only one that is."""

from __future__ import annotations

import random

import pytest
import yaml
from budget import examples
from hypothesis import assume, given
from hypothesis import strategies as st

from bpe_automata.automata.algebra import all_texts
from bpe_automata.automata.sources import from_strings
from bpe_automata.errors import ArgumentError, UnsupportedSchemaError
from bpe_automata.schemas.numbers import ALL_NUMBERS, NumberSet, integers
from bpe_automata.schemas.values import any_value
from bpe_automata.schemas.writing import write
from bpe_automata.schemas.yaml_scalars import key_names, spelled
from bpe_automata.schemas.yaml_style import YamlStyle, yaml_text

STRINGS = st.text(max_size=8) | st.sampled_from(
    [
        "",
        "no",
        "null",
        "- a",
        "a: b",
        "1",
        "1.2.3",
        "2001-01-01",
        "#",
        "a #b",
        "---",
        "é",
        "a\nb",
        " ",
    ]
)
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
SCALARS = st.none() | st.booleans() | NUMBERS | STRINGS
VALUES = st.recursive(
    SCALARS,
    lambda v: st.lists(v, max_size=3) | st.dictionaries(STRINGS, v, max_size=3),
    max_leaves=8,
)
EXAMPLE = {
    "name": "a",
    "no": [1, -2.5, None, True, "true", [], {}],
    "nested": {"lists": [[1, [2]], [{"a": 1, "b": [3]}, []]], "e": {}},
}
WRITTEN = """\
name: a
"no":
  - 1
  - -2.5
  - null
  - true
  - "true"
  - []
  - {}
nested:
  lists:
    - - 1
      - - 2
    - - a: 1
        b:
          - 3
      - []
  e: {}
"""


def same(one: object, other: object) -> bool:
    """Equal with the same types: 1, 1.0 and True are three."""
    if isinstance(one, dict) and isinstance(other, dict):
        members = zip(one.items(), other.items(), strict=False)
        return len(one) == len(other) and all(k == m and same(v, w) for (k, v), (m, w) in members)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and one == other


def depth(value: object) -> int:
    """How deep arrays and objects that hold something are nested."""
    if not isinstance(value, dict | list) or not value:
        return 0
    return 1 + max(map(depth, value.values() if isinstance(value, dict) else value))


def names(value: object) -> list[str]:
    """All names of properties in it."""
    if isinstance(value, dict):
        return [*value, *(name for member in value.values() for name in names(member))]
    return [name for item in value for name in names(item)] if isinstance(value, list) else []


@pytest.fixture(scope="module")
def anything():
    return write(any_value(2), YamlStyle())


def test_the_pinned_style():
    assert yaml_text(EXAMPLE) == WRITTEN
    assert yaml.safe_load(WRITTEN) == EXAMPLE


@examples(150)
@given(VALUES)
def test_the_text_of_a_value_is_read_back(value):
    assert same(yaml.safe_load(yaml_text(value)), value)


@examples(150)
@given(VALUES)
def test_a_value_is_accepted_iff_it_is_not_too_deep_and_its_names_are_written(anything, value):
    assume("e+308" not in repr(value))  # which numbers leave out
    good = depth(value) <= 2 and all(key_names().accepts(name.encode()) for name in names(value))
    assert anything.accepts(yaml_text(value).encode()) == good


def test_each_accepted_text_is_the_text_of_its_value(anything):
    rng = random.Random(0)
    for most in 300 * [10, 40, 120]:
        text = anything.sample(rng, most).decode()
        value = yaml.safe_load(text)
        assert depth(value) <= 2
        # Texts with a key twice are the only others, and large or precise numbers.
        assert yaml_text(value) == text or repeats_or_rounds(text), text


def repeats_or_rounds(text: str) -> bool:
    """Is a key there twice, or a number that a float does not spell the same?"""
    events = [event.value for event in yaml.parse(text) if isinstance(event, yaml.ScalarEvent)]
    long = any(
        event[-3:].strip("-.0123456789eE+") == "" and set(event) & set(".eE-") for event in events
    )
    return long or len(events) > len(set(events))


@pytest.mark.parametrize(
    "text",
    [
        "a",
        "a: 1",
        "a:  1\n",
        "a:\n  1\n",
        "a: 1\n\n",
        "{a: 1}\n",
        "[1]\n",
        "a:\n- 1\n",
        "a:\n   b: 1\n",
        "-\n  - 1\n",
        "'a'\n",
        '"a"\n',
        "~\n",
        "True\n",
        "1_0\n",
        "0x1\n",
        "a: # b\n",
        "no: 1\n",
        "1: 1\n",
        "&a 1\n",
        "|\n  a\n",
        "--- 1\n",
        "? a\n: 1\n",
        "x" * 65 + ": 1\n",
    ],
)
def test_other_spellings_are_not_accepted(anything, text):
    assert yaml.safe_load(text) is not None or text == "~\n"
    assert not anything.accepts(text.encode())


def test_numbers_are_spelled_so_that_they_are_numbers():
    style = YamlStyle()
    found = style.numbers(ALL_NUMBERS, upper=False)
    for text, good in (("1", 1), ("1.0", 1), ("-0.5", 1), ("1.5e+3", 1), ("1e5", 0), ("1.5e3", 0)):
        assert found.accepts(text.encode()) == bool(good), text
    whole = style.numbers(integers(), upper=False)
    upper = style.numbers(integers(), upper=True)
    for text, in_whole, in_upper in (
        ("10", 1, 1),
        ("1.0", 0, 1),
        ("1.0e+1", 0, 1),
        ("1.5", 0, 0),
    ):
        assert whole.accepts(text.encode()) == bool(in_whole), text
        assert upper.accepts(text.encode()) == bool(in_upper), text
    none = NumberSet(integers().decimals, "none")
    assert not style.numbers(none, upper=True).accepts(b"1.0e+1")


def test_keys_end_in_a_colon():
    style = YamlStyle()
    names = from_strings(["a", "no", "a:", "\n\n\n", "\uffff" * 32])
    wanted = [b'"\\n\\n\\n":', b'"a:":', b'"no":', b'"' + rb"\uFFFF" * 32 + b'":', b"a:"]
    assert sorted(style.keys(names).strings(100)) == sorted(wanted)
    assert style.keys(names) is style.keys(names)
    assert style.key("no") == b'"no":'


def test_the_longest_key():
    assert YamlStyle().key("x" * 1024) == b"x" * 1024 + b":"
    assert yaml.safe_load(f"{'x' * 1024}: 1\n") == {"x" * 1024: 1}
    with pytest.raises(yaml.YAMLError):
        yaml.safe_load(f"{'x' * 1025}: 1\n")
    with pytest.raises(UnsupportedSchemaError, match="1024 characters"):
        YamlStyle().key("x" * 1025)


@pytest.mark.parametrize(
    ("name", "good"),
    [
        ("\uffff" * 4, True),
        ("\uffff" * 5, False),
        ("1" * 8, True),
        ("1" * 9, False),
        ("no: " * 2, True),
        ("no: " * 3, False),
        ("/a b/{id}" * 7, True),
        ("a" * 64, True),
        ("a" * 65, False),
        ("@" * 64, True),
        ("@" * 65, False),
        ("@" * 16 + "\n", False),
    ],
)
def test_the_names_that_are_written_of_all(name, good):
    keys = YamlStyle().keys(all_texts())
    assert keys.accepts(f"{spelled(name)}:".encode()) == good
    assert yaml.safe_load(f"{spelled(name)}: 1\n") == {name: 1}


def test_bad_values_and_places():
    for value in ({1: 2}, float("nan"), float("inf"), {"a": {1}}, b"a"):
        with pytest.raises(ArgumentError, match="JSON"):
            yaml_text(value)
    with pytest.raises(ArgumentError, match="place"):
        YamlStyle().objects(0)
