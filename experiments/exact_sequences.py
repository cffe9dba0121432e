"""Laws about single sequences: what `encode` gives is accepted, other ids exactly when `encode`
gives them back, and random walks of a constraint are canonical, match, and can finish."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from bpe_automata import Constraint, Tokenizer
from bpe_automata.constructions import CanonicalAutomaton, canonical_automaton
from bpe_automata.constructions.canonical import START
from experiments.adversarial import Adversary
from experiments.walks import CannotFinishError, finish, walk

BATCH = 1000
LONGEST_WALK = 24
Found = tuple[Counter[str], list[dict[str, Any]]]
"""(what was counted, the exceptions in full)."""


def accepts(automaton: CanonicalAutomaton, ids: Sequence[int]) -> bool:
    """Does the canonical automaton accept the ids?"""
    state = START
    for token in ids:
        after = automaton.step(state, token)
        if after is None:
            return False
        state = after
    return automaton.ends(state)


def strings(tokenizer: Tokenizer, n: int, rng: random.Random, advance: Callable[[], None]) -> Found:
    """`encode(s)` is accepted iff it spells s; it does not where a byte has no token."""
    adversary = Adversary(tokenizer, rng)
    counts, wrong = Counter[str](), []
    for size in batches(n):
        texts = [adversary.text() for _ in range(size)]
        for ids in tokenizer.encode_batch(texts):
            advance()
            counts["ids"] += len(ids)
            counts["tried"] += 1
            wrong += [case for case in (_compared(tokenizer, ids, counts),) if case]
    return counts, wrong


def resegmentations(
    tokenizer: Tokenizer, n: int, rng: random.Random, advance: Callable[[], None]
) -> Found:
    """Other ids of random strings are accepted iff encode(decode(ids)) == ids."""
    adversary = Adversary(tokenizer, rng)
    counts, wrong = Counter[str](), []
    for size in batches(n):
        own = tokenizer.encode_batch([adversary.text() for _ in range(size)])
        for ids in map(adversary.resegmented, own):
            advance()
            counts["tried"] += 1
            wrong += [case for case in (_compared(tokenizer, ids, counts),) if case]
    return counts, wrong


def _compared(tokenizer: Tokenizer, ids: list[int], counts: Counter[str]) -> dict[str, Any] | None:
    text = tokenizer.decode(ids)
    again = tokenizer.encode(text)
    accepted = accepts(canonical_automaton(tokenizer), ids)
    counts["canonical" if again == ids else "not canonical"] += 1
    if accepted == (again == ids):
        return None
    kind = "false accept" if accepted else "false reject"
    counts[kind] += 1
    return {"kind": kind, "text": text, "ids": ids, "encode": again}


def walks(
    constraint: Constraint, name: str, n: int, rng: random.Random, advance: Callable[[], None]
) -> Found:
    """Random walks of one constraint, then the way home: canonical, matching, always at an end."""
    counts, wrong = Counter[str](), []
    for _ in range(n):
        advance()
        counts["tried"] += 1
        ids, state = walk(constraint, rng, LONGEST_WALK)
        try:
            ids = finish(constraint, ids, state, rng)
        except CannotFinishError as error:
            wrong.append({"kind": "no way home", "regex": name, "ids": error.args[0]})
            continue
        counts["ids"] += len(ids)
        wrong += [{"kind": kind, "regex": name, "ids": ids} for kind in faults(constraint, ids)]
    counts.update(case["kind"] for case in wrong)
    return counts, wrong


def faults(constraint: Constraint, ids: list[int]) -> Iterator[str]:
    """What is wrong with ids that a constraint let through."""
    text = constraint.tokenizer.decode(ids)
    if constraint.tokenizer.encode(text) != ids:
        yield "not canonical"
    if not constraint.dfa.accepts(text.encode("utf-8")):
        yield "no match"


def batches(n: int) -> Iterator[int]:
    """Sizes up to `BATCH` that sum to n."""
    for start in range(0, n, BATCH):
        yield min(BATCH, n - start)
