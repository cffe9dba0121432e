"""Function calls: what is right, as the checker of BFCL says too; where an answer ends."""

import json
import sys
from collections import defaultdict
from importlib.util import find_spec
from types import SimpleNamespace

import pytest

from experiments import bfcl, lab
from experiments.artefacts import accuracy

PARAMETERS = {
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer"},
        "rate": {"type": "float"},
        "on": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "rates": {"type": "array", "items": {"type": "float"}},
        "place": {"type": "dict", "properties": {}},
        "places": {"type": "array", "items": {"type": "dict"}},
    },
    "required": ["city"],
}
ACCEPTED = {
    "city": ["New York", "NYC"],
    "days": [3, ""],
    "rate": [5.0, ""],
    "on": [True, ""],
    "tags": [["a b", "c"], ""],
    "rates": [[1.0, 2.0], ""],
    "place": [{"name": ["Oslo"], "zip": [5, ""]}, ""],
    "places": [[{"name": ["Oslo"]}, {"name": ["Bergen"]}], ""],
}
RIGHT = (
    *({}, {"city": "new-york"}, {"city": "N.Y.C.", "days": 3}, {"rate": 5}, {"on": True}),
    *({"tags": ["A_B", "C"]}, {"tags": []}),  # "" has no items either
    *({"rates": [1.0, 2.0]}, {"rates": [1, 2]}),  # left out or not, their types are not looked at
    *({"place": {"name": "OSLO"}}, {"place": {"name": "Oslo", "zip": 5}}),
    {"places": [{"name": "Oslo"}, {"name": "Bergen"}]},
)
WRONG = (
    *({"city": "Boston"}, {"city": 3}, {"country": "US"}, {"rate": 5.5}, {"on": 1}),
    *({"days": value} for value in (4, 3.0, True, "3")),
    *({"tags": value} for value in (["c", "a b"], "a b", [1, 2])),
    *({"place": value} for value in ({"zip": 5}, {"name": "Oslo", "x": 1})),
    {"place": {"name": "Oslo", "zip": 6}},
    *({"places": [{"name": name} for name in names]} for names in (["Bergen", "Oslo"], ["Oslo"])),
)
NYC = {"city": "NYC"}
CALLS = [
    ({}, NYC | call, right) for calls, right in ((RIGHT, True), (WRONG, False)) for call in calls
]
ALSO = [
    ({}, {"days": 3}, False),
    ({"days": [3]}, NYC, False),
    ({}, ["NYC"], False),
    ({"rates": [[1.0]]}, NYC | {"rates": [1]}, False),
    ({"city": [""]}, {}, False),  # required, whatever the values say
    ({"tags": ["all_tags"]}, NYC | {"tags": "alltags"}, False),
    ({"tags": ["all_tags"], "days": ["n"]}, NYC | {"tags": "all_tags", "days": "n"}, True),  # names
]


@pytest.mark.parametrize(("changed", "arguments", "right"), CALLS + ALSO)
def test_what_is_right(changed, arguments, right):
    """changed: the values that are accepted."""
    assert bfcl.is_right(PARAMETERS, ACCEPTED | changed, arguments) == right


@pytest.fixture(scope="module")
def checker():
    """The package's own. Of its table of hosted models, which needs all of their clients, it asks
    one thing alone: may a name hold a dot?"""
    if find_spec("bfcl_eval") is None:
        pytest.skip("bfcl-eval is not installed")
    with pytest.MonkeyPatch.context() as patch:
        known = defaultdict(lambda: SimpleNamespace(underscore_to_dot=False))
        stand_in = SimpleNamespace(MODEL_CONFIG_MAPPING=known)
        patch.setitem(sys.modules, "bfcl_eval.constants.model_config", stand_in)
        ast_checker = pytest.importorskip("bfcl_eval.eval_checker.ast_eval.ast_checker")
        language = pytest.importorskip("bfcl_eval.constants.enums").Language.PYTHON

        def verdict(parameters, accepted, arguments):
            described = [{"name": "f", "parameters": {"required": []} | parameters}]
            called, possible = [{"f": arguments}], [{"f": accepted}]
            found = ast_checker.ast_checker(described, called, possible, language, "simple", "m")
            return found["valid"]

        yield verdict


def test_the_checker_of_bfcl_says_the_same(checker):
    for changed, arguments, right in CALLS:
        assert checker(PARAMETERS, ACCEPTED | changed, arguments) == right, arguments


def changes(value):
    """Values that are something like this one."""
    yield from (value, [value], {"x": value}, "", 1, True, 0.5, None, [])
    if isinstance(value, str):
        yield from (value.upper(), f" {value}.", f"{value}x")
    if isinstance(value, int | float):
        yield from (value + 1, float(value), int(value), str(value))
    if isinstance(value, list):
        yield from ([*value, *value], value[1:], value[::-1], [[one] for one in value])
    if isinstance(value, dict):
        yield from ({k: v for k, v in value.items() if k != name} for name in value)
        yield value | {"x": 1}


def calls_of(accepted):
    """An accepted call, and that call with one argument changed or left out."""
    given = {name: [v for v in values if v != ""] or [""] for name, values in accepted.items()}
    every = bfcl.example(given)
    yield from (every, bfcl.example(accepted))
    for name, value in every.items():
        rest = {k: v for k, v in every.items() if k != name}
        yield from (rest, *(rest | {name: other} for other in changes(value)))


def test_the_checker_of_bfcl_says_the_same_of_its_requests(checker):
    said = {True: 0, False: 0}
    for category in bfcl.CATEGORIES:
        for request in bfcl.requests_of(category):
            for call in calls_of(request.accepted):
                try:
                    theirs = checker(request.parameters, request.accepted, call)
                except (KeyError, TypeError, AttributeError):
                    continue  # it falls over on what no call of its own is
                assert request.is_right(call) == theirs, (request.id, call)
                said[theirs] += 1
    assert min(said.values()) > 1000


@pytest.mark.parametrize("text", ["{}", '{"a": {"b": "}"}}', '{"a": "\\\\\\"}"}'])
def test_the_first_object_ends_with_its_own_brace(text):
    assert accuracy.value_in(f"So: {text} and {{}}") == json.loads(text)
    assert accuracy.value_in(text[:-1]) is None


@pytest.mark.skipif(find_spec("bfcl_eval") is None, reason="bfcl-eval is not installed")
def test_what_was_measured_is_what_is_judged_now():
    config = accuracy.Config()
    _, rows = lab.rows_there("accuracy", accuracy, config, lab.Run(results=lab.ROOT / "none"))
    known = bfcl.chosen(config.requests, config.seed)
    for row in rows:
        value = accuracy.value_in(row["text"]) if row["ended"] else None
        assert row["right"] == (value is not None and known[row["request"]].is_right(value))
        assert row["valid"] == (value is not None and known[row["request"]].is_valid(value))
        assert row["valid"] or row["method"] == "free" or not row["ended"]
