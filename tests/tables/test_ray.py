"""Cells on a Ray cluster whose workers, or nodes, die while they measure."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import demo_artefact
import pytest
from demo_artefact import Config

from experiments.run.artefact import Artefact
from experiments.run.executors import FAILURE, Cell, executor, inline
from experiments.run.measuring import Settings, read_run

ray = pytest.importorskip("ray")
pytestmark = pytest.mark.filterwarnings("ignore")
"""Ray's own, of which there are many."""


HERE = Path(__file__).parent
PATHS = os.pathsep.join(map(str, (HERE, HERE.parents[1])))
COMMON = {"log_to_driver": False}
SMALL = {"object_store_memory": 100 << 20}
"""The default is a third of all memory, more than a test may have."""


@pytest.fixture
def counted(tmp_path, monkeypatch):
    """What workers inherit: where they find these tests, and where they count their calls. (With
    an environment of their own they could not be started ahead.)"""
    monkeypatch.setenv("PYTHONPATH", PATHS)
    monkeypatch.setenv(demo_artefact.CALLS, str(tmp_path / "calls"))
    # A busy machine starts Ray's helpers slowly.
    monkeypatch.setenv("RAY_agent_register_timeout_ms", "120000")


@pytest.fixture
def cluster(counted):
    """Two workers on this machine. Ray gives a node half a minute to come up, which is not enough
    where others compile beside it."""
    for left in reversed(range(4)):
        try:
            ray.init("local", num_cpus=2, include_dashboard=False, **SMALL, **COMMON)
            break
        except Exception as error:
            ray.shutdown()
            if "timed out" not in str(error) or not left:
                raise
    yield
    ray.shutdown()


@pytest.fixture
def nodes(counted):
    """A head, and two nodes with one core each."""
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 0, "include_dashboard": False} | SMALL
    made = Cluster(initialize_head=True, head_node_args=head)
    workers = [made.add_node(num_cpus=1, **SMALL) for _ in range(2)]
    ray.init(address=made.address, **COMMON)
    yield made, workers
    ray.shutdown()
    made.shutdown()


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


@pytest.mark.long
def test_a_node_that_goes_loses_no_finished_row(nodes):
    made, workers = nodes
    config = Config(n=8, pause=0.4)
    cells = [Cell(f"{k}", demo_artefact.square, (k, config)) for k in range(8)]
    found = []
    for row in executor("ray")(cells, 2):
        found.append(row)
        if len(found) == 2:
            made.remove_node(workers.pop())
    assert sorted(row["square"] for row in found) == [k * k for k in range(8)]
