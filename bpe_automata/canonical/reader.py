"""Where bytes lead in a byte automaton, and the slices of its wide states."""

from __future__ import annotations

from typing import Any

import numpy as np

from bpe_automata._limits import check_fits, untouched
from bpe_automata._sharing import Lock
from bpe_automata.automata.linked import ByteAutomaton
from bpe_automata.canonical.arrays import Base, Wanted
from bpe_automata.canonical.regions import loop_bytes, proved_depth
from bpe_automata.canonical.slices import Slice
from bpe_automata.canonical.tables import MOST_STATES, Tables
from bpe_automata.canonical.tokens import step_each, walk

_LENGTHS = 32, 12, 5  # bytes of a slice's tokens, at most
_MARGIN = 6  # characters by which a region must be longer
_FAR = 2  # we look so many times farther at once, as the next state will ask too
_MOST_LOOPS = 16  # sets of bytes that one automaton's regions have
_NO_BYTES = bytes(128)  # of `loop_bytes`
_FEWEST = 500  # tokens that are worth a slice


class Reader:
    """Reads one byte automaton by the tokens of one tokenizer."""

    base: Base

    def __init__(self, tables: Tables, dfa: ByteAutomaton) -> None:
        advice = "use smaller repeat counts, or split the language"
        check_fits("states", dfa.n_states, MOST_STATES, advice)
        self.tables, self.dfa, self.lock = tables, dfa, Lock()
        self._loops: dict[bytes, np.ndarray] = {}
        self._loop_of: dict[int, tuple[bytes, bool]] = {}

    def after(self, q: int, data: bytes) -> int:
        """The state of the byte automaton after some bytes."""
        return int(self._written(walk, q, np.frombuffer(data, np.uint8), self.base))

    def step_each(self, q: int, a: int, row0: int, tokens: np.ndarray) -> np.ndarray:
        """int64 [n, 2]: the states of the byte automaton and of the text automaton after each token
        (int64), read in UTF-8 row row0; 0 where there is none."""
        given = self.tables.by_id, self.base, self.tables.trie
        found: np.ndarray = self._written(step_each, tokens, q, a, row0, *given)
        return found[:, 1:3].astype(np.int64)

    def _enter(self, wanted: Wanted) -> None:
        for number in wanted.steps:
            self.dfa.enter(number)  # type: ignore[union-attr]

    # ---------------------------------------------------------------- slices

    def slice_of(self, q: int) -> tuple[Slice, int] | None:
        """(the slice of the region in which a state is, the most bytes of its tokens); None if
        there is none."""
        loop = self._loop_of.get(q)
        if loop is None:
            key = self._written(loop_bytes, q, self.base).tobytes()
            K = np.frombuffer(key, np.bool_)
            wide = key != _NO_BYTES and self._depth(q, K, True) >= _LENGTHS[-1] + _MARGIN
            loop = self._loop_of[q] = key, wide
        key, wide = loop
        if key == _NO_BYTES:
            return None
        K = np.frombuffer(key, np.bool_)
        depth = self._depth(q, K, wide)
        for length in _LENGTHS:
            if depth >= length + _MARGIN:
                found = self._made(K, wide, length)
                return (found, length) if len(found.ids) >= _FEWEST else None
        return None

    def _made(self, K: np.ndarray, wide: bool, length: int) -> Slice:
        key, t = (K.tobytes(), wide, length), self.tables
        found = t.slices.get(key)
        if found is None:
            with t.lock:
                found = t.slices.get(key) or Slice(t, K, wide, length)
                t.slices.put(key, found)
        return found

    def _depth(self, q: int, K: np.ndarray, wide: bool) -> int:
        key = K.tobytes() + bytes([wide])
        proved = self._loops.get(key)
        if proved is None:
            if len(self._loops) == _MOST_LOOPS:
                return 0
            (proved,) = untouched((self.dfa.n_states, np.int32))
            self._loops[key] = proved
        most = _LENGTHS[0] + _MARGIN
        if proved[q] - 1 >= most:
            return most
        given = q, K, wide, self.tables.kinds, _FAR * most, proved
        visited = np.empty((4096, 2), np.int64), np.zeros(2, np.int64)
        return int(self._written(proved_depth, *given, self.base, *visited))

    def _written(self, kernel: Any, *given: Any) -> Any:
        """What a kernel returns once all steps that it wants are written down."""
        while True:
            wanted = Wanted()
            found = kernel(*given, wanted)
            if not wanted:
                return found
            self._enter(wanted)
