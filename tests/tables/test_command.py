"""Several experiments on one command line."""

from __future__ import annotations

import pytest

from bpe_automata.errors import MissingFileError
from experiments import __main__ as command


@pytest.fixture
def called(monkeypatch) -> list[str]:
    names: list[str] = []

    def run(name, chosen):
        names.append(name)
        if name == "speed":
            raise MissingFileError("no file")
        if name == "exactness":
            raise SystemExit(1)

    monkeypatch.setattr(command, "run", run)
    return names


def test_they_run_in_order(called):
    assert command.main(["table1", "figures", "--render"]) == 0
    assert called == ["table1", "figures"]


def test_a_failing_one_is_the_last(called, capsys):
    assert command.main(["growth", "speed", "figures"]) == 2
    assert called == ["growth", "speed"]
    assert capsys.readouterr().err == "error: no file\n"
    with pytest.raises(SystemExit) as ended:
        command.main(["exactness", "figures"])
    assert ended.value.code == 1
    assert called[-1] == "exactness"


def test_an_unknown_name_runs_nothing(called, capsys):
    with pytest.raises(SystemExit) as ended:
        command.main(["growth", "nonsense"])
    assert ended.value.code == 2
    assert "nonsense" in capsys.readouterr().err
    assert called == []


def test_every_name_is_a_module(monkeypatch):
    for name in command.EXPERIMENTS:
        module = command.importlib.import_module(f"experiments.{command.MODULES.get(name, name)}")
        assert callable(module.run)
