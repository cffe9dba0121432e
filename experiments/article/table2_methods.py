"""The engines of Table 2 step by step: of the package, and the article's algorithms.

Step 2 is the lift, the masks of all its states. Step 3 finds the relevant states, which is what
relevance adds to the lift: what is dead at each node of the product. Step 4 is a mask. The eager
engine takes them one by one; then, in one pass, it makes the rows of all nodes, which is all that
decoding needs. The lazy one does what the masks that are asked for need.

The article's algorithms are in plain Python, within limits of time and memory. They know base
symbols and merges only, so their tokenizer is the merge table alone; the eager engine is measured
on the same table, and the first masks are compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from bpe_automata import Tokenizer
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.constructions import CartesianMerge, Lift, SegmentCache
from bpe_automata.constructions.segments_eager import all_configurations, prepared, settle
from bpe_automata.errors import BpeAutomataError
from bpe_automata.kernels.bits import has, members
from bpe_automata.reference import (
    AllTexts,
    CartesianProduct,
    all_texts,
    lift,
    merges_in_order,
    product_mask,
    spelled_in_symbols,
    symbol_dfa,
)
from bpe_automata.reference.token_dfa import Token
from experiments.article.forks import forked, limits
from experiments.run.executors import Row
from experiments.shared.resources import timed

MOST_MASKS = 60
"""Masks of one text that are looked at."""


class Table2Error(BpeAutomataError):
    """What was measured is wrong: the message says where."""


@dataclass(frozen=True)
class Task:
    """A tokenizer, an automaton, and the ids of a text that it accepts."""

    tokenizer: Tokenizer
    dfa: ByteDFA
    ids: Sequence[int]

    def engine(self) -> CartesianMerge:
        """A new one, which knows nothing yet."""
        return CartesianMerge(self.tokenizer, self.dfa, self.tokenizer.eos_ids)


def eager(task: Task) -> Row:
    """Seconds of each step; `rows`: of steps 2 and 3 in one pass; `nodes`, `dead`: how many nodes
    there are, and at how many some id is dead."""
    engine = task.engine()
    rows, nodes = timed(lambda: all_configurations(engine, engine.initial()))
    masks = along(engine, task.ids)
    lifting, _ = timed(lambda: _lifted(task))
    fresh = task.engine()
    relevance, dead = timed(lambda: settle(fresh, nodes))
    steps = {"lift": lifting, "relevance": relevance, "rows": rows, "masks": masks}
    return steps | {"nodes": len(nodes), "dead": dead}


def _lifted(task: Task) -> None:
    lift = Lift(task.tokenizer, task.dfa, task.tokenizer.eos_ids)
    for state in range(1, lift.dfa.n_states):
        lift.mask(state)


def lazy(task: Task) -> Row:
    """`rows`: to an engine and its first mask; `masks`: all of them, the first included."""
    making, engine = timed(task.engine)
    masks = along(engine, task.ids)
    return {"rows": making + masks[0], "masks": masks}


def segmented(task: Task, cache: SegmentCache) -> Row:
    """Eager, with what the cache knows: only `made` rows of the nodes are made. Masks are as those
    of `eager`."""
    engine = task.engine()
    before = cache.counts.made + cache.counts.apart
    rows, nodes = timed(lambda: prepared(engine, engine.initial(), cache))
    return {"rows": rows, "nodes": nodes, "made": cache.counts.made + cache.counts.apart - before}


def along(engine: CartesianMerge, ids: Sequence[int]) -> list[float]:
    """Seconds of each mask before an id. Raises Table2Error where the id is not in it."""
    before, state = timed(engine.initial)  # which asks for the first mask too
    seconds: list[float] = []
    for number, token in enumerate(ids[:MOST_MASKS]):
        spent, mask = timed(partial(engine.mask, state))
        seconds.append(before + spent if number == 0 else spent)
        if not has(mask, token):
            raise Table2Error(f"id {token}, number {number} of the text's own, is masked out")
        state = engine.step(state, token)
    return seconds


@dataclass(frozen=True)
class Reference:
    """A merge table, its automaton of all texts (Algorithm 3, fused), and the base symbols of each
    token. `seconds`: of the automaton, step 1."""

    tokenizer: Tokenizer
    texts: AllTexts
    spelled: dict[Token, tuple[Token, ...]]
    seconds: float


def prepared_reference(tokenizer: Tokenizer) -> Reference:
    """Step 1."""
    merges, base = merges_in_order(tokenizer.description), tokenizer.description.base.values()
    seconds, texts = timed(lambda: all_texts(base, merges).fused())
    return Reference(tokenizer, texts, spelled_in_symbols([*base], merges), seconds)


def measured(reference: Reference, dfa: ByteDFA, text: str, seconds: float, mb: float) -> Row:
    """Seconds of steps 2 to 4 in a process of its own, and `first`: are the first masks equal?
    `status`: "done", or what was over its limit (`seconds`, or `mb` 10^6 bytes more)."""

    def work() -> Row:
        with limits(seconds, mb):
            return steps(reference, dfa, text)

    return forked(work)


def steps(reference: Reference, dfa: ByteDFA, text: str) -> Row:
    """The same in this process, without limits."""
    symbols = symbol_dfa(reference.tokenizer.description, dfa)
    lifting, lifted = timed(lambda: lift(symbols, reference.spelled))
    product = CartesianProduct(lifted, reference.texts)
    relevance, relevant = timed(lambda: product.relevant)
    masks, pair, first = [], product.start, None
    for token in reference.tokenizer.encode(text)[:MOST_MASKS]:
        spent, mask = timed(lambda here=pair: product_mask(product, here))  # type: ignore[misc]
        first = mask if first is None else first
        masks.append(spent)
        pair = product.step(pair, token)
    engine = CartesianMerge(reference.tokenizer, dfa)
    ours = {*members(engine.mask(engine.initial())).tolist()}
    times = {"lift": lifting, "relevance": relevance, "masks": masks}
    return times | {"nodes": len(relevant), "first": first is None or first == ours}
