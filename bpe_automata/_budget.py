"""What a call may spend before it gives up with `BudgetExceededError`: states, seconds, bytes.

`spending(budget)` is where a call begins to count; whatever it calls, in the same thread, says
`check()` in its long loops (compiled ones: see `_kernels.watch`). Calls within calls have budgets
within budgets: the one that ends first counts, and the error names it.

Seconds are CPU seconds of the thread, so that what is refused does not depend on what else the
machine does. There is one exception: for a lock that another thread holds (`sharing.locked`) a
call waits, by the clock on the wall, at most for the seconds that remain of its budget.
"""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable
from contextvars import copy_context
from dataclasses import dataclass
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from bpe_automata._limits import NUMBERS
from bpe_automata.errors import ArgumentError, BudgetExceededError

P = ParamSpec("P")
T = TypeVar("T")

_TEXTS = "make the automaton of a list of texts by from_strings"
_SMALLER = f"{_TEXTS}, use smaller repeat counts, split the regex, or pass a larger Budget"
_LINKED = f"see link_regex for large repeats, {_SMALLER}"
_FEWER = f"{_TEXTS}, use fewer alternatives or smaller repeat counts, or pass a larger Budget"
_NEVER = sys.maxsize
_LONGEST = 1e9  # seconds; more is no limit
_CALLS_AROUND = 120  # of a caller; what is below has nearly all of Python's 1,000 for itself


@dataclass(frozen=True)
class Budget:
    """Limits of one call.

    max_states: states of an automaton over characters; 10 times as many instructions of the program
        that it is made from. (Over bytes `.` alone needs 7 more per state; max_bytes bounds those.)
    max_seconds: of the thread's own work, see the module's docstring; exceeded by a fifth or half a
        second at most.
    max_bytes: memory of the tables of any one step, estimated before they are made. More than
        8 GiB counts as that: their cells are numbered with 32 bits.
    """

    max_states: int = 100_000
    max_seconds: float = 10.0
    max_bytes: int = 500_000_000

    def __post_init__(self) -> None:
        object.__setattr__(self, "max_bytes", min(self.max_bytes, 4 * NUMBERS))

    @property
    def max_instructions(self) -> int:
        """Instructions of the Thompson program that a regex becomes."""
        return min(10 * self.max_states, NUMBERS // 2)


READING = Budget(max_seconds=300.0, max_bytes=8_000_000_000)
"""What reading a tokenizer, or making its automaton, may take where nothing else is said."""


class spending(type(threading.RLock())):  # type: ignore[misc]  # noqa: N801 - as `suppress`
    """`with spending(budget):` makes the thread spend of a budget (None: of no further one).

    It is a lock, which the thread holds inside of the body, because a lock is released in C: the
    handler of a signal cannot come between, so no deadline outlives its body.
    """

    def __new__(cls, budget: Budget | None) -> spending:
        return super().__new__(cls)

    def __init__(self, budget: Budget | None) -> None:
        thread = _local.thread
        self.around = around = thread.current()
        if around is None:
            self.deadline, self.seconds, self.max_bytes = _NEVER, math.inf, _NEVER
        else:
            self.deadline, self.seconds = around.deadline, around.seconds
            self.max_bytes = around.max_bytes
        if budget is not None:
            if not isinstance(budget, Budget):
                raise ArgumentError(f"the budget is a {type(budget).__name__}: give a Budget")
            self.max_bytes = min(self.max_bytes, budget.max_bytes)
            if budget.max_seconds < _LONGEST:
                deadline = time.thread_time_ns() + int(budget.max_seconds * 1e9)
                if deadline < self.deadline:
                    self.deadline, self.seconds = deadline, budget.max_seconds
        thread.inner = self
        thread.sure_until = 0


class _Thread:
    """inner: the innermost budget that the thread spends of. sure_until: the ns of the clock on the
    wall until which its time cannot be up, as no thread works for longer than passes. helped: the
    ns that other threads have worked for it."""

    __slots__ = ("helped", "inner", "sure_until")

    def __init__(self) -> None:
        self.inner: spending | None = None
        self.sure_until = 0
        self.helped = 0

    def current(self) -> spending | None:
        """The innermost budget whose body has not ended."""
        inner = self.inner
        while inner is not None and not inner._is_owned():
            inner = self.inner = inner.around
        return inner

    def deadline(self) -> int:
        """ns of the thread's clock."""
        inner = self.inner and self.current()
        return inner.deadline if inner else _NEVER


class _Local(threading.local):
    def __init__(self) -> None:
        self.thread = _Thread()


_local = _Local()


class _Spender(Protocol):
    @property
    def budget(self) -> Budget | None: ...


S = TypeVar("S", bound=_Spender)


def spent(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
    """The method, each call of which spends of `self.budget`."""

    @wraps(method)
    def bounded(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with spending(self.budget):
            return method(self, *args, **kwargs)

    return bounded


def check() -> None:
    """Raises BudgetExceededError once the time is up: loops that may be long call it. It takes a
    fifth of a microsecond, as it asks the clock of the thread, which may take many, only where the
    time may be up."""
    thread = _local.thread
    if thread.inner is None or time.perf_counter_ns() < thread.sure_until:
        return
    now, remaining = time.perf_counter_ns(), thread.deadline() - time.thread_time_ns()
    if remaining <= 0:
        raise out_of_time()
    thread.sure_until = now + remaining


def check_bytes(count: int, made: str) -> None:
    """Before a table of so many bytes is made. made: what they are, for the message: "the trie".
    Raises BudgetExceededError."""
    inner = _local.thread.current()
    if inner is not None and count > inner.max_bytes:
        advice = f"{made} would take {count:,}; pass a larger Budget"
        raise BudgetExceededError("bytes", inner.max_bytes, advice)


def seconds_left() -> float:
    """The seconds until the thread has spent its budget, at least 0; inf where it spends none. A
    thread waits no longer for a lock."""
    deadline = _local.thread.deadline()
    return math.inf if deadline == _NEVER else max(0.0, (deadline - time.thread_time_ns()) / 1e9)


def with_room(find: Callable[[], T]) -> T:
    """find(), called where the stack has room: in another thread if the caller's stack is deep
    already. So a recursion of bounded depth is refused everywhere or nowhere. The caller's budgets
    bound what find() spends."""
    if _is_shallow():
        return find()
    found: list[T] = []
    errors: list[BaseException] = []
    within, spent_there = handed_on(), [0]

    def run() -> None:
        try:
            with within():
                found.append(find())
        except BaseException as error:  # goes on in the caller's thread
            errors.append(error)
        spent_there[0] = time.thread_time_ns() + _local.thread.helped

    thread = threading.Thread(target=copy_context().run, args=(run,), daemon=True)
    thread.start()
    thread.join()
    _count(spent_there[0])
    if errors:
        raise errors[0]
    return found[0]


def _count(nanoseconds: int) -> None:
    """Spend what another thread has worked for this one."""
    thread = _local.thread
    thread.sure_until = 0
    thread.helped += nanoseconds
    inner = thread.current()
    while inner is not None:
        if inner.deadline != _NEVER:
            inner.deadline -= nanoseconds
        inner = inner.around


def handed_on() -> Callable[[], spending]:
    """Hands the thread's remaining budget to another thread that works for it: this one calls
    `within = handed_on()`, the other one `with within():`. Each of them may spend as much."""
    around, remaining = _local.thread.current(), seconds_left()

    def within() -> spending:
        if around is None:
            return spending(None)
        there = spending(Budget(max_seconds=remaining))
        there.seconds, there.max_bytes = around.seconds, around.max_bytes
        return there

    return within


def _is_shallow() -> bool:
    frame = sys._getframe()
    for _ in range(_CALLS_AROUND):
        if frame.f_back is None:
            return True
        frame = frame.f_back
    return False


def out_of_time() -> BudgetExceededError:
    """The error for what took too long."""
    inner = _local.thread.current()
    return BudgetExceededError("seconds", inner.seconds if inner else 0, _SMALLER)


def out_of_states(most: int) -> BudgetExceededError:
    """The error for an automaton with too many states."""
    return BudgetExceededError("states", most, f"the automaton is larger; {_LINKED}")


def out_of_memory(budget: Budget) -> BudgetExceededError:
    """The error for tables that would be too large."""
    advice = "the tables are larger (states x distinct characters or bytes)"
    return BudgetExceededError("bytes", budget.max_bytes, f"{advice}; {_FEWER}")


def out_of_instructions(budget: Budget) -> BudgetExceededError:
    """The error for a regex that is too long once its repeats are written out."""
    advice = f"the regex is longer than that once its repeats are written out; {_LINKED}"
    return BudgetExceededError("instructions", budget.max_instructions, advice)
