"""The growth experiment: rows, limits, comparisons, runs that go on, and rendering."""

from __future__ import annotations

import json
from contextlib import nullcontext
from string import ascii_lowercase

import pytest

from bpe_automata import TokenAutomaton
from bpe_automata.errors import ArgumentError
from experiments.article import growth, growth_report
from experiments.article.growth_methods import (
    CARTESIAN,
    DIRECT,
    EXPLICIT,
    FAMILIES,
    LAZY,
    METHODS,
    Family,
    fields,
    named,
    nested,
)
from experiments.article.growth_series import Series
from experiments.article.server import Server, ServerError, forked, limits, peak_mb
from experiments.run.measuring import Run, Settings, read_run
from experiments.run.report import labelled

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


CONFIG = growth.Config(largest=3)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """One process for all runs: starting it is what takes long."""
    file = tmp_path_factory.mktemp("server") / "tokenizer.json"
    file.write_text(json.dumps(TABLE))
    with Server(growth.SERVER, file) as made:
        yield made


@pytest.fixture(scope="module")
def measured(server):
    """Gives the rows of a run that had those that are known."""

    def run_of(folder, known=(), retry=False) -> list[dict]:
        run = Run("growth", 1, CONFIG, folder, Settings(results=folder, retry=retry))
        for row in known:
            run.add(row["key"], row)
        growth.measure_on(run, json.dumps(TABLE), SMALL)
        run.finish()
        return run.rows

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(growth, "Server", lambda *_: nullcontext(server))
        yield run_of


@pytest.fixture(scope="module")
def whole(tmp_path_factory, measured):
    """(rows, manifest) of a run."""
    folder = tmp_path_factory.mktemp("growth")
    measured(folder)
    assert {path.name for path in folder.iterdir()} == {"rows.jsonl", "manifest.json"}
    return read_run(folder)


def by_cell(rows) -> dict:
    return {(r["family"], r["n"], r["method"]): r for r in rows if r["kind"] == "cell"}


def test_every_cell_is_a_row_and_all_methods_agree(whole):
    rows, manifest = whole
    assert manifest["complete"]
    done = {key[1:]: row for key, row in by_cell(rows).items() if key[0] == "[a-c]{n}"}
    assert {row["status"] for row in done.values()} == {"done"}
    assert {row["disagrees"] == {} for row in done.values()} == {True}
    assert done[3, EXPLICIT]["equal_to"] == [DIRECT, CARTESIAN]
    # abc, aab, aa b are merged: 8 states are the least.
    assert (done[3, DIRECT]["states"], done[3, DIRECT]["transitions"]) == (8, 21)
    assert done[3, DIRECT]["minimal"] == [8, 21]
    assert done[3, DIRECT]["integers"] == 8 + 2 * 21
    assert done[3, LAZY]["first_ids"] == done[3, DIRECT]["first_ids"] == 7


def test_what_the_language_lacks_is_a_failure_and_larger_ones_are_skipped(whole):
    failed = [r for r in whole[0] if r.get("family") == "no letter" and r["method"] == LAZY]
    assert [row["status"] for row in failed] == ["failed", "skipped", "skipped"]
    assert all(row["failure"] for row in failed)
    assert failed[1]["over_at"] == 1


def test_a_run_that_was_cut_off_goes_on_and_still_compares(tmp_path, measured, whole, monkeypatch):
    cut = "[a-c]{n}, n = 3: package, written out"

    def until_then(series, asked):
        if asked.key == cut:
            raise KeyboardInterrupt
        return row(series, asked)

    row = Series.row
    with monkeypatch.context() as patch:
        patch.setattr(Series, "row", until_then)
        with pytest.raises(KeyboardInterrupt):
            measured(tmp_path)
    before, manifest = read_run(tmp_path)
    assert not manifest["complete"]
    after = measured(tmp_path)
    assert after[: len(before)] == before
    assert by_cell(after)["[a-c]{n}", 3, EXPLICIT]["equal_to"] == [DIRECT, CARTESIAN]
    assert [r["key"] for r in after] == [r["key"] for r in whole[0]]
    assert [r.get("status") for r in after] == [r.get("status") for r in whole[0]]


def test_nothing_is_measured_that_has_a_row_but_failures_if_asked(
    tmp_path, measured, whole, monkeypatch
):
    with monkeypatch.context() as patch:
        patch.setattr(growth, "Server", lambda *_: pytest.fail("not needed"))
        assert measured(tmp_path, whole[0]) == whole[0]
    again = measured(tmp_path, whole[0], retry=True)
    cells = {key: row for key, row in by_cell(again).items() if key[0] == "no letter"}
    assert len(cells) == 3 * len(METHODS)
    assert {(row["n"], row["status"]) for row in cells.values()} >= {(1, "failed"), (2, "skipped")}
    shown = growth_report.cells_of(again)
    assert [row["key"] for row in shown] == [r["key"] for r in growth_report.cells_of(whole[0])]


def test_limits_are_rows(server):
    cell = {"method": DIRECT, "regex": "[a-z]{4000}", "file": None, "most_kept": 0}
    late = server.ask(cell | {"limit_seconds": 0.002, "limit_mb": 4000})
    large = server.ask(cell | {"limit_seconds": 60, "limit_mb": 1})
    done = server.ask(cell | {"limit_seconds": 60, "limit_mb": 4000})
    assert (late["status"], large["status"]) == ("over time", "over memory")
    assert done["status"] == "done"
    assert done["peak_mb"] > 1


def test_what_is_over_a_limit_skips_larger_ones(tmp_path):
    class Slow:
        def ask(self, question):
            return {"status": "over time"}

    series = Series(Slow(), tmp_path, CONFIG)
    small, large = (growth.Asked(SMALL[0], n, DIRECT) for n in (1, 2))
    assert series.row(small)["status"] == "over time"
    skipped = series.row(large)
    assert (skipped["status"], skipped["over_at"], "failure" in skipped) == ("skipped", 1, False)


def test_a_fork_says_why_it_failed():
    def broken():
        with limits(60, 1000):
            raise ValueError("no such thing")

    assert forked(broken) == {"status": "failed", "failure": "ValueError: no such thing"}
    assert forked(lambda: {"peak": peak_mb()})["peak"] > 1


def test_a_process_that_ends_is_an_error(tmp_path):
    (tmp_path / "broken.json").write_text("{}")
    with (
        pytest.raises(ServerError, match="ended"),
        Server(growth.SERVER, tmp_path / "broken.json") as server,
    ):
        server.ask({"prepare": DIRECT})


def test_a_disagreement_is_in_the_row_and_in_the_table_and_wrong(tmp_path, whole):
    series = Series(None, tmp_path, CONFIG)
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
    assert growth_report.agreement([row]) == f"NO: {EXPLICIT}"

    rows, manifest = whole
    changed = [*rows[:-1], rows[-1] | {"status": "done", **row, "kind": "cell", "regex": "a"}]
    changed[-1] |= {"states": 1, "transitions": 1, "integers": 3, "seconds": 0.1, "peak_mb": 1}
    report = growth.render(changed, manifest)
    assert report.wrong == [f"{EXPLICIT}: differs from {DIRECT}: [2]"]
    assert "1 of them differ" in growth.readme(report.facts)
    assert growth.render(rows, manifest).wrong == []


def test_rendering_kept_rows(whole):
    rows, manifest = whole
    report = growth.render(rows[:-1], manifest)
    labelled_report = labelled(report, rows[:-1], manifest | {"complete": False, "rows": 1})
    shown = "".join(table.markdown() for table in labelled_report.tables)
    assert shown.count("INCOMPLETE") == 3
    assert "3 (largest tried)" in shown
    assert "none, then failed" in shown
    assert report.facts["reach"]["[a-c]{n}"] == dict.fromkeys(METHODS, 3)
    assert report.figures[0].headline.startswith("DirectMerge finished 6 of 6")
    close(report)


@pytest.mark.parametrize("count", [0, 3, 5])
def test_rows_that_are_missing_are_no_error(whole, count):
    rows, manifest = whole
    report = growth.render(rows[:count], manifest)
    assert len(report.figures) == (count > len(METHODS))
    assert "compared" in growth.readme(report.facts)
    close(report)


def close(report) -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    for figure in report.figures:
        pyplot.close(figure.drawn)


def test_the_readme_has_the_largest_least_automata():
    facts = {"compared": 9, "regexes": 4, "differing": 0}
    minimal = {"[a-z]{n}": {"n": 6, "regex": "[a-z]{6}", "minimal": [5, 4_920_000]}}
    said = " ".join(growth.readme(facts | {"minimal": minimal}).split())
    assert "9 pairs of automata for 4 regexes, all are equal" in said
    assert "the minimal automaton of `[a-z]{6}` has 4.9 million transitions." in said
    assert "million" not in growth.readme(facts | {"minimal": {}})


def test_limits_are_named():
    config = {"limit_seconds": 60, "limit_mb": 4000}
    over = [{"status": s, "method": DIRECT, "n": 2} for s in ("over time", "skipped")]
    done = [{"status": "done", "method": DIRECT, "n": 1}]
    assert growth_report.reach([*done, *over], DIRECT, config) == "1, then over 60 s"
    assert growth_report.why({"status": "over memory"}, config) == "over 4 GB"


def test_families():
    assert FAMILIES[0].chosen(None) == (1, 2, 3, 4, 5, 6)
    assert FAMILIES[0].chosen(8) == (1, 2, 3, 4, 5, 6, 7, 8)
    assert FAMILIES[3].chosen(5) == (1, 2, 4)
    assert FAMILIES[3].chosen(40) == (1, 2, 4, 8, 16, 32)
    assert nested(2) == r"(not (true|false)|\((true|false) (and|or) (true|false)\))"
    assert fields(2).count("field") == 2
    assert set(METHODS) == {DIRECT, CARTESIAN, LAZY, EXPLICIT}
    assert named([FAMILIES[2].name]) == [FAMILIES[2]]
    with pytest.raises(ArgumentError, match="'x' is none of them"):
        named(["x"])
