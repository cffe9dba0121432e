"""The speed experiment: that it measures and renders; never how fast."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.run.measuring import Run, Settings, read_run
from experiments.run.statistics import median, quantile
from experiments.serving import speed, speed_child, speed_processes
from experiments.serving.speed import Inputs, parts_of
from experiments.serving.speed_report import goals


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


@pytest.fixture(scope="module")
def rows_and_manifest(inputs, tmp_path_factory):
    """What is paid once in this process."""
    folder = tmp_path_factory.mktemp("speed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(speed, "prepare", lambda *_: inputs)
        patch.setattr(speed, "warm_kernels", lambda _: None)
        config = speed.Config(repeats=1, once=("build", "load"))
        speed.measure(run := Run("speed", 1, config, folder, Settings()))
        run.finish()
    return read_run(folder)


def test_a_run_says_what_it_measured(rows_and_manifest):
    rows, manifest = rows_and_manifest
    assert manifest["complete"]
    assert manifest["failures"] == 0
    assert [row["key"] for row in rows] == ["build", "load"]
    report = speed.render(rows, manifest)
    assert [*report.wrong] == []
    assert [table.title for table in report.tables] == ["Once", "Goals"]
    assert [goal.met is None for goal in goals(rows)] == [False, True, True]


def test_the_readme_has_all_goals(rows_and_manifest):
    said = speed.readme(speed.render(*rows_and_manifest).facts)
    lines = [line for line in said.splitlines() if line.startswith("|")]
    assert len(lines) == 2 + len(goals([]))
    assert "| not measured | - |" in said
    assert "Compiling all kernels" not in said
    facts = {"goals": [["g", "<= 1 s", "2 s", "NO"]], "kernels": 210, "start": {"import": 0.52}}
    said = speed.readme(facts)
    assert "| g | <= 1 s | 2 s | **no** |" in said
    assert "import 0.52 s" in said
    assert "210 s" in said


def test_nothing_measured_yet(rows_and_manifest):
    _, manifest = rows_and_manifest
    bare = {key: manifest[key] for key in ("config", "cores", "load_average")}
    for rows in ([], [{"key": "build", "failure": "MemoryError: "}]):
        report = speed.render(rows, bare)
        assert [table.title for table in report.tables] == ["Goals"]
        assert "| not measured | - |" in speed.readme(report.facts)
