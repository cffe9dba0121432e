"""Figure 5: the target language as an intersection. The automaton of all texts (Algorithm 3) and
its product with a lift (CartesianMerge), for the merges of the article's Table 1."""

from __future__ import annotations

from collections.abc import Hashable

from bpe_automata import compile_regex
from bpe_automata.reference import (
    CartesianProduct,
    TokenDFA,
    all_texts,
    lift,
    merges_in_order,
    spelled_in_symbols,
    symbol_dfa,
)
from bpe_automata.testing import small_tokenizer
from experiments.article.panels import Page, Panel, drawing_of_dfa
from experiments.article.table1_report import MERGES, TOKENS

REGEX = "a*(b|c)"
HEADLINE = "Figure 5. CartesianMerge: the tokenizer's own tokenizations of all texts, and a lift"
NOTE = (
    f"Merges a b, a a, a c in this order; the regex is {REGEX}. All texts: every state "
    "accepts, and a token leads to one state wherever it is read."
)


def figure_5() -> Page:
    """All texts, the lift, and the relevant part of their product."""
    texts, lifted, product = automata()
    tokens = dict(enumerate(TOKENS))
    of_texts = names(texts, "012")
    of_lift = names(lifted, "pq")
    of_both: dict[Hashable, str] = {
        (state, text): name + number
        for state, name in of_lift.items()
        for text, number in of_texts.items()
    }
    panels = (
        Panel("The automaton of all texts (Algorithm 3)", drawing_of_dfa(texts, tokens, of_texts)),
        Panel(f"The lift of {REGEX}", drawing_of_dfa(lifted, tokens, of_lift)),
        Panel("The relevant part of their product", drawing_of_dfa(product, tokens, of_both)),
    )
    return Page((panels,), HEADLINE, NOTE)


def names(dfa: TokenDFA, letters: str) -> dict[Hashable, str]:
    """Short names, that of the start first."""
    others = sorted(dfa.states() - {dfa.start}, key=str)
    return dict(zip([dfa.start, *others], letters, strict=False))


def automata() -> tuple[TokenDFA, TokenDFA, TokenDFA]:
    """All texts, the lift, their product."""
    description = small_tokenizer(TOKENS, MERGES).description
    merges = merges_in_order(description)
    base = [*description.base.values()]
    texts = all_texts(base, merges).fused()
    symbols = spelled_in_symbols(base, merges)
    lifted = lift(symbol_dfa(description, compile_regex(REGEX)), symbols)
    return texts.automaton(), lifted, CartesianProduct(lifted, texts).automaton()
