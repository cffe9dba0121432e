"""Engines make the masks that they should, and a watched process says why it was lost."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tiny import REFUSED

from bpe_automata.errors import ArgumentError
from experiments.engines.interface import PeerError, RefusedError, filling, refusals
from experiments.engines.named import OURS, PEERS, check_known, engine_of, missing
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


def test_what_is_not_compiled_says_of_what_sort_it_is(smollm2_tokenizer):
    ours = engine_of("canonical", smollm2_tokenizer)
    for schema, status, keyword in (
        (REFUSED, "refused", "uniqueItems"),
        ({"type": "string", "enum": [1]}, "unsatisfiable", None),
        ({"type": "no type"}, "invalid", None),
    ):
        with pytest.raises(RefusedError) as refused:
            ours.language({"schema": schema}, "compact")
        assert refused.value.status == status
        assert keyword in (None, refused.value.keyword)


def test_a_panic_is_a_refusal_of_one_line():
    with pytest.raises(PeerError, match=r"^BaseException: panicked$"), refusals():
        raise BaseException("panicked\nat x")
    with pytest.raises(KeyboardInterrupt), refusals():
        raise KeyboardInterrupt


def test_names_must_be_known_and_packages_installed(smollm2_tokenizer, monkeypatch):
    with pytest.raises(ArgumentError, match="'magic'"):
        check_known("engines", ("magic",), [*OURS, *PEERS])
    with pytest.raises(PeerError, match="'magic'"):
        engine_of("magic", smollm2_tokenizer)
    monkeypatch.setattr(PEERS["genlm-control"], "version", classmethod(lambda cls: None))
    assert missing("genlm-control") == f"not installed: {PEERS['genlm-control'].install}"


# ---------------------------------------------------------------- processes


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


def test_a_process_that_cannot_come_up_says_why(module):
    broken = module(
        "watched_broken",
        "from bpe_automata.errors import ArgumentError\n"
        "from experiments.shared.watched import serve\n"
        "def refuse(): raise ArgumentError('not here')\n"
        "serve(refuse)\n",
    )
    with WatchedProcess(broken, [], Limits()) as process:
        assert process.ask("x") == process.start() == {FAILURE: "ArgumentError: not here"}
        assert not process.running


@pytest.mark.parametrize("cold", [1, 9])
def test_a_process_that_compiled_kernels_is_started_again_once(module, tmp_path, cold):
    """What compiling takes is none of the times and the memory; cold: starts that compile."""
    log = tmp_path / "starts"
    child = module(
        "watched_cold",
        "import json, pathlib, sys\n"
        f"log = pathlib.Path({json.dumps(str(log))})\n"
        "starts = len(log.read_text()) + 1 if log.exists() else 1\n"
        "log.write_text('x' * starts)\n"
        f"print(json.dumps({{'ready': starts, 'compiled': int(starts <= {cold})}}), flush=True)\n"
        "sys.stdin.read()\n",
    )
    with WatchedProcess(child, [], Limits()) as process:
        assert process.start()["ready"] == process.start()["ready"] == 2
    assert log.read_text() == "xx"
