"""States and transitions of the article's example, with the Mistral-7B merge table alone."""

from __future__ import annotations

from bpe_automata import TokenAutomaton, Tokenizer, compile_regex
from bpe_automata.constructions import CartesianMerge, Lift, explore
from bpe_automata.reference import (
    TokenDFA,
    direct_merge,
    explicit,
    lift,
    merges_in_order,
    spelled_in_symbols,
    symbol_dfa,
)
from bpe_automata.tokenizer.description import Description
from experiments.run.executors import Row
from experiments.run.files import require
from experiments.study.distortion import BOOLEAN

PUBLISHED = {"lift": (17, 48), "direct_of_given": (5, 4)}
"""States and transitions: drawn in the article's companion notebook, Tran-Thien 2024, which prints
the 48."""
IN_THE_TEXT = 16
"""States of the lift by the article's text, beside 48 transitions."""
INSTALL = "pip install 'interegular>=0.3.3'"


def measured(table: Tokenizer) -> dict[str, Row]:
    """By name: states, transitions, and how many of the states accept. table: BPE alone."""
    return {name: sizes(automaton) for name, automaton in automata(table).items()}


def sizes(automaton: TokenAutomaton) -> Row:
    """An automaton in numbers."""
    accepting = int(automaton.accepting.sum())
    states, transitions = automaton.n_states, automaton.n_transitions
    return {"states": states, "transitions": transitions, "accepting": accepting}


def automata(table: Tokenizer) -> dict[str, TokenAutomaton]:
    """The lift and DirectMerge of the reference, and what the package makes. DirectMerge changes
    the automaton that it is given, so it matters whether that one is minimal: the article gave it
    the one that interegular makes of the regex, in which `true` and `false` end apart."""
    description, dfa = table.description, compile_regex(BOOLEAN)
    merges = merges_in_order(description)
    minimal, spelled = symbol_dfa(description, dfa), table.spellings
    symbols = spelled_in_symbols([*description.base.values()], merges)
    given = interegular_dfa(description, BOOLEAN)
    lifted, canonical = Lift(table, dfa), CartesianMerge(table, dfa)
    return {
        "lift": explicit(lift(minimal, symbols), spelled),
        "direct_of_given": explicit(direct_merge(given, merges), spelled),
        "direct_of_minimal": explicit(direct_merge(minimal, merges), spelled),
        "package_lift": explore(lifted, lifted.initial()),
        "package_canonical": explore(canonical, canonical.initial()),
    }


def interegular_dfa(description: Description, regex: str) -> TokenDFA:
    """interegular's own automaton of a regex, not minimised, over base symbols. Raises
    MissingDependencyError."""
    fsm = require("interegular", INSTALL).parse_pattern(regex).to_fsm()
    read = {
        (character, symbol): fsm.alphabet[character]
        for data, symbol in description.base.items()
        if (character := data.decode("utf-8")) in fsm.alphabet
    }
    transitions = [
        (state, symbol, row[key])
        for state, row in fsm.map.items()
        for (_, symbol), key in read.items()
        if key in row
    ]
    return TokenDFA.of(transitions, fsm.initial, fsm.finals)
