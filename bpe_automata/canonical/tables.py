"""The tables of a tokenizer that kernels use, whatever the language."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from bpe_automata._budget import check
from bpe_automata._kernels.distance import distances
from bpe_automata._limits import check_fits
from bpe_automata._sharing import BoundedMemo, Immutable, Lock, cached
from bpe_automata.automata.parts import PLAIN
from bpe_automata.canonical import stored
from bpe_automata.canonical.arrays import HARMLESS, NODE, Room, Trie
from bpe_automata.canonical.canonical import CanonicalAutomaton
from bpe_automata.canonical.groups import Groups, grouped
from bpe_automata.canonical.sets import words
from bpe_automata.canonical.token_actions import INSIDE
from bpe_automata.canonical.vocabulary import Trie as VocabularyTrie
from bpe_automata.tokenizer.boundaries import Boundaries
from bpe_automata.tokenizer.text_automaton import TextAutomaton

if TYPE_CHECKING:
    from bpe_automata.canonical.prefixed import PrefixedDfa

Arrays = tuple[Any, ...]
_MOST_SUBSETS = 1000
# The limits of the keys of configurations and pairs. (For sets it is `sets.MOST_SETS`.)
MOST_TEXTS, MOST_STATES, MOST_IDS = 1 << 16, 1 << 23, (1 << 20) - 2


def fixed(*arrays: np.ndarray) -> Arrays:
    """The arrays, contiguous, not to be written to."""
    found = tuple(np.ascontiguousarray(array).view() for array in arrays)
    for array in found:
        array.flags.writeable = False
    return found


def universal(boundaries: Boundaries) -> np.ndarray:
    """bool [n]: the hypotheses from which every text can be read to its end; False also if the
    subset construction that proves it would be long."""
    n = boundaries.n
    follow = boundaries.follow[0] | boundaries.follow[1]
    after = [[sum(1 << int(to) for to in np.flatnonzero(row)) for row in rows] for rows in follow]
    ends = sum(1 << int(h) for h in np.flatnonzero(boundaries.ends))
    found = 0
    for h in range(n):
        subsets, seen = [1 << h], {1 << h}
        for subset in subsets:
            check()
            if not subset & ends or len(subsets) > _MOST_SUBSETS:
                break
            then = [0] * len(after[0])
            for k in range(n):
                if subset >> k & 1:
                    then = [one | other for one, other in zip(then, after[k], strict=True)]
            for one in set(then) - seen:
                if not one & found:
                    seen.add(one)
                    subsets.append(one)
        else:
            found |= 1 << h
    return np.array([found >> h & 1 for h in range(n)], np.bool_)


def harmless(text: TextAutomaton, utf8: np.ndarray) -> np.ndarray:
    """bool [n_states]: the states from which every text of PLAIN bytes can be read, and may end."""
    atoms = -2 - utf8[0, list(PLAIN)]
    if (atoms < 0).any():
        return np.zeros(len(text.next), np.bool_)
    after = text.next[:, np.unique(atoms)]
    stuck = ~text.ends | (after < 0).any(axis=1)
    steps = np.zeros((len(after) + 1, after.shape[1]), np.int32)  # state 0 of these is dead
    steps[1:] = after + 1
    found: np.ndarray = distances(steps, np.append(False, stuck))[1:] < 0
    return found


def steady_atoms(text: TextAutomaton, harmless: np.ndarray) -> np.ndarray:
    """bool [n_atoms]: those that lead from every harmless state to a harmless state."""
    after = text.next[harmless]
    steady: np.ndarray = ((after >= 0) & harmless[after]).all(axis=0)
    return steady if len(after) else np.zeros(text.next.shape[1], np.bool_)


def kinds_of_rows(utf8: np.ndarray) -> np.ndarray:
    """int32 [rows]: a number for each UTF-8 row, equal for rows after which the same bytes may
    follow, whatever the characters."""
    kinds = np.zeros(len(utf8), np.int32)
    for _ in range(4):
        coarse = np.where(utf8 < 0, np.maximum(utf8, -2), kinds[np.maximum(utf8, 0)])
        numbers: dict[bytes, int] = {}  # a tenth of the time of `np.unique`
        rows = (numbers.setdefault(row.tobytes(), len(numbers)) for row in coarse)
        kinds = np.fromiter(rows, np.int32, len(coarse))
    return kinds


def fragments(canonical: CanonicalAutomaton) -> np.ndarray:
    """int32: the tokens of only the last bytes of a character that have no class of their own."""
    classes, derivation = canonical.actions.classes, canonical.derivation
    pure = [c.element == INSIDE and c.lead != b"" and not c.tail and c.own < 0 for c in classes]
    found = np.array(pure)[canonical.actions.of_token] & derivation.reachable
    return np.flatnonzero(found).astype(np.int32)


def packed_trie(trie: VocabularyTrie, klass: Any, text: Any, first: Any) -> Trie:
    """The vocabulary as kernels take it. klass, text, first: int32 [nodes], see `arrays.Node`."""
    nodes = np.empty(len(trie.label), NODE)
    columns = trie.label, trie.depth, trie.skip, trie.token, klass, text, first
    for name, column in zip(NODE.names, columns, strict=True):
        nodes[name] = column
    return Trie(*fixed(nodes, trie.start, trie.data))


_NOTHING, _NONE_AFTER = np.empty(0, np.int32), np.empty((0, 0), np.int32)
_NO_TEXTS = np.empty((0, 3), np.int32), np.empty(0, np.uint8)
NO_ADDED = fixed(_NOTHING, _NOTHING, _NOTHING, _NONE_AFTER, *_NO_TEXTS)


_MANY_SLICES = 32  # more than the languages of a server have in use at once


def memo_of_slices(trie: VocabularyTrie) -> BoundedMemo[tuple[bytes, bool, int], Any]:
    """For the slices of a vocabulary, each of which may hold nearly all nodes of its trie."""
    return BoundedMemo(len(trie.label) * NODE.itemsize, _MANY_SLICES)


class Tables(Immutable):
    """The tables of a tokenizer for a `Reader`; see `arrays.Base` for what the tuples hold. by_id:
    int32 [n_ids, 3]: class, text state and first atom of each token; kinds: see `kinds_of_rows`;
    slices: those in use, of which the oldest are dropped; detour: the most of all their detours;
    any_text: the tokenizer's product with all texts, once it was needed."""

    n_ids: int
    deepest: int
    text: Arrays
    trie: Trie
    by_id: np.ndarray
    kinds: np.ndarray
    lock: Lock
    slices: BoundedMemo[tuple[bytes, bool, int], Any]
    detour: int = 0
    groups: Any
    any_text: Any = None

    def sliceable(self) -> np.ndarray:
        """bool [n_ids]: the tokens that may be in slices."""
        raise NotImplementedError


class TokenizerTables(Tables):
    """The tables of a canonical automaton."""

    def __init__(self, canonical: CanonicalAutomaton) -> None:
        pipeline, trie, nodes = canonical.pipeline, canonical.trie, canonical.nodes
        boundaries, text, utf8 = pipeline.boundaries, pipeline.text, pipeline.alphabet.utf8
        check_fits("states of the text automaton", len(text.next), MOST_TEXTS, "too many")
        check_fits("ids", canonical.tokenizer.n_ids, MOST_IDS, "too many")
        self.canonical, self.n_ids = canonical, canonical.tokenizer.n_ids
        self.sets = canonical.sets
        self.deepest = int(trie.deepest)
        quiet = harmless(text, utf8)
        told = np.stack([text.ends, quiet], axis=1)
        self.text = fixed(utf8, text.next, told)
        ends = boundaries.ends
        follow = boundaries.follow
        into = [
            follow[1] @ universal(boundaries),
            follow[1] @ ends,
            follow[1].any(axis=2),
            follow[0].any(axis=2),
        ]
        packed = np.stack([words(one.T) for one in into])
        coarse, steady = pipeline.coarse, steady_atoms(text, quiet)
        most = np.bitwise_or.reduce(packed[:, np.unique(coarse)], axis=1, keepdims=True)
        self.chars = fixed(
            np.stack([coarse, steady], axis=1).astype(np.int32),
            np.concatenate([packed, most], axis=1),
            words(ends),
            canonical.sets.follow,
            fragments(canonical),
        )
        self.trie = packed_trie(trie, *nodes)
        actions, geometry = canonical.actions, canonical.geometry
        (self.by_id,) = fixed(np.stack([actions.of_token, actions.text, actions.first], axis=1))
        self.pairs, self.follow = geometry.before, geometry.after
        self.positions, self.order = geometry.rows.position, geometry.rows.order
        self.reachable = canonical.derivation.reachable
        (self.kinds,) = fixed(kinds_of_rows(utf8))
        steadily = np.where(steady, text.next, -1).astype(np.int32)
        self.steady_text = fixed(utf8, steadily, told)
        self.lock, self.slices = Lock(), memo_of_slices(trie)

    @cached
    def groups(self) -> Groups:
        return stored.cached(Groups, self.canonical.tokenizer, lambda: grouped(self))

    def reads_tags(self, tags: Iterable[bytes], added: Arrays = NO_ADDED) -> bool:
        """Does every suffix of each tag, a text, lead from all harmless states to harmless ones? If
        a tag is one of the added tokens (see `added_arrays`), the whole may be read as that token.
        """
        utf8, after, told = self.text
        quiet = told[:, HARMLESS].astype(np.bool_)
        _, _, row_of, behind, texts, data = added
        cut = {data[begin:end].tobytes(): k for k, (i, begin, end) in enumerate(texts) if i >= 0}
        for tag in tags:
            row, ends = 0, list[np.ndarray]()  # for each suffix that has begun, where it leads
            there = behind[row_of[quiet], cut[tag]] if tag in cut else np.full(1, -1)
            is_cut = bool((there >= 0).all() and quiet[there].all())
            for at, byte in enumerate(tag):
                if row == 0 and (at > 0 or not is_cut):
                    ends.append(np.flatnonzero(quiet))
                row = int(utf8[row, byte])
                if row == -1:
                    return False
                if row < -1:
                    ends = [after[states, -2 - row] for states in ends]
                    if any((states < 0).any() for states in ends):
                        return False
                    row = 0
            if row != 0 or not all(quiet[states].all() for states in ends):
                return False
        return True

    def sliceable(self) -> np.ndarray:
        """bool [n_ids]: the tokens after which the text automaton is in a harmless state."""
        after = self.by_id[:, 1]
        found: np.ndarray = (after >= 0) & self.text[2][after, HARMLESS]
        return found


def added_arrays(canonical: CanonicalAutomaton, prefixed: PrefixedDfa, banned: set[int]) -> Arrays:
    """`added` of the kernels. banned: ids that may not be read as text."""
    text = canonical.pipeline.text
    ids = np.where(np.isin(text.ids, list(banned)), -1, text.ids)
    if not (ids >= 0).any():
        return NO_ADDED
    texts = np.stack([ids, text.token_start[:-1], text.token_start[1:]], axis=1).astype(np.int32)
    around = prefixed.added_from, prefixed.after_added
    return fixed(*around, text.after_row, text.after, texts, text.data)


_MOST_ROOMS = 4


class Rooms(threading.local):
    """Room for kernels. Each thread caches that of the tokenizers that it used last."""

    def __init__(self) -> None:
        self._sizes = [1 << 14, 256]  # options and frames of a search
        self._made: dict[tuple[int, ...], Room] = {}

    def of(self, n: int, depth: int, n_words: int) -> Room:
        """For n nodes of a trie and added tokens; see `arrays.Room`."""
        key = n, depth, n_words, *self._sizes
        found = self._made.get(key)
        if found is None:
            if len(self._made) == _MOST_ROOMS:
                del self._made[next(iter(self._made))]
            found = self._made[key] = Room(*key)
        return found

    def grow(self) -> None:
        self._sizes = [2 * size for size in self._sizes]
        self._made = {}


ROOMS = Rooms()
