"""Random walks of a token automaton that always come to an end.

A walk wanders over ids chosen at random and then goes home by best-first search, guided by the
bytes that the DFA still needs. The search is complete: if it finds no way home, there is none.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from bpe_automata._automata.linked import LinkedDFA
from bpe_automata._constructions.engine import TextEngine
from bpe_automata._kernels.bits import members
from bpe_automata._sharing import BoundedMemo
from bpe_automata._tokenizer.tokenizer import Tokenizer
from bpe_automata.errors import BudgetExceededError

_STOP = 1 / 4  # chance that a walk ends in an accepting state that it passes
_LONGEST = 24  # ids before a walk turns home
_MOST_TRIED = 100_000  # ids that the way home may try


@dataclass(frozen=True)
class Path:
    """Where a walk is. state: of the engine; ids: read so far."""

    state: Hashable
    ids: tuple[int, ...]


class Walker:
    """Walks one engine."""

    def __init__(self, tokenizer: Tokenizer, engine: TextEngine[Any]) -> None:
        self.tokenizer, self.engine, self.dfa = tokenizer, engine, engine.dfa
        self._lengths = np.array([len(symbol) for symbol in tokenizer.spellings], dtype=np.int32)
        self._begins = np.cumsum(self._lengths) - self._lengths
        self._data = np.frombuffer(b"".join(tokenizer.spellings), dtype=np.uint8)
        self._after: BoundedMemo[int, np.ndarray] = BoundedMemo(4 * tokenizer.n_ids)

    def start(self, prefix: tuple[int, ...] = ()) -> Path:
        """The beginning, after the prompt `prefix`."""
        return Path(self.engine.initial(prefix), ())

    def step(self, path: Path, token: int) -> Path:
        """The path after one more allowed id."""
        return Path(self.engine.step(path.state, token), (*path.ids, token))

    def allowed(self, path: Path) -> np.ndarray:
        """The ids of the mask that are text, ascending."""
        ids = members(self.engine.mask(path.state))
        return ids[~np.isin(ids, self.engine.eos_ids)]

    def walk(self, path: Path, rng: random.Random) -> tuple[Path, bool]:
        """(where a random walk from `path` ended, did it end in an accepting state).

        Raises BudgetExceededError when the search for the way home is cut short.
        """
        for _ in range(rng.randrange(_LONGEST)):
            if self.engine.accepting(path.state) and rng.random() < _STOP:
                return path, True
            ids = self.allowed(path)
            if not len(ids):
                break
            path = self.step(path, int(ids[rng.randrange(len(ids))]))
        home = self._home(path)
        return (path, False) if home is None else (home, True)

    def _home(self, path: Path) -> Path | None:
        """An accepting path within reach, by best-first search; None if there is none."""
        if self.engine.accepting(path.state):
            return path
        heap = [(0, 0, path, self._nearest_first(path))]
        seen, tried = {path.state}, 0
        while heap:
            _, _, here, successors = heap[0]
            distance, token = next(successors, (0, -1))
            if token < 0:
                heapq.heappop(heap)
                continue
            tried += 1
            if tried > _MOST_TRIED:
                raise BudgetExceededError("ids", tried, f"no way to finish after ids {path.ids}")
            heapq.heapreplace(heap, (distance, tried, here, successors))
            after = self.step(here, token)
            if self.engine.accepting(after.state):
                return after
            if after.state not in seen:
                seen.add(after.state)
                heapq.heappush(heap, (distance, -tried, after, self._nearest_first(after)))
        return None

    def _nearest_first(self, path: Path) -> Iterator[tuple[int, int]]:
        """(bytes still needed, id) over the allowed ids, fewest first."""
        ids = self.allowed(path)
        distances = self.distances(path)[ids]
        order = np.argsort(distances, kind="stable")
        yield from zip(distances[order].tolist(), ids[order].tolist(), strict=True)

    def distances(self, path: Path) -> np.ndarray:
        """int32 [n_ids]: bytes that a shortest text still needs after each id read from the
        path, as ordinary text; -1: none is in reach, or the id spells nothing."""
        dfa_state = self.engine.dfa_state(path.state)
        found = self._after.get(dfa_state)
        if found is None:
            states = np.full(self.tokenizer.n_ids, dfa_state, dtype=np.int32)
            alive = np.flatnonzero(self._lengths)
            for k in range(int(self._lengths.max(initial=0))):
                alive = alive[(self._lengths[alive] > k) & (states[alive] != 0)]
                column = self.dfa.byte_class[self._data[self._begins[alive] + k]]
                states[alive] = self.dfa.after(states[alive], column)
            states[self._lengths == 0] = 0
            far = self.dfa.far if isinstance(self.dfa, LinkedDFA) else self.dfa.distance()
            found = np.where(states == 0, -1, far[states])
            self._after.put(dfa_state, found)
        return found
