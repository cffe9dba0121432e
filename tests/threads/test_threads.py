"""Anything but a matcher may be used by any number of threads at once.

    for each thread and job:   what it saw  =  what the same job sees alone

Each trial has a fresh tokenizer, of which nothing is known yet, and eight threads that begin at
once and hand over to each other as often as the interpreter can.
"""

from __future__ import annotations

import random
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Iterator

import pytest
from jobs import (
    JOBS,
    SCHEMA,
    SENTENCE,
    WORDS,
    Language,
    Shared,
    Trace,
    random_file,
    traced,
    trained,
)

from bpe_automata import Tokenizer
from bpe_automata._automata.dfa import ByteDFA
from bpe_automata._budget import Budget, spending
from bpe_automata._decoding import batches
from bpe_automata.schemas import json_schema

N_THREADS = 8
SHORT, LONG = 5, 1000
N_SMALL = 40  # random tokenizers, in turn
SLOWEST = 3600  # seconds that a thread is waited for: only a deadlock takes so long


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Threads take turns every microsecond, and batches are shared among more of them at once."""
    monkeypatch.setattr(batches, "_NEW", -1.0)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.fixture(scope="module")
def schema() -> ByteDFA:
    return json_schema(SCHEMA).to_dfa(depth=3)


def alone(tokenizer: Tokenizer, language: Language, schema: ByteDFA) -> dict[str, Trace]:
    """What each job sees when nothing else happens."""
    shared = Shared(tokenizer, language, schema)
    return {name: traced(job, shared) for name, job in JOBS.items()}


def together(shared: Shared, orders: list[list[str]]) -> list[dict[str, Trace]]:
    """What each thread sees, one for each order of the jobs."""
    found: list[dict[str, Trace]] = [{} for _ in orders]
    barrier = threading.Barrier(len(orders))

    def work(k: int) -> None:
        barrier.wait()
        for name in orders[k]:
            found[k][name] = traced(JOBS[name], shared)

    threads = [threading.Thread(target=work, args=(k,), daemon=True) for k in range(len(orders))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SLOWEST)
        assert not thread.is_alive(), "threads wait for each other"
    return found


def orders_of(rng: random.Random) -> list[list[str]]:
    """The same for all threads, which then do the same at the same time, or not."""
    names = rng.sample(list(JOBS), len(JOBS))
    if rng.random() < 0.5:
        return [names] * N_THREADS
    return [rng.sample(names, len(names)) for _ in range(N_THREADS)]


def compare(
    fresh: Tokenizer, language: Language, schema: ByteDFA, want: dict[str, Trace], seed: int
) -> None:
    """Threads on a fresh tokenizer, and one after them: nothing may be wrong for good."""
    shared = Shared(fresh, language, schema)
    for seen in together(shared, orders_of(random.Random(seed))):
        assert seen == want
    assert {name: traced(job, shared) for name, job in JOBS.items()} == want
    assert alone(fresh, language, schema) == want


def test_threads_see_what_one_sees_alone(
    pytestconfig: pytest.Config, often: None, schema: ByteDFA
) -> None:
    known: dict[int, dict[str, Trace]] = {}
    files = [*trained(), *random_file(N_SMALL)]
    for trial in range(LONG if pytestconfig.getoption("--long") else SHORT):
        data = files[trial % len(files)]
        if trial % len(files) not in known:
            known[trial % len(files)] = alone(Tokenizer.from_json(data), WORDS, schema)
        compare(Tokenizer.from_json(data), WORDS, schema, known[trial % len(files)], trial)


@pytest.mark.skipif(
    not sysconfig.get_config_var("Py_GIL_DISABLED"),
    reason="no free-threaded CPython: `make test-free-threaded` has one",
)
def test_nothing_brings_the_lock_of_the_interpreter_back() -> None:
    """A library that is not made for free threads turns it on again when it is imported."""
    code = "import sys, bpe_automata; bpe_automata.compile_regex('a'); print(sys._is_gil_enabled())"
    command = [sys.executable, "-X", "gil=0", "-W", "error", "-c", code]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=SLOWEST)
    assert shown.stdout.split() == ["False"]


@pytest.mark.long
def test_threads_on_a_deployed_tokenizer(
    often: None, schema: ByteDFA, smollm2_tokenizer: Tokenizer
) -> None:
    json = smollm2_tokenizer.to_json()

    def fresh() -> Tokenizer:
        import tokenizers

        return Tokenizer.load(tokenizers.Tokenizer.from_str(json))

    want = alone(fresh(), SENTENCE, schema)
    for trial in range(LONG // 10):
        compare(fresh(), SENTENCE, schema, want, trial)


def test_constraints_of_one_tokenizer_do_not_wait_for_one_another(schema: ByteDFA) -> None:
    """One is in the middle of a long call, as far as the others can see."""
    tokenizer = Tokenizer.from_json(trained()[0])
    shared = Shared(tokenizer, WORDS, schema)
    held = shared.constraint("canonical").engine.product.lock  # type: ignore[attr-defined]
    begun, over = threading.Event(), threading.Event()

    def hold() -> None:
        with held:
            begun.set()
            over.wait(SLOWEST)

    holder = threading.Thread(target=hold, daemon=True)
    holder.start()
    assert begun.wait(SLOWEST)
    others = ("own", "lift", "finite", "shared schema", "schema", "served")
    seen = {}
    try:
        with spending(Budget(max_seconds=SLOWEST / 4)):  # the most that one waits for a lock
            seen = {name: traced(JOBS[name], shared) for name in others}
    finally:
        over.set()
        holder.join(SLOWEST)
    assert seen == {name: traced(JOBS[name], shared) for name in others}
