"""The growth and the geometry experiment on a tiny table: limits, comparisons that can fail, runs
that are continued, and what is reported as wrong."""

from __future__ import annotations

import json
from contextlib import nullcontext
from string import ascii_lowercase
from types import SimpleNamespace

import pytest

from bpe_automata import TokenAutomaton, Tokenizer
from bpe_automata._core.geometry import Geometry
from bpe_automata._tokenizer.derivation import derive
from bpe_automata.errors import ArgumentError
from bpe_automata.reference import all_texts, merges_in_order
from experiments.article import geometry, growth, growth_report, mistral
from experiments.article.forks import forked, limits, peak_mb, worker
from experiments.article.geometry_worker import compared
from experiments.article.growth import FAMILIES, Asked, Family, Series, fields, named, nested
from experiments.article.growth_worker import CARTESIAN, DIRECT, EXPLICIT, LAZY, METHODS
from experiments.run.measuring import Run, Settings, read_run
from experiments.run.tables import frame

MADE = ("ab", "aa", "aab", "abc")
MERGES = (("a", "b"), ("a", "a"), ("a", "ab"), ("ab", "c"))
TABLE = {
    "version": "1.0",
    "model": {
        "type": "BPE",
        "vocab": {token: number for number, token in enumerate((*ascii_lowercase, *MADE))},
        "merges": [list(merge) for merge in MERGES],
    },
    "decoder": {"type": "Fuse"},
}
SMALL = (
    Family("[a-c]{n}", lambda n: f"[a-c]{{{n}}}", (1, 2, 3)),
    Family("no letter", lambda n: "0" * n, (1, 2)),
)
CONFIGS = {
    growth: growth.Config(largest=3),
    geometry: geometry.Config(repeats=2, sampled=50, budget=60),
}


@pytest.fixture(scope="module")
def processes():
    """One worker of each for all runs: starting it is what takes long."""
    with (
        worker(growth.SERVER, json.dumps(TABLE)) as growing,
        worker(geometry.SERVER, json.dumps(TABLE)) as comparing,
    ):
        yield {growth: growing, geometry: comparing}


@pytest.fixture(scope="module")
def measured(processes):
    """Gives the rows of a run that had those that are known."""

    def run_of(module, folder, known=(), retry=False) -> list[dict]:
        run = Run("some", 1, CONFIGS[module], folder, Settings(results=folder, retry=retry))
        for row in known:
            run.add(row["key"], row)
        module.measure_on(run, json.dumps(TABLE), *([SMALL] if module is growth else []))
        run.finish()
        return run.rows

    with pytest.MonkeyPatch.context() as patch:
        for module, process in processes.items():
            patch.setattr(module, "worker", lambda *_, made=process: nullcontext(made))
        yield run_of


@pytest.fixture(scope="module")
def grown(tmp_path_factory, measured):
    """(rows, manifest) of a run."""
    folder = tmp_path_factory.mktemp("growth")
    measured(growth, folder)
    return read_run(folder)


@pytest.fixture(scope="module")
def paired(tmp_path_factory, measured):
    """(rows, manifest) of a run."""
    folder = tmp_path_factory.mktemp("geometry")
    measured(geometry, folder)
    return read_run(folder)


def by_cell(rows) -> dict:
    return {(r["family"], r["n"], r["method"]): r for r in rows if r["kind"] == "cell"}


# ---------------------------------------------------------------- growth


def test_every_cell_is_a_row_and_all_methods_agree(grown):
    done = {key[1:]: row for key, row in by_cell(grown[0]).items() if key[0] == "[a-c]{n}"}
    assert {row["status"] for row in done.values()} == {"done"}
    assert {row["disagrees"] == {} for row in done.values()} == {True}
    assert done[3, EXPLICIT]["equal_to"] == [DIRECT, CARTESIAN]
    # abc, aab, aa b are merged: 8 states are the least.
    assert (done[3, DIRECT]["states"], done[3, DIRECT]["transitions"]) == (8, 21)
    assert done[3, DIRECT]["minimal"] == [8, 21]
    assert done[3, DIRECT]["integers"] == 8 + 2 * 21
    assert done[3, LAZY]["first_ids"] == done[3, DIRECT]["first_ids"] == 7
    report = growth.render(*grown)
    assert report.wrong == []
    assert report.facts["reach"]["[a-c]{n}"] == dict.fromkeys(METHODS, 3)


def test_what_the_language_lacks_is_a_failure_and_larger_ones_are_skipped(grown):
    failed = [r for r in grown[0] if r.get("family") == "no letter" and r["method"] == LAZY]
    assert [row["status"] for row in failed] == ["failed", "skipped", "skipped"]
    assert all(row["failure"] for row in failed)
    assert failed[1]["over_at"] == 1
    assert "none, then failed" in growth.render(*grown).tables[2].markdown()


def test_a_run_that_was_cut_off_still_compares(tmp_path, measured, grown, monkeypatch):
    cut, row = "[a-c]{n}, n = 3: package, written out", Series.row

    def until_then(series, asked):
        if asked.key == cut:
            raise KeyboardInterrupt
        return row(series, asked)

    with monkeypatch.context() as patch:
        patch.setattr(Series, "row", until_then)
        with pytest.raises(KeyboardInterrupt):
            measured(growth, tmp_path)
    before, manifest = read_run(tmp_path)
    assert not manifest["complete"]
    after = measured(growth, tmp_path)
    assert after[: len(before)] == before
    assert by_cell(after)["[a-c]{n}", 3, EXPLICIT]["equal_to"] == [DIRECT, CARTESIAN]
    assert [(r["key"], r.get("status")) for r in after] == [
        (r["key"], r.get("status")) for r in grown[0]
    ]


def test_failures_are_measured_again_with_what_they_skipped(tmp_path, measured, grown):
    again = measured(growth, tmp_path, grown[0], retry=True)
    cells = {key: row for key, row in by_cell(again).items() if key[0] == "no letter"}
    assert len(cells) == 3 * len(METHODS)
    assert {(row["n"], row["status"]) for row in cells.values()} >= {(1, "failed"), (2, "skipped")}
    keys = [row["key"] for row in growth_report.cells_of(again)]
    assert keys == [row["key"] for row in growth_report.cells_of(grown[0])]


def test_limits_are_rows(processes):
    cell = {"method": DIRECT, "regex": "[a-z]{4000}", "file": None, "most_kept": 0}

    def within(seconds, mb):
        return processes[growth].answer(cell | {"limit_seconds": seconds, "limit_mb": mb})

    assert within(0.002, 4000)["status"] == "over time"
    assert within(60, 32) == {"status": "over memory"}  # below 10 the stack cannot grow
    done = within(60, 4000)
    assert done["status"] == "done"
    assert done["peak_mb"] > 1


def test_what_is_over_a_limit_skips_larger_ones(tmp_path):
    slow = SimpleNamespace(answer=lambda question: {"status": "over time"})
    series = Series(slow, tmp_path, {})
    small, large = (series.row(Asked(SMALL[0], n, DIRECT)) for n in (1, 2))
    assert small["status"] == "over time"
    assert (large["status"], large["over_at"], "failure" in large) == ("skipped", 1, False)


def test_a_fork_says_why_it_failed():
    def broken():
        with limits(60, 1000):
            raise ValueError("no such thing")

    assert forked(broken) == {"status": "failed", "failure": "ValueError: no such thing"}
    assert forked(lambda: {"peak": peak_mb()})["peak"] > 1


def test_a_disagreement_is_in_the_row_and_in_the_table_and_wrong(tmp_path, grown):
    series = Series(None, tmp_path, {})
    base = {"family": "f", "n": 1, "kept": True, "first_ids": 1, "first_crc32": 7, "status": "done"}
    for method, symbols in ((DIRECT, [1]), (EXPLICIT, [1, 2])):
        row = base | {"method": method, "key": method}
        listed = [(0, symbol, 1) for symbol in symbols]
        TokenAutomaton.from_transitions(listed, 0, [1]).save(series._file(method))
        row |= series.compared(row)
        series._remember(row)
    assert row["disagrees"] == {DIRECT: "[2]"}
    other_mask = base | {"method": LAZY, "key": LAZY, "kept": False, "first_ids": 2}
    assert set(series.compared(other_mask)["disagrees"]) == {DIRECT, EXPLICIT}
    assert growth_report.agreement(frame([row])) == f"NO: {EXPLICIT}"

    rows, manifest = grown
    changed = [*rows[:-1], rows[-1] | {"status": "done", **row, "kind": "cell", "regex": "a"}]
    changed[-1] |= {"states": 1, "transitions": 1, "integers": 3, "seconds": 0.1, "peak_mb": 1}
    del changed[-1]["failure"]
    report = growth.render(changed, manifest)
    assert report.wrong == [f"{EXPLICIT}: differs from {DIRECT}: [2]"]
    assert "1 of them differ" in growth.readme(report.facts)


def test_families():
    assert FAMILIES[0].chosen(None) == (1, 2, 3, 4, 5, 6)
    assert FAMILIES[0].chosen(8) == (1, 2, 3, 4, 5, 6, 7, 8)
    assert FAMILIES[3].chosen(40) == (1, 2, 4, 8, 16, 32)
    assert nested(2) == r"(not (true|false)|\((true|false) (and|or) (true|false)\))"
    assert fields(2).count("field") == 2
    assert named([FAMILIES[2].name]) == [FAMILIES[2]]
    with pytest.raises(ArgumentError, match="'x' is none of"):
        named(["x"])


# ---------------------------------------------------------------- geometry


def test_both_ways_are_equal(paired):
    rows, manifest = paired
    reference, steps = rows[1], rows[3]["steps"]
    same = reference["compared"]
    assert (same["tokens"], same["pairs"], same["differences"], same["sampled"]) == (30, 900, 0, 50)
    assert same["distinct_rows"] == reference["fused_states"]
    assert same["forbidden"] > 0
    assert [step["merges"] for step in steps] == [1, 2, 4]
    assert {step["counterexample"] is None for step in steps} == {True}
    report = geometry.render(rows, manifest)
    assert report.wrong == []
    assert report.facts["times_faster"] > 0
    assert report.facts["rectangles"]["times"] == 4


def test_a_difference_is_counted_and_wrong(paired):
    tokenizer = Tokenizer.from_json(TABLE)
    texts = all_texts(tokenizer.description.base.values(), merges_in_order(tokenizer.description))
    rectangles = Geometry(derive(tokenizer.description))
    assert compared(texts, rectangles, 0, 1000)["differences"] == 0
    texts.forbidden[0].add(5)  # `f` after each token that leads to the first state
    found = compared(texts, rectangles, 0, 1000)
    assert found["by_row"] == found["by_column"] == len(texts.users[0])
    assert found["by_merge"] > 0

    rows, manifest = paired
    changed = [row | {"compared": found} if row["key"] == "reference" else row for row in rows]
    report = geometry.render(changed, manifest)
    assert report.wrong == [
        f"{found['differences']} pairs that Algorithm 3 and the rectangles differ in"
    ]
    assert report.wrong[0] in geometry.readme(report.facts)
    step = rows[3]["steps"][1] | {"counterexample": [3, 4]}
    report = geometry.render([*rows[:3], rows[3] | {"steps": [step]}], manifest)
    assert report.wrong == ["the first 2 merges: DirectMerge and Algorithm 3 differ in [3, 4]"]


def test_bpe_alone_keeps_merges_and_symbols(monkeypatch):
    described = Tokenizer.from_json(TABLE).description
    again = Tokenizer.from_json(mistral.bpe_alone(Tokenizer.from_json(TABLE))).description
    assert again.tokens == described.tokens
    assert (again.merges == described.merges).all()
    assert again.base == described.base
    monkeypatch.setattr(mistral, "mistral", lambda: Tokenizer.from_json(TABLE))
    merges = TABLE["model"]["merges"]
    assert mistral.bpe_alone_of_mistral(2)["model"]["merges"] == merges[:2]
    assert mistral.bpe_alone_of_mistral()["model"]["merges"] == merges
    with pytest.raises(ArgumentError, match="--merges 0"):
        mistral.bpe_alone_of_mistral(0)
