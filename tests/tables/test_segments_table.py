"""The experiment on segments: rows that go on, what is wrong, and the table."""

from __future__ import annotations

import pytest
from tiny import CLOSED, REFUSED, case, measured, write_lines, write_tokenizer

from bpe_automata import Segments
from experiments.run.measuring import Run, read_run
from experiments.schemas import segments
from experiments.schemas.segments import VARIANTS, Config

NAMES = ("a", "b", "c")


@pytest.fixture(scope="module")
def config(tmp_path_factory) -> Config:
    """Schemas that have keys and values in common, and one that is refused."""
    folder = tmp_path_factory.mktemp("segments")
    rows = [case("refused", REFUSED, good=[[]])]
    for name in NAMES:
        properties = {name: {"enum": [1, 2]}, "x": {"type": "boolean"}, "y": {"enum": [1, 2]}}
        rows.append(case(name, CLOSED | {"properties": properties, "required": ["x"]}))
    file = write_lines(folder / "Some.jsonl", rows)
    return Config(schemas=file, tokenizers=(write_tokenizer(folder),), n=9)


@pytest.fixture
def finished(config, tmp_path):
    measured(segments, config, tmp_path / "results")
    return read_run(tmp_path / "results")


def counts(rows):
    """Of parts, by schema: this is no matter of time."""
    return {
        (row["id"], name): (row[name]["made"], row[name]["found"])
        for row in rows
        if "again" in row
        for name in VARIANTS[1:]
    }


def test_every_schema_is_a_row_with_each_variant(finished):
    rows, manifest = finished
    assert manifest["complete"]
    assert (manifest["rows"], manifest["failures"]) == (len(NAMES) + 1, 1)
    found = counts(rows)
    assert len(found) == 3 * len(NAMES)
    for name in NAMES:
        assert found[name, "again"][0] == 0, "what is known is not made"
        assert {sum(found[name, variant]) for variant in VARIANTS[1:]} == {
            sum(found[name, "alone"])
        }
    assert sum(found[name, "shared"][0] for name in NAMES) < sum(
        found[name, "alone"][0] for name in NAMES
    )
    made = segments.render(rows, manifest)
    assert (made.wrong, len(made.tables)) == ([], 1)
    assert [own["n"] for own in made.facts["speed_ups"]] == [len(NAMES)]
    assert made.facts["speed_ups"][0]["again found"] == 1
    *_, last = segments.readme(made.facts).splitlines()
    assert last.count("%") == 3


def test_a_run_goes_on_with_the_parts_it_would_have_had(finished, config, tmp_path, monkeypatch):
    real, added = Run.add, []

    def interrupted(run, key, row):
        if len(added) == 2:
            raise KeyboardInterrupt
        added.append(key)
        real(run, key, row)

    monkeypatch.setattr(Run, "add", interrupted)
    with pytest.raises(KeyboardInterrupt):
        measured(segments, config, tmp_path / "again")
    monkeypatch.setattr(Run, "add", real)
    measured(segments, config, tmp_path / "again")
    rows, manifest = read_run(tmp_path / "again")
    assert manifest["complete"]
    assert counts(rows) == counts(finished[0])


class Complement(Segments):
    def automaton(self, dfa, *given):
        found = super().automaton(dfa, *given)
        loads_kernels = dfa.accepts(b'{"a":null,"b":0}')
        return found if loads_kernels else found.complement()


def test_what_differs_from_no_segments_is_wrong(config, tmp_path, monkeypatch):
    monkeypatch.setattr(segments, "Segments", Complement)
    measured(segments, config, tmp_path / "results")
    made = segments.render(*read_run(tmp_path / "results"))
    assert len(made.wrong) == len(NAMES)
    assert "the automaton differs" in made.wrong[0]
