"""Figure 2: the article's example under the lift and under DirectMerge, with the Mistral-7B merge
table alone."""

from __future__ import annotations

from bpe_automata import TokenAutomaton
from experiments.article.canvas import OURS
from experiments.article.mistral import NAME, mistral_table
from experiments.article.panels import Page, Panel
from experiments.article.pictures import drawing_of
from experiments.article.table1_sizes import PUBLISHED, automata
from experiments.study.distortion import BOOLEAN

NAMES = {
    "lift": "The lift (Outlines)",
    "direct_of_given": "DirectMerge",
}


def figure_2() -> Page:
    """The lift above, DirectMerge below."""
    found = automata(mistral_table())
    rows = [(Panel(f"{t}: {_size(found[k])}", drawing_of(found[k])),) for k, t in NAMES.items()]
    published = " and ".join("{} states, {} transitions".format(*PUBLISHED[key]) for key in NAMES)
    note = (
        f"{NAME}. Published: {published}. DirectMerge was given interegular's automaton, as in the "
        f"article; from the minimal one it makes {_size(found['direct_of_minimal'])}.\n{OURS}"
    )
    headline = f"Figure 2. {BOOLEAN}, over any tokenization and over the tokenizer's own"
    return Page(tuple(rows), headline, note)


def _size(automaton: TokenAutomaton) -> str:
    return f"{automaton.n_states} states, {automaton.n_transitions} transitions"
