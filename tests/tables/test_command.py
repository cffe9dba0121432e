"""The command line, and what it writes: reports, figures, the page and the README."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import demo_artefact
import pytest

from experiments.run import command, readme, report
from experiments.run.artefact import ARTEFACTS, ROWS, Artefact
from experiments.run.executors import FAILURE
from experiments.run.files import PAPER
from experiments.run.report import read_published
from experiments.run.tables import Table


@pytest.fixture
def folders(monkeypatch, tmp_path) -> list[str]:
    """Two artefacts in place of the real ones, and options that keep them in a scratch folder."""
    small = {name: Artefact(name, "demo_artefact") for name in ("demo", "other")}
    monkeypatch.setattr(command, "ARTEFACTS", small)
    results, paper = str(tmp_path / "results"), str(tmp_path / "paper")
    return ["--results", results, "--paper", paper, "--executor", "inline"]


def squares(page: Path) -> list[int]:
    """What a page says, which is there."""
    return [int(k) for k in re.findall(r"\| (\d+) \|$", page.read_text(), re.MULTILINE)]


def test_some_or_all_are_made(folders, tmp_path, capsys):
    assert command.main(["run", "demo", *folders]) == 0
    assert "Squares" in capsys.readouterr().out
    assert squares(tmp_path / "paper" / "demo.md") == [0, 1, 4, 9]
    assert not (tmp_path / "paper" / "other.md").exists()
    assert command.main(["all", *folders]) == 0
    assert re.search(r"^2 artefacts in \d+\.\d minutes$", capsys.readouterr().out, re.MULTILINE)
    assert command.main(["demo", "--n", "3", *folders]) == 0
    assert "artefacts in" not in capsys.readouterr().out
    assert squares(tmp_path / "paper" / "other.md") == [0, 1, 4, 9]


def test_fields_of_the_config_are_options(folders, tmp_path, capsys):
    """And `--smoke` stands for the smallest of them."""
    assert command.main(["demo", "--n", "3", "--fails", "1", *folders]) == 0
    (made,) = (tmp_path / "results").glob("demo-*/demo.md")
    assert squares(made) == [0, 4]
    assert command.main(["all", "--smoke", *folders]) == 0
    assert squares(tmp_path / "results/smoke/demo/demo.md") == [0]
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


def test_all_measures_what_takes_long_only_when_told_to(folders, tmp_path, monkeypatch, capsys):
    """Else it is rendered from the rows that exist, and one line says so; `run` measures always."""
    monkeypatch.setattr(demo_artefact, "LONG", True, raising=False)
    calls = tmp_path / "calls"
    monkeypatch.setenv(demo_artefact.CALLS, str(calls))
    line = "demo takes long: rendered from the rows that exist; `--long` measures it"
    assert command.main(["all", *folders]) == 2
    said = capsys.readouterr()
    assert line in said.out.splitlines()
    assert "measure first" in said.err
    assert not calls.exists()
    assert command.main(["run", "demo", *folders]) == 0
    assert command.main(["run", "other", *folders]) == 0
    assert "takes long" not in capsys.readouterr().out
    measured = calls.read_text()
    (tmp_path / "paper" / "demo.md").unlink()
    assert command.main(["all", *folders]) == 0
    assert line in capsys.readouterr().out.splitlines()
    assert calls.read_text() == measured
    assert squares(tmp_path / "paper" / "demo.md") == [0, 1, 4, 9]
    assert command.main(["all", "--smoke", *folders]) == 0
    assert command.main(["all", "--long", "--n", "5", *folders]) == 0
    assert "takes long" not in capsys.readouterr().out
    assert len(calls.read_text().split()) == len(measured.split()) + 2 * (1 + 5)


def test_all_takes_two_hours_at_most():
    """By what the published runs took."""
    short = [each for each in ARTEFACTS.values() if not (each.is_long() or each.on_gpu)]
    assert len(short) < len(ARTEFACTS)
    seconds = {
        artefact.name: read_published(path)[1]["wall_seconds"]
        for artefact in short
        if (path := PAPER / ROWS / f"{artefact.name}.jsonl.gz").exists()
    }
    assert {*seconds} == {artefact.name for artefact in short}
    assert sum(seconds.values()) <= 2 * 3600


@pytest.mark.parametrize("name", [name for name in ARTEFACTS if name.endswith("-gpu")])
def test_an_artefact_of_a_gpu_is_another_one_elsewhere(name):
    """Of the same module, with its own config and its own names of figures."""
    artefact, other = ARTEFACTS[name], ARTEFACTS[name.removesuffix("-gpu")]
    assert artefact.load() is other.load()
    assert artefact.default() == artefact.load().ON_GPU != other.default()
    path = PAPER / ROWS / f"{name}.jsonl.gz"
    if path.exists():
        made = artefact.report(*read_published(path))
        assert made.figures
        assert all(figure.name.endswith("_gpu") for figure in made.figures)


def test_all_measures_nothing_on_a_gpu(folders, tmp_path, monkeypatch, capsys):
    """It renders what was measured before."""
    monkeypatch.setattr(demo_artefact, "ON_GPU", demo_artefact.Config(n=5), raising=False)
    both = {"demo": Artefact("demo", "demo_artefact")}
    both["demo-gpu"] = Artefact("demo-gpu", "demo_artefact", on_gpu=True)
    monkeypatch.setattr(command, "ARTEFACTS", both)
    for options in ([], ["--long"], ["--smoke"]):
        assert command.main(["all", *options, *folders]) == 0
    assert not (tmp_path / "paper" / "demo-gpu.md").exists()
    assert command.main(["demo-gpu", *folders]) == 0
    assert squares(tmp_path / "paper" / "demo-gpu.md") == [0, 1, 4, 9, 16]
    (tmp_path / "paper" / "demo-gpu.md").unlink()
    assert command.main(["all", *folders]) == 0
    assert squares(tmp_path / "paper" / "demo-gpu.md") == [0, 1, 4, 9, 16]


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
    assert squares(tmp_path / "paper" / "demo.md") == [0, 1, 4, 9]


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


# ---------------------------------------------------------------- what is written


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
