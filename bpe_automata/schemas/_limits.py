"""Limits the work that reading one schema may take.

The work is counted in steps (a schema read, two shapes compared) and in nested levels, so that a
schema is refused on every machine or on none; a limit of seconds is the last resort.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from bpe_automata._budget import check
from bpe_automata.errors import BudgetExceededError, SchemaError, SchemaTooLargeError
from bpe_automata.schemas._drafts import below

MAX_STEPS = 100_000  # 10 to 100 microseconds each
MAX_LEVELS = 80  # nested readings or comparisons of sets, each of some 7 calls
_remaining: ContextVar[list[int] | None] = ContextVar("remaining", default=None)


@contextmanager
def limited_steps(steps: int = MAX_STEPS) -> Iterator[None]:
    """Inside, `step` raises BudgetExceededError once it has been called `steps` times."""
    token = _remaining.set([steps])
    try:
        yield
    finally:
        _remaining.reset(token)


def step() -> None:
    """Count one step. Raises BudgetExceededError, also when the budget's seconds have passed."""
    check()
    remaining = _remaining.get()
    if remaining is None:
        return
    remaining[0] -= 1
    if remaining[0] < 0:
        advice = "alternatives have to be compared too often; use fewer under oneOf, allOf or not"
        raise BudgetExceededError("comparisons", MAX_STEPS, advice)


def check_levels(levels: int) -> None:
    """Raise BudgetExceededError if there are so many levels that Python's stack may overflow."""
    if levels > MAX_LEVELS:
        advice = (
            "schemas are applied inside one another, or compared, more deeply; use fewer levels"
        )
        raise BudgetExceededError("levels", MAX_LEVELS, advice)


@contextmanager
def as_too_large(pointer: str, *tokens: str) -> Iterator[None]:
    """Inside, an exceeded budget becomes a SchemaTooLargeError at below(pointer, *tokens)."""
    try:
        yield
    except SchemaError:
        raise
    except BudgetExceededError as error:
        advice = str(error).partition("exceeded: ")[2]
        where = below(pointer, *tokens)
        raise SchemaTooLargeError(where, error.resource, error.limit, advice) from error
    except RecursionError:
        advice = "schemas are nested more deeply than calls may be; use fewer levels"
        where, limit = below(pointer, *tokens), sys.getrecursionlimit()
        raise SchemaTooLargeError(where, "calls", limit, advice) from None
