"""Which collapsed vocabulary goes with which states of a DFA: see `_kernels.collapsed`.

A collapsed vocabulary depends on the tokenizer and on the classes of bytes, and serves all DFAs
with a region that has these classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from weakref import ref

import numpy as np

from bpe_automata._automata.linked import ByteAutomaton, LinkedDFA
from bpe_automata._constructions.stored import fetched, keep
from bpe_automata._kernels.collapsed import (
    UNREAD,
    Collapsed,
    collapse,
    full_row,
    goes_with,
    n_readable,
    often_first,
    partition,
)
from bpe_automata._kernels.edges import Nodes
from bpe_automata._kernels.references import packed
from bpe_automata._kernels.trie import Trie, build_nodes
from bpe_automata._kernels.watch import watched
from bpe_automata._limits import untouched
from bpe_automata._sharing import BoundedMemo, Lock, cached, locked
from bpe_automata._storage import trim

_MOST = 32  # one of 128,000 ids takes some 0.8 MB
_MOST_ASKED = 4096
_FOLDER, _MOST_FILES = "collapsed", 256  # of up to 2 MB each
_LEAST = 16  # bytes that a state must read: else a walk over the trie is short
_UNKNOWN, _NARROW = 0, -1
_TURNS = 3  # steps after which a loop has begun
_NONE = np.empty(0, dtype=np.int32)
NO_BYTES = np.zeros(256, dtype=bool)
NOTHING = Collapsed(
    classes=_NONE.astype(np.int16),
    label=_NONE.astype(np.uint8),
    parent=_NONE,
    skip=_NONE,
    node=_NONE,
    token_class=_NONE,
    text=_NONE,
    start=np.zeros(1, dtype=np.int32),
    ids=_NONE,
    leaving_from=_NONE,
    leaving=_NONE,
)


class CollapsedVocabularies:
    """Those of one tokenizer, by the classes of bytes. `of` is asked under its lock, `full_row` by
    anyone. To make one costs as much as a walk over all of the trie, so where most of it is
    readable one is made at once; elsewhere the first rows are got by walks, until they have cost as
    much. Those used longest ago are forgotten, and on the disk those written longest ago. What
    `keep` has put there is there at once."""

    def __init__(self, trie: Trie, nodes: Nodes, key: str = "") -> None:
        """key: of all this, for those that are kept on the disk; "": none is."""
        self._trie, self._nodes, self._key = trie, nodes, key
        self._found: dict[bytes, Collapsed] = {}
        self._known: tuple[list[tuple[bytes, Collapsed]], np.ndarray] | None = None  # see `known`
        self._on_disk: set[bytes] = set()
        self._left: dict[bytes, int] = {}  # walks until one is made
        # Each row with a reference to the ids of its vocabulary, which it does not keep alive.
        self._full: BoundedMemo[tuple[int, int], tuple[ref[np.ndarray], np.ndarray]] = BoundedMemo(
            len(trie.start)  # four rows, so that no more than a quarter of the usual is kept
        )

    def known(self, bytes_: np.ndarray) -> list[tuple[bytes, Collapsed]]:
        """Those that are made, with their classes as bytes, in the order in which they are tried:
        the fewest words that are left to the trie first, then the smallest. Without those that
        leave more than half of the trie to states that read these bytes (int64): see
        `_kernels.collapsed.beginnings`."""
        if self._known is None:
            found = [(len(one.leaving), len(one.label), key) for key, one in self._found.items()]
            ordered = [(key, self._found[key]) for _, _, key in sorted(found)]
            unread = np.array([one.classes == UNREAD for _, one in ordered]).reshape(-1, 256)
            self._known = ordered, np.where(unread, np.diff(self._trie.first), 0).T.copy()
        ordered, left = self._known
        some = 2 * left[bytes_].sum(axis=0) <= len(self._trie.label)
        return [ordered[k] for k in np.flatnonzero(some).tolist()]

    def made(self, classes: np.ndarray) -> Collapsed | None:
        """The one with these classes, if it is made."""
        return self._found.get(classes.tobytes())

    def of(self, classes: np.ndarray) -> Collapsed:
        """classes: int16 [256]. NOTHING as long as it does not pay: each time counts as a walk."""
        key = classes.tobytes()
        found = self._found.pop(key, None)
        if found is None:
            left = self._left.get(key)
            if left is None and self._key:
                found = fetched(Collapsed, _FOLDER, self._file(classes))
                if found is not None:
                    self._on_disk.add(key)
            if left is None and found is None:
                left = len(self._trie.label) // max(1, n_readable(classes, self._trie)) - 1
            if left:
                if len(self._left) > _MOST_ASKED:
                    self._left.clear()
                self._left[key] = left - 1
                return NOTHING
            if found is None:
                found = Collapsed(*watched(collapse, classes, *self._pairs, packed(self._trie)))
            self._left.pop(key, None)
            self._known = None
        self._found[key] = found  # last, as the one used last
        if len(self._found) > _MOST:
            del self._found[next(iter(self._found))]
        return found

    @cached
    def often(self) -> np.ndarray:
        """See `often_first`."""
        return often_first(self._trie)

    @cached
    def _pairs(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """int32: of each node of the trie the number of its pair of token class and text, -1 for
        none; the token classes of the pairs; the texts."""
        token_class, text = self._nodes.token_class, self._nodes.text
        # Nearly all have text 0, and token classes are small numbers.
        pair = np.where(token_class > 0, token_class, -1).astype(np.int32)
        some = np.flatnonzero((token_class > 0) & (text != 0))
        both = token_class[some].astype(np.int64) << 32 | (text[some] + 1)
        pairs, number = np.unique(both, return_inverse=True)
        most = int(token_class.max(initial=0)) + 1
        pair[some] = most + number
        token_classes = np.append(np.arange(most), pairs >> 32).astype(np.int32)
        texts = np.append(np.zeros(most), (pairs & 0xFFFFFFFF) - 1).astype(np.int32)
        return pair, token_classes, texts

    def _file(self, classes: np.ndarray) -> str:
        return f"{self._key}; classes {classes.tobytes().hex()}"

    def keep(self) -> None:
        """Put all that are known on the disk: not where they are made, which is within a mask."""
        for key in [key for key in self._found if self._key and key not in self._on_disk]:
            keep(self._found[key], _FOLDER, self._file(self._found[key].classes))
            self._on_disk.add(key)
        trim(_FOLDER, _MOST_FILES)

    def full_row(
        self, collapsed: Collapsed, number: int, free: np.ndarray, bound: np.ndarray
    ) -> np.ndarray:
        """`_kernels.collapsed.full_row` for a hypothesis set and what is after it."""
        key = id(collapsed.ids), number
        found = self._full.get(key)
        if found is None or found[0]() is not collapsed.ids:
            row = full_row(collapsed, free, bound, len(self._trie.start) - 1)
            found = ref(collapsed.ids), row
            self._full.put(key, found)
        return found[1]


class Regions:
    """The collapsed vocabularies at the wide states of one DFA, found where they are asked for.

    lock: the tokenizer's; trie: of the tokens; vocabularies: made when they are first needed."""

    def __init__(
        self,
        dfa: ByteAutomaton,
        lock: Lock,
        trie: Trie,
        vocabularies: Callable[[], CollapsedVocabularies],
    ) -> None:
        self._dfa, self.lock, self._trie, self._vocabularies = dfa, lock, trie, vocabularies
        n = dfa.n_states
        # Of each state: _UNKNOWN, _NARROW or 1 + the number of its classes; what
        # `_kernels.collapsed.goes_with` has shown; scratch for `partition`.
        wanted = (n, np.int32), (n, np.int32), (n, np.int32), (n, np.int64)
        self._of_state, self._shown, *self._scratch = untouched(*wanted)
        self._classes: list[np.ndarray] = []
        self._number: dict[bytes, int] = {}  # of classes, from 1 on
        self._of_row: dict[int, int] = {}  # of a linked automaton, what its states had last
        self._outside: dict[int, np.ndarray] = {}  # by state, where there is any

    def at(self, state: int) -> Collapsed:
        """The vocabulary as a DFA state tells its bytes apart, or NOTHING."""
        return NOTHING if self._of_state[state] == _NARROW else self._at(state)

    @locked
    def _at(self, state: int) -> Collapsed:
        found = int(self._of_state[state])
        if found == _UNKNOWN:
            found = self._find(state)
        return NOTHING if found == _NARROW else self._vocabularies().of(self._classes[found - 1])

    @locked
    def keep(self) -> None:
        """Put the vocabularies on the disk, see `CollapsedVocabularies`."""
        self._vocabularies().keep()

    def outside(self, state: int) -> np.ndarray:
        """bool [256], the bytes that lead from a state, not in its region, out of that; or, of a
        linked automaton, elsewhere than most of their class."""
        return self._outside.get(state, NO_BYTES)

    def loop(self, state: int, collapsed: Collapsed) -> bytes:
        """A key of the state's region, its classes, if the largest class soon leads from a state to
        itself, as in a string of any length; b"" otherwise, as where characters are counted.
        Regions with one key are mostly alike: that is a guess, to save time with. collapsed: not
        NOTHING."""
        classes = collapsed.classes  # each has the number of its first byte
        byte = int(np.bincount(classes[classes >= 0]).argmax())
        for _ in range(_TURNS):
            before, state = state, self._dfa.step(state, byte)
        return classes.tobytes() if state and state == before else b""

    def _find(self, state: int) -> int:
        dfa = self._dfa
        if isinstance(dfa, LinkedDFA):
            row = int(dfa.steps.row[state])
            found = self._of_row[row] = self._known(state, self._of_row.get(row, _UNKNOWN))
        else:
            found = self._searched(state)
        self._of_state[state] = found
        return found

    def _searched(self, state: int) -> int:
        """What the state's own region says."""
        if len(self._dfa.live_bytes(state)) < _LEAST:
            return _NARROW
        given = (
            self._trie.deepest,
            self._vocabularies().often,
            packed(self._dfa.steps),
            *self._scratch,
        )
        classes, outside, region = watched(partition, state, *given)
        if not (classes >= 0).any():
            return _NARROW
        if outside.any():
            self._outside[state] = outside
        found = self._numbered(classes.tobytes(), classes)
        self._of_state[region[self._of_state[region] == _UNKNOWN]] = found
        return found

    def _numbered(self, key: bytes, classes: np.ndarray) -> int:
        found = self._number.setdefault(key, len(self._number) + 1)
        if found > len(self._classes):
            self._classes.append(classes)
        return found

    def _known(self, state: int, likely: int) -> int:
        """The classes of a vocabulary that is known and goes with a state. Of a linked automaton,
        of which each string in each context has a region of its own, most of it not written down:
        only what tokens lead to is looked at. likely: what was found for another state with the
        same row; a vocabulary is tried first, and where there was none, there is none here."""
        if likely == _NARROW:
            return _NARROW
        vocabularies = self._vocabularies()
        if likely != _UNKNOWN:
            known = vocabularies.made(self._classes[likely - 1])
            if known and self._goes_with(state, known, likely):
                return likely
        read = self._dfa.live_bytes(state)
        if len(read) < _LEAST:
            return _NARROW
        for key, collapsed in vocabularies.known(read):
            number = self._numbered(key, collapsed.classes)
            if number != likely and self._goes_with(state, collapsed, number):
                return number
        return self._searched(state)

    def _goes_with(self, state: int, collapsed: Collapsed, number: int) -> bool:
        given = self._shown, packed(self._dfa.steps), packed(self._trie)
        goes, apart = watched(goes_with, state, packed(collapsed), number, *given)
        if goes and apart.any():
            self._outside[state] = apart
        return bool(goes)


# The trie of token spellings that rows are computed with.

_AT_ONCE = 7  # bytes that are compared as one number, beside how many of them there are
_GOES_ON = 8


def vocabulary_trie(spellings: Sequence[bytes], ids: Iterable[int]) -> Trie:
    """Trie of the tokens `ids`; empty ones are left out, equal ones end in sibling nodes."""
    start = np.zeros(len(spellings) + 1, dtype=np.int32)
    np.cumsum(np.fromiter(map(len, spellings), np.int64, len(spellings)), out=start[1:])
    data = np.frombuffer(b"".join(spellings), dtype=np.uint8)
    tokens = np.fromiter(ids, np.int64) if not isinstance(ids, np.ndarray) else ids
    order = _sorted(tokens[start[tokens + 1] > start[tokens]], start, data).astype(np.int32)
    label, depth, skip, token = build_nodes(order, start, data)
    roots = np.flatnonzero(depth == 1)
    first = np.append(roots, len(label))[np.searchsorted(label[roots], np.arange(257))]
    deepest = int(depth.max(initial=0))
    return Trie(label, depth, skip, token, first.astype(np.int32), deepest, start, data)


def _sorted(tokens: np.ndarray, start: np.ndarray, data: np.ndarray) -> np.ndarray:
    """`tokens` by their bytes, equal ones in the order given: sorted by the first bytes, then the
    runs that these do not tell apart by the next ones, and so on."""
    padded = np.append(data, np.zeros(_GOES_ON, dtype=np.uint8))
    words = np.ndarray(len(data) + 1, ">u8", padded, strides=(1,))  # the 8 bytes from each position
    order = tokens.copy()
    positions, runs, done = np.arange(len(order)), np.zeros(len(order), dtype=np.int64), 0
    while len(positions):
        keys = _keys(order[positions], done, start, words)
        by_key = np.lexsort((keys, runs))
        order[positions], keys = order[positions[by_key]], keys[by_key]
        begins = np.ones(len(keys), dtype=bool)
        begins[1:] = (keys[1:] != keys[:-1]) | (runs[1:] != runs[:-1])
        runs = np.cumsum(begins)
        tied = (keys & 15 == _GOES_ON) & (np.bincount(runs)[runs] > 1)
        positions, runs, done = positions[tied], runs[tied], done + _AT_ONCE
    return order


def _keys(tokens: np.ndarray, done: int, start: np.ndarray, words: np.ndarray) -> np.ndarray:
    """uint64: the next 7 bytes of each token after `done`, then how many bytes are left, 8 standing
    for more than 7; ordered as the bytes are."""
    left = np.minimum(start[tokens + 1] - start[tokens] - done, _GOES_ON)
    taken = np.minimum(left, _AT_ONCE).astype(np.uint64)
    kept = ~np.uint64(0) << (np.uint64(64) - np.uint64(8) * taken)  # taken is never 0
    return (words[start[tokens] + done].astype(np.uint64) & kept) | left.astype(np.uint64)
