"""Does an automaton say what the tokenizer does? Random walks and random strings, compared with
`encode` itself.

    every walk that ends:   bytes(ids) in L,  and  encode(prompt + text) = prompt ids + ids
    every string s of L:    encode(prompt + s), or for the lift any ids that spell s, are allowed
                            one by one, and accepted
    along the way:          accepting  <=>  both hold;  no refused id would complete a text

Nothing of the construction under test is used to judge it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bpe_automata.arguments import sequence_of_ids
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.decoding.checks import Counterexample, Oracle, Tally
from bpe_automata.decoding.constraint import Constraint, Method, constrain
from bpe_automata.tokenizer import Tokenizer

_BATCH = 50


@dataclass(frozen=True)
class Verification:
    """method: what the ids had to be; walks, strings: how many were compared; skipped: strings
    that have no ids of their own (bytes without a token, an id spelled out that is never text, a
    prompt that merges with them); counterexample: the first one found; seconds: wall time."""

    method: Method
    walks: int
    strings: int
    skipped: int
    counterexample: Counterexample | None
    seconds: float

    @property
    def ok(self) -> bool:
        """Was no counterexample found?"""
        return self.counterexample is None

    def __str__(self) -> str:
        done = (
            f"{self.walks} walks and {self.strings} strings ({self.skipped} skipped) in "
            f"{self.seconds:.1f} s, method {self.method}"
        )
        if self.counterexample is None:
            return f"ok: no counterexample in {done}"
        return f"counterexample found, after {done}\n{self.counterexample}"


def verify(
    tokenizer: Tokenizer,
    constraint: str | ByteDFA | Constraint,
    n: int = 1000,
    seed: int = 0,
    method: Method | None = None,
    prefix: Sequence[int] = (),
    *,
    progress: Callable[[int, int], None] | None = None,
) -> Verification:
    """Compare `n` random walks and `n` random strings with the tokenizer's own `encode`.

    constraint: a regex or byte DFA, constrained by `method` here; or a `Constraint`, whose ids are
    then held against `method`. method: "canonical" (ids must be the tokenizer's own; the default)
    or "lift" (their bytes must match); by default that of a given `Constraint`. prefix: ids of a
    prompt. progress: called with (done, n). Stops at the first counterexample. Raises what
    `constrain` and `Constraint.matcher` raise.
    """
    started = time.perf_counter()
    if isinstance(constraint, Constraint):
        method = method or constraint.method
    else:
        method = method or "canonical"
        constraint = constrain(tokenizer, constraint, method)
    oracle = Oracle(tokenizer, constraint, method, sequence_of_ids(prefix), seed)
    tally = Tally()
    for done in range(0, n, _BATCH):
        if progress:
            progress(done, n)
        count = min(_BATCH, n - done)
        found = oracle.check_walks(count, tally) or oracle.check_strings(count, tally)
        if found:
            break
    else:
        found = None
    seconds = time.perf_counter() - started
    return Verification(method, tally.walks, tally.strings, tally.skipped, found, seconds)
