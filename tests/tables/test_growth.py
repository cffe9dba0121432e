"""The growth experiment: rows, limits, comparisons and rendering on a tiny table."""

from __future__ import annotations

import json
from string import ascii_lowercase

import pytest

from bpe_automata import TokenAutomaton
from experiments import growth, growth_report
from experiments.growth_families import FAMILIES, Family, fields, nested
from experiments.growth_methods import CARTESIAN, DIRECT, EXPLICIT, LAZY, METHODS
from experiments.growth_server import GrowthError, Server
from experiments.runner import Options, read_run

MADE = ("ab", "aa", "aab", "abc")
MERGES = (("a", "b"), ("a", "a"), ("a", "ab"), ("ab", "c"))
TABLE = {
    "version": "1.0",
    "model": {
        "type": "BPE",
        "vocab": {token: number for number, token in enumerate((*ascii_lowercase, *MADE))},
        "merges": [list(merge) for merge in MERGES],
    },
}
SMALL = (
    Family("[a-c]{n}", lambda n: f"[a-c]{{{n}}}", (1, 2, 3)),
    Family("no letter", lambda n: "0" * n, (1, 2)),
)


@pytest.fixture(scope="module")
def options(tmp_path_factory) -> Options:
    made = Options("growth", model="tiny", results=tmp_path_factory.mktemp("growth"))
    growth.measure(made, json.dumps(TABLE), SMALL, growth.Limits())
    return made


def test_every_cell_is_a_row_and_all_methods_agree(options):
    rows, manifest = read_run(options)
    assert manifest["complete"]
    done = {(r["n"], r["method"]): r for r in rows if r.get("family") == "[a-c]{n}"}
    assert {row["status"] for row in done.values()} == {"done"}
    assert {row["disagrees"] == {} for row in done.values()} == {True}
    assert done[3, EXPLICIT]["equal_to"] == [DIRECT, CARTESIAN]
    # abc, aab, aa b are merged: 8 states are the least.
    assert (done[3, DIRECT]["states"], done[3, DIRECT]["transitions"]) == (8, 21)
    assert done[3, DIRECT]["minimal"] == [8, 21]
    assert done[3, DIRECT]["integers"] == 8 + 2 * 21
    assert done[3, LAZY]["first_ids"] == done[3, DIRECT]["first_ids"] == 7


def test_what_the_language_lacks_is_a_failure_and_larger_ones_are_skipped(options):
    rows, _ = read_run(options)
    failed = [r for r in rows if r.get("family") == "no letter" and r["method"] == LAZY]
    assert [row["status"] for row in failed] == ["failed", "skipped"]
    assert failed[0]["message"]
    assert failed[1]["over_at"] == 1


def test_limits_are_rows(tmp_path):
    file = tmp_path / "tokenizer.json"
    file.write_text(json.dumps(TABLE))
    cell = {"method": DIRECT, "regex": "[a-z]{900}", "file": None, "most_kept": 0}
    with Server(file) as server:
        late = server.ask(cell | {"limit_seconds": 0.002, "limit_mb": 4000})
        large = server.ask(cell | {"limit_seconds": 60, "limit_mb": 1})
        done = server.ask(cell | {"limit_seconds": 60, "limit_mb": 4000})
    assert (late["status"], large["status"]) == ("over time", "over memory")
    assert done["status"] == "done"
    assert done["peak_mb"] > 1


def test_a_process_that_ends_is_an_error(tmp_path):
    (tmp_path / "broken.json").write_text("{}")
    with pytest.raises(GrowthError, match="ended"), Server(tmp_path / "broken.json") as server:
        server.ask({"prepare": DIRECT})


def test_a_disagreement_is_in_the_row_the_table_and_the_exit_code(tmp_path, options, capsys):
    series = growth._Series(None, tmp_path, growth.Limits())
    base = {"family": "f", "n": 1, "regex": "a", "kept": True, "first_ids": 1, "first_crc32": 7}
    for method, symbols in ((DIRECT, [1]), (EXPLICIT, [1, 2])):
        listed = [(0, symbol, 1) for symbol in symbols]
        file = tmp_path / f"{method}.npz"
        TokenAutomaton.from_transitions(listed, 0, [1]).save(file)
        row = series._compared(base | {"method": method}, file)
    assert row["disagrees"] == {DIRECT: "[2]"}
    other_mask = series._compared(base | {"method": LAZY, "kept": False, "first_ids": 2}, file)
    assert set(other_mask["disagrees"]) == {DIRECT, EXPLICIT}
    assert growth_report.agreement([row]) == f"NO: {EXPLICIT}"

    rows, _ = read_run(options)
    rows[-1]["disagrees"] = {DIRECT: "[2]"}
    manifest = (options.folder / "manifest.json").read_text()
    again = Options("growth", model="tiny", results=tmp_path, render_only=True)
    again.folder.mkdir()
    (again.folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (again.folder / "manifest.json").write_text(manifest)
    with pytest.raises(SystemExit) as ended:
        growth.run(again)
    assert ended.value.code == 1
    assert "NO: " in capsys.readouterr().out


def test_rendering_kept_rows(options, capsys):
    rows, manifest = read_run(options)
    growth_report.render(rows[:-1], manifest | {"rows": len(rows) - 1}, options)
    shown = capsys.readouterr().out
    assert "INCOMPLETE: 1 rows" in shown
    assert "3 (largest tried)" in shown
    assert "none, then failed" in shown
    assert {"table.md", "growth.png", "growth.pdf"} <= {p.name for p in options.folder.iterdir()}


def test_limits_are_named():
    manifest = {"config": {"limit_seconds": 60, "limit_mb": 4000}}
    over = [{"status": s, "method": DIRECT, "n": 2} for s in ("over time", "skipped")]
    done = [{"status": "done", "method": DIRECT, "n": 1}]
    assert growth_report.reach([*done, *over], DIRECT, manifest) == "1, then over 60 s"
    assert growth_report.why({"status": "over memory"}, manifest) == "over 4 GB"


def test_families():
    assert FAMILIES[0].chosen(None) == (1, 2, 3, 4, 5, 6)
    assert FAMILIES[0].chosen(8) == (1, 2, 3, 4, 5, 6, 7, 8)
    assert FAMILIES[3].chosen(5) == (1, 2, 4)
    assert FAMILIES[3].chosen(40) == (1, 2, 4, 8, 16, 32)
    assert nested(2) == r"(not (true|false)|\((true|false) (and|or) (true|false)\))"
    assert fields(2).count("field") == 2
    assert set(METHODS) == {DIRECT, CARTESIAN, LAZY, EXPLICIT}
