"""Plain and quoted scalars against PyYAML itself: its resolvers, its scanner, every short text."""

from __future__ import annotations

import json
import random
import re
from itertools import product

import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st
from support import examples, same_arrays
from support.values import depth

from bpe_automata.automata.algebra import all_texts
from bpe_automata.automata.compile import compile_regex
from bpe_automata.errors import UnsupportedSchemaError
from bpe_automata.schemas import _yaml_style, yaml_schema
from bpe_automata.schemas._yaml_style import (
    YamlStyle,
    escaped,
    key_names,
    plain,
    quoted,
    spelled,
    spellings,
)
from experiments.inputs import yaml_text

MEMBERS = YamlStyle().objects(YamlStyle.root)
PLACES = (
    ("{}\n", lambda t: t),
    ("k: {}\n", lambda t: {"k": t}),
    ("- {}\n", lambda t: [t]),
    ("{}: 1\n", lambda t: {t: 1}),
    ("k: {}\nl: 1\n", lambda t: {"k": t, "l": 1}),
    ("- - {}\n  - 1\n", lambda t: [[t, 1]]),
    ("- {}: 1\n  l: 2\n", lambda t: [{t: 1, "l": 2}]),
    ("k:\n  {}:\n    l: 2\nm: 3\n", lambda t: {"k": {t: {"l": 2}}, "m": 3}),
)
NASTY = (
    " -?:#.,[]{}&*!|>'\"%@`\\~=</019_+eExobnyNtT\t\r\n\0\x7f\x80\x85\xa0\u2028\u2029\ufffe\ufffdé😀"
)
WORST = " :#-"
PIECES = (
    *NASTY,
    *("---", "...", ": ", " #", "yes", "No", "ON"),
    *("null", "true", "0x", "0b", "0o", ".inf", ".NaN"),
    *("1:30", "1.5", "e+3", "e3", "2001", "-01", "-1", "T", "12:00:00", "Z", "<<", "a", "word"),
)


def loaded(document: str) -> object:
    """What PyYAML makes of it; an exception is a value too."""
    try:
        return yaml.safe_load(document)
    except Exception as error:  # PyYAML lets ValueError through
        return error


# What YAML 1.2's core schema and ruamel.yaml (under 1.1 and 1.2) resolve, and PyYAML does not.
ELSEWHERE = (
    r"y|Y|n|N",
    r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+",
    r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?",
    r"[-+]?0b[0-1_]+|[-+]?0o?[0-7_]+|[-+]?(?!_)[0-9_]+|[-+][0-9_]+|[-+]?0x[0-9a-fA-F_]+",
    r"[-+]?([0-9][0-9_]*)\.[0-9_]*([eE][-+]?[0-9]+)?|[-+]?([0-9][0-9_]*)([eE][-+]?[0-9]+)",
    r"[-+]?\.[0-9_]+([eE][-+]?[0-9]+)?|\.[0-9_]+([eE][-+][0-9]+)?",
)
RESOLVED_ELSEWHERE = re.compile("|".join(f"(?:{pattern})" for pattern in ELSEWHERE))


def read_back_everywhere(text: str) -> bool:
    if RESOLVED_ELSEWHERE.fullmatch(text):
        return False
    return all(loaded(place.format(text)) == value(text) for place, value in PLACES)


def disagreements(texts) -> list[str]:
    return [t for t in texts if plain().accepts(t.encode()) != read_back_everywhere(t)]


def test_resolvers_are_those_of_pyyaml():
    patterns: dict[str, str] = {}
    for listed in yaml.SafeLoader.yaml_implicit_resolvers.values():
        patterns |= {tag.split(":")[-1]: regexp.pattern for tag, regexp in listed}
    assert patterns.pop("yaml") == "^(?:!|&|\\*)$"  # for show: no plain scalar begins with them
    assert set(patterns) == set(_yaml_style.RESOLVED)
    for tag, pattern in patterns.items():
        theirs = compile_regex(f"(?x:{pattern.removeprefix('^').removesuffix('$')})")
        ours = compile_regex(_yaml_style.RESOLVED[tag])
        assert same_arrays(theirs, ours), tag


def test_every_short_text_is_plain_iff_it_is_read_back_everywhere():
    pairs = (a + b for a, b in product(NASTY, WORST) for a, b in ((a, b), (b, a)))
    assert disagreements(["", *NASTY, *pairs]) == []


@examples(300)
@given(st.lists(st.sampled_from(PIECES), max_size=6).map("".join))
def test_texts_of_pieces_are_plain_iff_they_are_read_back_everywhere(text):
    assert plain().accepts(text.encode()) == read_back_everywhere(text)


@examples(200)
@given(st.text() | st.lists(st.sampled_from(PIECES), max_size=6).map("".join))
def test_the_spelling_is_read_back_everywhere(text):
    for place, value in PLACES:
        assert loaded(place.format(spelled(text))) == value(text)


def test_a_character_is_escaped_iff_it_must_be():
    kept = {"\t": "a tab does no harm in quotes", "\ufeff": "PyYAML reads it, YAML does not"}
    near = (0x2000, 0x2080), (0xD7F0, 0xD800), (0xE000, 0xE010), (0xFEF0, 0x10010)
    ends = (*near, (0x10FFF0, 0x110000))
    codes = [*range(0x200), *(code for low, high in ends for code in range(low, high))]
    for c in map(chr, codes):
        raw = loaded(f'"a {c} b"\n') == f"a {c} b"  # a line break eats spaces
        assert loaded(f'"a{escaped(c)}b"\n') == f"a{c}b"
        assert (escaped(c) == c) == (raw and c not in kept), c


def test_all_texts_have_one_spelling():
    rng, found = random.Random(2), spellings(all_texts())
    for _ in range(300):
        text = found.sample(rng, 40).decode()
        value = yaml.safe_load(f"k: {text}\n")["k"]
        assert spelled(value) == text
    for text in ('"a"', '"\\x09"', '"\\u2028"', '"\\x0b"', "'no'", '"no', "no", '"a\nb: "', "a\tb"):
        assert not found.accepts(text.encode()), text
    assert quoted().accepts(b'"a"')


def test_numbers_are_read_as_json_reads_them():
    json_number = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
    texts = ("".join(found) for n in range(1, 6) for found in product("-0.1eE+", repeat=n))
    for text in filter(json_number.fullmatch, texts):
        value, wanted = loaded(f"k: {text}\n"), json.loads(text)
        same = value == {"k": wanted} and type(value["k"]) is type(wanted)
        assert _yaml_style.number_spellings().accepts(text.encode()) == same, text
    for text in ("010", "1_0", "+1", ".5", "1.", "1:30", "0x1", ".inf", "1e5", ""):
        assert not _yaml_style.number_spellings().accepts(text.encode()), text


# Block YAML: the text of a value is read back, is accepted, and is the only one that is.

SPECIAL = ("", "no", "null", "- a", "a: b", "1", "1.2.3", "2001-01-01", "#", "a #b", "---", "é")
STRINGS = st.text(max_size=8) | st.sampled_from((*SPECIAL, "a\nb", " "))
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
SCALARS = st.none() | st.booleans() | NUMBERS | STRINGS
VALUES = st.recursive(
    SCALARS,
    lambda v: st.lists(v, max_size=3) | st.dictionaries(STRINGS, v, max_size=3),
    max_leaves=8,
)


def names(value: object) -> list[str]:
    """All names of properties in it."""
    if isinstance(value, dict):
        return [*value, *(name for member in value.values() for name in names(member))]
    return [name for item in value for name in names(item)] if isinstance(value, list) else []


@pytest.fixture(scope="module")
def anything():
    return yaml_schema({}).to_dfa(depth=2)


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


OTHERS = (
    *("a", "a: 1", "a:  1\n", "a:\n  1\n", "a: 1\n\n", "{a: 1}\n", "[1]\n", "a:\n- 1\n"),
    *("a:\n   b: 1\n", "-\n  - 1\n", "'a'\n", '"a"\n', "~\n", "True\n", "1_0\n", "0x1\n"),
    *("a: # b\n", "no: 1\n", "1: 1\n", "&a 1\n", "|\n  a\n", "--- 1\n", "? a\n: 1\n"),
    "x" * 65 + ": 1\n",
)


@pytest.mark.parametrize("text", OTHERS)
def test_other_spellings_are_not_accepted(anything, text):
    assert yaml.safe_load(text) is not None or text == "~\n"
    assert not anything.accepts(text.encode())


def test_the_longest_key():
    assert YamlStyle().key("x" * 1024, MEMBERS) == b"x" * 1024 + b":"
    assert yaml.safe_load(f"{'x' * 1024}: 1\n") == {"x" * 1024: 1}
    with pytest.raises(yaml.YAMLError):
        yaml.safe_load(f"{'x' * 1025}: 1\n")
    with pytest.raises(UnsupportedSchemaError, match="1024 characters"):
        YamlStyle().key("x" * 1025, MEMBERS)


WRITTEN_NAMES = ("\uffff" * 4, "1" * 8, "no: " * 2, "/a b/{id}" * 7, "a" * 64, "@" * 64)
OTHER_NAMES = ("\uffff" * 5, "1" * 9, "no: " * 3, "a" * 65, "@" * 65, "@" * 16 + "\n")


@pytest.mark.parametrize("name", WRITTEN_NAMES + OTHER_NAMES)
def test_the_names_that_are_written_of_all(name):
    keys = YamlStyle().keys(all_texts(), MEMBERS)
    assert keys.accepts(f"{spelled(name)}:".encode()) == (name in WRITTEN_NAMES)
    assert yaml.safe_load(f"{spelled(name)}: 1\n") == {name: 1}


@pytest.mark.parametrize("text", [*"ynYN", "1e3", "08", "0o17", "+.5", "1e-5", "._", "-0x_"])
def test_what_another_yaml_would_resolve_is_quoted(text):
    found = yaml_schema({"enum": [text, "a"]})
    assert sorted(found.strings(9)) == sorted((f'"{text}"\n'.encode(), b"a\n"))
    key = yaml_schema({"properties": {text: {"const": text}}, "required": [text]})
    assert key.accepts(f'"{text}": "{text}"\n'.encode())
    assert not key.accepts(f'{text}: "{text}"\n'.encode())
