"""Cells on a Ray cluster of two workers, one of which is killed while it measures."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from demo_artefact import Config, square

from experiments.run.artefact import Artefact
from experiments.run.cells import FAILURE, Cell
from experiments.run.executors import executor, inline
from experiments.run.measuring import Settings, read_run

ray = pytest.importorskip("ray")
pytestmark = pytest.mark.filterwarnings("ignore")
"""Ray's own, of which there are many."""


HERE = Path(__file__).parent
PATHS = os.pathsep.join(map(str, (HERE, HERE.parents[1])))
COMMON = {"runtime_env": {"env_vars": {"PYTHONPATH": PATHS}}, "log_to_driver": False}
SMALL = {"object_store_memory": 100 << 20}
"""The default is a third of all memory, more than a test may have."""


@pytest.fixture(scope="module", autouse=True)
def patience():
    """A busy machine starts Ray's helpers slowly."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_agent_register_timeout_ms", "120000")
        yield


@pytest.fixture(scope="module")
def cluster(patience):
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
def nodes():
    """A head, and two nodes with one core each."""
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 0, "include_dashboard": False} | SMALL
    made = Cluster(initialize_head=True, head_node_args=head)
    workers = [made.add_node(num_cpus=1, **SMALL) for _ in range(2)]
    ray.init(address=made.address, **COMMON)
    yield made, workers
    ray.shutdown()
    made.shutdown()


VICTIM = 5
"""The cell that does not end before its worker was killed."""


def lasting(k: int, folder: str) -> dict:
    """A row that takes a moment; leaves the number of its process."""
    with open(os.path.join(folder, f"{k}"), "a") as file:
        file.write(f"{os.getpid()}\n")
    time.sleep(0.4)
    while k == VICTIM and not os.path.exists(os.path.join(folder, "killed")):
        time.sleep(0.1)
    return {"square": k * k}


def values(rows) -> list[tuple]:
    return sorted((row["key"], row.get("square"), row.get(FAILURE)) for row in rows)


def test_a_killed_worker_loses_no_finished_row(cluster, tmp_path):
    cells = [Cell(f"{k}", square, (k, Config(fails=(2,)))) for k in range(5)]
    assert values(executor("ray")(cells, 2)) == values(inline(cells))
    cells = [Cell(f"{k}", lasting, (k, str(tmp_path))) for k in range(10)]
    begun, killed = tmp_path / f"{VICTIM}", tmp_path / "killed"
    found = []
    for row in executor("ray")(cells, 2):
        found.append(row)
        if begun.exists() and not killed.exists():
            os.kill(int(begun.read_text()), signal.SIGKILL)
            killed.touch()
    assert sorted(row["square"] for row in found) == [k * k for k in range(10)]
    times = [len((tmp_path / f"{k}").read_text().split()) for k in range(10)]
    assert times == [2 if k == VICTIM else 1 for k in range(10)]


def test_a_run_and_a_cell_that_kills_every_actor(cluster, tmp_path):
    settings = Settings(results=tmp_path, paper=tmp_path / "paper", executor="ray", jobs=1)
    artefact, config = Artefact("demo", "demo_artefact"), Config(n=3, fatal=(1,))
    artefact.measure(config, settings)
    rows, manifest = read_run(artefact.folder(config, tmp_path))
    found = {row["key"]: row for row in rows}
    assert (manifest["complete"], manifest["failures"]) == (True, 1)
    assert (found["0"]["square"], found["2"]["square"]) == (0, 4)
    assert "its actor died 3 times" in found["1"][FAILURE]


@pytest.mark.long
def test_a_node_that_goes_loses_no_finished_row(nodes, tmp_path):
    made, workers = nodes
    cells = [Cell(f"{k}", lasting, (k, str(tmp_path))) for k in range(8)]
    found = []
    for row in executor("ray")(cells, 2):
        found.append(row)
        if len(found) == 2:
            (tmp_path / "killed").touch()
            made.remove_node(workers.pop())
    assert sorted(row["square"] for row in found) == [k * k for k in range(8)]
