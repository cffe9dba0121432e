"""Rows, manifests and the command line of the experiments."""

from __future__ import annotations

import json

import pytest

from bpe_automata.errors import MissingFileError
from experiments.__main__ import main
from experiments.runner import Options, Run, read_run
from experiments.tables import Table


def test_an_interrupted_run_says_so(tmp_path):
    options = Options("demo", seed=3, results=tmp_path)
    run = Run(options, {"n": 1}, {"model": "m"}, expected=2, started=0.0)
    run.add({"a": 1})
    rows, manifest = read_run(options)
    assert (rows, manifest["complete"], manifest["rows_expected"]) == ([{"a": 1}], False, 2)
    run.add({"a": "é"})
    rows, manifest = read_run(options)
    assert rows == [{"a": 1}, {"a": "é"}]
    assert manifest["complete"]
    assert (manifest["seed"], manifest["config"], manifest["model"]) == (3, {"n": 1}, "m")
    assert sorted(path.name for path in options.folder.iterdir()) == ["manifest.json", "rows.jsonl"]
    assert json.loads((options.folder / "manifest.json").read_text())["versions"]["python"]


def test_reading_a_run_that_never_was(tmp_path):
    with pytest.raises(MissingFileError, match="without --render"):
        read_run(Options("demo", results=tmp_path))


def test_figures_of_another_model_stay_out_of_the_paper():
    assert Options("demo").figures.name == "paper_figures"
    assert Options("demo", model="x").figures == Options("demo", model="x").folder


def test_markdown():
    table = Table("T", ["x\ny", "n"], [["a|b", "1"]], ["note"])
    assert table.markdown() == "## T\n\n| x y | n |\n| :-- | --: |\n| a\\|b | 1 |\n\n- note\n"


def test_list(capsys):
    assert main(["list"]) == 0
    assert "distortion" in capsys.readouterr().out


def test_a_missing_model_is_one_line_of_error(capsys, tmp_path):
    pytest.importorskip("torch")
    assert main(["distortion", "--model", str(tmp_path / "none")]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("error: ")
    assert captured.err.count("\n") == 1
