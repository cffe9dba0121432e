"""The speed experiment: that it measures, keeps failures as rows, and renders; never how fast."""

from __future__ import annotations

import numpy as np
import pytest

from bpe_automata.errors import ArgumentError
from experiments.run.measuring import Run, Settings, read_run
from experiments.serving import speed, speed_child, speed_compile, speed_masks, speed_processes
from experiments.serving.speed_build import parts_of
from experiments.serving.speed_cases import REGEXES, chosen
from experiments.serving.speed_goals import goals, ratios, to_first_mask
from experiments.serving.speed_inputs import Inputs
from experiments.shared.engines import PEERS, Ours, PeerError, open_peers, refusals
from experiments.shared.timing import median, quantile

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


def test_rows_of_other_versions_of_the_peers_are_not_gone_on_with(monkeypatch):
    versions = {"glrmask": "1.2", "outlines_core": None, "llguidance": None}
    for peer in PEERS:
        found = versions[peer.name]
        monkeypatch.setattr(peer, "version", classmethod(lambda cls, found=found: found))
    assert speed.inputs(speed.Config()) == {"versions": {"glrmask": "1.2"}}


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


@pytest.fixture(scope="module")
def rows_and_manifest(inputs, tmp_path_factory):
    """Of our engines alone, one regex, and what is paid once in this process."""
    folder = tmp_path_factory.mktemp("speed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(speed, "prepare", lambda *_: inputs)
        patch.setattr(speed, "warm_kernels", lambda _: None)
        patch.setattr(speed, "open_peers", lambda *_: ([], {"glrmask": "not installed"}))
        config = speed.Config(repeats=1, cases=("boolean",), once=("build", "load"))
        speed.measure(run := Run("speed", 1, config, folder, Settings()))
        run.finish()
    return read_run(folder)


def test_a_run_says_what_it_measured(rows_and_manifest):
    rows, manifest = rows_and_manifest
    assert manifest["complete"]
    assert manifest["failures"] == 0
    assert [row["key"] for row in rows] == [
        "build",
        "load",
        "to first mask: boolean",
        "masks: boolean",
    ]
    report = speed.render(rows, manifest)
    assert [*report.wrong] == []
    assert [table.title for table in report.tables][-1] == "Goals"
    assert "glrmask: not installed" in report.tables[1].notes
    assert [figure.name for figure in report.figures] == ["speed"]
    assert report.facts["faster"] == []
    assert not ratios(rows)
    assert {goal.met for goal in goals(rows)} >= {None}


def test_the_readme_has_all_goals(rows_and_manifest):
    said = speed.readme(speed.render(*rows_and_manifest).facts)
    lines = [line for line in said.splitlines() if line.startswith("|")]
    assert len(lines) == 2 + len(goals([]))
    assert "| not measured | - |" in said
    assert "Compiling all kernels" not in said
    facts = {"goals": [["g", "<= 1 s", "2 s", "NO"]], "new": {"line of 500": 10.0}, "kernels": 210}
    facts |= {"start": {"import": 0.52}, "along": {"canonical": [26, 11700], "glrmask": [2, 30]}}
    said = speed.readme(facts)
    assert "| g | <= 1 s | 2 s | **no** |" in said
    assert "10 ms for `line of 500`" in said
    assert "import 0.52 s" in said
    assert "canonical 26 and 11,700, glrmask 2 and 30" in said


def test_nothing_measured_yet(rows_and_manifest):
    _, manifest = rows_and_manifest
    bare = {key: manifest[key] for key in ("config", "cores", "load_average")}
    for rows in ([], [{"key": "build", "failure": "MemoryError: "}]):
        report = speed.render(rows, bare)
        assert [table.title for table in report.tables] == ["Goals"]
        assert not report.figures
        assert "| not measured | - |" in speed.readme(report.facts)


def test_regexes_are_chosen_by_name():
    assert chosen(()) == REGEXES
    assert list(chosen(("date", "boolean"))) == ["date", "boolean"]
    with pytest.raises(ArgumentError, match="'dates'"):
        chosen(("dates",))
