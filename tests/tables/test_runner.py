"""Runs: configs, rows that are resumed, cells on processes, what is written, and what it says."""

from __future__ import annotations

import json
from dataclasses import replace

import demo_artefact
import pytest
from demo_artefact import Config

from bpe_automata.errors import ArgumentError, MissingFileError
from experiments.run import executors, page, readme, report
from experiments.run.artefact import Artefact
from experiments.run.config import changed, differences, inputs, plain
from experiments.run.executors import ATTEMPTS, FAILURE, Cell, inline, measured, processes
from experiments.run.measuring import (
    MANIFEST,
    NAME,
    BusyError,
    Run,
    Settings,
    Store,
    alone,
    read,
    read_run,
)
from experiments.run.readme import wrapped_lines
from experiments.run.report import finish
from experiments.run.tables import Table


@pytest.fixture
def settings(tmp_path) -> Settings:
    return Settings(results=tmp_path / "results", paper=tmp_path / "paper", executor="inline")


@pytest.fixture
def artefact() -> Artefact:
    return Artefact("demo", "demo_artefact")


@pytest.fixture
def calls(tmp_path, monkeypatch):
    """Asked, says which rows were measured so far."""
    path = tmp_path / "calls"
    monkeypatch.setenv(demo_artefact.CALLS, str(path))
    return lambda: path.read_text().split()


# ---------------------------------------------------------------- configs


def test_fields_are_read_by_their_types():
    given = {"n": "7", "fails": "1,2", "mood": "grand", "share": "1e-3", "loud": "true"}
    made = changed(Config(), given | {"data": "a/b", "seed": "5"})
    assert (made.n, made.fails, made.mood, made.share, made.loud) == (
        7,
        (1, 2),
        "grand",
        1e-3,
        True,
    )
    assert (made.data.name, made.seed) == ("b", 5)
    assert changed(made, {"data": "none"}).data is None
    assert differences(made, Config()).keys() == {*given, "data", "seed"}
    assert plain(made)["data"] == "b"
    json.dumps(plain(made))


@pytest.mark.parametrize(
    ("name", "text"), [("n", "x"), ("mood", "sad"), ("loud", "2"), ("fails", "1,b"), ("share", "")]
)
def test_a_field_that_cannot_be_read_is_named(name, text):
    with pytest.raises(ArgumentError, match=f"--{name} "):
        changed(Config(), {name: text})


# ---------------------------------------------------------------- rows


def test_rows_are_kept_and_a_torn_one_is_dropped(tmp_path):
    made_by = {"version": 1}
    store = Store(tmp_path, made_by)
    store.add({"key": "a", "text": "é\u2028"})
    store.add({"key": "b"})
    whole = store.path.read_bytes()
    store.path.write_bytes(whole + b'{"key": "c", "va')
    again = Store(tmp_path, made_by)
    assert list(again.rows) == ["a", "b"]
    assert store.path.read_bytes() == whole
    again.add({"key": "c"})
    again.add({"key": "a", "text": "new"})
    assert read(tmp_path) == [{"key": "a", "text": "new"}, {"key": "b"}, {"key": "c"}]
    assert again.aside is None


def test_a_file_whose_first_line_is_torn_is_begun_again(tmp_path):
    (tmp_path / NAME).write_text('{"versi')
    store = Store(tmp_path, {"version": 1})
    store.add({"key": "a"})
    assert read(tmp_path) == [{"key": "a"}]


def test_rows_made_by_something_else_are_put_aside(tmp_path):
    Store(tmp_path, {"version": 1}).add({"key": "a"})
    for version in (2, 3):
        store = Store(tmp_path, {"version": version})
        assert store.rows == {}
        store.add({"key": f"{version}"})
    kept = sorted(path.name for path in tmp_path.glob("rows-*.jsonl"))
    assert kept == ["rows-1.jsonl", "rows-2.jsonl"]
    assert '"a"' in (tmp_path / "rows-1.jsonl").read_text()
    assert Store(tmp_path, {"version": 3}, anew=True).aside.name == "rows-3.jsonl"


def test_reading_what_never_was(tmp_path):
    with pytest.raises(MissingFileError, match="without --render"):
        read_run(tmp_path)
    Store(tmp_path, {})
    with pytest.raises(MissingFileError, match=MANIFEST):
        read_run(tmp_path)


def test_nobody_else_writes_meanwhile(tmp_path):
    with alone(tmp_path), pytest.raises(BusyError, match="another process"), alone(tmp_path):
        pass
    with alone(tmp_path):
        pass


# ---------------------------------------------------------------- cells


def test_a_cell_that_raises_is_a_row():
    row = measured(Cell("k", demo_artefact.square, (2, Config(fails=(2,)))))
    assert row[FAILURE] == "ArgumentError: 2 has no square today"
    assert row["key"] == "k"
    assert measured(Cell("k", demo_artefact.square, (3, Config())))["square"] == 9


def cells(config: Config) -> list[Cell]:
    return [Cell(str(k), demo_artefact.square, (k, config)) for k in range(config.n)]


def test_processes_give_the_same_rows_as_inline():
    def values(rows):
        return sorted((row["key"], row.get("square"), row.get(FAILURE)) for row in rows)

    made = cells(Config(n=5, fails=(1,)))
    assert values(processes(made, 2)) == values(inline(made))


def test_two_files_of_one_name_are_two(tmp_path):
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text("1")
    config = replace(Config(), names=tuple(str(tmp_path / name / "file") for name in "ab"))
    before = inputs(config)
    (tmp_path / "a" / "file").write_text("2")
    assert len(before) == 2
    assert inputs(config) != before


def test_a_model_in_this_folder_counts_as_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    (tmp_path / "other").mkdir()
    assert list(inputs(replace(Config(), names=("model", "other")))) == ["names 0 model"]


def test_a_process_that_dies_takes_its_own_cell_only(calls, monkeypatch):
    """Only those that may have been begun are measured one at a time; the others share processes
    again."""
    pools, real = [], executors.pool_of
    monkeypatch.setattr(executors, "pool_of", lambda jobs: pools.append(jobs) or real(jobs))
    made = cells(Config(n=10, fatal=(2,), pause=0.3))
    rows = {row["key"]: row for row in processes(made, 2)}
    assert sorted(rows) == list("0123456789")
    assert "process died" in rows.pop("2")[FAILURE]
    assert {key: row["square"] for key, row in rows.items()} == {
        str(k): k * k for k in range(10) if k != 2
    }
    assert calls().count("2") <= ATTEMPTS + 1
    assert pools.count(2) == 2
    assert pools.count(1) < 4 + ATTEMPTS


# ---------------------------------------------------------------- runs


def test_a_run_goes_on_where_it_stopped(artefact, settings, calls, monkeypatch):
    config = Config()
    real, seen = Run.add, []

    def interrupted(run, key, row):
        if len(seen) == 2:
            raise KeyboardInterrupt
        seen.append(key)
        real(run, key, row)

    monkeypatch.setattr(Run, "add", interrupted)
    with pytest.raises(KeyboardInterrupt):
        artefact.measure(config, settings)
    rows, manifest = read_run(artefact.folder(config, settings.results))
    assert [row["key"] for row in rows] == ["0", "1"]
    assert (manifest["complete"], manifest["rows"], manifest["rows_expected"]) == (False, 2, 4)
    made, paths = artefact.render(config, settings)
    assert made.tables[0].notes[0] == "INCOMPLETE: 2 of 4 rows are missing"
    monkeypatch.setattr(Run, "add", real)
    artefact.measure(config, settings)
    made, paths = artefact.render(config, settings)
    assert made.facts == {"total": 14}
    assert not made.tables[0].notes
    assert calls() == ["0", "1", "2", "2", "3"]  # the one that was interrupted, twice
    artefact.measure(config, settings)
    assert len(calls()) == 5
    assert json.loads(paths[2].read_text())["manifest"]["complete"]


def test_failures_are_rows_and_can_be_tried_again(artefact, settings, monkeypatch):
    config = Config(fails=(1,))
    artefact.measure(config, settings)
    made, _ = artefact.render(config, settings)
    assert made.tables[0].notes == [
        "1 of 4 rows are failures: 1: ArgumentError: 1 has no square today"
    ]
    monkeypatch.setattr(demo_artefact, "square", lambda k, made: {"square": 100})
    artefact.measure(config, settings)
    assert artefact.render(config, settings)[0].facts == {"total": 13}
    artefact.measure(config, replace(settings, retry=True))
    made, _ = artefact.render(config, settings)
    assert made.facts == {"total": 113}
    artefact.measure(config, replace(settings, again=True))
    assert artefact.render(config, settings)[0].facts == {"total": 400}


def test_failures_are_shown_without_paths():
    rows = [{"key": "a", FAILURE: "Missing: /home/x/y.json, see ~/z or a/b"}]
    manifest = {"complete": True}
    made = report.labelled(report.Report("T", [Table("T", ["n"], [])]), rows, manifest)
    (note,) = made.tables[0].notes
    assert note == "1 of 1 rows are failures: a: Missing: ..., see ... or a/b"


def test_other_code_measures_anew(artefact, settings, monkeypatch, capsys):
    artefact.measure(Config(), settings)
    monkeypatch.setattr("experiments.run.measuring.code_digest", lambda: "other")
    artefact.measure(Config(), settings)
    assert "rows-1.jsonl" in capsys.readouterr().out
    monkeypatch.setattr(demo_artefact, "VERSION", 2)
    artefact.measure(Config(), settings)
    assert len(list(artefact.folder(Config(), settings.results).glob("rows*.jsonl"))) == 3


def test_rows_of_other_files_or_peers_are_put_aside(artefact, settings, tmp_path, monkeypatch):
    data = tmp_path / "data"
    data.mkdir()
    (data / "a").write_text("1")
    config = replace(Config(), data=data)

    def asides() -> int:
        artefact.measure(config, settings)
        folder = artefact.folder(config, settings.results)
        return len(list(folder.glob("rows-*.jsonl")))

    assert (asides(), asides()) == (0, 0)
    (data / "a").write_text("2")
    assert (asides(), asides()) == (1, 1)
    (data / "a").rename(data / "b")
    assert asides() == 2
    (data / "__pycache__").mkdir()
    (data / "__pycache__" / "a.pyc").write_text("of no matter")
    assert asides() == 2
    monkeypatch.setattr(demo_artefact, "inputs", lambda config: {"peer": "2.0"}, raising=False)
    assert (asides(), asides()) == (3, 3)


def test_texts_that_are_paths_count_as_files(tmp_path):
    (tmp_path / "a").write_text("1")
    config = replace(Config(), names=("org/model", str(tmp_path / "a"), "plain"))
    assert list(inputs(config)) == ["names 1 a"]
    assert plain(config)["names"] == ["org/model", "a", "plain"]


def test_each_config_has_its_folder_and_the_paper_shows_the_default(artefact, settings, tmp_path):
    results = settings.results
    assert artefact.folder(Config(), results) == results / "demo"
    assert artefact.folder(Config(n=9, fails=(1, 2)), results) == results / "demo-n=9-fails=1,2"
    assert artefact.folder(Config(data=tmp_path / "x y"), results).name == "demo-data=x_y"
    assert artefact.folder(artefact.smoke(), results) == results / "smoke" / "demo"
    long = [artefact.folder(Config(fails=(*range(40), k)), results).name for k in (1, 2)]
    assert long[0] != long[1]
    assert max(map(len, long)) < 70
    assert artefact.home(Config(), settings) == settings.paper
    assert artefact.home(Config(n=9), settings) == artefact.folder(Config(n=9), results)


def test_rows_that_turn_out_not_to_be_wanted(settings):
    run = Run("demo", 1, Config(), settings.results, settings)
    assert run.expect("abc") == ["a", "b", "c"]
    run.add("a", {})
    assert not run.manifest()["complete"]
    run.expect_none_of("bc")
    assert not run.manifest()["complete"], "more may be expected"
    run.finish()
    assert run.manifest()["complete"]
    assert run.expect("a") == []


# ---------------------------------------------------------------- what is written


def test_a_report_in_every_format(artefact, settings):
    artefact.measure(Config(), settings)
    _, paths = artefact.render(Config(), settings)
    assert [path.name for path in paths[:3]] == ["demo.md", "demo.tex", "demo.json"]
    assert paths[3].relative_to(settings.paper).as_posix() == "rows/demo.jsonl.gz"
    assert paths[0].read_text().startswith("# Squares & co\n\n## Squares\n")
    assert "\\caption{Squares}" in paths[1].read_text()
    kept = json.loads(paths[2].read_text())
    assert kept["facts"] == {"total": 14}
    assert kept["manifest"]["config"] == plain(Config())
    assert kept["manifest"]["model"] == "none"
    assert kept["manifest"]["made_by"]["code"]


def test_figures_are_equal_when_drawn_again(tmp_path):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    drawn = []
    for k in range(2):
        figure, axes = pyplot.subplots()
        axes.plot([1, 2])
        drawn.append(
            [path.read_bytes() for path in finish(figure, "h", "n", tmp_path / f"{k}", "f")]
        )
    assert len(drawn[0]) == 3
    assert drawn[0] == drawn[1]


def test_markdown_and_latex():
    table = Table("T_1", ["x\ny", "n"], [["a|b", "1 %"]], ["note"])
    assert table.markdown() == "## T_1\n\n| x y | n |\n| :-- | --: |\n| a\\|b | 1 % |\n\n- note\n"
    latex = table.latex()
    assert latex.startswith("% note\n\\begin{table}\n\\caption{T\\_1}\n\\begin{tabular}{lr}")
    assert "a\\textbar{}b & 1 \\% \\\\" in latex


def test_the_page_holds_everything_and_asks_for_nothing(artefact, settings):
    artefact.measure(Config(fails=(3,)), settings)
    made, _ = artefact.render(Config(fails=(3,)), settings)
    home = artefact.home(Config(fails=(3,)), settings)
    text = page.write(home, {"All": ["none", "demo"]}).read_text()
    assert 'href="#demo"' in text
    assert "Squares &amp; co" in text
    assert "<td>9</td>" not in text
    assert "<td>4</td>" in text
    assert "1 of 4 rows are failures" in text
    assert "http" not in text.replace('http-equiv="', "")
    assert not made.wrong


def test_the_page_says_what_is_incomplete():
    manifest = {"complete": False, "rows": 1, "rows_expected": 3, "wall_seconds": 90.0}
    made = {"title": "T", "figures": [], "tables": [], "manifest": manifest}
    made["figures"] = [{"name": "f", "headline": 'a "b" < c', "note": ""}]
    text = page.html({"t": made}, {"All": ["t"]})
    assert "Incomplete: 1 of 3 rows." in text
    assert "Measured in 1.5 min." in text
    assert 'alt="a &#34;b&#34; &lt; c"' in text


def test_code_on_the_page_stands_between_no_backticks():
    table = {"title": "`t` < u", "columns": ["", "x"], "rows": [["a", "`b`+`c`"]], "notes": ["`n`"]}
    manifest = {"complete": True, "wall_seconds": 1.0}
    made = {"title": "T", "figures": [], "tables": [table], "manifest": manifest}
    text = page.html({"t": made}, {"All": ["t"]})
    assert "<td class=text><code>b</code>+<code>c</code></td>" in text
    assert "<h3><code>t</code> &lt; u</h3>" in text
    assert "<li><code>n</code></li>" in text


def test_long_prose_is_wrapped_but_no_table_and_no_code():
    long = "word " * 30
    text = f"{long}\n\n| {long} |\n```\n{long}\n```\nend"
    lines = wrapped_lines(text).splitlines()
    assert len(lines[0]) <= 100
    assert lines[:2] == [("word " * 20).strip(), ("word " * 10).strip()]
    assert lines[2:] == ["", f"| {long} |", "```", long, "```", "end"]
    assert wrapped_lines(f"- {long}").splitlines()[1].startswith("  word")


def test_the_readme_says_what_the_facts_say(tmp_path):
    path = tmp_path / "README.md"
    text = "a\n<!-- numbers: demo -->\nold\n<!-- /numbers: demo -->\nb\n"
    path.write_text(text)
    assert readme.update("demo", demo_artefact, {"total": 5}, [path])
    assert readme.said(path.read_text(), "demo") == "\nThe squares sum to 5.\n"
    assert path.read_text().startswith("a\n")
    assert path.read_text().endswith("\nb\n")
    assert not readme.update("other", demo_artefact, {"total": 5}, [path])
    assert not readme.update("demo", report, {}, [path])
    with pytest.raises(readme.ReadmeError, match="without"):
        readme.said("<!-- numbers: demo -->", "demo")


def test_words_are_to_the_left_numbers_to_the_right():
    rows = [["a", "1.2 s", "no answer", "NO"], ["b", "3e-5", "12", "2 of 3"]]
    table = Table("T", ["k", "time taken", "why", "met"], rows)
    assert "| :-- | --: | :-- | --: |" in table.markdown()
    assert "{lrlr}" in table.latex()
