"""Anything but a matcher may be used by any number of threads at once, and everything may go to
other processes.

    for each thread and object:   what it sees     =  what is seen alone
    for each object:              loads(dumps(x))  does what x does, and dumps(x) is small
    a forked child                sees what its parent sees, whatever the parent's threads do

Threads share objects of which nothing is known yet, begin at once and hand over to each other as
often as the interpreter can.
"""

from __future__ import annotations

import gc
import os
import pickle
import random
import signal
import sys
import sysconfig
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from multiprocessing.pool import ThreadPool
from typing import Any

import pytest
from objects import STAY, all_asked, all_unpickled, made, trained
from support import process

from bpe_automata import Constraint, Tokenizer, compile_regex
from bpe_automata._budget import Budget, spending
from bpe_automata._sharing import Lock
from bpe_automata.decoding import batches
from bpe_automata.errors import BudgetExceededError

N_THREADS = 8
SHORT, LONG = 3, 1000
SLOWEST = 3600  # seconds that a thread is waited for: only a deadlock takes so long
FILES = trained()


def run(*works: Callable[[], Any]) -> list[Any]:
    """What each gives, in a thread of its own; they begin together."""
    barrier = threading.Barrier(len(works))

    def begun(work: Callable[[], Any]) -> Any:
        barrier.wait(SLOWEST)
        return work()

    with ThreadPool(len(works)) as pool:
        return pool.map_async(begun, works, chunksize=1).get(SLOWEST)


@contextmanager
def held(lock: Lock) -> Iterator[None]:
    """Another thread has the lock meanwhile."""
    with ThreadPool(1) as other:
        other.apply(lock.acquire)
        try:
            yield
        finally:
            other.apply(lock.release)


def test_threads_see_what_one_sees_alone(request, monkeypatch) -> None:
    """Those that ask fresh objects the same at the same time, or each in an order of its own; and
    one after them: nothing may be wrong for good."""
    request.addfinalizer(partial(sys.setswitchinterval, sys.getswitchinterval()))
    sys.setswitchinterval(1e-6)
    monkeypatch.setattr(batches, "_NEW", -1.0)  # batches are shared among more threads at once
    known = [all_asked(made(Tokenizer.from_json(data))) for data in FILES]
    for trial in range(LONG if request.config.getoption("--long") else SHORT):
        rng, want = random.Random(trial), known[trial % len(FILES)]
        fresh = Tokenizer.from_json(FILES[trial % len(FILES)])
        objects = made(fresh)
        shared = sorted(objects.keys() - {"matcher", "listed"})
        orders = [rng.sample(shared, len(shared)) for _ in range(N_THREADS)]
        if rng.random() < 0.5:
            orders = orders[:1] * N_THREADS
        for found in run(*(partial(all_asked, {n: objects[n] for n in order}) for order in orders)):
            assert found == {name: want[name] for name in found}
        assert all_asked(objects) == want
        assert all_asked(made(fresh)) == want


@pytest.mark.skipif(
    not sysconfig.get_config_var("Py_GIL_DISABLED"),
    reason="no free-threaded CPython: `make test-free-threaded` has one",
)
def test_nothing_brings_the_lock_of_the_interpreter_back() -> None:
    """A library that is not made for free threads turns it on again when it is imported."""
    code = "import sys, bpe_automata; bpe_automata.compile_regex('a'); print(sys._is_gil_enabled())"
    assert process(code, PYTHON_GIL=0, PYTHONWARNINGS="error").stdout.split() == ["False"]


def test_a_lock_is_waited_for_by_its_own_constraint_alone_and_no_longer_than_the_budget() -> None:
    """One constraint of a tokenizer is in the middle of a long call, as far as others can see."""
    objects = made(Tokenizer.from_json(FILES[0]))
    others = {name: objects[name] for name in ("batch", "lift", "schema", "within", "server")}
    with held(objects["canonical"].engine.product.lock):
        with spending(Budget(max_seconds=SLOWEST / 4)):  # the most that one waits for a lock
            seen = all_asked(others)
        with pytest.raises(BudgetExceededError, match="seconds"), spending(Budget(max_seconds=0.1)):
            objects["canonical"].matcher()
    assert seen == all_asked(others)
    assert objects["canonical"].matcher().allowed_ids().size  # the lock is free again


def test_nothing_is_called_when_a_lock_goes() -> None:
    """Ctrl-C, raised in a callback or a finalizer, would be lost."""
    lock, called = Lock(), []
    sys.setprofile(lambda frame, event, _: called.append(frame) if event == "call" else None)
    try:
        del lock
    finally:
        sys.setprofile(None)
    assert called == []


def test_the_memory_of_constraints_is_free_when_they_are_dropped() -> None:
    """It does not wait for the garbage collector, which may come minutes later."""
    objects = made(Tokenizer.from_json(FILES[0]))
    all_asked(objects)
    engines = [found.engine for found in objects.values() if isinstance(found, Constraint)]
    left = [weakref.ref(one) for engine in engines for one in (engine, engine.dfa)]
    gc.disable()
    try:
        del objects, engines
        found = [one() for one in left]
    finally:
        gc.enable()
    assert len(found) > 10
    assert found == [None] * len(found)


# ---------------------------------------------------------------- other processes


def test_objects_travel_as_what_they_were_made_of() -> None:
    """To a process that begins anew, which sees what is seen here. What was found of them lazily
    stays here."""
    with ProcessPoolExecutor(1, get_context("spawn")) as other:
        for data in FILES:
            every = made(Tokenizer.from_json(data))
            objects = {name: found for name, found in every.items() if name not in STAY}
            sent = {name: pickle.dumps(found) for name, found in objects.items()}
            seen = other.submit(all_unpickled, sent)
            want = all_asked(objects)
            for name, fresh in sent.items():
                assert len(fresh) == len(pickle.dumps(objects[name])) < 100_000, name
            assert seen.result(SLOWEST) == want


forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
quiet = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


def in_child(work: Callable[[], bool]) -> bool:
    """Does `work` say so in a forked child? One that hangs is killed after an hour."""
    pid = os.fork()
    if not pid:
        signal.alarm(SLOWEST)
        try:
            os._exit(0 if work() else 1)
        finally:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


@forks
@quiet
@pytest.mark.parametrize("trial", range(3))
def test_a_child_forked_in_the_middle_of_masks(trial: int) -> None:
    """Of threads that hold locks: the child has none of the threads, and needs the locks."""
    want = all_asked(made(Tokenizer.from_json(FILES[0])))
    tokenizer, over = Tokenizer.from_json(FILES[0]), threading.Event()

    def work() -> None:
        while not over.is_set():
            all_asked(made(tokenizer))

    def fork() -> bool:
        over.wait(0.04 * trial)
        try:
            return in_child(lambda: all_asked(made(tokenizer)) == want)
        finally:
            over.set()

    assert run(*4 * [work], fork)[-1]


@forks
@quiet
def test_a_child_ends_long_kernels_as_its_parent_does() -> None:
    def stopped() -> bool:
        with pytest.raises(BudgetExceededError):
            compile_regex("(?:.{1,30}a.{1,30}){1,30}x.{15}", Budget(10**7, 0.3, 8 * 10**9))
        return compile_regex("a{2,90}b").accepts(b"aab")

    assert stopped()
    assert in_child(stopped)


@forks
@quiet
def test_a_fork_waits_for_locks_in_any_order() -> None:
    """Threads take them one way round, a fork perhaps the other: nobody waits for ever."""
    first, second, over = Lock(), Lock(), threading.Event()

    def nested() -> None:
        while not over.is_set():
            with first, second:
                pass

    def fork() -> bool:
        free = all(
            in_child(lambda: all(lock.acquire(timeout=SLOWEST) for lock in (second, first)))
            for _ in range(20)
        )
        over.set()
        return free

    assert run(nested, nested, fork)[-1]
