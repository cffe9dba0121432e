"""DirectMerge for a complete tokenizer, pretokenizer included.

    L(direct_merged(tokenizer, dfa)) = { encode(w) : w in L(dfa) }

The merges are replayed on marked text, then the marks are erased. This shares with the fast
construction the compiled pipeline (boundary hypotheses, text automaton, UTF-8 table, prefix) and
the derivations, for which tokens no merge makes and for the order of improper tables; these have
tests of their own. It shares no pairs, rectangles, token classes, hypothesis sets or relevance.

Source: Tran-Thien 2024 for DirectMerge; marked text is ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.constructions import Geometry
from bpe_automata.errors import ImproperMergeTableError
from bpe_automata.reference.bpe import merge_ranks
from bpe_automata.reference.direct_merge import Merge, direct_merge
from bpe_automata.reference.marked_text import MarkedText
from bpe_automata.reference.token_dfa import TokenDFA
from bpe_automata.token_automata import TokenAutomaton
from bpe_automata.tokenizer import Tokenizer
from bpe_automata.tokenizer.derivation import derive
from bpe_automata.tokenizer.description import Description


def direct_merged(
    tokenizer: Tokenizer, dfa: ByteDFA, eos_ids: tuple[int, ...] = ()
) -> TokenAutomaton:
    """The canonical automaton of a language, minimal. `eos_ids` are never text. Raises
    UnsupportedTokenizerError, ImproperMergeTableError, BudgetExceededError."""
    marked = MarkedText(tokenizer, dfa, eos_ids)
    merged = direct_merge(token_dfa(marked.automaton()), merges_in_order(tokenizer.description))
    erased = (
        (source, marked.id_of(symbol), target) for source, symbol, target in merged.transitions()
    )
    return TokenAutomaton.from_transitions(
        erased,
        merged.start,
        merged.accepting,
        range(tokenizer.n_ids),
        tokenizer.spellings,
        determinise=True,
    ).minimised()


def merges_in_order(description: Description) -> list[Merge]:
    """The merge table, of a pair that is listed twice the last listing, as encoders read it; of an
    improper table the derivations, each right after its parts, which is when encoders carry them
    out. Raises ImproperMergeTableError where encoders have no such order: see
    `constructions.ties`."""
    derivation = derive(description)
    if len(np.unique(derivation.epoch)) < len(derivation.epoch):
        if not Geometry(derivation).ordered:
            raise ImproperMergeTableError(
                "some merges are carried out in an order that depends on the place in the text, so "
                "they cannot be replayed one after the other; use the canonical automaton"
            )
        return [(left, right, made) for left, right, made in derivation.proper.tolist()]
    by_rank = sorted(merge_ranks(description).items(), key=lambda item: item[1][0])
    return [(left, right, made) for (left, right), (_, made) in by_rank]


def symbol_dfa(description: Description, dfa: ByteDFA) -> TokenDFA:
    """BPE alone: the language as sequences of base symbols, without prefix, splitting, byte
    fallback or added tokens."""
    trie = _trie(description)
    transitions = [
        (state, symbol, target)
        for state in range(1, dfa.n_states)
        for symbol, target in _read(dfa, state, trie)
    ]
    return TokenDFA.of(transitions, dfa.start, np.flatnonzero(dfa.accepting).tolist())


@dataclass
class _Node:
    """Where some bytes lead in the trie of base symbols."""

    symbol: int | None = None
    after: dict[int, _Node] = field(default_factory=dict)


def _trie(description: Description) -> _Node:
    root = _Node()
    for data, symbol in description.base.items():
        node = root
        for byte in data:
            node = node.after.setdefault(byte, _Node())
        node.symbol = symbol
    return root


def _read(dfa: ByteDFA, state: int, node: _Node) -> Iterator[tuple[int, int]]:
    """(base symbol, state after it) of all that can be read."""
    if node.symbol is not None:
        yield node.symbol, state
    targets = dfa.trans[state][dfa.byte_class].tolist()
    for byte, after in node.after.items():
        if targets[byte]:
            yield from _read(dfa, targets[byte], after)


def token_dfa(automaton: TokenAutomaton) -> TokenDFA:
    """The same automaton, to be changed."""
    accepting = [state for state in automaton.states() if automaton.accepting[state]]
    return TokenDFA.of(automaton.transitions(), automaton.start, accepting)


def explicit(dfa: TokenDFA, spellings: Sequence[bytes] | None = None) -> TokenAutomaton:
    """The same automaton, to be compared, counted, drawn. `spellings`: the bytes of each token."""
    states = [dfa.start, *sorted(dfa.states() - {dfa.start}, key=str)]
    return TokenAutomaton.from_transitions(
        dfa.transitions(), dfa.start, dfa.accepting, None, spellings, states=states
    )
