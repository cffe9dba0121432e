"""The speed experiment: that it measures, keeps failures as rows, and renders; never how fast."""

from __future__ import annotations

import numpy as np
import pytest

from experiments import (
    speed,
    speed_child,
    speed_compile,
    speed_masks,
    speed_processes,
    speed_report,
)
from experiments.peers import PEERS, Ours, PeerError, open_peers, refusals
from experiments.runner import Options, read_run
from experiments.speed_build import parts_of
from experiments.speed_goals import goals, ratios, to_first_mask
from experiments.speed_inputs import Inputs
from experiments.speed_timing import median, quantile

REGEX = r"(true|false)"


@pytest.fixture(scope="module")
def inputs(smollm2_tokenizer, tmp_path_factory):
    path = tmp_path_factory.mktemp("speed") / "tokenizer.json"
    path.write_text(smollm2_tokenizer.to_json(), encoding="utf-8")
    return Inputs("SmolLM2", smollm2_tokenizer, path, None, smollm2_tokenizer.eos_ids)


class Refusing:
    """An engine that panics as a Rust extension does."""

    name = "glrmask"

    def compile(self, regex):
        with refusals():
            raise BaseException(f"panicked\nat {regex}")


def test_quantiles_are_values_that_occur():
    values = [3.0, 1.0, 2.0, 4.0]
    assert [quantile(values, q) for q in (0, 0.5, 0.99, 1)] == [1, 3, 4, 4]
    assert np.isnan(median([]))
    assert np.isnan(quantile([], 0.5))


def test_a_panic_is_a_refusal_of_one_line():
    with pytest.raises(PeerError, match=r"^BaseException: panicked$"):
        Refusing().compile("x")
    with pytest.raises(KeyboardInterrupt), refusals():
        raise KeyboardInterrupt


def test_failures_are_kept_in_the_row(inputs):
    engines = [Ours(inputs.tokenizer, "canonical", inputs.eos_ids), Refusing()]
    row = speed_compile.compiled("boolean", REGEX, engines, inputs.ordinary(), 2)
    assert len(row["engines"]["canonical"]["seconds"]) >= 2
    assert to_first_mask(row, "canonical") > 0
    assert row["engines"]["canonical"]["ids"] == 2  # `true`, `false`
    assert row["engines"]["glrmask"]["failure"] == "BaseException: panicked"
    assert np.isnan(to_first_mask(row, "glrmask"))
    assert speed_masks.along(Refusing(), REGEX, [[0]], 1)["failure"]


def test_each_peer_makes_the_mask_of_the_lift(inputs):
    """On a regex where all of them are right; end of sequence is in none of these masks."""
    peers, missing = open_peers(inputs.tokenizer, inputs.eos_ids)
    assert len(peers) + len(missing) == len(PEERS)
    words = (inputs.tokenizer.n_ids + 31) // 32
    expected, found = np.zeros((2, 1, words), dtype=np.int32)
    lift = Ours(inputs.tokenizer, "lift", inputs.eos_ids).compile(REGEX)
    sessions = [peer.compile(REGEX) for peer in peers]
    for token in inputs.tokenizer.encode("true")[:1]:
        lift.mask(expected)
        for session in sessions:
            session.mask(found)
            assert (found == expected).all()
            session.advance(token)


def test_walks_are_seeded_and_allowed(inputs):
    tokenizers = (inputs.tokenizer, inputs.tokenizer)
    rows = [
        speed_masks.masks("numbers", r"[0-9]{1,40}", tokenizers, inputs.eos_ids, [], seed=3)
        for _ in range(2)
    ]
    assert rows[0]["ids"] == rows[1]["ids"] == len(rows[0]["all"]) == len(rows[0]["advance"])
    assert 0 < len(rows[0]["first"]) <= rows[0]["ids"]


def test_the_parts_are_those_of_the_automaton(inputs):
    for part in parts_of(inputs.tokenizer).values():
        assert part() is not None


def test_memory_and_start_of_a_process(inputs):
    row = speed_processes.memory(inputs)
    assert row["torch"] is False
    assert row["peak"] is None or row["peak"] >= max(row["stages"].values())
    started = speed_processes.child("start", inputs)
    assert sum(started["parts"].values()) < started["wall"]


def test_a_failing_process_is_one_line(inputs):
    with pytest.raises(speed_processes.ChildError, match="KeyError"):
        speed_processes.child("nonsense", inputs)


def test_the_engine_is_asked_for_its_classes(inputs, monkeypatch):
    monkeypatch.setenv("BPE_AUTOMATA_CACHE", "")  # restored afterwards: the part sets it
    row = speed_child.classes(str(inputs.json), inputs.eos_ids)
    assert row["asked"] > row["disk"] > 0


def test_a_run_keeps_rows_and_renders_them(inputs, tmp_path, monkeypatch, capsys):
    def few(*_):
        ours = [Ours(inputs.tokenizer, method, inputs.eos_ids) for method in speed.METHODS]
        ordinary = inputs.ordinary()
        yield "regex", lambda: speed_compile.compiled("boolean", REGEX, ours, ordinary, 1)
        twice = (inputs.tokenizer, inputs.tokenizer)
        yield "masks", lambda: speed_masks.masks("boolean", REGEX, twice, inputs.eos_ids, [], 0)

    monkeypatch.setattr(speed, "jobs", few)
    monkeypatch.setattr(speed, "prepare", lambda *_: inputs)
    monkeypatch.setattr(speed, "warm_kernels", lambda _: None)
    options = Options("speed", model="tiny", n=1, results=tmp_path)
    speed.run(options)
    rows, manifest = read_run(options)
    assert manifest["complete"]
    assert not ratios(rows)
    assert {goal.met for goal in goals(rows)} >= {None}
    names = {path.name for path in options.folder.iterdir()}
    assert names == {"rows.jsonl", "manifest.json", "table.md", "speed.png", "speed.pdf"}
    shown = capsys.readouterr().out
    assert "not measured" in shown
    speed_report.render(rows[:1], manifest | {"rows": 1}, options)
    assert "INCOMPLETE: 1 rows" in capsys.readouterr().out
