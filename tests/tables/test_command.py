"""The command line, and what it writes: reports, figures, the page and the README."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import demo_artefact
import pytest
from demo_artefact import Config

from experiments.run import command, page, readme, report
from experiments.run.artefact import ARTEFACTS, Artefact
from experiments.run.config import plain
from experiments.run.executors import FAILURE
from experiments.run.measuring import Settings
from experiments.run.readme import wrapped_lines
from experiments.run.report import finish
from experiments.run.tables import Table


@pytest.fixture
def folders(monkeypatch, tmp_path) -> list[str]:
    """Two artefacts in place of the real ones, and options that keep them in a scratch folder."""
    small = {name: Artefact(name, "demo_artefact") for name in ("demo", "other")}
    monkeypatch.setattr(command, "ARTEFACTS", small)
    monkeypatch.setattr(command, "GROUPS", {"All": [*small]})
    results, paper = str(tmp_path / "results"), str(tmp_path / "paper")
    return ["--results", results, "--paper", paper, "--executor", "inline"]


def written(tmp_path, name: str) -> dict:
    return json.loads((tmp_path / "paper" / f"{name}.json").read_text())


def test_some_or_all_are_made(folders, tmp_path, capsys):
    assert command.main(["run", "demo", *folders]) == 0
    assert "Squares" in capsys.readouterr().out
    assert written(tmp_path, "demo")["facts"] == {"total": 14}
    assert not (tmp_path / "paper" / "other.json").exists()
    assert command.main(["all", *folders]) == 0
    assert re.search(r"^2 artefacts in \d+\.\d minutes$", capsys.readouterr().out, re.MULTILINE)
    assert command.main(["demo", "--n", "3", *folders]) == 0
    assert "artefacts in" not in capsys.readouterr().out
    assert written(tmp_path, "other")["facts"] == {"total": 14}
    assert 'id="other"' in (tmp_path / "paper" / "index.html").read_text()


def test_fields_of_the_config_are_options(folders, tmp_path, capsys):
    """And `--smoke` stands for the smallest of them."""
    assert command.main(["demo", "--n", "3", "--fails", "1", *folders]) == 0
    (made,) = (tmp_path / "results").glob("demo-*/demo.json")
    assert json.loads(made.read_text())["facts"] == {"total": 4}
    assert command.main(["all", "--smoke", *folders]) == 0
    made = json.loads((tmp_path / "results/smoke/demo/demo.json").read_text())
    assert made["manifest"]["rows"] == 1
    assert not (tmp_path / "paper").exists()
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        command.main(["demo", "--nothing", "1", *folders])
    assert ended.value.code == 2
    assert "--nothing" in capsys.readouterr().err


def test_render_measures_nothing(folders, capsys):
    assert command.main(["demo", "--render", *folders]) == 2
    assert "without --render" in capsys.readouterr().err
    assert command.main(["demo", *folders]) == 0
    assert command.main(["demo", "--render", *folders]) == 0


def test_what_is_wrong_is_the_exit_code(folders, capsys):
    assert command.main(["demo", "--n", "13", *folders]) == 1
    assert "WRONG: thirteen" in capsys.readouterr().out


def test_one_that_cannot_be_made_is_the_last_unless_all_are_asked_for(
    folders, tmp_path, monkeypatch, capsys
):
    broken = Artefact("broken", "demo_artefact")
    monkeypatch.setattr(command, "ARTEFACTS", {"broken": broken} | command.ARTEFACTS)
    real = Artefact.measure

    def measure(artefact, config, settings):
        if artefact.name == "broken":
            raise FileNotFoundError("no data")
        real(artefact, config, settings)

    monkeypatch.setattr(Artefact, "measure", measure)
    assert command.main(["broken", "demo", *folders]) == 2
    assert capsys.readouterr().err == "error: broken: no data\n"
    assert not (tmp_path / "paper").exists()
    assert command.main(["all", *folders]) == 2
    assert written(tmp_path, "demo")["facts"] == {"total": 14}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["nonsense"], "there is no 'nonsense'"),
        (["demo", "nonsense"], "there is no 'nonsense'"),
        ([], "no experiment is named"),
        (["demo", "--n", "x"], "--n 'x' is no int"),
        (["demo", "--jobs", "0"], "--jobs 0"),
    ],
)
def test_bad_input_runs_nothing(folders, tmp_path, capsys, given, said):
    assert command.main(given + folders if given else []) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "results").exists()


def test_help_names_the_fields(folders, capsys):
    with pytest.raises(SystemExit) as ended:
        command.main(["demo", "--help"])
    assert ended.value.code == 0
    assert "--n VALUE" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        command.main(["--help"])
    assert "python -m experiments list" in capsys.readouterr().out


def test_list(capsys):
    assert command.main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [*ARTEFACTS]
    assert all(len(line.split()) > 3 for line in lines)


# ---------------------------------------------------------------- what is written


@pytest.fixture
def settings(tmp_path) -> Settings:
    return Settings(results=tmp_path / "results", paper=tmp_path / "paper", executor="inline")


@pytest.fixture
def artefact() -> Artefact:
    return Artefact("demo", "demo_artefact")


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
        figure, axes = pyplot.subplots(1, 2, layout="constrained")
        axes[0].plot([1, 2])
        paths = finish(figure, "h", "n", tmp_path / f"{k}", "f")
        drawn.append([path.read_bytes() for path in paths])
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


def test_the_page_says_what_is_incomplete_and_shows_code_without_backticks():
    table = {"title": "`t` < u", "columns": ["", "x"], "rows": [["a", "`b`+`c`"]], "notes": ["`n`"]}
    manifest = {"complete": False, "rows": 1, "rows_expected": 3, "wall_seconds": 90.0}
    figures = [{"name": "f", "headline": 'a "b" < c', "note": ""}]
    made = {"title": "T", "figures": figures, "tables": [table], "manifest": manifest}
    text = page.html({"t": made}, {"All": ["t"]})
    assert "Incomplete: 1 of 3 rows." in text
    assert "Measured in 1.5 min." in text
    assert 'alt="a &#34;b&#34; &lt; c"' in text
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


# ---------------------------------------------------------------- what reports say of failures


@pytest.mark.parametrize(
    ("failed", "whole"),
    [([], True), (["a"], True), (["models"], True), (["a", "b", "models"], False)]
    + [([key], False) for key in ("model", "model gemma-3-270m")],
)
def test_what_is_too_little_for_the_readme(failed, whole):
    """Failures are results, but not where nothing else is there, nor where a model is missing."""
    keys = ["a", "b", "models", *(key for key in failed if key.startswith("model "))]
    keys += ["model"] if "model" in failed else []
    rows = [{"key": key} | ({FAILURE: "no"} if key in failed else {}) for key in keys]
    made = report.Report("T", [Table("T", ["n"], [])])
    assert report.labelled(made, rows, {"complete": True}).complete is whole
    missing = {"complete": False, "rows_expected": 9, "rows": 3}
    assert not report.labelled(made, rows, missing).complete
    said = replace(made, complete=False)
    assert not report.labelled(said, rows, {"complete": True}).complete


def test_pointers_are_no_paths():
    assert report.without_paths("no value (at #/properties/a)") == "no value (at #/properties/a)"
    assert report.without_paths("cannot open /root/a/b") == "cannot open ..."


def test_failures_are_named_once_and_an_incomplete_table_says_so_in_its_title():
    tables = [Table(name, ["n"], []) for name in "ab"]
    rows = [{"key": "c", FAILURE: "no"}, {"key": "a", FAILURE: "no"}, {"key": "b"}]
    manifest = {"complete": False, "rows": 3, "rows_expected": 4}
    made = report.labelled(report.Report("T", tables), rows, manifest)
    assert [table.title for table in made.tables] == ["a (incomplete)", "b (incomplete)"]
    missing, counted = "INCOMPLETE: 1 of 4 rows are missing", "2 of 3 rows are failures"
    assert [list(table.notes) for table in made.tables] == [
        [missing, f"{counted}: a: no; c: no"],
        [missing, counted],
    ]
