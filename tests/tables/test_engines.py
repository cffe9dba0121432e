"""Engines make the masks that they should, and a watched process says why it was lost."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.engines.interface import filling
from experiments.engines.named import engine_of, missing
from experiments.run.executors import FAILURE
from experiments.shared.watched import Limits, LostError, WatchedProcess


@pytest.mark.parametrize("name", ["llguidance", "glrmask", "xgrammar", "outlines_core"])
@pytest.mark.parametrize("source", ["regex", "schema", "batch"])
def test_each_peer_makes_the_mask_of_the_lift(smollm2_tokenizer, name, source):
    """Where all of them are right; end of sequence is in none of these masks."""
    if missing(name):
        pytest.skip(f"{name} is not installed")
    words = (smollm2_tokenizer.n_ids + 31) // 32
    masks = []
    for engine in (engine_of("lift", smollm2_tokenizer), engine_of(name, smollm2_tokenizer)):
        given = {"schema": {"enum": ["ab", "c"]}} if source == "schema" else {"regex": "true|false"}
        begin = engine.prepared(given, "spaced")
        out = np.zeros((3, words), dtype=np.int32)
        if source == "batch":
            engine.batch([begin(), begin(), begin()], out)()
        else:
            filling(begin(), out[1:2])()
        masks.append(out)
    assert (masks[0] == masks[1]).all()
    assert masks[0].any()


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
