"""Engines make the masks that they should; rows end where their process does."""

import time
from pathlib import Path

import numpy as np
import pytest

from experiments.engines import PEERS, engine_of
from experiments.isolated import isolated


@pytest.mark.parametrize("name", ["llguidance", "glrmask", "xgrammar", "outlines_core"])
@pytest.mark.parametrize("source", [{"schema": {"enum": ["ab", "c"]}}, {"regex": "true|false"}])
def test_each_peer_makes_the_mask_of_the_lift(smollm2_tokenizer, name, source):
    """Where all of them are right; end of sequence is in none of these masks."""
    if PEERS[name].version() is None:
        pytest.skip(f"{name} is not installed")
    masks = []
    for engine in (engine_of("lift", smollm2_tokenizer), engine_of(name, smollm2_tokenizer)):
        out = np.zeros((1, (smollm2_tokenizer.n_ids + 31) // 32), dtype=np.int32)
        engine.prepared(source)().filling(out)()
        masks.append(out)
    assert (masks[0] == masks[1]).all()
    assert masks[0].any()


def test_rows_end_where_the_process_does(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=":")
    assert [row["k"] for row in isolated(60, rows_until, 3)] == [0, 1, 2]
    assert [row["k"] for row in isolated(0.5, rows_until, 3, 1)] == [0]


def rows_until(n, slow=None):
    for k in range(n):
        if k == slow:
            time.sleep(600)
        yield {"k": k}
