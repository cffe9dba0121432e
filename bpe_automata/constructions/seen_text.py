"""The text automaton as far as a regex can see it.

A normalizer such as NFC makes the text automaton remember the last letter, in case a combining mark
follows. Where the regex reads ASCII only, none can follow: states that differ in nothing that ASCII
text shows are one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.constructions.canonical import CanonicalAutomaton
from bpe_automata.kernels.product_row import Nodes


@dataclass(frozen=True)
class SeenText:
    """same: int32 [n_states], the least state that acts alike; next, after: the tables of the text
    automaton over those; nodes: of the trie, over those."""

    same: np.ndarray
    next: np.ndarray
    after: np.ndarray
    nodes: Nodes


def text_for(canonical: CanonicalAutomaton, dfa: ByteDFA) -> SeenText:
    """What a DFA sees of the tokenizer's text automaton."""
    derived = canonical.tokenizer.derived
    if not canonical.tokenizer.description.normalizers or _reads_more_than_ascii(dfa):
        return derived("text seen", lambda _: _unchanged(canonical))
    return derived("text seen in ASCII", lambda _: _in_ascii(canonical))


def _reads_more_than_ascii(dfa: ByteDFA) -> bool:
    return bool(dfa.trans[:, np.unique(dfa.byte_class[0x80:])].any())


def _unchanged(canonical: CanonicalAutomaton) -> SeenText:
    text = canonical.pipeline.text
    return SeenText(
        np.arange(len(text.next), dtype=np.int32), text.next, text.after, canonical.nodes
    )


def _in_ascii(canonical: CanonicalAutomaton) -> SeenText:
    text, utf8 = canonical.pipeline.text, canonical.pipeline.alphabet.utf8
    entries = utf8[0, :0x80]
    atoms = np.unique(-2 - entries[entries <= -2])
    # What may be seen: where characters and added tokens lead, and whether the text can end.
    seen = np.concatenate([text.next[:, atoms], text.after[text.after_row]], axis=1)
    same = _least_alike(seen, text.ends)
    nodes = canonical.nodes._replace(text=_mapped(same, canonical.nodes.text))
    return SeenText(same, _mapped(same, text.next), _mapped(same, text.after), nodes)


def _mapped(same: np.ndarray, states: np.ndarray) -> np.ndarray:
    """The states of a table by their stand-ins; -1 stays."""
    return np.where(states < 0, states, same[states]).astype(np.int32)


def _least_alike(leads: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """int32 [n]: for each state the least one of its class in the coarsest partition that tells
    apart `ends` and is respected by all columns of `leads` (states, or -1)."""
    first: np.ndarray = np.unique(ends, return_index=True)[1]
    block = np.unique(ends, return_inverse=True)[1].ravel()
    while True:
        rows = np.column_stack([block, np.where(leads < 0, -1, block[leads])])
        _, first, finer = np.unique(rows, axis=0, return_index=True, return_inverse=True)
        finer = finer.ravel()
        if len(first) == block.max() + 1:
            return first[finer].astype(np.int32)
        block = finer
