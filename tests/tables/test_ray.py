"""Cells on a Ray cluster whose workers die while they measure."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import demo_artefact
import pytest
from demo_artefact import Config

from experiments.run.artefact import Artefact
from experiments.run.executors import FAILURE, Cell, inline
from experiments.run.measuring import Settings, read_run

ray = pytest.importorskip("ray")
pytestmark = pytest.mark.filterwarnings("ignore")
"""Ray's own, of which there are many."""


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    """Two workers on this machine, which inherit where they find these tests and where they count
    their calls (with an environment of their own they could not be started ahead). Ray gives a node
    half a minute to come up, which is not enough where others compile beside it."""
    here = Path(__file__).parent
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, (here, here.parents[1]))))
    monkeypatch.setenv(demo_artefact.CALLS, str(tmp_path / "calls"))
    monkeypatch.setenv("RAY_agent_register_timeout_ms", "120000")
    # The default is a third of all memory, more than a test may have.
    small = {"num_cpus": 2, "object_store_memory": 100 << 20, "include_dashboard": False}
    for left in reversed(range(4)):
        try:
            ray.init("local", log_to_driver=False, **small)
            break
        except Exception as error:
            ray.shutdown()
            if "timed out" not in str(error) or not left:
                raise
    yield
    ray.shutdown()


def test_workers_that_die_lose_no_finished_row(cluster, tmp_path):
    """One cell kills every actor that measures it, another one only the first; all others are
    measured once, and are the rows that one process gives."""
    artefact = Artefact("demo", "demo_artefact")
    config = Config(n=7, fails=(2,), fatal=(1,), once=(4,))
    settings = Settings(results=tmp_path, paper=tmp_path / "paper", executor="ray", jobs=2)
    artefact.measure(config, settings)
    assert Counter(demo_artefact.calls()) == Counter("0111234456")
    rows, manifest = read_run(artefact.folder(config, tmp_path))
    assert (manifest["complete"], manifest["failures"]) == (True, 2)
    found = {row["key"]: (row.get("square"), row.get(FAILURE)) for row in rows}
    assert "its actor died 3 times" in found.pop("1")[1]
    plain = Config(n=7, fails=(2,))
    alone = [Cell(str(k), demo_artefact.square, (k, plain)) for k in range(7) if k != 1]
    assert found == {row["key"]: (row.get("square"), row.get(FAILURE)) for row in inline(alone)}
