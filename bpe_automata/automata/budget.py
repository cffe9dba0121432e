"""What a construction may spend before it gives up with `BudgetExceededError`."""

from __future__ import annotations

import time
from dataclasses import dataclass

from bpe_automata.errors import BudgetExceededError

_SMALLER = "use smaller repeat counts, or split the regex, or pass a larger Budget"


@dataclass(frozen=True)
class Budget:
    """Limits of one `compile_regex`.

    max_states: states of an automaton over characters; 10 times as many places of the program that
        it is made from. (Over bytes `.` alone needs 7 more per state; max_bytes bounds those.)
    max_seconds: of the subset construction, which is what can explode; of the thread, so that what
        is refused does not depend on what else the machine does.
    max_bytes: memory of the tables of any one step.
    """

    max_states: int = 100_000
    max_seconds: float = 10.0
    max_bytes: int = 500_000_000

    @property
    def max_places(self) -> int:
        """Places of the Thompson program that the regex is written out to."""
        return 10 * self.max_states


class Clock:
    """Says when `budget.max_seconds` have passed since it was made."""

    def __init__(self, budget: Budget) -> None:
        self._limit = budget.max_seconds
        self._end = time.thread_time() + budget.max_seconds

    def check(self) -> None:
        """Raise BudgetExceededError once the time is up."""
        if time.thread_time() > self._end:
            raise BudgetExceededError("seconds", self._limit, _SMALLER)


def out_of_states(budget: Budget) -> BudgetExceededError:
    """The error for an automaton with too many states."""
    return BudgetExceededError("states", budget.max_states, f"the automaton is larger; {_SMALLER}")


def out_of_memory(budget: Budget) -> BudgetExceededError:
    """The error for tables that would be too large."""
    return BudgetExceededError("bytes", budget.max_bytes, f"the tables are larger; {_SMALLER}")


def out_of_places(budget: Budget) -> BudgetExceededError:
    """The error for a regex that is too long once its repeats are written out."""
    advice = f"the regex is longer than that once its repeats are written out; {_SMALLER}"
    return BudgetExceededError("places", budget.max_places, advice)
