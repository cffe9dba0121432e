"""Budgets of time bound whatever is started, and Ctrl-C ends it: see `budget`, `_kernels.watch`."""

from __future__ import annotations

import gc
import os
import signal
import threading
from collections.abc import Iterator
from itertools import count
from math import inf

import pytest
from long_calls import HARD, LONG
from support import called_after

from bpe_automata import Budget, compile_regex
from bpe_automata._budget import (
    check,
    check_bytes,
    excuse,
    seconds_left,
    spending,
    with_room,
)
from bpe_automata.errors import BudgetExceededError


def test_inside_the_earlier_end_counts_and_is_named_and_nothing_is_spent_outside():
    with spending(Budget(max_seconds=0)):
        with pytest.raises(BudgetExceededError, match="budget of 0 seconds"):
            check()
        with spending(Budget(max_seconds=50)), pytest.raises(BudgetExceededError, match="of 0 s"):
            check()
    left: list[float] = []
    with spending(Budget(max_seconds=50, max_bytes=100)):
        with spending(Budget(max_seconds=2)):
            assert 1 < seconds_left() <= 2
        with spending(None):
            assert 40 < seconds_left() <= 50
        check_bytes(100, "a table")
        with pytest.raises(BudgetExceededError, match="100 bytes exceeded: a table would take 101"):
            check_bytes(101, "a table")
        other = threading.Thread(target=lambda: left.append(seconds_left()))  # has none
        other.start()
        other.join()
    check()
    check_bytes(10**15, "a table")
    assert [*left, seconds_left()] == [inf, inf]


def test_work_that_is_excused_is_not_counted():
    with spending(Budget(max_seconds=50)), spending(Budget(max_seconds=10)):
        excuse(10**10)
        assert 15 < seconds_left() <= 20
    with spending(Budget(max_seconds=50)):
        with spending(Budget(max_seconds=10)):
            excuse(10**10)
        assert 55 < seconds_left() <= 60


@pytest.fixture
def default_sigint() -> Iterator[None]:
    """A shell may ignore it. And nothing is collected meanwhile, as what is raised in a callback is
    lost (hypothesis has one, and weak dictionaries have them for what other tests left)."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.collect()
    gc.disable()
    yield
    gc.enable()
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("name", LONG)
def test_every_kind_of_call_ends_by_its_budget_and_by_ctrl_c(name, tmp_path, default_sigint):
    """Each of these calls would take minutes."""
    call = LONG[name](tmp_path)
    with pytest.raises(BudgetExceededError, match="seconds"), spending(Budget(max_seconds=0.1)):
        call()
    ctrl_c = called_after(0.2, lambda *_: os.kill(os.getpid(), signal.SIGINT))
    with ctrl_c, pytest.raises(KeyboardInterrupt):
        call()
    # No lock is left held, and nothing half made is taken for whole: the same call begins anew.
    with pytest.raises(BudgetExceededError, match="seconds"), spending(Budget(max_seconds=0.02)):
        call()


def test_a_signal_handler_that_returns_ends_nothing():
    seen: list[bool] = []
    handled = called_after(0.1, lambda *_: seen.append(True))
    with handled, pytest.raises(BudgetExceededError, match="seconds"):
        compile_regex(HARD, Budget(10**7, 1.0, 8 * 10**9))
    assert len(seen) == 1


def test_a_deep_caller_spends_of_its_own_budget():
    def below(calls, find):
        return below(calls - 1, find) if calls else with_room(find)

    def spend():
        with pytest.raises(BudgetExceededError) as caught:
            check_bytes(1001, "the table")
        assert caught.value.limit == 1000
        with pytest.raises(BudgetExceededError) as caught:
            all(check() is None for _ in count())
        assert (caught.value.resource, caught.value.limit) == ("seconds", 0.05)
        return threading.get_ident()

    with spending(Budget(max_seconds=0.05, max_bytes=1000)):
        assert below(300, spend) != threading.get_ident()
        with pytest.raises(BudgetExceededError):  # no time is left to the caller either
            check()
