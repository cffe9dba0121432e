"""Anything but a matcher may be used by any number of threads at once, and everything may go to
other processes.

    for each thread and object:   what it sees     =  what is seen alone
    for each object:              loads(dumps(x))  does what x does, and dumps(x) is small
    a forked child                sees what its parent sees, whatever the parent's threads do

Threads share objects of which nothing is known yet, begin at once and hand over to each other as
often as the interpreter can.
"""

from __future__ import annotations

import os
import pickle
import random
import signal
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from objects import KINDS, Trace, all_asked, asked, made, trained

from bpe_automata import Tokenizer
from bpe_automata._budget import Budget, spending
from bpe_automata._decoding import batches
from bpe_automata._sharing import Lock, locked
from bpe_automata.errors import BudgetExceededError, MissingDependencyError

N_THREADS = 8
SHORT, LONG = 5, 1000
SLOWEST = 3600  # seconds that a thread is waited for: only a deadlock takes so long
FILES = trained()


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Threads take turns every microsecond, and batches are shared among more of them at once."""
    monkeypatch.setattr(batches, "_NEW", -1.0)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def run(*works: Callable[[], Any]) -> list[Any]:
    """What each gives, in a thread of its own."""
    found: list[Any] = [None] * len(works)
    barrier = threading.Barrier(len(works))

    def work(k: int) -> None:
        barrier.wait(SLOWEST)
        found[k] = works[k]()

    threads = [threading.Thread(target=work, args=(k,), daemon=True) for k in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SLOWEST)
        assert not thread.is_alive(), "threads wait for each other"
    return found


def orders_of(rng: random.Random) -> list[list[str]]:
    """The same for all threads, which then ask the same at the same time, or not."""
    names = rng.sample(sorted(KINDS.keys() - {"matcher", "listed"}), len(KINDS) - 2)
    if rng.random() < 0.5:
        return [names] * N_THREADS
    return [rng.sample(names, len(names)) for _ in range(N_THREADS)]


def compare(fresh: Tokenizer, want: dict[str, Trace], seed: int) -> None:
    """Threads on fresh objects, and one after them: nothing may be wrong for good."""
    objects = made(fresh)

    def seen(order: list[str]) -> dict[str, Trace]:
        return {name: asked(name, objects[name]) for name in order}

    for found in run(
        *(lambda order=order: seen(order) for order in orders_of(random.Random(seed)))
    ):
        assert found == {name: want[name] for name in found}
    assert all_asked(objects) == want
    assert all_asked(made(fresh)) == want


def test_threads_see_what_one_sees_alone(pytestconfig: pytest.Config, often: None) -> None:
    known = [all_asked(made(Tokenizer.from_json(data))) for data in FILES]
    for trial in range(LONG if pytestconfig.getoption("--long") else SHORT):
        which = trial % len(FILES)
        compare(Tokenizer.from_json(FILES[which]), known[which], trial)


@pytest.mark.long
def test_threads_on_a_deployed_tokenizer(often: None, smollm2_tokenizer: Tokenizer) -> None:
    want = all_asked(made(pickle.loads(pickle.dumps(smollm2_tokenizer))))
    for trial in range(LONG // 10):
        compare(pickle.loads(pickle.dumps(smollm2_tokenizer)), want, trial)


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


def test_constraints_of_one_tokenizer_do_not_wait_for_one_another() -> None:
    """One is in the middle of a long call, as far as the others can see."""
    objects = made(Tokenizer.from_json(FILES[0]))
    others = ("own", "lift", "schema", "within", "server")
    begun, over = threading.Event(), threading.Event()

    def hold() -> None:
        with objects["canonical"].engine.product.lock:
            begun.set()
            over.wait(SLOWEST)

    holder = threading.Thread(target=hold, daemon=True)
    holder.start()
    assert begun.wait(SLOWEST)
    try:
        with spending(Budget(max_seconds=SLOWEST / 4)):  # the most that one waits for a lock
            seen = {name: asked(name, objects[name]) for name in others}
    finally:
        over.set()
        holder.join(SLOWEST)
    assert seen == {name: asked(name, objects[name]) for name in others}


def test_nothing_is_called_when_a_lock_goes() -> None:
    """Ctrl-C, raised in a callback or a finalizer, would be lost."""
    lock, called = Lock(), []
    sys.setprofile(lambda frame, event, _: called.append(frame) if event == "call" else None)
    try:
        del lock
    finally:
        sys.setprofile(None)
    assert called == []


def test_waiting_for_a_lock_ends_with_the_budget() -> None:
    class Guarded:
        lock = Lock()

        @locked
        def ask(self) -> None:
            """Nothing."""

    guarded, held, over = Guarded(), threading.Event(), threading.Event()

    def hold() -> None:
        with guarded.lock:
            held.set()
            over.wait(SLOWEST)

    def wait() -> str:
        held.wait(SLOWEST)
        try:
            with spending(Budget(max_seconds=0.05)):
                guarded.ask()
        except BudgetExceededError as error:
            return error.resource
        finally:
            over.set()
        return "no error"

    assert run(hold, wait) == [None, "seconds"]
    guarded.ask()  # the lock is free again


# ---------------------------------------------------------------- pickling


@pytest.mark.parametrize("data", FILES, ids=range(len(FILES)))
def test_objects_travel_as_what_they_were_made_of(data: dict[str, Any]) -> None:
    """What was found of them lazily stays here."""
    for name, found in made(Tokenizer.from_json(data)).items():
        if KINDS[name].travels and not isinstance(found, Exception):
            fresh = pickle.dumps(found)
            want = asked(name, found)
            assert len(fresh) == len(pickle.dumps(found)) < 100_000, name
            assert asked(name, pickle.loads(fresh)) == want, name


def test_they_travel_to_a_new_process() -> None:
    objects = made(Tokenizer.from_json(FILES[0]))
    errors = [found for found in objects.values() if isinstance(found, Exception)]
    assert all(isinstance(error, MissingDependencyError) for error in errors)
    sent = {name: objects[name] for name, kind in KINDS.items() if kind.travels}
    program = (
        "import pickle, sys; from objects import all_asked; "
        "sys.stdout.buffer.write(pickle.dumps(all_asked(pickle.load(sys.stdin.buffer))))"
    )
    here = os.pathsep.join(map(os.fspath, (Path(__file__).parent, Path(__file__).parents[2])))
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=pickle.dumps(sent),
        capture_output=True,
        check=True,
        timeout=SLOWEST,
        env={**os.environ, "PYTHONPATH": here},
    )
    assert pickle.loads(done.stdout) == all_asked(sent)


# ---------------------------------------------------------------- fork

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
def test_a_child_forked_in_the_middle_of_masks() -> None:
    """Of threads that hold locks: the child has none of the threads, and needs the locks."""
    want = all_asked(made(Tokenizer.from_json(FILES[0])))
    for trial in range(6):
        tokenizer, over = Tokenizer.from_json(FILES[0]), threading.Event()

        def work(tokenizer: Tokenizer = tokenizer, over: threading.Event = over) -> None:
            while not over.is_set():
                all_asked(made(tokenizer))

        threads = [threading.Thread(target=work, daemon=True) for _ in range(4)]
        for thread in threads:
            thread.start()
        over.wait(0.02 * trial)
        same = in_child(lambda t=tokenizer: all_asked(made(t)) == want)
        over.set()
        for thread in threads:
            thread.join(SLOWEST)
        assert same


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
