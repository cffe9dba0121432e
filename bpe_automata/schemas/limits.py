"""How much work the reading of one schema may take.

Counted in steps (a schema read, two shapes compared) and in levels, and only at last in seconds:
the same schema is refused everywhere or nowhere, however deep the stack is that it is read on.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import TypeVar

from bpe_automata.budget import Budget, check, seconds_left, spending
from bpe_automata.errors import BudgetExceededError, SchemaError, SchemaTooLargeError

MAX_STEPS = 100_000  # 10 to 100 microseconds each
MAX_LEVELS = 80  # sets that are read or compared, each for the one before: some 7 calls a level
_CALLS_AROUND = 120  # of a caller; with more around them, MAX_LEVELS might not fit into 1,000
_left: ContextVar[list[int] | None] = ContextVar("left", default=None)


@contextmanager
def limited_steps(steps: int = MAX_STEPS) -> Iterator[None]:
    """Inside, `step` raises BudgetExceededError once it has been called `steps` times."""
    token = _left.set([steps])
    try:
        yield
    finally:
        _left.reset(token)


def step() -> None:
    """Count one. Raises BudgetExceededError, also for the seconds of the budget."""
    check()
    left = _left.get()
    if left is None:
        return
    left[0] -= 1
    if left[0] < 0:
        advice = "alternatives have to be compared too often; use fewer under oneOf, allOf or not"
        raise BudgetExceededError("comparisons", MAX_STEPS, advice)


def check_levels(levels: int) -> None:
    """Raises BudgetExceededError for more levels than are sure to fit onto the stack."""
    if levels > MAX_LEVELS:
        advice = (
            "schemas are applied inside one another, or compared, more deeply; use fewer levels"
        )
        raise BudgetExceededError("levels", MAX_LEVELS, advice)


Found = TypeVar("Found")


def with_room(find: Callable[[], Found]) -> Found:
    """find(), with room for all its calls: in a thread with a stack of its own if the caller's is
    deep already. What it spends, the caller's budget bounds as ever."""
    if _is_shallow():
        return find()
    found: list[Found] = []
    errors: list[BaseException] = []
    left = Budget(max_seconds=seconds_left())

    def run() -> None:
        try:
            with spending(left):
                found.append(find())
        except BaseException as error:  # goes on in the caller's thread
            errors.append(error)

    thread = threading.Thread(target=copy_context().run, args=(run,), daemon=True)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return found[0]


def _is_shallow() -> bool:
    frame = sys._getframe()
    for _ in range(_CALLS_AROUND):
        if frame.f_back is None:
            return True
        frame = frame.f_back
    return False


@contextmanager
def as_too_large(pointer: str) -> Iterator[None]:
    """Inside, a budget that is exceeded is told as a SchemaTooLargeError at `pointer`."""
    try:
        yield
    except SchemaError:
        raise
    except BudgetExceededError as error:
        advice = str(error).partition("exceeded: ")[2]
        raise SchemaTooLargeError(pointer, error.resource, error.limit, advice) from error
    except RecursionError:
        advice = "schemas are nested more deeply than calls may be; use fewer levels"
        raise SchemaTooLargeError(pointer, "calls", sys.getrecursionlimit(), advice) from None
