"""A matcher for an automaton that is written down."""

from __future__ import annotations

from collections.abc import Iterable

from bpe_automata.constructions.listed import Listed
from bpe_automata.decoding.matcher import Matcher
from bpe_automata.token_automata import TokenAutomaton


def matcher_of(automaton: TokenAutomaton, eos_ids: Iterable[int], n_ids: int) -> Matcher:
    """A matcher along a token automaton: one given by hand, loaded from a file, or combined out of
    others by `union`, `intersection`, `difference`.

    eos_ids: allowed exactly where the automaton accepts; none, where it has transitions of its own
    for the end. n_ids: one more than the largest id, of the model rather than the automaton. For
    many matchers of one automaton keep `engine = Listed(automaton, eos_ids, n_ids)` and make
    `Matcher(engine)`: they share its masks. Raises what `Listed` raises.
    """
    return Matcher(Listed(automaton, eos_ids, n_ids))
