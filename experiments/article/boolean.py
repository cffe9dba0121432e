"""Figures 2 and 3: the article's example under the lift and under DirectMerge, with the Mistral-7B
merge table alone."""

from __future__ import annotations

from functools import lru_cache

from bpe_automata import TokenAutomaton
from experiments.article.mistral import NAME, mistral_table
from experiments.article.panels import Page, Panel
from experiments.article.pictures import drawing_of
from experiments.article.table1_sizes import IN_THE_TEXT, PUBLISHED, automata
from experiments.study.distortion import BOOLEAN


def figure_2() -> Page:
    """The lift."""
    found = _automata()
    note = (
        f"{NAME}. Published: {_words(*PUBLISHED['lift'])}, in the companion notebook; "
        f"the article's text says {IN_THE_TEXT} states."
    )
    return _page(2, f"{BOOLEAN} over any tokenization (the lift, Outlines)", found["lift"], note)


def figure_3() -> Page:
    """DirectMerge."""
    found = _automata()
    minimal = found["direct_of_minimal"]
    note = (
        f"{NAME}. Published: {_words(*PUBLISHED['direct_of_given'])}. DirectMerge was given "
        "interegular's automaton, as in the article; from the minimal one it makes "
        f"{_words(minimal.n_states, minimal.n_transitions)}."
    )
    headline = f"{BOOLEAN} over the tokenizer's own tokenization (DirectMerge)"
    return _page(3, headline, found["direct_of_given"], note)


@lru_cache(maxsize=1)
def _automata() -> dict[str, TokenAutomaton]:
    return automata(mistral_table())


def _page(number: int, headline: str, automaton: TokenAutomaton, note: str) -> Page:
    size = _words(automaton.n_states, automaton.n_transitions)
    return Page(((Panel(size, drawing_of(automaton)),),), f"Figure {number}. {headline}", note)


def _words(states: int, transitions: int) -> str:
    return f"{states} states, {transitions} transitions"
