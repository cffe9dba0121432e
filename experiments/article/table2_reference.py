"""The article's algorithms in plain Python, step by step, within limits of time and memory.

They know base symbols and merges only, so their tokenizer is the merge table alone (see
`mistral`). The package's eager engine is measured on the same table beside them, and their
first masks are compared.
"""

from __future__ import annotations

from dataclasses import dataclass

from bpe_automata import Tokenizer
from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.constructions import CartesianMerge
from bpe_automata.kernels.bits import members
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
from experiments.article.server import forked, limits
from experiments.article.table2_methods import MOST_MASKS
from experiments.run.executors import Row
from experiments.shared.resources import timed


@dataclass(frozen=True)
class Reference:
    """A merge table, its automaton of all texts (Algorithm 3, fused), and the base symbols of each
    token. `seconds`: of the automaton, step 1."""

    tokenizer: Tokenizer
    texts: AllTexts
    spelled: dict[Token, tuple[Token, ...]]
    seconds: float


def prepared(tokenizer: Tokenizer) -> Reference:
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
