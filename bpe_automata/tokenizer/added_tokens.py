"""The automaton of the texts that contain no added token, with steps that read added tokens.

`tokenizers` cuts added tokens out of the text leftmost-longest, before anything else. So a state is
the set of added tokens that are partly read (nodes of their trie), and no character may complete
one. Reading an added token is a step of its own. No token that began before it may end inside it,
as that one would be cut out instead, and no longer token that begins with it may follow.

`tokenizers` makes two passes: tokens with normalized=False are cut out of the text, then tokens
with normalized=True out of the texts between them. One automaton models one pass; to the first pass
the tokens of the second are ordinary text.

A `single_word` token next to a word character remains text. A token with `lstrip` or `rstrip`
removes the white space next to it, so no ids spell a text that has white space there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bpe_automata._budget import check
from bpe_automata.tokenizer.alphabet import DEAD, Alphabet, Ranges, inside
from bpe_automata.tokenizer.description import AddedToken

FREE, ONLY_WORD, NO_WORD, NO_SPACE, NO_WORD_NOR_SPACE = range(5)
"""What the next character has to be."""


class AddedState(NamedTuple):
    """nodes: the trie nodes of partly read tokens, each with whether a word character precedes it;
    word, space: is the last character one (False if no token depends on it); next: one of FREE,
    ONLY_WORD, NO_WORD, NO_SPACE, NO_WORD_NOR_SPACE."""

    nodes: frozenset[tuple[int, bool]] = frozenset()
    word: bool = False
    space: bool = False
    next: int = FREE


class Trait(NamedTuple):
    """Is a character a word character, is it white space?"""

    word: bool
    space: bool


NOTHING_READ = AddedState()


class AddedCharacters:
    """The characters of added tokens as atoms. A character that no ordinary token spells has no
    atom; it gets a number above them, because several added tokens may contain it.

    traits: of each number; n_atoms: how many of the numbers are atoms; atoms: the atoms of each
    trait."""

    def __init__(
        self, added: tuple[AddedToken, ...], alphabet: Alphabet, word: Ranges, space: Ranges
    ) -> None:
        """word, space: the characters that `single_word`, `lstrip` and `rstrip` depend on, classes
        of the alphabet, or empty if no token has the flag. Every character of an added token must
        be marked in the alphabet."""
        self.n_atoms = alphabet.n_atoms
        points = alphabet.starts[np.unique(alphabet.atoms, return_index=True)[1]]
        characters = sorted({c for token in added for c in token.content})
        atoms = [alphabet.atom(c) for c in characters]
        beyond = [c for c, atom in zip(characters, atoms, strict=True) if atom == DEAD]
        every = np.append(points[-alphabet.n_atoms :], [ord(c) for c in beyond]).astype(np.int64)
        flags = zip(inside(word, every).tolist(), inside(space, every).tolist(), strict=True)
        self.traits = [Trait(*pair) for pair in flags]
        self._number = dict(zip(characters, atoms, strict=True))
        self._number.update((c, self.n_atoms + k) for k, c in enumerate(beyond))
        of_trait = np.array([2 * trait.word + trait.space for trait in self.traits[: self.n_atoms]])
        self.atoms = {
            Trait(bool(n // 2), bool(n % 2)): np.flatnonzero(of_trait == n)
            for n in np.unique(of_trait).tolist()
        }

    def of(self, token: AddedToken) -> tuple[int, ...]:
        """The numbers of a token's characters."""
        return tuple(self._number[c] for c in token.content)


class AddedText:
    """The automaton of one pass. `start`: the state in which no token is partly read."""

    start = NOTHING_READ

    def __init__(self, added: tuple[AddedToken, ...], characters: AddedCharacters) -> None:
        """`added`: the tokens of this pass."""
        self.added = added
        self._traits = characters.traits
        self.words = [characters.of(token) for token in added]
        self.trie = _Trie(self.words)
        self._single = {self.trie.leaf[k] for k, t in enumerate(added) if t.single_word}
        self._tracks_word = any(token.single_word for token in added)
        self._tracks_space = any(token.lstrip for token in added)
        self._first: dict[int, list[int]] = {}
        for k, word in enumerate(self.words):
            self._first.setdefault(word[0], []).append(k)
        self._readable = characters.n_atoms

    def step_by_trait(self, state: AddedState, trait: Trait) -> AddedState | None:
        """The state after any character with this trait, except for `continuing` atoms."""
        return self._outside(trait) if self._may_follow(state, trait) else None

    def continuing(self, state: AddedState) -> set[int]:
        """The atoms that begin or continue an added token: their transition is `step`."""
        nodes = {node for node, _ in state.nodes} | {0}
        found = {atom for node in nodes for atom in self.trie.children[node]}
        return {atom for atom in found if atom < self._readable}

    def step(self, state: AddedState, atom: int) -> AddedState | None:
        """The state after one more character, None where it completes a token."""
        trait = self._traits[atom]
        if not self._may_follow(state, trait):
            return None
        needs = FREE
        nodes = set()
        for node, word_before in (*state.nodes, (0, state.word)):
            child = self.trie.children[node].get(atom)
            if child is None:
                continue
            if child in self._single:
                if not word_before:
                    needs = ONLY_WORD
            elif child in self.trie.ends:
                return None
            else:
                nodes.add((child, word_before))
        outside = self._outside(trait)
        return outside._replace(nodes=frozenset(nodes), next=needs)

    def _may_follow(self, state: AddedState, trait: Trait) -> bool:
        if state.next == ONLY_WORD:
            return trait.word
        if trait.word and state.next in (NO_WORD, NO_WORD_NOR_SPACE):
            return False
        return not (trait.space and state.next in (NO_SPACE, NO_WORD_NOR_SPACE))

    def _outside(self, trait: Trait) -> AddedState:
        """The state after a character that is in no added token."""
        word, space = trait.word and self._tracks_word, trait.space and self._tracks_space
        return AddedState(word=word, space=space)

    def ends(self, state: AddedState) -> bool:
        """Can the text end here?"""
        return state.next != ONLY_WORD

    def depending(self, state: AddedState) -> list[int]:
        """The added tokens whose transition from `state` may differ from that from `start`."""
        if state.word or state.space or state.next != FREE:
            return list(range(len(self.added)))
        begins = {atom for node, _ in state.nodes for atom in self.trie.children[node]}
        return [k for atom in begins for k in self._first.get(atom, ())]

    def after(self, state: AddedState, k: int) -> AddedState | None:
        """The state after added token k, None where it is not cut out of the text."""
        token, word = self.added[k], self.words[k]
        first, last = self._traits[word[0]], self._traits[word[-1]]
        if not self._may_follow(state, first) or (token.single_word and state.word):
            return None
        if token.lstrip and state.space:
            return None
        nodes = state.nodes
        children = self.trie.children
        for atom in word:
            check()
            if not nodes:
                break
            nodes = frozenset(
                (children[node][atom], w) for node, w in nodes if atom in children[node]
            )
            if any(node in self.trie.ends and node not in self._single for node, _ in nodes):
                return None
        leaf = self.trie.leaf[k]
        if self.trie.children[leaf]:
            nodes |= {(leaf, False)}
        needs = (FREE, NO_SPACE, NO_WORD, NO_WORD_NOR_SPACE)
        return AddedState(
            nodes,
            word=last.word and self._tracks_word,
            next=needs[2 * token.single_word + token.rstrip],
        )


class _Trie:
    """children[node]: character -> node; ends: the nodes where a token is complete; leaf[k]: the
    node of token k. Node 0 is the root."""

    def __init__(self, words: list[tuple[int, ...]]) -> None:
        self.children: list[dict[int, int]] = [{}]
        self.leaf = [self._insert(word) for word in words]
        self.ends = set(self.leaf)

    def _insert(self, word: tuple[int, ...]) -> int:
        node = 0
        for atom in word:
            check()
            if atom not in self.children[node]:
                self.children[node][atom] = len(self.children)
                self.children.append({})
            node = self.children[node][atom]
        return node
