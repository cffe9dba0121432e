"""The two examples of the article in numbers: a text merge by merge, and the size of automata.

The text is that of Table 1; the automata are of `boolean: ((true)|(false))` with the Mistral-7B
merge table alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from bpe_automata import TokenAutomaton, Tokenizer, compile_regex
from bpe_automata.constructions import CartesianMerge, Lift, explore
from bpe_automata.reference import (
    TokenDFA,
    direct_merge,
    explicit,
    lift,
    merges_in_order,
    replay,
    spelled_in_symbols,
    symbol_dfa,
)
from bpe_automata.testing import small_tokenizer
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


def sizes_row(tokenizer: Tokenizer) -> Row:
    """By the name of the automaton: states, transitions, and how many of the states accept.
    tokenizer: BPE alone."""
    sizes = {
        name: {
            "states": automaton.n_states,
            "transitions": automaton.n_transitions,
            "accepting": int(automaton.accepting.sum()),
        }
        for name, automaton in automata(tokenizer).items()
    }
    return {"kind": "sizes", "sizes": sizes}


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


# The article's Table 1: a text, merge by merge, published beside what the library computes.

TEXT = "aaaabaacac"
TOKENS = ("a", "b", "c", "ab", "aa", "ac")
MERGES = (("a", "b"), ("a", "a"), ("a", "c"))
PUBLISHED_STEPS = (
    ("a", "a", "a", "a", "b", "a", "a", "c", "a", "c"),
    ("a", "a", "a", "ab", "a", "a", "c", "a", "c"),
    ("aa", "a", "ab", "aa", "c", "a", "c"),
    ("aa", "a", "ab", "aa", "c", "ac"),
)
"""The tokens before the first merge and after each one; Tran-Thien 2024, Table 1."""


def merged_row() -> Row:
    """steps: the tokens before the first merge and after each one, by the reference; encoded: what
    the package makes of the text at once."""
    tokenizer = small_tokenizer(TOKENS, MERGES)
    merges = merges_in_order(tokenizer.description)
    ids = [TOKENS.index(letter) for letter in TEXT]
    found = [replay(ids, merges[:done]) for done in range(len(merges) + 1)]
    return {
        "kind": "merges",
        "steps": [_spelled(tokens) for tokens in found],
        "encoded": _spelled(tokenizer.encode(TEXT)),
    }


def _spelled(ids: Sequence[int]) -> list[str]:
    return [TOKENS[token] for token in ids]


def is_published(row: Row) -> bool:
    """Do all steps, and `encode`, come out as published?"""
    published = (*PUBLISHED_STEPS, PUBLISHED_STEPS[-1])
    return [*row["steps"], row["encoded"]] == [*map(list, published)]
