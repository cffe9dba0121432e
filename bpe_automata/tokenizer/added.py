"""Text in which no added token is spelled, read character by character, with steps over added
tokens.

`tokenizers` cuts added tokens out of the text leftmost-longest, before anything else. So a state
knows which added tokens are under way (nodes of their trie); reading on must never complete one.
Reading an added token itself is a step of its own: tokens begun before it must not be completed
inside it (they would be further left), and longer ones that it begins must not be completed after.

`tokenizers` does so in two passes: tokens with normalized=False are cut out of the text, tokens
with normalized=True out of what is left between them. One automaton is one pass; to the first pass
the tokens of the second are text.

A `single_word` token is left in the text where a word character is beside it; a token with `lstrip`
or `rstrip` swallows the white space beside it, so text that keeps it cannot be spelled.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bpe_automata.budget import check
from bpe_automata.tokenizer.alphabet import DEAD, Alphabet, inside
from bpe_automata.tokenizer.description import AddedToken
from bpe_automata.tokenizer.ranges import Ranges

NOT_ALLOWED = -1
FREE, ONLY_WORD, NO_WORD, NO_SPACE, NO_WORD_NOR_SPACE = range(5)


class Under(NamedTuple):
    """A state. nodes: trie nodes under way, each with: was there a word character before it;
    word, space: was the last character one (kept up only where some token asks); next: what the
    next character has to be."""

    nodes: frozenset[tuple[int, bool]] = frozenset()
    word: bool = False
    space: bool = False
    next: int = FREE


class Kind(NamedTuple):
    """What a character is."""

    word: bool
    space: bool


NOTHING = Under()


class Letters:
    """The characters that added tokens are made of, as atoms. One that only added tokens can spell
    has no atom; it gets a number beyond, because other added tokens may still spell it.

    kinds: what each number is; n_atoms: how many of them are atoms; atoms: those of each kind."""

    def __init__(
        self, added: tuple[AddedToken, ...], alphabet: Alphabet, word: Ranges, space: Ranges
    ) -> None:
        """word, space: the characters that `single_word`, `lstrip` and `rstrip` ask about; classes
        of the alphabet, or empty if no token asks. Every character of an added token must be
        marked in the alphabet."""
        self.n_atoms = alphabet.n_atoms
        points = alphabet.starts[np.unique(alphabet.atoms, return_index=True)[1]]
        characters = sorted({c for token in added for c in token.content})
        atoms = [alphabet.atom(c) for c in characters]
        beyond = [c for c, atom in zip(characters, atoms, strict=True) if atom == DEAD]
        every = np.append(points[-alphabet.n_atoms :], [ord(c) for c in beyond]).astype(np.int64)
        held = zip(inside(word, every).tolist(), inside(space, every).tolist(), strict=True)
        self.kinds = [Kind(*pair) for pair in held]
        self._number = dict(zip(characters, atoms, strict=True))
        self._number.update((c, self.n_atoms + k) for k, c in enumerate(beyond))
        of_kind = np.array([2 * kind.word + kind.space for kind in self.kinds[: self.n_atoms]])
        self.atoms = {
            Kind(bool(n // 2), bool(n % 2)): np.flatnonzero(of_kind == n)
            for n in np.unique(of_kind).tolist()
        }

    def of(self, token: AddedToken) -> tuple[int, ...]:
        """The numbers of a token's characters."""
        return tuple(self._number[c] for c in token.content)


class AddedText:
    """The automaton. `start`: the state with nothing under way."""

    start = NOTHING

    def __init__(self, added: tuple[AddedToken, ...], letters: Letters) -> None:
        """`added`: the tokens of this pass."""
        self.added = added
        self._kinds = letters.kinds
        self.words = [letters.of(token) for token in added]
        self.trie = _Trie(self.words)
        self._single = {self.trie.leaf[k] for k, t in enumerate(added) if t.single_word}
        self._tracks_word = any(token.single_word for token in added)
        self._tracks_space = any(token.lstrip for token in added)
        self._first: dict[int, list[int]] = {}
        for k, word in enumerate(self.words):
            self._first.setdefault(word[0], []).append(k)
        self._readable = letters.n_atoms

    def usual(self, state: Under, kind: Kind) -> Under | None:
        """The state after a character of this kind that is none of `letters`."""
        return self._passed(kind) if self._may_come(state, kind) else None

    def letters(self, state: Under) -> set[int]:
        """The atoms that `usual` does not tell about: ask `step`."""
        nodes = {node for node, _ in state.nodes} | {0}
        found = {atom for node in nodes for atom in self.trie.children[node]}
        return {atom for atom in found if atom < self._readable}

    def step(self, state: Under, atom: int) -> Under | None:
        """The state after one more character, None where a token would be spelled."""
        kind = self._kinds[atom]
        if not self._may_come(state, kind):
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
        usual = self._passed(kind)
        return Under(frozenset(nodes), usual.word, usual.space, needs) if nodes or needs else usual

    def _may_come(self, state: Under, kind: Kind) -> bool:
        if state.next == ONLY_WORD:
            return kind.word
        if kind.word and state.next in (NO_WORD, NO_WORD_NOR_SPACE):
            return False
        return not (kind.space and state.next in (NO_SPACE, NO_WORD_NOR_SPACE))

    def _passed(self, kind: Kind) -> Under:
        return Under(word=kind.word and self._tracks_word, space=kind.space and self._tracks_space)

    def ends(self, state: Under) -> bool:
        """Can the text end here?"""
        return state.next != ONLY_WORD

    def otherwise(self, state: Under) -> list[int]:
        """The added tokens that may lead elsewhere from `state` than from `start`."""
        if state.word or state.space or state.next != FREE:
            return list(range(len(self.added)))
        begins = {atom for node, _ in state.nodes for atom in self.trie.children[node]}
        return [k for atom in begins for k in self._first.get(atom, ())]

    def after(self, state: Under, k: int) -> Under | None:
        """The state after added token k, None where it would not be cut out."""
        token, word = self.added[k], self.words[k]
        first, last = self._kinds[word[0]], self._kinds[word[-1]]
        if not self._may_come(state, first) or (token.single_word and state.word):
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
        return Under(
            nodes,
            word=last.word and self._tracks_word,
            next=needs[2 * token.single_word + token.rstrip],
        )


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
            check()
            if atom not in self.children[node]:
                self.children[node][atom] = len(self.children)
                self.children.append({})
            node = self.children[node][atom]
        return node
