"""The text automaton as far as a regex can see it.

A normalizer such as NFC makes the text automaton remember the last letter, in case a combining mark
follows. States that differ in nothing that a text of the regex can show are one: where it reads no
mark that may follow a letter, that letter is forgotten.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from weakref import WeakValueDictionary

import numpy as np

from bpe_automata._automata.linked import ByteAutomaton, LinkedDFA
from bpe_automata._automata.parts import PLAIN
from bpe_automata._budget import check, check_bytes
from bpe_automata._constructions.canonical import CanonicalAutomaton
from bpe_automata._constructions.collapsed import CollapsedVocabularies
from bpe_automata._constructions.stored import cache_key, is_kept
from bpe_automata._kernels.edges import Nodes, Vocabulary
from bpe_automata._kernels.fewest_tokens import ANYWHERE
from bpe_automata._kernels.minimise import blocks
from bpe_automata._kernels.product import Added
from bpe_automata._kernels.trie import Trie, wide_atoms
from bpe_automata._kernels.watch import watched
from bpe_automata._sharing import cached
from bpe_automata._tokenizer.alphabet import Alphabet
from bpe_automata._tokenizer.text_automaton import TextAutomaton


@dataclass(frozen=True)
class TextQuotient:
    """same: int32 [n_states], the least state that acts alike; next, after: the tables of the text
    automaton over those; trie, and its nodes over those; key: of all of it, "" where nothing is
    kept of the tokenizer."""

    same: np.ndarray
    next: np.ndarray
    after: np.ndarray
    trie: Trie
    nodes: Nodes
    key: str

    @cached
    def _begins(self) -> dict[int, np.ndarray]:
        return {}

    def begins_otherwise(self, text: int, alphabet: Alphabet) -> np.ndarray:
        """bool [256], bytes that begin a character which a state of the text automaton reads
        otherwise than state 0 does."""
        found = self._begins.get(text)
        if found is None:
            found = self._begins[text] = alphabet.first_bytes(self.next[text] != self.next[0])
        return found

    @cached
    def _harmless(self) -> list[np.ndarray]:
        return []

    def harmless(self, ends: np.ndarray, alphabet: Alphabet) -> np.ndarray:
        """bool [n_states]: the states from which every text of PLAIN bytes can be read, and may
        end. ends: bool [n_states]."""
        if not self._harmless:
            atoms = -2 - alphabet.utf8[0, list(PLAIN)]
            found = ends & (atoms >= 0).all()
            after = self.next[:, np.unique(np.maximum(atoms, 0))]
            before = -1
            while found.sum() != before:
                check()
                before = found.sum()
                found = found & (after >= 0).all(axis=1) & found[after].all(axis=1)
            self._harmless.append(found)
        return self._harmless[0]

    @cached
    def added(self) -> dict[tuple[frozenset[int], bool], Added]:
        """The added tokens for products, by what `product_tables` makes them of: one for all that
        are alike, as it takes a while to write it out for kernels."""
        return {}

    @cached
    def _vocabulary(self) -> list[Vocabulary]:
        return []

    def vocabulary(self, alphabet: Alphabet) -> Vocabulary:
        """The tokens that BPE makes, with these tables: one for all products, as `added`."""
        if not self._vocabulary:
            given = self.trie, self.nodes, alphabet.utf8, self.next, ANYWHERE
            self._vocabulary.append(Vocabulary(*given))
        return self._vocabulary[0]

    @cached
    def vocabularies(self) -> CollapsedVocabularies:
        """Under the tokenizer's lock."""
        return CollapsedVocabularies(self.trie, self.nodes, self.key)


def text_for(canonical: CanonicalAutomaton, dfa: ByteAutomaton) -> TextQuotient:
    """What a DFA sees of the tokenizer's text automaton: shared by those that can read the same
    characters beyond ASCII. A linked automaton may yet come to read any."""
    derived, text = canonical.tokenizer.derived, canonical.pipeline.text
    if not canonical.tokenizer.description.normalizers or isinstance(dfa, LinkedDFA):
        return derived("text unseen", lambda _: _over(canonical, np.arange(len(text.next))))
    utf8, n_atoms = canonical.pipeline.alphabet.utf8, text.next.shape[1]
    atoms = np.zeros(n_atoms, dtype=bool)
    atoms[-2 - utf8[0, :0x80][utf8[0, :0x80] < -1]] = True
    if not dfa.trans[:, np.unique(dfa.byte_class[0x80:])].any():
        return derived("text seen in ASCII", lambda _: _over(canonical, _same(text, atoms)))
    atoms |= wide_atoms(dfa.trans, dfa.byte_class, utf8, n_atoms)
    known: WeakValueDictionary[bytes, TextQuotient] = derived(
        "text seen", lambda _: WeakValueDictionary()
    )
    found = known.get(atoms.tobytes())
    if found is None:
        found = known[atoms.tobytes()] = _over(canonical, _same(text, atoms))
    return found


def _over(canonical: CanonicalAutomaton, same: np.ndarray) -> TextQuotient:
    """The automaton over the states that stand for others."""
    text, nodes = canonical.pipeline.text, canonical.nodes
    same = same.astype(np.int32)
    digest = hashlib.sha256(same.tobytes()).hexdigest()
    tokenizer = canonical.tokenizer
    key = f"{cache_key(tokenizer)}; text {digest}" if is_kept(tokenizer) else ""
    if (same == np.arange(len(same))).all():
        return TextQuotient(same, text.next, text.after, canonical.trie, nodes, key)
    nodes = nodes._replace(text=_mapped(same, nodes.text))
    tables = _mapped(same, text.next), _mapped(same, text.after)
    return TextQuotient(same, *tables, canonical.trie, nodes, key)


def _same(text: TextAutomaton, atoms: np.ndarray) -> np.ndarray:
    """For each state the least one that acts alike, as far as some atoms (bool) and added tokens
    show."""
    after = text.after[:, _different_columns(text.after)]
    seen = np.concatenate([text.next[:, atoms], after[text.after_row]], axis=1)
    # Most states are like state 0 in all that is seen; the others are told apart from one another.
    other = (seen != seen[0]).any(axis=1) | (text.ends != text.ends[0])
    other[0] = True
    some = np.flatnonzero(other)
    number = np.zeros(len(seen), dtype=np.int64)
    number[some] = np.arange(len(some))
    leads = np.where(seen[some] < 0, -1, number[seen[some]])
    same = np.zeros(len(seen), dtype=np.int64)
    same[some] = some[_least_alike(leads, text.ends[some])]
    return same


def _mapped(same: np.ndarray, states: np.ndarray) -> np.ndarray:
    """The states of a table by their stand-ins; -1 stays."""
    return np.where(states < 0, states, same[states]).astype(np.int32)


def _least_alike(leads: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """int64 [n]: for each state the least one of its class in the coarsest partition that tells
    apart `ends` and is respected by all columns of `leads` (states, or -1)."""
    leads = leads[:, (leads != leads[0]).any(axis=0)]
    leads = leads[:, _different_columns(leads)]
    tail, label = np.nonzero(leads >= 0)
    heads = leads[tail, label]
    check_bytes(100 * heads.size, "the table of what added tokens lead to")
    by_head = np.argsort(heads, kind="stable")
    ptr = np.zeros(len(leads) + 1, np.int64)
    np.cumsum(np.bincount(heads, minlength=len(leads)), out=ptr[1:])
    edges = tail[by_head].astype(np.int32), label[by_head].astype(np.int32)
    block, _ = watched(blocks, ptr, *edges, leads.shape[1], ends)
    least: np.ndarray = np.unique(block, return_index=True)[1][block]
    return least


def _different_columns(table: np.ndarray) -> list[int]:
    """The first of each set of equal columns."""
    first = {column.tobytes(): k for k, column in reversed(list(enumerate(table.T)))}
    return sorted(first.values())
