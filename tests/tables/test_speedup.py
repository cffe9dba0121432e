"""The speed-up experiment: its loop is `decode`, its intervals are exact, its rows add up."""

from __future__ import annotations

import copy
import json
from dataclasses import replace

import numpy as np
import pytest

from bpe_automata import constrain
from bpe_automata.errors import ArgumentError, MissingFileError, TokenNotAllowedError
from bpe_automata.sampling import decode
from bpe_automata.testing import byte_spelling, small_tokenizer
from experiments.run.measuring import Run, Settings, read_run
from experiments.serving import speedup, speedup_cell
from experiments.serving.speedup_cell import (
    FUNCTIONS,
    WAYS,
    Task,
    Terms,
    Written,
    certain,
    families_of,
    heuristic,
    in_turn,
    nothing,
    passed_over,
    write,
)
from experiments.serving.speedup_report import by_schema, families, in_runs, middle, saved, wall
from experiments.shared import models
from experiments.shared.models import LoadedModel

PIECES = [b'{"', b'":', b'":"', b'","', b'"}', b"na", b"me", b"name", b"title", b" a", b"ab", b"12"]
DATA = [bytes([byte]) for byte in range(256)] + PIECES
MERGES = [("n", "a"), ("m", "e"), ("na", "me"), ("{", '"'), ('"', ":"), ('":', '"'), ("a", "b")]
BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
ADDED = ["<end>", "<|im_start|>", "<|im_end|>"]
TOKENIZER = small_tokenizer(
    [byte_spelling(data) for data in DATA], MERGES, {**BYTE_LEVEL, "use_regex": False}, ADDED
)
END = len(DATA)


class Stub:
    """A model whose opinion depends on the length; it counts, and keeps what it was asked."""

    def __init__(self, seed=0):
        self.passes, self.asked = 0, []
        self.noise = np.random.default_rng(seed).normal(size=(32, TOKENIZER.n_ids))

    def __call__(self, ids):
        self.passes += 1
        self.asked.append(tuple(ids))
        return self.noise[len(ids) % 32]


# ---------------------------------------------------------------- the loop


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("method", ["canonical", "lift"])
@pytest.mark.parametrize("regex", [r'\{"name":"[a-z]{0,5}"\}', r"(ab|a)*12", r"name|12"])
def test_the_loop_is_that_of_decode(regex, method, temperature):
    """With and without forced ids: the ids, the passes, and what the model is asked."""
    for seed, (known, forced) in enumerate([(nothing, False), (certain, True)] * 3):
        constraint = constrain(TOKENIZER, regex, method, eos_ids=(END,), added_tokens=False)
        asked = {"max_new_tokens": 9, "temperature": temperature, "seed": seed}
        theirs, ours = Stub(), Stub()
        expected = decode(theirs, constraint, (1, 2), forced=forced, **asked)
        asked["most_ids"] = asked.pop("max_new_tokens")
        found = write(ours, constraint.engine, (1, 2), known, **asked)
        assert tuple(token for token in found.ids if token != END) == expected.ids
        assert found.passes == ours.passes == expected.passes
        assert ours.asked == theirs.asked
        assert sum(found.runs) == expected.forced
        assert found.seconds >= found.model + found.masks > 0


def test_forced_ids_go_through_the_model_at_once():
    constraint = constrain(TOKENIZER, r'\{"name":"(ab|12)"\}', eos_ids=(END,))
    model = Stub()
    found = write(model, constraint.engine, (7,), certain, most_ids=20, temperature=1.0, seed=1)
    assert found.passes == 1
    before = constraint.tokenizer.encode('{"name":"')
    assert model.asked == [(7, *before)]
    assert found.ids[-1] == END
    assert found.runs == [len(before), len(found.ids) - len(before) - 1]


def test_the_heuristic_writes_ids_of_the_lift():
    constraint = constrain(TOKENIZER, r'\{"name":"[a-z]{0,5}"\}', "lift", eos_ids=(END,))
    found = [
        write(Stub(seed), constraint.engine, (), known, most_ids=20, temperature=1.0, seed=seed)
        for seed in range(5)
        for known in (heuristic, nothing)
    ]
    for one in found:
        matcher = constraint.matcher()
        for token in one.ids:
            matcher.advance(token)
        assert matcher.is_accepting
    assert all(sum(one.runs) == len(one.ids) - one.passes for one in found)
    assert all(one.runs for one in found[::2])
    assert not any(one.runs for one in found[1::2])


@pytest.mark.parametrize("known", [nothing, certain, heuristic])
def test_a_text_ends_at_the_last_id_that_it_may_have(known):
    engine = constrain(TOKENIZER, r'\{"title":"[a-z]*"\}', "lift", eos_ids=(END,)).engine
    for most in (1, 2, 3, 8):
        found = write(Stub(), engine, (), known, most_ids=most, temperature=1.0, seed=0)
        assert len(found.ids) == most or found.ids[-1] == END


# ---------------------------------------------------------------- numbers


@pytest.mark.parametrize(
    ("n", "low", "high"), [(5, None, None), (6, 0, 5), (8, 0, 7), (9, 1, 7), (20, 5, 14)]
)
def test_intervals_of_the_sign_test(n, low, high):
    """Known from tables of the binomial distribution with p = 1/2."""
    found = middle(list(range(n))[::-1])
    assert (found.value, found.low, found.high, found.n) == ((n - 1) / 2, low, high, n)


def test_intervals_hold_the_median_often_enough():
    rng = np.random.default_rng(0)
    for n in (6, 9, 17):
        found = [middle(rng.normal(size=n).tolist()) for _ in range(2000)]
        assert np.mean([one.low <= 0 <= one.high for one in found]) >= 0.94


def row(family, schema, seed, passes, seconds):
    """Four ids; the canonical way with forced ids has these passes and seconds."""
    way = {"ids": 4, "bytes": 8, "seconds": 2.0, "passes": 4, "runs": []}
    ours = way | {"passes": passes, "seconds": seconds, "runs": [4 - passes]}
    names = [one.name for one in WAYS]
    ways = {name: ours if name == "canonical forced" else way for name in names}
    return {"family": family, "schema": schema, "seed": seed, "ways": ways}


def test_seeds_of_a_schema_are_one_number():
    rows = [row("f", "a", 0, 1, 1.0), row("f", "a", 1, 3, 2.0), row("g", "a", 0, 2, 3.0)]
    assert by_schema(rows, saved("canonical forced")) == [0.5, 0.5]
    assert by_schema(rows, saved("lift forced")) == [0, 0]
    assert by_schema(rows, wall("canonical forced")) == [0.75, 1.5]
    assert [len(some) for some in families(rows).values()] == [2, 1, 3]
    shares = [in_runs(rows, "canonical forced", least) for least in (1, 2, 3, 4)]
    assert shares == [6 / 12, 5 / 12, 3 / 12, 0]


# ---------------------------------------------------------------- schemas


def test_the_functions_are_always_there(tmp_path, monkeypatch):
    with pytest.raises(MissingFileError, match="nowhere"):
        families_of(tmp_path / "nowhere")
    monkeypatch.setattr(speedup_cell, "SCHEMAS", tmp_path / "nowhere")
    assert list(families_of(tmp_path / "nowhere")) == [FUNCTIONS]
    line = {"id": "mine---one", "schema": {"type": "boolean"}, "tests": []}
    (tmp_path / "mine.jsonl").write_text(json.dumps(line) + "\n")
    found = families_of(tmp_path)
    assert list(found) == ["mine", FUNCTIONS]
    assert found["mine"] == [Task("mine", "one", '{"type": "boolean"}')]
    assert list(families_of(tmp_path, ("mine",))) == ["mine"]
    with pytest.raises(ArgumentError, match="'yours'; there are mine, functions"):
        families_of(tmp_path, ("yours",))


def test_schemas_are_drawn_and_passed_over():
    fit, more = {"type": "boolean"}, {"type": "integer", "minimum": 0, "maximum": 99}
    alone, large = {"const": 1}, {"type": "string", "maxLength": 40}
    unfit = {"uniqueItems": True, "type": "array", "items": {"type": "string"}}
    tasks = [
        Task("f", str(k), json.dumps(one)) for k, one in enumerate([fit, more, alone, large, unfit])
    ]
    terms = Terms(most_states=30)
    found, over = passed_over(tasks, terms, 5, "0")
    assert {task.id for task in found} == {"0", "1"}
    assert over == {"one text only": 1, "more than 30 states": 1, "UnsupportedSchemaError": 1}
    assert passed_over(tasks, terms, 5, "0") == (found, over)
    assert [len(passed_over(tasks, terms, count, "0")[0]) for count in (0, 1, 2)] == [0, 1, 2]


# ---------------------------------------------------------------- the artefact


@pytest.fixture(scope="module")
def loaded():
    return LoadedModel("stub", "", None, TOKENIZER, (END,), "cpu", 0.0)


@pytest.fixture(scope="module")
def rows_and_manifest(loaded, tmp_path_factory):
    folder = tmp_path_factory.mktemp("speedup")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(models, "opened", lambda *_: loaded)
        patch.setattr(speedup_cell, "causal", lambda loaded: Stub())
        patch.setattr(LoadedModel, "provenance", lambda self: {"model": "stub", "device": "none"})
        config = replace(speedup.SMOKE, each=2, seeds=2, most_ids=40)
        speedup.measure(run := Run("speedup", 1, config, folder, Settings()))
        run.finish()
    return read_run(folder)


def test_rows_add_up(rows_and_manifest):
    rows, manifest = rows_and_manifest
    assert manifest["complete"]
    assert manifest["failures"] == 0
    assert [row["turn"] for row in rows] == [0, 1, 2, 3]
    assert len({row["schema"] for row in rows}) == 2
    for one in rows:
        ways = one["ways"]
        assert set(ways) == {way.name for way in WAYS}
        assert one["same"] == {"lift": True, "canonical": True}
        for name, way in ways.items():
            assert way["passes"] + sum(way["runs"]) == way["ids"] <= 40
            assert bool(way["runs"]) == (name not in ("lift", "canonical"))
        for method in ("lift", "canonical"):
            assert ways[method]["text"] == ways[f"{method} forced"]["text"]
            assert ways["canonical"]["own"] is not False


def test_the_order_rotates():
    orders = [[way.name for way in in_turn(turn)] for turn in range(len(WAYS) + 1)]
    assert orders[0] == orders[-1]
    for place in range(len(WAYS)):
        assert len({order[place] for order in orders}) == len(WAYS)


def test_the_report(rows_and_manifest):
    rows, manifest = rows_and_manifest
    report = speedup.render(rows, manifest)
    assert [*report.wrong] == []
    assert [len(table.rows) for table in report.tables] == [6, 3, 5]
    assert all(len(line) == len(t.columns) for t in report.tables for line in t.rows)
    assert "one option" not in "".join(report.tables[0].columns)  # `chop` appends at others too
    assert [figure.name for figure in report.figures] == ["speedup"]
    assert "n = 2 schemas, 4 texts of each way" in report.figures[0].note
    said = speedup.readme(report.facts)
    own = 100 * middle(by_schema(rows, saved("canonical forced"))).value
    assert f"not asked for {own:.0f} % of the ids by the canonical automaton" in said
    assert "1 families (2 in all), stub on none" in said


def test_other_ids_than_those_of_encode_are_wrong(rows_and_manifest):
    rows, manifest = copy.deepcopy(rows_and_manifest)
    rows[1]["ways"]["canonical"]["own"] = False
    rows[1]["ways"]["lift"]["own"] = False
    (line,) = speedup.render(rows, manifest).wrong
    assert line.startswith(f"{rows[1]['key']}, canonical: ")


def test_an_id_outside_of_the_mask_is_an_error(loaded):
    constraint = constrain(TOKENIZER, "name", "lift", eos_ids=(END,))
    found = Written(ids=[TOKENIZER.encode("title")[0]])
    with pytest.raises(TokenNotAllowedError):
        speedup_cell._described(loaded, constraint, "", [], found)


def test_nothing_measured_yet(rows_and_manifest):
    _, manifest = rows_and_manifest
    for rows in ([], [{"key": "functions a 0", "failure": "MemoryError: "}]):
        report = speedup.render(rows, {"config": manifest["config"]})
        assert not report.figures
        assert [*report.wrong] == []
        assert len(report.tables) == 3
        assert speedup.readme(report.facts) == "(not measured)"
