"""The command line: what is measured, what is written, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from experiments.run import command
from experiments.run.artefact import ARTEFACTS, ROWS, Artefact
from experiments.run.files import PAPER
from experiments.run.report import read_published


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


def test_all_takes_two_hours_at_most():
    """By what the published runs took."""
    short = [each for each in ARTEFACTS.values() if not (each.is_long() or each.on_gpu)]
    seconds = {
        artefact.name: read_published(path)[1]["wall_seconds"]
        for artefact in short
        if (path := PAPER / ROWS / f"{artefact.name}.jsonl.gz").exists()
    }
    assert {*seconds} == {artefact.name for artefact in short}
    assert sum(seconds.values()) <= 2 * 3600


def test_what_is_wrong_is_the_exit_code(folders, capsys):
    assert command.main(["demo", "--n", "13", *folders]) == 1
    assert "WRONG: thirteen" in capsys.readouterr().out


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
