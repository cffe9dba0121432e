"""A run that is killed at any point goes on where it was: no row is lost, none is there twice."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from demo_artefact import Config

from experiments.run.artefact import Artefact
from experiments.run.measuring import NAME, Settings, read_run

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


@pytest.mark.parametrize("executor", ["inline", "processes"])
def test_a_run_that_is_killed_again_and_again(tmp_path, executor):
    rng = random.Random(executor)
    path = Artefact("demo", "demo_artefact").folder(Config(n=MANY), tmp_path) / NAME
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(HERE), str(HERE.parents[1])])}
    command = [sys.executable, "-c", PROGRAM, str(tmp_path), executor]
    kept = b""
    for _ in range(3):
        with subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, start_new_session=True
        ) as process:
            process.stdout.readline()
            waited = time.monotonic() + 300
            while not path.exists() or len(path.read_bytes()) <= len(kept):
                assert time.monotonic() < waited
                time.sleep(0.01)
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
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(HERE), str(HERE.parents[1])])}
    program = PROGRAM.replace(f"n={MANY}", f"n={MANY}, pause=30.0")
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path), "processes"],
        env=environment,
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        process.stdout.readline()
        until(lambda: len(members(process.pid)) >= 3)  # itself, and two workers or more
        process.kill()
    until(lambda: not members(process.pid))


def until(happened) -> None:
    waited = time.monotonic() + 300
    while not happened():
        assert time.monotonic() < waited
        time.sleep(0.1)


def members(session: int) -> list[int]:
    """The processes of a session that live."""
    return [process.pid for process in psutil.process_iter() if _session(process.pid) == session]


def _session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return None
