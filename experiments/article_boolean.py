"""Figure 2: the article's example under the lift and under DirectMerge, with the Mistral-7B merge
table alone."""

from __future__ import annotations

from experiments.article_panels import Panel, drawing_of
from experiments.article_table import mistral_table
from experiments.distortion import BOOLEAN
from experiments.table1_sizes import automata

HEADLINE = f"Figure 2. {BOOLEAN}, over any tokenization and over the tokenizer's own"
NOTE = (
    "Merge table of Mistral-7B-v0.1 alone. Published: 17 states and 48 transitions, 5 and 4. "
    "DirectMerge was given interegular's automaton, as in the article; from the minimal one 4 "
    "states are left.\n"
    "Of Figures 2 to 6 of the article neither number nor caption was at hand: the numbers are ours."
)
NAMES = {
    "lift": "The lift (Outlines)",
    "direct_of_given": "DirectMerge",
}


def figure_2() -> list[list[Panel]]:
    """The lift above, DirectMerge below."""
    found = automata(mistral_table())
    rows = []
    for key, name in NAMES.items():
        automaton = found[key]
        sizes = f"{automaton.n_states} states, {automaton.n_transitions} transitions"
        rows.append([Panel(f"{name}: {sizes}", drawing_of(automaton))])
    return rows
