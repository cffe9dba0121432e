"""The automaton of text in which no added token is spelled, and the steps over added tokens.

`tokenizers` cuts added tokens out of the text leftmost-longest, before anything else. So a state is
the set of added tokens whose spelling is under way (nodes of their trie); reading on must never
complete one. Reading an added token itself is a step of its own: tokens begun before it must not be
completed inside it (they would be further left), and longer ones that it begins must not be
completed after it. State 0 is: nothing under way.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bpe_automata.tokenizer.alphabet import DEAD, Alphabet
from bpe_automata.tokenizer.description import AddedToken

SPELLED = -1
Nodes = frozenset[int]


@dataclass(frozen=True)
class AddedAutomaton:
    """next: int32 [n_states, n_atoms], -1 where an added token would be spelled; after: int32
    [n_states, n_added], the state after each added token, -1 where it is not cut out there;
    start: int32 [n_added + 1] and data: uint8, CSR of the tokens' bytes; ids: int32 [n_added]."""

    next: np.ndarray
    after: np.ndarray
    start: np.ndarray
    data: np.ndarray
    ids: np.ndarray


def build(added: tuple[AddedToken, ...], alphabet: Alphabet) -> AddedAutomaton:
    """The automaton over the alphabet's atoms. Every character of an added token must be marked
    in the alphabet."""
    spelled = _letters(added, alphabet)
    trie = _Trie(spelled)
    explorer = _Explorer(trie, spelled, alphabet.n_atoms)
    contents = [token.content.encode("utf-8") for token in added]
    return AddedAutomaton(
        next=np.array(explorer.rows, dtype=np.int32),
        after=np.array(explorer.afters, dtype=np.int32).reshape(len(explorer.afters), len(added)),
        start=np.cumsum([0, *map(len, contents)]).astype(np.int32),
        data=np.frombuffer(b"".join(contents), dtype=np.uint8),
        ids=np.array([token.id for token in added], dtype=np.int32),
    )


def _letters(added: tuple[AddedToken, ...], alphabet: Alphabet) -> list[tuple[int, ...]]:
    """Each token's characters as atoms. One that only added tokens can spell has no atom; it gets
    a negative number, because other added tokens may still spell it."""
    number: dict[str, int] = {}
    for character in sorted({c for token in added for c in token.content}):
        atom = alphabet.atom(character)
        number[character] = atom if atom != DEAD else -2 - len(number)
    return [tuple(number[c] for c in token.content) for token in added]


class _Trie:
    """children[node]: letter -> node; ends: the nodes where a token is complete; leaf[k]: the node
    of token k. Node 0 is the root."""

    def __init__(self, words: list[tuple[int, ...]]) -> None:
        self.children: list[dict[int, int]] = [{}]
        self.leaf = [self._insert(word) for word in words]
        self.ends = set(self.leaf)

    def _insert(self, word: tuple[int, ...]) -> int:
        node = 0
        for atom in word:
            if atom not in self.children[node]:
                self.children[node][atom] = len(self.children)
                self.children.append({})
            node = self.children[node][atom]
        return node

    def advance(self, nodes: Nodes, atom: int) -> Nodes:
        return frozenset(self.children[node][atom] for node in nodes if atom in self.children[node])


class _Explorer:
    """Every state reachable from "nothing under way", with its rows of `next` and `after`.

    A state that holds a complete node arises only just after that very token was read: there the
    node stands for the longer tokens that it begins, so completeness is checked on arrival by a
    character, not on the set.
    """

    def __init__(self, trie: _Trie, words: list[tuple[int, ...]], n_atoms: int) -> None:
        self.trie, self.words = trie, words
        self.states: list[Nodes] = [frozenset()]
        self.numbers: dict[Nodes, int] = {self.states[0]: 0}
        self.rows: list[np.ndarray] = []
        self.afters: list[np.ndarray] = []
        for state in self.states:  # grows while we go
            self.rows.append(self._row(state, n_atoms))
            self.afters.append(self._after_row(state))

    def _number(self, nodes: Nodes) -> int:
        if nodes not in self.numbers:
            self.numbers[nodes] = len(self.states)
            self.states.append(nodes)
        return self.numbers[nodes]

    def _row(self, state: Nodes, n_atoms: int) -> np.ndarray:
        trie = self.trie
        row = self.rows[0].copy() if self.rows else np.zeros(n_atoms, dtype=np.int32)
        for atom in {atom for node in (0, *state) for atom in trie.children[node] if atom >= 0}:
            nodes = trie.advance(state | {0}, atom)
            row[atom] = SPELLED if nodes & trie.ends else self._number(nodes)
        return row

    def _after_row(self, state: Nodes) -> np.ndarray:
        after = self.afters[0].copy() if self.afters else np.zeros(len(self.words), dtype=np.int32)
        begins = {atom for node in state for atom in self.trie.children[node]}
        for k, word in enumerate(self.words):
            if not state or word[0] in begins:
                after[k] = self._after(state, k)
        return after

    def _after(self, state: Nodes, k: int) -> int:
        trie, under_way = self.trie, state
        for atom in self.words[k]:
            under_way = trie.advance(under_way, atom)
            if under_way & trie.ends:
                return SPELLED
        leaf = trie.leaf[k]
        return self._number(under_way | {leaf} if trie.children[leaf] else under_way)
