"""The experiment on YAML schemas: what becomes of files and texts, orders, and the tables."""

from __future__ import annotations

import gzip
import json

import pytest
from experiments.schemas.yaml_orders import in_some_order
from tiny_schemas import measured, write_lines

from bpe_automata.automata.compile import compile_regex
from bpe_automata.automata.sources import from_strings
from bpe_automata.errors import MissingFileError
from bpe_automata.schemas import compile_yaml_schema
from bpe_automata.schemas.yaml_style import yaml_text
from experiments.run.executors import FAILURE
from experiments.run.measuring import read_run
from experiments.schemas import yaml_files, yaml_report, yaml_schemas
from experiments.schemas.inputs import YAML_SCHEMAS, yaml_cases
from experiments.schemas.judge import Judge

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
    "a: 1\nb: [x, 'no']\n": yaml_files.ACCEPTED,
    "b: [x]\n# a comment\na: 0x10\n": yaml_files.ORDER,
    "any: {z: [[[[1]]]], y: [x]}\na: 2\n": yaml_files.DEPTH,
    "a: 1.0\n": yaml_files.NUMBER,
    f"a: 1\n{'k' * 65}: 1\n": yaml_files.KEY,
    "a: x\n": yaml_files.INVALID,
    "a: 1\non: 1\n": yaml_files.NO_JSON,  # the key is True
    "a: 2001-01-01\n": yaml_files.NO_JSON,
    "a: [\n": yaml_files.NO_YAML,
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
    assert small["states"] > 1000
    assert (refused["status"], refused["keyword"]) == ("refused", "pattern")
    assert refused["files"] == []


def test_the_tables_and_the_readme(finished):
    made = yaml_schemas.render(*finished)
    text = "\n".join(table.markdown() for table in made.tables)
    assert "| refused: pattern | 1 |" in text
    assert "| accepted, keys in another order | 1 |" in text
    assert "depth 3; too large: over 500,000 states" in text
    assert made.wrong == []
    assert (made.facts["files"], made.facts["accepted"]) == (len(FILES), 3)
    said = " ".join(yaml_schemas.readme(made.facts).split())
    assert "of 2 schemas of SchemaStore with YAML files 1 compile" in said
    assert "Of 12 texts drawn from them 0 are not loaded" in said


def test_failures_are_wrong_and_nothing_is_rendered_of_nothing(finished):
    rows, manifest = finished
    made = yaml_schemas.render([{"key": "lost", FAILURE: "its process died"}, *rows], manifest)
    assert made.wrong == ["lost: its process died"]
    assert yaml_schemas.render([], {"wall_seconds": 0}).facts["schemas"] == 0


def test_what_is_wrong_is_counted():
    judge = Judge().compile({"schema": {"type": "integer"}})
    checked = yaml_files.Files({}, compile_regex(r"[a1]\n|- a\n"), judge)
    outcomes = [checked.verdict(text) for text in ("a\n", "1\n", "2\n", "[b]\n")]
    wanted = [yaml_files.WRONG, yaml_files.ACCEPTED, yaml_files.DEPTH, yaml_files.INVALID]
    assert outcomes == wanted  # {} allows 2
    failed = [{"why": "not valid", "text": "a\n"}]
    row = {"id": "i", "files": outcomes, "failures": failed}
    assert yaml_report.wrongs([row]) == ["i: not valid: 'a\\n'", f"i: file 0: {yaml_files.WRONG}"]
    for text in ("a: [\n", "2001-99-01\n", "2001-01-01\n", "x\n"):
        assert yaml_files.complaint(text, judge)
    assert yaml_files.complaint("3\n", judge) == ""


def test_an_order_is_found_iff_there_is_one():
    value = {"b": [{"y": 1, "x": {"q": [], "p": {}}}, [[1], 2]], "a": "no"}
    other = {"a": "no", "b": [{"x": {"p": {}, "q": []}, "y": 1}, [[1], 2]]}
    one = from_strings([yaml_text(other)])
    assert in_some_order(one, value)
    assert in_some_order(one, other, ("b", "a"))
    assert not in_some_order(one, value | {"c": 1})
    assert not in_some_order(one, {"a": "no"})
    assert not in_some_order(one, other | {"b": [[[1], 2], other["b"][0]]})  # lists have an order


def test_the_data_may_be_a_file_of_ones_own(tmp_path):
    line = json.dumps({"id": "a", "schema": {}, "yaml": []})
    (tmp_path / "one.jsonl").write_text(line + "\n")
    with gzip.open(tmp_path / "two.jsonl.gz", "wt") as file:
        file.write(f"{line}\n{line}\n")
    assert len(yaml_cases(tmp_path / "one.jsonl")) == 1
    assert len(yaml_cases(tmp_path / "two.jsonl.gz")) == 2
    with pytest.raises(MissingFileError, match="--yaml-schemas"):
        yaml_cases(tmp_path / "three")


def test_a_real_schema_and_its_walks():
    if not YAML_SCHEMAS.exists():
        pytest.skip("the schemas are not there")
    case = next(c for c in yaml_cases(YAML_SCHEMAS) if c["id"] == "buf.work")
    row = yaml_schemas.measured(case, 20, seed=1)
    assert row["status"] == "compiled"
    assert row["failures"] == []
    assert set(row["files"]) <= {yaml_files.ACCEPTED, yaml_files.ORDER}
    assert compile_yaml_schema({"const": {"no": [1, "1"]}}).accepts(b'"no":\n  - 1\n  - "1"\n')
