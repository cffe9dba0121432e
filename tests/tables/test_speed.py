"""The speed experiment: that it measures and renders; never how fast."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.run.statistics import median, quantile
from experiments.run.tables import frame
from experiments.serving import speed, speed_child
from experiments.serving.speed import Inputs, parts_of
from experiments.shared.watched import LostError


@pytest.fixture(scope="module")
def inputs(smollm2_tokenizer, tmp_path_factory):
    path = tmp_path_factory.mktemp("speed") / "tokenizer.json"
    path.write_text(smollm2_tokenizer.to_json(), encoding="utf-8")
    return Inputs("SmolLM2", smollm2_tokenizer, path, None, smollm2_tokenizer.eos_ids)


def test_quantiles_are_values_that_occur():
    values = [3.0, 1.0, 2.0, 4.0]
    assert [quantile(values, q) for q in (0, 0.5, 0.99, 1)] == [1, 2, 4, 4]
    assert np.isnan(median([]))
    assert np.isnan(quantile([], 0.5))


@pytest.mark.parametrize("n", [1, 2, 7, 100, 300])
def test_a_quantile_is_the_smallest_value_that_enough_do_not_exceed(n):
    """Of 1 to n the share k / n does not exceed k: in whole numbers, percent * n <= 100 * k."""
    values = list(range(n, 0, -1))
    for percent in range(101):
        smallest = next(k for k in range(1, n + 1) if 100 * k >= percent * n)
        assert quantile(values, percent / 100) == smallest


def test_the_parts_are_those_of_the_automaton(inputs):
    for part in parts_of(inputs.tokenizer).values():
        assert part() is not None


def test_memory_and_start_of_a_process(inputs):
    row = speed.memory(inputs)
    assert row["torch"] is False
    assert row["peak"] is None or row["peak"] >= max(row["stages"].values())
    started = speed.child("start", inputs)
    assert sum(started["parts"].values()) < started["wall"]


def test_a_failing_process_is_one_line(inputs):
    with pytest.raises(LostError, match="KeyError"):
        speed.child("nonsense", inputs)


def test_the_engine_is_asked_for_its_classes(inputs, monkeypatch):
    monkeypatch.setenv("BPE_AUTOMATA_CACHE", "")  # restored afterwards: the part sets it
    row = speed_child.classes(str(inputs.json), inputs.eos_ids)
    assert row["asked"] > row["disk"] > 0


def test_goals_are_met_or_missed_or_not_measured():
    build = {"key": "build", "kind": "build", "whole": [2.0, 3.0, 1.0], "parts": {}}
    said = speed.facts(frame([build]), {})
    assert [goal[-1] for goal in said["goals"]] == ["NO", "-", "-"]
    assert said["goals"][0][2] == "2 s"
    assert "| canonical automaton, median | <= 0.15 s | 2 s | **no** |" in speed.readme(said)
    assert speed.readme({}) == ""
