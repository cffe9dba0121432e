"""How much fits into the arrays that kernels work on, which nothing checks there.

What is numbered, counted or pointed into by an int32 stays below `NUMBERS`; what is packed into one
int64 has limits of its own, which stand beside the packing. Each is checked once, where the arrays
are made.
"""

from __future__ import annotations

from bpe_automata.errors import BudgetExceededError

NUMBERS = 2**31 - 1
"""The most that an int32 can number: states, state pairs, ids, bytes of all tokens, cells of a
table."""


def check_fits(resource: str, count: int, limit: int, advice: str) -> None:
    """Raises BudgetExceededError if `count` is over the limit; `advice`: what to do then."""
    if count > limit:
        raise BudgetExceededError(resource, limit, f"there are {count:,}, {advice}")
