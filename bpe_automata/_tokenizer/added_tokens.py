"""The automaton of the texts that contain no added token, with steps that read added tokens.

`tokenizers` cuts added tokens out of the text leftmost-longest, before anything else. So a state is
the set of added tokens that are partly read (nodes of their trie), and reading on must never
complete one. Reading an added token itself is a step of its own: no token begun before it may be
completed inside it (it would be further left), and no longer token that it begins may be completed
after it.

`tokenizers` does so in two passes: tokens with normalized=False are cut out of the text, then
tokens with normalized=True out of what remains between them. One automaton models one pass; to the
first pass the tokens of the second are ordinary text.

A token with `lstrip` or `rstrip` removes the white space next to it, so no ids spell a text with
white space there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bpe_automata._budget import check
from bpe_automata._tokenizer.alphabet import DEAD, Alphabet, Ranges, inside
from bpe_automata._tokenizer.description import AddedToken


class AddedState(NamedTuple):
    """nodes: the trie nodes of partly read tokens; space: is the last character white space (False
    if no token depends on it); no_space: must the next one not be white space?"""

    nodes: frozenset[int] = frozenset()
    space: bool = False
    no_space: bool = False


NOTHING_READ = AddedState()


class AddedCharacters:
    """The characters of added tokens as atoms. A character that no ordinary token spells has no
    atom; it gets a number above them, because several added tokens may contain it.

    is_space: of each number; n_atoms: how many of the numbers are atoms; atoms: those that are
    white space (True), and the others."""

    def __init__(self, added: tuple[AddedToken, ...], alphabet: Alphabet, space: Ranges) -> None:
        """space: the characters that `lstrip` and `rstrip` depend on, a class of the alphabet, or
        empty if no token has the flag. Every character of an added token must be marked in the
        alphabet."""
        self.n_atoms = alphabet.n_atoms
        points = alphabet.starts[np.unique(alphabet.atoms, return_index=True)[1]]
        characters = sorted({c for token in added for c in token.content})
        atoms = [alphabet.atom(c) for c in characters]
        beyond = [c for c, atom in zip(characters, atoms, strict=True) if atom == DEAD]
        every = np.append(points[-alphabet.n_atoms :], [ord(c) for c in beyond]).astype(np.int64)
        is_space = inside(space, every)
        self.is_space: list[bool] = is_space.tolist()
        self._number = dict(zip(characters, atoms, strict=True))
        self._number.update((c, self.n_atoms + k) for k, c in enumerate(beyond))
        of_atoms = is_space[: self.n_atoms]
        self.atoms = {kind: np.flatnonzero(of_atoms == kind) for kind in (False, True)}

    def of(self, token: AddedToken) -> tuple[int, ...]:
        """The numbers of a token's characters."""
        return tuple(self._number[c] for c in token.content)


class AddedText:
    """The automaton of one pass. `start`: the state in which no token is partly read."""

    start = NOTHING_READ

    def __init__(self, added: tuple[AddedToken, ...], characters: AddedCharacters) -> None:
        """`added`: the tokens of this pass."""
        self.added = added
        self._is_space = characters.is_space
        self.words = [characters.of(token) for token in added]
        self.trie = _Trie(self.words)
        self._tracks_space = any(token.lstrip for token in added)
        self._first: dict[int, list[int]] = {}
        for k, word in enumerate(self.words):
            self._first.setdefault(word[0], []).append(k)
        self._readable = characters.n_atoms

    def step_outside(self, state: AddedState, space: bool) -> AddedState | None:
        """The state after any character that is white space (or is not), except for `continuing`
        atoms."""
        if space and state.no_space:
            return None
        return AddedState(space=space and self._tracks_space)

    def continuing(self, state: AddedState) -> set[int]:
        """The atoms that begin or continue an added token: their transition is `step`."""
        found = {atom for node in (*state.nodes, 0) for atom in self.trie.children[node]}
        return {atom for atom in found if atom < self._readable}

    def step(self, state: AddedState, atom: int) -> AddedState | None:
        """The state after one more character, None where it completes a token."""
        outside = self.step_outside(state, self._is_space[atom])
        nodes = self._further(frozenset({*state.nodes, 0}), atom)
        if outside is None or nodes & self.trie.ends:
            return None
        return outside._replace(nodes=nodes)

    def _further(self, nodes: frozenset[int], atom: int) -> frozenset[int]:
        children = self.trie.children
        return frozenset(children[node][atom] for node in nodes if atom in children[node])

    def depending(self, state: AddedState) -> list[int]:
        """The added tokens whose transition from `state` may differ from that from `start`."""
        if state.space or state.no_space:
            return list(range(len(self.added)))
        begins = {atom for node in state.nodes for atom in self.trie.children[node]}
        return [k for atom in begins for k in self._first.get(atom, ())]

    def after(self, state: AddedState, k: int) -> AddedState | None:
        """The state after added token k, None where it is not cut out of the text."""
        token, word, nodes = self.added[k], self.words[k], state.nodes
        if (token.lstrip and state.space) or (state.no_space and self._is_space[word[0]]):
            return None
        for atom in word:
            check()
            if not nodes:
                break
            nodes = self._further(nodes, atom)
            if nodes & self.trie.ends:
                return None
        leaf = self.trie.leaf[k]
        if self.trie.children[leaf]:
            nodes |= {leaf}
        return AddedState(nodes, no_space=token.rstrip)


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
