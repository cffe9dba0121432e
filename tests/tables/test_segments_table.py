"""The experiment on segments: rows that go on, what is wrong, and the tables."""

from __future__ import annotations

import json
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
from support import process
from tiny import CLOSED, REFUSED, case, measured, write_lines, write_tokenizer

from bpe_automata import Tokenizer, compile_regex
from experiments.article.table2_series import Source
from experiments.run.measuring import Run, read_run
from experiments.schemas import linked_segments, segments
from experiments.schemas.linked_segments import SegmentError, along, asked, row_of
from experiments.schemas.segments import Config

NAMES = ("a", "b", "c")
WRITTEN = len(NAMES) + 1
"""Schemas that are not refused; one has no instance."""


@pytest.fixture(scope="module")
def config(tmp_path_factory) -> Config:
    """Schemas that have keys and values in common, one without an instance, and one that is
    refused."""
    folder = tmp_path_factory.mktemp("segments")
    rows = [case("refused", REFUSED, good=[[]])]
    rows.append(case("no instance", CLOSED, bad=[{"z": 1}]))
    for k, name in enumerate(NAMES):
        properties = {name: {"type": "integer"}, "x": {"type": "boolean"}, "y": {"enum": [1, 2]}}
        schema = CLOSED | {"properties": properties, "required": ["x"]}
        rows.append(case(f"{k}", schema, good=[{"z": 1}, {"y": 2, name: 10 + k, "x": True}]))
    file = write_lines(folder / "Some.jsonl", rows)
    return Config(schemas=file, tokenizers=(write_tokenizer(folder),), n=9)


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("BPE_AUTOMATA_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module", autouse=True)
def one_worker(config):
    """For all runs: starting it is what takes long."""
    with (
        linked_segments.worker(*config.tokenizers) as worker,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(linked_segments, "worker", lambda _: nullcontext(worker))
        yield


@pytest.fixture
def finished(config, tmp_path):
    measured(segments, config, tmp_path / "results")
    return read_run(tmp_path / "results")


def counts(rows):
    """What the caches gave, by schema: this is no matter of time. Of what is linked the masks."""
    masks = {row["key"]: row["linked"]["none"]["masks_made"] for row in rows if "linked" in row}
    return masks | {
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
    assert (manifest["rows"], manifest["failures"]) == (1 + (WRITTEN + 1) + (len(NAMES) + 1), 2)
    found_by_id = counts(rows)
    for found in map(found_by_id.get, map(str, range(len(NAMES)))):
        assert found["eager", "alone"] > 0
        assert found["eager", "again"] == found["eager", "disk"] == 0, "what is known is not made"
    made = segments.render(rows, manifest)
    assert (made.wrong, len(made.tables)) == ([], 3)
    assert [own["n"] for own in made.facts["speed_ups"]] == [WRITTEN, WRITTEN, len(NAMES)]
    assert made.facts["schemas"] == WRITTEN


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
    assert len(made.wrong) == WRITTEN
    assert said in made.wrong[0]


# Linked schemas.


def test_linked_schemas_are_measured_by_what_is_known(finished):
    linked = [row for row in finished[0] if "linked" in row]
    written = [row["id"] for row in finished[0] if "written" in row]
    assert [row["id"] for row in linked] == [name for name in written if name != "no instance"]
    for row in linked:
        assert [*row["linked"]] == ["none", "shared", "again"]
        for found in row["linked"].values():
            assert found["seconds"] > 0
            assert found["masks_made"] > 10
    refused = [row for row in finished[0] if row["key"].endswith(" refused, linked")]
    assert [row["refused"] for row in refused] == [True]
    made = segments.render(*finished)
    assert [line[0] for line in made.tables[1].rows][1:] == ["- shared", "- again"]
    *_, last = segments.readme(made.facts).splitlines()
    assert last.count(" | -") == 1, "there is no cache that knows nothing"


def test_each_round_begins_with_another_process_and_learning_is_in_between():
    heard = []

    def process_of(name):
        return lambda question: heard.append((name, question["learn"])) or {}

    processes = {name: process_of(name) for name in "NSA"}
    processes = dict(zip(linked_segments.VARIANTS, processes.values(), strict=True))
    assert asked(processes, {"learn": True}) == {"none": [], "shared": [], "again": []}
    assert heard == [("A", True), ("S", True)]
    heard.clear()
    found = asked(processes, {"learn": False})
    assert [*map(len, found.values())] == 3 * [linked_segments.REPEATS]
    assert (heard[0], heard[-1]) == (("A", True), ("S", True))
    assert "".join(name for name, learn in heard if not learn) == "NSASANANS"


@pytest.fixture
def one(config) -> tuple[Tokenizer, Source]:
    tokenizer = Tokenizer.load(*config.tokenizers)
    return tokenizer, segments.sources_of(config.schemas, None, 0)[-1]


def test_an_id_that_is_masked_out_is_wrong(one):
    ids = one[0].encode('{"x":1')
    said = f"id {ids[-1]}, number {len(ids) - 1} of the text's own, is masked out"
    with pytest.raises(SegmentError, match=said):
        along(one[0], lambda: compile_regex(r'\{"x":true\}'), ids)


ROW = {"status": "done", "digest": "1", "kernels": 0} | dict.fromkeys(linked_segments.PARTS, 1.0)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"digest": "2"}, "masks differ"),
        ({"wrong": "an id is masked out"}, "an id is masked out"),
        ({"status": "failed", "failure": "its process ended"}, "its process ended"),
        ({"status": "over time"}, "over time"),
    ],
)
def test_what_is_not_as_it_should_be_is_wrong(one, changed, said):
    answers = {"none": [ROW, ROW], "shared": [ROW, ROW | changed], "again": [ROW, ROW]}
    with pytest.raises(SegmentError, match=said):
        row_of(SimpleNamespace(answer=lambda _: answers), *one, learn=False)


def test_times_are_medians_over_the_forks(one):
    rows = [ROW | {"link": seconds, "kernels": 2 * seconds} for seconds in (5, 1, 3)]
    answers = dict.fromkeys(linked_segments.VARIANTS, rows)
    found = row_of(SimpleNamespace(answer=lambda _: answers), *one, learn=False)["linked"]["none"]
    assert (found["link"], found["seconds"], found["kernels"]) == (3, 6, 10)


def test_a_schema_that_accepts_no_instance_is_refused(one):
    tokenizer, source = one
    row = row_of(None, tokenizer, Source("none", source.schema, ({"z": 1},)), learn=False)
    assert row == {"refused": True, "failure": "it accepts none of the instances"}


KNOWN_IN_THE_BEGINNING = """
import json
from bpe_automata._automata import part_tables
from bpe_automata._cli.warm import trained
from bpe_automata.schemas import _json_style
from bpe_automata.schemas._compile import _load_kernels
from experiments.schemas.linked_segments import Knowing

def known():
    text = process.tokenizer._derived.get("text unseen")
    memo = _json_style._SHARED["compact", "minimal"]
    return len(memo._entries), len(text.vocabularies._found) if text else 0

hits, tables, real = [], set(), part_tables._Tables.found

def found(self, key):
    hits.append(key in tables)
    return real(self, key)

part_tables._Tables.found = found
process = Knowing(trained(), trained())
_load_kernels()
counted = [known()]
process.begin()
counted.append(known())
tables = set(part_tables._tables._kept)
words = "many words, one by one, and more of them"
string = {"type": "string", "maxLength": 50}
schema = {"type": "object", "properties": {"a": string, "b": string}, "required": ["a"]}
ids = process.tokenizer.encode(json.dumps({"a": words, "b": words}, separators=(",", ":")))
question = {"schema": schema, "ids": ids, "learn": True}
for _ in range(2):
    hits.clear()
    process.answer(question)
    counted.append(known())
    print(sum(hits), len(hits), end=" ")
    tables = set(part_tables._tables._kept)
print(json.dumps(counted))
"""


def test_the_processes_begin_without_any_part_of_a_schema():
    """Neither its tables nor its sets of strings, nor vocabularies collapsed for them."""
    printed = process(KNOWN_IN_THE_BEGINNING).stdout.split(" ", 4)
    first, _, hits, tables = map(int, printed[:4])
    strings, vocabularies = zip(*json.loads(printed[4]), strict=True)
    assert strings[0] == strings[1] < strings[2] == strings[3]
    assert vocabularies[0] == vocabularies[1] == 0 < vocabularies[2]
    assert first == 1, "only the brace before a key is the same in both styles"
    assert hits == tables > 0
