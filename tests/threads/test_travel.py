"""What goes to other processes.

loads(dumps(x))  does what x does,  and dumps(x) is small
a forked child sees what its parent sees, whatever the parent's other threads were doing
"""

from __future__ import annotations

import os
import pickle
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jobs import JOBS, SCHEMA, WORDS, Shared, traced, trained

from bpe_automata import (
    Constraint,
    Matcher,
    TokenAutomaton,
    Tokenizer,
    compile_grammar,
    compile_regex,
    constrain,
    link_regex,
)
from bpe_automata._budget import Budget, spending
from bpe_automata._decoding.token_table import Listed, TokenTable
from bpe_automata._sharing import Lock, cached, locked
from bpe_automata.banning import Ban
from bpe_automata.banning._words import AppliedBan
from bpe_automata.errors import BudgetExceededError
from bpe_automata.schemas import json_schema

REGEX = r"(the |cat|ab+|é){1,4}\."
JSON = trained()[0]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.from_json(JSON, eos_ids=[301])


@pytest.fixture(scope="module")
def automaton(tokenizer: Tokenizer) -> TokenAutomaton:
    return constrain(tokenizer, r"(the cat|ab){1,2}").automaton()


def masks(constraint: Constraint, seed: int = 0) -> list[list[int]]:
    """Along a random walk."""
    matcher, rng, found = constraint.matcher(), random.Random(seed), []
    while not matcher.is_finished and len(found) < 12:
        found.append(matcher.allowed_ids().tolist())
        matcher.advance(rng.choice(found[-1]))
    return found


def constraints(tokenizer: Tokenizer) -> list[Constraint]:
    own = constrain(tokenizer, REGEX)
    return [
        own,
        constrain(tokenizer, REGEX, method="lift"),
        constrain(tokenizer, REGEX, eos_ids=[], added_tokens=False),
        own.within(3),
        Ban(["cat"]).constrain(tokenizer, REGEX),
    ]


def test_a_constraint_travels(tokenizer: Tokenizer) -> None:
    for constraint in constraints(tokenizer):
        want = masks(constraint)  # much is known of it now, which stays here
        sent = pickle.dumps(constraint)
        assert len(sent) < 100_000
        found = pickle.loads(sent)
        assert found.tokenizer is not tokenizer
        assert (found.method, found.eos_ids) == (constraint.method, constraint.eos_ids)
        assert found.added_tokens == constraint.added_tokens
        assert masks(found) == want


def test_it_travels_to_a_new_process(tokenizer: Tokenizer) -> None:
    matcher = constrain(tokenizer, REGEX).matcher(tokenizer.encode("the "))
    matcher.advance(int(matcher.allowed_ids()[0]))
    program = (
        "import pickle, sys; m = pickle.load(sys.stdin.buffer); "
        "print(*m.ids, '|', *m.allowed_ids(), m.min_tokens_to_accept())"
    )
    here = os.fspath(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=pickle.dumps(matcher),
        capture_output=True,
        check=True,
        timeout=3600,
        env={**os.environ, "PYTHONPATH": here},
    )
    want = [*matcher.ids, "|", *matcher.allowed_ids(), matcher.min_tokens_to_accept()]
    assert done.stdout.decode().split() == list(map(str, want))


def test_a_matcher_travels_where_it_is(tokenizer: Tokenizer) -> None:
    for constraint in constraints(tokenizer):
        matcher = constraint.matcher()
        for _ in range(3):
            matcher.advance(int(matcher.allowed_ids()[-1]))
        found: Matcher = pickle.loads(pickle.dumps(matcher))
        assert (found.ids, found.is_finished) == (matcher.ids, matcher.is_finished)
        assert found.allowed_ids().tolist() == matcher.allowed_ids().tolist()
        found.rollback(3)
        assert found.allowed_ids().tolist() == constraint.matcher().allowed_ids().tolist()


def test_what_was_found_lazily_stays_here(tokenizer: Tokenizer, automaton: TokenAutomaton) -> None:
    ban, dfa = Ban(["cat", "dog"], ignore_case=True), compile_regex(r"[a-z]{0,50}")
    fresh = len(pickle.dumps(ban)), len(pickle.dumps(dfa)), len(pickle.dumps(automaton))
    _ = ban.allowed, dfa.is_empty, automaton.total()
    assert fresh == (len(pickle.dumps(ban)), len(pickle.dumps(dfa)), len(pickle.dumps(automaton)))
    assert pickle.loads(pickle.dumps(ban)).found_in("a Dog") == ban.found_in("a Dog")
    assert pickle.loads(pickle.dumps(dfa)).shortest() == dfa.shortest()
    assert pickle.loads(pickle.dumps(automaton)).equivalent(automaton) is None
    applied = AppliedBan(ban, constrain(tokenizer, REGEX))
    want = masks(applied.after())
    assert masks(pickle.loads(pickle.dumps(applied)).after()) == want
    table = TokenTable.of(automaton, [], tokenizer.n_ids)
    again: TokenTable = pickle.loads(pickle.dumps(table))
    assert np.array_equal(again.allowed(table.begin(1)), table.allowed(table.begin(1)))
    matcher = Matcher(Listed(automaton, [], tokenizer.n_ids))
    want_ids = matcher.allowed_ids().tolist()
    assert pickle.loads(pickle.dumps(matcher)).allowed_ids().tolist() == want_ids


def test_linked_automata_travel_as_what_they_were_made_of() -> None:
    found = pickle.loads(pickle.dumps(link_regex("x(ab){0,1000}", Budget(max_states=3000))))
    assert found.budget.max_states == 3000
    assert found.accepts(b"x" + b"ab" * 1000)
    assert not found.accepts(b"x" + b"ab" * 1001)
    assert pickle.loads(pickle.dumps(found.begun_with(b"y"))).accepts(b"yxab")
    pytest.importorskip("lark")
    grammar = compile_grammar('start: "a" start "b" | "a"')
    assert pickle.loads(pickle.dumps(grammar)).accepts(b"aab")


# ---------------------------------------------------------------- fork


def in_child(work: Callable[[], bool]) -> bool:
    """Does `work` say so in a forked child? One that hangs is killed after an hour."""
    pid = os.fork()
    if not pid:
        signal.alarm(3600)
        try:
            os._exit(0 if work() else 1)
        finally:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_forked_in_the_middle_of_masks() -> None:
    """Of threads that hold locks: the child has none of the threads, and needs the locks."""
    schema = json_schema(SCHEMA).to_dfa(depth=3)
    alone = Shared(Tokenizer.from_json(JSON), WORDS, schema)
    names = [name for name in JOBS if name != "verified"]
    want = {name: traced(JOBS[name], alone) for name in names}
    for trial in range(6):
        shared = Shared(Tokenizer.from_json(JSON), WORDS, schema)
        over = threading.Event()

        def work(shared: Shared = shared, over: threading.Event = over) -> None:
            while not over.is_set():
                fresh = Shared(shared.tokenizer, WORDS, schema)
                for name in names:
                    traced(JOBS[name], fresh)

        threads = [threading.Thread(target=work, daemon=True) for _ in range(4)]
        for thread in threads:
            thread.start()
        over.wait(0.02 * trial)
        same = in_child(lambda s=shared: {n: traced(JOBS[n], s) for n in names} == want)
        over.set()
        for thread in threads:
            thread.join(3600)
        assert same


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_waits_for_locks_in_any_order() -> None:
    """Threads take them one way round, a fork perhaps the other: nobody waits for ever."""
    first, second = Lock(), Lock()
    over, held = threading.Event(), threading.Event()

    def nested(one: Lock, other: Lock) -> None:
        while not over.is_set():
            with one, other:
                held.set()

    threads = [threading.Thread(target=nested, args=(first, second), daemon=True)]
    threads += [threading.Thread(target=nested, args=(first, second), daemon=True)]
    for thread in threads:
        thread.start()
    held.wait(3600)

    def free() -> bool:
        return all(lock.acquire(timeout=3600) for lock in (second, first))

    for _ in range(20):
        assert in_child(free)
    over.set()
    for thread in threads:
        thread.join(3600)
        assert not thread.is_alive()


# ---------------------------------------------------------------- what it rests on


class Slow:
    """cached and locked, with threads inside."""

    def __init__(self) -> None:
        self.lock, self.inside, self.most = Lock(), 0, 0
        self.met = threading.Barrier(2)

    @cached
    def found(self) -> list[int]:
        """What it is."""
        self.met.wait(3600)  # both threads look before either has found it
        return []

    @locked
    def alone(self) -> None:
        self.inside += 1
        self.most = max(self.most, self.inside)
        threading.Event().wait(0.001)
        self.inside -= 1


def run(*works: Callable[[], Any]) -> list[Any]:
    found: list[Any] = [None] * len(works)

    def work(k: int) -> None:
        found[k] = works[k]()

    threads = [threading.Thread(target=work, args=(k,), daemon=True) for k in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(3600)
    return found


def test_waiting_ends_with_the_budget() -> None:
    slow, release = Slow(), threading.Event()

    def hold() -> None:
        with slow.lock:
            release.wait(3600)

    def wait() -> str:
        with spending(Budget(max_seconds=0.05)):
            try:
                slow.alone()
            except BudgetExceededError as error:
                return error.resource
            finally:
                release.set()
        return "no error"

    holder = threading.Thread(target=hold, daemon=True)
    holder.start()
    while not slow.lock._is_owned() and slow.lock.acquire(blocking=False):
        slow.lock.release()
    assert run(wait) == ["seconds"]
    holder.join(3600)
    with spending(Budget(max_seconds=60)):
        slow.alone()  # the lock is free again
