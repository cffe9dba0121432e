"""Runs: rows that are resumed, cells on processes, and kills at any point."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import demo_artefact
import psutil
import pytest
from demo_artefact import Config

from experiments.run import executors
from experiments.run.artefact import Artefact
from experiments.run.executors import ATTEMPTS, FAILURE, Cell, processes
from experiments.run.measuring import NAME, Settings, Store, read, read_run


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


def cells(config: Config) -> list[Cell]:
    return [Cell(str(k), demo_artefact.square, (k, config)) for k in range(config.n)]


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


def test_failures_are_rows_and_can_be_tried_again(artefact, settings, monkeypatch):
    config = Config(fails=(1,))
    artefact.measure(config, settings)
    made, _ = artefact.render(config, settings)
    assert "1 has no square today" in made.tables[0].notes[0]
    monkeypatch.setattr(demo_artefact, "square", lambda k, made: {"square": 100})
    artefact.measure(config, settings)
    assert artefact.render(config, settings)[0].facts == {"total": 13}
    artefact.measure(config, replace(settings, retry=True))
    made, _ = artefact.render(config, settings)
    assert made.facts == {"total": 113}
    artefact.measure(config, replace(settings, again=True))
    assert artefact.render(config, settings)[0].facts == {"total": 400}


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


HERE = Path(__file__).parent
MANY = 400
PROGRAM = f"""
import sys
from pathlib import Path
from demo_artefact import Config
from experiments.run.artefact import Artefact
from experiments.run.measuring import Settings
results = Path(sys.argv[1])
settings = Settings(results=results, paper=results / "paper", executor=sys.argv[2])
print("begun", flush=True)
Artefact("demo", "demo_artefact").measure(Config(n={MANY}), settings)
"""


@contextmanager
def started(folder, executor, program=PROGRAM):
    """The program as a process, once it has begun."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(HERE), str(HERE.parents[1])])}
    command = [sys.executable, "-c", program, str(folder), executor]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        process.stdout.readline()
        yield process


def until(happened) -> None:
    while not happened():
        time.sleep(0.01)


@pytest.mark.parametrize("executor", ["inline", "processes"])
def test_a_run_that_is_killed_again_and_again(tmp_path, executor):
    rng = random.Random(executor)
    path = Artefact("demo", "demo_artefact").folder(Config(n=MANY), tmp_path) / NAME
    kept = b""
    for _ in range(2):
        with started(tmp_path, executor) as process:
            until(lambda: path.exists() and len(path.read_bytes()) > len(kept))  # noqa: B023
            time.sleep(rng.random() / 10)
            os.killpg(process.pid, signal.SIGKILL)
        now = path.read_bytes()
        assert now.startswith(kept[: kept.rfind(b"\n") + 1])
        kept = now
    settings = Settings(results=tmp_path, paper=tmp_path / "paper", executor="inline")
    artefact, config = Artefact("demo", "demo_artefact"), Config(n=MANY)
    artefact.measure(config, settings)
    rows, manifest = read_run(path.parent)
    assert manifest["complete"]
    assert sorted(row["square"] for row in rows) == [k * k for k in range(MANY)]
    lines = [json.loads(line) for line in path.read_text().splitlines()[1:]]
    assert len(lines) == MANY


def test_workers_end_with_a_parent_that_is_killed(tmp_path):
    slow = PROGRAM.replace(f"n={MANY}", f"n={MANY}, pause=30.0")
    with started(tmp_path, "processes", slow) as process:
        parent = psutil.Process(process.pid)
        until(lambda: len(parent.children(recursive=True)) >= 2)
        workers = parent.children(recursive=True)
        process.kill()
    _, alive = psutil.wait_procs(workers, timeout=3600)
    assert not alive
