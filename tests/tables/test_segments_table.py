"""The experiment on segments: rows that go on, what is wrong, and the tables."""

from __future__ import annotations

import pytest
from tiny import CLOSED, REFUSED, case, measured, write_lines, write_tokenizer

from experiments.run.measuring import Run, read_run
from experiments.schemas import segments
from experiments.schemas.segments import Config

NAMES = ("a", "b", "c")


@pytest.fixture(scope="module")
def config(tmp_path_factory) -> Config:
    """Schemas that have keys and values in common, and one that is refused."""
    folder = tmp_path_factory.mktemp("segments")
    rows = [case("refused", REFUSED)]
    for k, name in enumerate(NAMES):
        properties = {name: {"type": "integer"}, "x": {"type": "boolean"}, "y": {"enum": [1, 2]}}
        rows.append(case(f"{k}", CLOSED | {"properties": properties, "required": ["x"]}))
    file = write_lines(folder / "Some.jsonl", rows)
    return Config(schemas=file, tokenizers=(write_tokenizer(folder),), n=9)


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("BPE_AUTOMATA_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def finished(config, tmp_path):
    measured(segments, config, tmp_path / "results")
    return read_run(tmp_path / "results")


def counts(rows):
    """What the caches gave, by schema: this is no matter of time."""
    return {
        row["id"]: {
            (kind, variant): found.get("made")
            for kind in ("eager", "written")
            for variant, found in row[kind].items()
        }
        for row in rows
        if "written" in row
    }


def test_every_schema_is_a_row_for_each_cache(finished):
    rows, manifest = finished
    assert manifest["complete"]
    assert (manifest["rows"], manifest["failures"]) == (2 + len(NAMES), 1)
    for found in counts(rows).values():
        assert found["eager", "alone"] > 0
        assert found["eager", "again"] == found["eager", "disk"] == 0, "what is known is not made"
    made = segments.render(rows, manifest)
    assert (made.wrong, len(made.tables)) == ([], 2)
    assert [own["n"] for own in made.facts["speed_ups"]] == 2 * [len(NAMES)]
    assert made.facts["schemas"] == len(NAMES)


def test_a_run_goes_on_with_the_cache_it_would_have_had(finished, config, tmp_path, monkeypatch):
    real, added = Run.add, []

    def interrupted(run, key, row):
        if len(added) == 4:
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


class Swapped(segments.SharedRelevance):
    def readable(self, place, number):
        free, bound = super().readable(place, number)
        return bound, free + 1


def complemented(*given, real=segments.assembled):
    return real(*given).complement()


@pytest.mark.parametrize(
    ("name", "other", "said"),
    [
        ("SharedRelevance", Swapped, "rows differ"),
        ("assembled", complemented, "the automaton differs"),
    ],
)
def test_what_differs_from_no_segments_is_wrong(config, tmp_path, monkeypatch, name, other, said):
    monkeypatch.setattr(segments, name, other)
    measured(segments, config, tmp_path / "results")
    made = segments.render(*read_run(tmp_path / "results"))
    assert len(made.wrong) == len(NAMES)
    assert said in made.wrong[0]
