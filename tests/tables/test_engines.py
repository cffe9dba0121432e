"""Engines make the masks that they should, and a watched process says why it was lost."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from experiments.engines import PEERS, apart, engine_of
from experiments.run.executors import FAILURE
from experiments.shared.watched import Limits, LostError, WatchedProcess


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
    assert [row["k"] for row in apart(60, rows_until, 3)] == [0, 1, 2]
    assert [row["k"] for row in apart(0.5, rows_until, 3, 1)] == [0]


def rows_until(n, slow=None):
    for k in range(n):
        if k == slow:
            time.sleep(600)
        yield {"k": k}


CHILD = """
import json, sys, time
from experiments.shared.watched import serve

def answer(what):
    if what == "die": sys.exit(3)
    if what == "raise": raise KeyError("gone")
    if what == "sleep": time.sleep(3600)
    if what == "grow": kept = bytearray(300_000_000); time.sleep(3600)
    print("a remark")
    return {"answer": what}

serve(lambda: ({"ready": 1.5}, answer))
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Makes a module that a child process finds."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")

    def made(name, text):
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
        return name

    return made


def test_a_process_that_is_lost_is_a_failure_and_the_next_question_starts_it_anew(module):
    child = module("watched_child", CHILD)
    with WatchedProcess(child, [], Limits(seconds=0.1, mb=250)) as process:
        assert process.ask("sleep") == {FAILURE: "over time: more than 0.1 s"}
    with WatchedProcess(child, [], Limits(seconds=3600, mb=250)) as process:
        assert process.start() == {"ready": 1.5, "compiled": 0}
        assert process.ask("one") == {"answer": "one"}
        assert process.ask("die") == {FAILURE: "crashed: exit code 3: a remark"}
        assert process.ask("raise") == {FAILURE: "crashed: exit code 1: KeyError: 'gone'"}
        assert process.ask("two") == {"answer": "two"}
        assert process.ask("grow") == {FAILURE: "over memory: more than 250 MB"}
        process.begin()
        with pytest.raises(LostError) as lost:
            process.answer("grow")
        assert lost.value.mb > 250
