"""Random walks of schemas: they end, every text is judged, and enough schemas are walked."""

from __future__ import annotations

import json
import random
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import pytest
from tiny_schemas import CLOSED, REFUSED, TABLE, case, measured, write_lines, write_tokenizer

from bpe_automata import constrain
from bpe_automata.errors import MissingFileError
from bpe_automata.schemas import compile_json_schema
from experiments.run.measuring import read_run
from experiments.schemas import walks
from experiments.schemas.judge import for_python, with_patterns_for_python
from experiments.schemas.walks import AHEAD, SPARE, Config
from experiments.schemas.walks_process import (
    EXCUSES,
    PATTERNS,
    ROUNDING,
    Task,
    checker,
    exactly,
    random_ids,
    walked,
)

pytest.importorskip("jsonschema")


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory) -> str:
    return write_tokenizer(tmp_path_factory.mktemp("tokenizer"))


# ---------------------------------------------------------------- which schemas


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


def summed(folder):
    rows, manifest = read_run(folder)
    made = walks.render(rows, manifest)
    return made, manifest, sum(own["schemas"] for own in made.facts["styles"].values())


def test_in_place_of_a_refused_schema_the_next_one_is_taken(config, calls, tmp_path):
    measured(walks, config, tmp_path / "results")
    made, manifest, done = summed(tmp_path / "results")
    assert (done, manifest["complete"]) == (config.wanted(), True) == (10, True)
    assert made.facts["refused"] == len(calls) - 10 > 0
    assert calls == [task.key for task in walks.tasks(config)][: len(calls)]
    assert made.wrong == []
    assert "in place of" in made.tables[0].notes[0]
    measured(walks, config, tmp_path / "results")
    assert len(calls) == len(set(calls)), "nothing is walked twice"


def test_an_interrupted_run_takes_the_same_schemas(config, calls, tmp_path, monkeypatch):
    measured(walks, config, tmp_path / "whole")
    whole, calls[:] = list(calls), []
    real, kept = walks.Run.add, []

    def interrupted(run, key, row):
        if len(kept) == 6:
            raise KeyboardInterrupt
        kept.append(key)
        real(run, key, row)

    monkeypatch.setattr(walks.Run, "add", interrupted)
    with pytest.raises(KeyboardInterrupt):
        measured(walks, config, tmp_path / "again")
    assert not read_run(tmp_path / "again")[1]["complete"]
    monkeypatch.setattr(walks.Run, "add", real)
    measured(walks, config, tmp_path / "again")
    assert list(dict.fromkeys(calls)) == whole
    assert summed(tmp_path / "again")[0].facts == summed(tmp_path / "whole")[0].facts


def test_several_processes_take_the_same_schemas(config, calls, tmp_path, monkeypatch):
    measured(walks, config, tmp_path / "one")
    whole, calls[:] = list(calls), []
    monkeypatch.setattr(walks, "pool_of", ThreadPoolExecutor)
    measured(walks, config, tmp_path / "two", executor="processes", jobs=2)
    rows, manifest = read_run(tmp_path / "two")
    assert [row["key"] for row in rows] == whole
    assert manifest["complete"]
    assert len(calls) <= len(whole) + 2 * AHEAD
    calls.clear()
    measured(walks, config, tmp_path / "two", executor="processes", jobs=2)
    assert calls == []


def test_where_there_are_not_enough_the_table_says_so(config, calls, tmp_path):
    few = Config(**{**vars(config), "n": 400, "most_schemas": 40})
    measured(walks, few, tmp_path / "results")
    made, manifest, done = summed(tmp_path / "results")
    assert manifest["complete"]
    assert f"40 schemas were wanted, {done} were walked" in made.tables[0].notes
    assert len(calls) == len(walks.tasks(few)) <= SPARE * 40


def test_what_raises_is_a_failure_and_wrong(config, calls, tmp_path):
    calls.append("fails")
    everything = Config(**{**vars(config), "n": 300})
    measured(walks, everything, tmp_path / "results")
    made, manifest, _ = summed(tmp_path / "results")
    assert len(made.wrong) == manifest["failures"] == 1
    assert "IndexError: a bug" in made.wrong[0]
    calls.remove("fails")
    measured(walks, everything, tmp_path / "results", retry=True)
    made, manifest, _ = summed(tmp_path / "results")
    assert (made.wrong, manifest["failures"], manifest["complete"]) == ([], 0, True)


def test_every_fourth_is_yaml_and_every_eighth_one_of_the_store(config):
    styles = [task.style for task in walks.tasks(config)]
    stored = [task.id for task in walks.tasks(config) if task.id.startswith("y")]
    assert len(stored) == len(set(stored)) == 5
    assert styles.count("yaml") == 10 + 5
    others = walks.tasks(Config(**{**vars(config), "yaml_schemas": None}))
    assert [task for task in walks.tasks(config) if task.id not in stored] == others


def test_data_that_is_not_there_is_named(config, tmp_path):
    for name in ("schemas", "yaml_schemas"):
        absent = Config(**{**vars(config), name: tmp_path / "none"})
        with pytest.raises(MissingFileError, match=f"--{name.replace('_', '-')}"):
            measured(walks, absent, tmp_path / "results")


def test_nothing_is_rendered_of_nothing(config, calls, tmp_path):
    measured(walks, config, tmp_path / "results")
    _, manifest = read_run(tmp_path / "results")
    made = walks.render([], manifest)
    assert made.tables[0].rows[0][:2] == ["json", "0"]
    assert "Wrong: 0;" in walks.readme(made.facts)


# ---------------------------------------------------------------- walks and their judge


def test_walks_end_and_follow_the_masks():
    TABLE.eos_ids = (TABLE.n_ids - 1,)
    constraint = constrain(TABLE, compile_json_schema(CLOSED))
    rng = random.Random(5)
    texts = {TABLE.decode(random_ids(constraint, rng)) for _ in range(60)}
    values = [json.loads(text) for text in texts]
    assert all(isinstance(value["a"], int) for value in values)
    assert {value.get("b") for value in values} == {None, True, False}
    assert len(texts) > 20


def test_a_long_way_home_is_gone():
    long = {"type": "string", "minLength": 600, "maxLength": 600, "pattern": "^[xyz]*$"}
    constraint = constrain(TABLE, compile_json_schema(long))
    assert len(json.loads(TABLE.decode(random_ids(constraint, random.Random(5))))) == 600


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


def test_patterns_are_found_where_they_are_keywords():
    schema = {
        "properties": {"pattern": {"pattern": "^a$"}},
        "patternProperties": {"^b$": {"items": [{"pattern": "."}]}},
        "enum": [{"pattern": "$"}],
    }
    assert with_patterns_for_python(schema) == {
        "properties": {"pattern": {"pattern": "^a\\Z"}},
        "patternProperties": {"^b\\Z": {"items": [{"pattern": for_python(".")}]}},
        "enum": [{"pattern": "$"}],
    }


def test_walks_of_schemas_are_rows(tmp_path, tokenizer):
    rows = [case("pair", CLOSED), case("other", CLOSED), case("refused", REFUSED)]
    file = write_lines(tmp_path / "Some.jsonl", rows)
    chosen = Config(schemas=file, yaml_schemas=None, tokenizer=tokenizer, n=20, most_schemas=2)
    measured(walks, chosen, tmp_path / "results")
    rows, manifest = read_run(tmp_path / "results")
    made = walks.render(rows, manifest)
    done = [row for row in rows if "walks" in row]
    assert manifest["complete"]
    assert [row["walks"] for row in done] == [10, 10]
    assert made.wrong == []
    assert f"{sum(own['walks'] for own in made.facts['styles'].values())}" == "20"
    done[0]["failures"] = [{"why": "not valid", "text": "x", "ids": [1]}]
    assert len(walks.render(rows, manifest).wrong) == 1


def test_a_walk_that_is_wrong_is_a_failure(monkeypatch, tokenizer):
    """The automaton of another schema: its texts are not valid under the one that is checked."""
    other = compile_json_schema({"type": "object", "properties": {"a": {"type": "boolean"}}})
    monkeypatch.setattr("experiments.schemas.walks_process.compiled", lambda task: other)
    row = walked(Task("t", "json", CLOSED), tokenizer, 10, 0)
    assert row["failures"]
    assert row["failures"][0]["why"].startswith("not valid")
