"""The command line of the experiments."""

from __future__ import annotations

import json
import re

import pytest

from experiments.run import command
from experiments.run.artefact import ARTEFACTS, Artefact


@pytest.fixture
def folders(monkeypatch, tmp_path) -> list[str]:
    """Two artefacts in place of the real ones, and options that keep them in a scratch folder."""
    small = {name: Artefact(name, "demo_artefact") for name in ("demo", "other")}
    monkeypatch.setattr(command, "ARTEFACTS", small)
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


def test_fields_of_the_config_are_options(folders, tmp_path):
    assert command.main(["demo", "--n", "3", "--fails", "1", *folders]) == 0
    (made,) = (tmp_path / "results").glob("demo-*/demo.json")
    assert json.loads(made.read_text())["facts"] == {"total": 4}
    assert not (tmp_path / "paper").exists()


def test_smoke_is_the_smallest(folders, tmp_path):
    assert command.main(["all", "--smoke", *folders]) == 0
    made = json.loads((tmp_path / "results/smoke/demo/demo.json").read_text())
    assert made["manifest"]["rows"] == 1


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


def test_an_option_that_none_of_them_has(folders, capsys):
    with pytest.raises(SystemExit) as ended:
        command.main(["demo", "--nothing", "1", *folders])
    assert ended.value.code == 2
    assert "--nothing" in capsys.readouterr().err


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


@pytest.mark.parametrize("name", ARTEFACTS)
def test_every_artefact_has_its_parts(name):
    module = ARTEFACTS[name].load()
    assert module.VERSION >= 1
    assert module.Config() != module.SMOKE
    assert callable(module.measure)
    assert callable(module.render)
