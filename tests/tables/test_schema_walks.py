"""Random walks of schemas, and files of YAML: walks end, every text is judged, as many schemas are
walked as are wanted, and each file has its yaml_schemas."""

from __future__ import annotations

import re
import sys
from decimal import Decimal

import pytest
from tiny import CLOSED, case, measured, write_lines, write_tokenizer

from bpe_automata._automata.compile import compile_regex
from bpe_automata._automata.sources import from_strings
from bpe_automata.schemas import json_schema
from experiments.run.measuring import read_run
from experiments.schemas import walks, yaml_schemas
from experiments.schemas.inputs import yaml_text
from experiments.schemas.judge import Verdicts, for_python
from experiments.schemas.walks import (
    EXCUSES,
    PATTERNS,
    ROUNDING,
    Config,
    Task,
    checker,
    exactly,
    walked,
)
from experiments.schemas.yaml_schemas import Files, in_some_order

pytest.importorskip("jsonschema")


# Which schemas are walked.


@pytest.fixture
def data(tmp_path):
    """Of 40 schemas those whose number ends in 3 or 7 are refused, and of 5 YAML ones none."""
    rows = [case(f"{k}", {"minimum": k}) for k in range(40)]
    stored = [{"id": f"y{k}", "schema": {"minimum": 100 + k}, "yaml": []} for k in range(5)]
    places = [tmp_path / name for name in ("Many.jsonl", "stored.jsonl")]
    return [write_lines(*pair) for pair in zip(places, (rows, stored), strict=True)]


@pytest.fixture
def config(data) -> Config:
    return Config(schemas=data[0], yaml_schemas=data[1], tokenizer="x", n=100, most_schemas=30)


@pytest.fixture
def calls(monkeypatch):
    """In place of walks: the keys of the tasks that were begun."""
    begun: list[str] = []

    def fake(task, tokenizer, n, seed):
        begun.append(task.key)
        row = {"id": task.id, "style": task.style}
        if task.schema["minimum"] % 10 in (3, 7):
            return row | {"why_not": "odd"}
        if task.schema["minimum"] == 25 and "fails" in begun:
            raise IndexError("a bug")
        counts = dict.fromkeys(("different", "ids", "characters", *EXCUSES), 1)
        return row | counts | {"walks": n, "failures": []}

    monkeypatch.setattr(walks, "walked", fake)
    return begun


def taken(folder):
    """(report, manifest, how many were walked)."""
    rows, manifest = read_run(folder)
    made = walks.render(rows, manifest)
    return made, manifest, sum(own["schemas"] for own in made.facts["styles"].values())


def test_in_place_of_a_refused_schema_the_next_one_is_taken(config, calls, tmp_path):
    """As few as there may be: the last one that is taken is walked."""
    measured(walks, config, tmp_path)
    made, manifest, done = taken(tmp_path)
    assert (done, manifest["complete"], made.wrong) == (config.wanted(), True, [])
    assert made.facts["refused"] == len(calls) - done > 0
    assert calls == [task.key for task in walks.tasks(config)][: len(calls)]
    assert walks.is_walked(read_run(tmp_path)[0][-1])
    measured(walks, config, tmp_path)
    assert len(calls) == len(set(calls)), "nothing is walked twice"


# Walks and their judge.


def test_checks_of_walks():
    check = checker(Task("t", "json", CLOSED))
    assert check('{"a":1}') is None
    assert "cannot be read" in check('{"a":1')
    assert "not valid" in check('{"a":"x"}')
    cents = checker(Task("t", "json", {"type": "number", "multipleOf": 0.01}))
    assert cents("0.07") in (None, ROUNDING)
    assert cents("1.13") in (None, ROUNDING)
    assert "not valid" in cents("0.075")
    assert exactly([Decimal("1.0"), {"a": Decimal("1.5")}]) == [1, {"a": Decimal("1.5")}]
    lines = checker(Task("t", "yaml", CLOSED))
    assert lines("a: 1\nb: true\n") is None
    assert "not valid" in lines("a: no\n")


def test_the_judge_of_walks_knows_what_ecma_calls_white_space():
    check = checker(Task("t", "json", {"type": "string", "pattern": r"^\S+@\S+$"}))
    assert check('"a@b"') is None
    assert check(r'"\u001c@\u0085"') == PATTERNS
    assert "not valid" in check(r'"\ufeff@a"')
    assert "not valid" in check('" @a"')


@pytest.mark.parametrize(
    ("pattern", "text", "python", "ecma"),
    [
        (r"^\d$", "\u0663", True, False),
        (r"^[^\D]$", "\u0663", True, False),
        (r"^\w$", "\u00e9", True, False),
        (r"^\W$", "\u00e9", False, True),
        (r"^[\s]$", "\x1c", True, False),
        (r"^[\S]$", "\x1c", False, True),
        (r"^[.$]$", "$", True, True),
        (r"^.$", "\r", True, False),
        (r"^a$", "a\n", True, False),
        (r"^\.\$$", ".$", True, True),
    ],
)
def test_patterns_are_translated_for_python(pattern, text, python, ecma):
    assert bool(re.search(pattern, text)) == python
    assert bool(re.search(for_python(pattern), text)) == ecma


def test_every_code_point_is_white_space_or_not():
    space, other = re.compile(for_python(r"\s")), re.compile(for_python(r"\S"))
    for code in range(sys.maxunicode + 1):
        assert (space.match(chr(code)) is None) != (other.match(chr(code)) is None)


def test_a_walk_that_is_wrong_is_a_failure(tmp_path, monkeypatch):
    """The automaton of another schema: its texts are not valid under the one that is checked."""
    other = json_schema({"properties": {"a": {"type": "boolean"}}, "type": "object"})
    other = other.to_dfa(depth=3)
    monkeypatch.setattr(walks, "compiled", lambda task: other)
    row = walked(Task("t", "json", CLOSED), write_tokenizer(tmp_path), 10, 0)
    assert row["failures"][0]["why"].startswith("not valid")
    manifest = {"config": {"tokenizer": "x"}, "wall_seconds": 0}
    made = walks.render([row | {"key": "json t"}], manifest)
    assert len(made.wrong) == len(row["failures"]) == made.facts["styles"]["json"]["failed"]


# Files of YAML and their schemas.

SCHEMA = {
    "type": "object",
    "properties": {
        "a": {"type": "integer"},
        "b": {"type": "array", "items": {"type": "string"}},
        "any": {},
        "on": {"type": "boolean"},
    },
    "required": ["a"],
}
FILES = {
    "a: 1\nb: [x, 'no']\n": yaml_schemas.ACCEPTED,
    "b: [x]\n# a comment\na: 0x10\n": yaml_schemas.ORDER,
    "any: {z: [[[[1]]]], y: [x]}\na: 2\n": yaml_schemas.ORDER,
    "a: 1.0\n": yaml_schemas.NUMBER,
    f"a: 1\n{'k' * 65}: 1\n": yaml_schemas.KEY,
    "a: x\n": yaml_schemas.INVALID,
    "a: 1\non: 1\n": yaml_schemas.NO_JSON,  # the key is True
    "a: 2001-01-01\n": yaml_schemas.NO_JSON,
    "a: [\n": yaml_schemas.NO_YAML,
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """(rows, manifest) of two schemas."""
    folder = tmp_path_factory.mktemp("yaml_schemas")
    cases = [
        {"id": "small", "schema": SCHEMA, "yaml": [*FILES]},
        {"id": "refused", "schema": {"not": {"pattern": "(?=a)"}}, "yaml": ["a\n"]},
    ]
    file = write_lines(folder / "two.jsonl", cases)
    measured(yaml_schemas, yaml_schemas.Config(yaml_schemas=file, texts=12), folder / "results")
    return read_run(folder / "results")


def test_each_file_has_its_outcome(finished):
    rows, manifest = finished
    small, refused = rows
    assert manifest["complete"]
    assert small["files"] == [*FILES.values()]
    assert (small["walks"], small["failures"]) == (12, [])
    assert (refused["status"], refused["keyword"]) == ("refused", "pattern")
    assert refused["files"] == []


def test_what_is_wrong_is_counted():
    judge = Verdicts({"type": "integer"})
    checked = Files({}, compile_regex(r"[a1]\n|- a\n"), judge)
    outcomes = [checked.verdict(text) for text in ("a\n", "1\n", "2\n", "[b]\n")]
    wanted = [
        yaml_schemas.WRONG,
        yaml_schemas.ACCEPTED,
        yaml_schemas.UNEXPLAINED,
        yaml_schemas.INVALID,
    ]
    assert outcomes == wanted
    row = {"id": "i", "files": outcomes, "failures": [{"why": "not valid", "text": "a\n"}]}
    wrong = [f"i: file 0: {yaml_schemas.WRONG}", f"i: file 2: {yaml_schemas.UNEXPLAINED}"]
    assert yaml_schemas.wrongs([row]) == ["i: not valid: 'a\\n'", *wrong]
    for text in ("a: [\n", "2001-99-01\n", "2001-01-01\n", "x\n"):
        assert yaml_schemas.complaint(text, judge)
    assert yaml_schemas.complaint("3\n", judge) == ""


def test_an_order_is_found_iff_there_is_one():
    value = {"b": [{"y": 1, "x": {"q": [], "p": {}}}, [[1], 2]], "a": "no"}
    other = {"a": "no", "b": [{"x": {"p": {}, "q": []}, "y": 1}, [[1], 2]]}
    one = from_strings([yaml_text(other)])
    assert in_some_order(one, value)
    assert in_some_order(one, other, ("b", "a"))
    assert not in_some_order(one, value | {"c": 1})
    assert not in_some_order(one, {"a": "no"})
    assert not in_some_order(one, other | {"b": [[[1], 2], other["b"][0]]})  # lists have an order
