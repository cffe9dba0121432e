"""The automaton, over atoms, of the texts that some ids spell. It ignores splitting. Such a text

    contains no added token                      (`added_tokens`)
    begins with the prefix                       (`Prefix`)
    is not changed by the normalizers            (`pipeline` adds that)

The text includes the prefix. Added tokens are transitions of their own. A state is (partly read
added tokens of either pass, phase of the prefix); state 0 is the inside of a text with no added
token partly read, and `start` is the beginning of a text.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bpe_automata._budget import check, check_bytes
from bpe_automata.errors import BudgetExceededError
from bpe_automata.tokenizer.added_tokens import AddedCharacters, AddedState, AddedText
from bpe_automata.tokenizer.description import AddedToken, Prefix

IMPOSSIBLE = -1
MOST_STATES = 100_000
BEFORE, PUT, INSIDE, SPACE_NEXT = range(4)
"""Phases of the prefix: it comes next; it was just read; it does not matter; it comes next, and is
text."""

_AT_START = {Prefix.NONE: INSIDE, Prefix.SPACE_FIRST: SPACE_NEXT}  # else BEFORE
_AFTER_ADDED = {  # else INSIDE
    Prefix.PIECE: BEFORE,
    Prefix.PIECE_UNLESS_SPACE: SPACE_NEXT,
    Prefix.SPACE_FIRST: SPACE_NEXT,
}
_UNLESS_SPACE = (Prefix.FIRST_UNLESS_SPACE, Prefix.PIECE_UNLESS_SPACE)


@dataclass(frozen=True)
class TextAutomaton:
    """next: int32 [n_states, n_atoms], the transitions, -1 for none; ends: bool [n_states], may the
    text end there; after_row: int32 [n_states] and after: int32 [n_rows, n_added]: the state after
    added token k is after[after_row[state], k], -1 where it is not cut out; start: the state at the
    beginning of a text; token_start: int32 [n_added + 1] and data: uint8, the bytes of the added
    tokens (CSR); ids: int32 [n_added]; put: bool [n_states], is the next character a space that
    `encode` prepends."""

    next: np.ndarray
    ends: np.ndarray
    after_row: np.ndarray
    after: np.ndarray
    start: int
    token_start: np.ndarray
    data: np.ndarray
    ids: np.ndarray
    put: np.ndarray


class DistinctRows:
    """The distinct rows, numbered in the order of their first use."""

    def __init__(self) -> None:
        self.rows: list[np.ndarray] = []
        self._numbers: dict[bytes, int] = {}

    def number(self, row: np.ndarray) -> int:
        number = self._numbers.setdefault(row.tobytes(), len(self.rows))
        if number == len(self.rows):
            self.rows.append(row)
        return number


class _State(NamedTuple):
    """first, second: the states of the two passes that cut added tokens out."""

    first: AddedState
    second: AddedState
    phase: int


def build_text_automaton(
    added: tuple[AddedToken, ...],
    characters: AddedCharacters,
    prefix: Prefix,
    space: int,
    lost: tuple[AddedToken, ...] = (),
) -> TextAutomaton:
    """The automaton of a tokenizer, before normalizers. `space`: the atom of the space, -1 if it is
    not readable; `lost`: tokens that are also cut out, but have no transition. Raises
    BudgetExceededError."""
    explorer = _Explorer((*added, *lost), len(added), characters, prefix, space)
    start = explorer.number(_beginning(_AT_START.get(prefix, BEFORE)))
    explorer.explore()
    contents = [token.content.encode("utf-8") for token in added]
    return TextAutomaton(
        next=np.array(explorer.rows, dtype=np.int32),
        ends=np.array([explorer.ends(state) for state in explorer.states]),
        after_row=np.array(explorer.after_row, dtype=np.int32),
        after=np.array([row[: len(added)] for row in explorer.afters.rows], dtype=np.int32),
        start=start,
        token_start=np.cumsum([0, *map(len, contents)]).astype(np.int32),
        data=np.frombuffer(b"".join(contents), dtype=np.uint8),
        ids=np.array([token.id for token in added], dtype=np.int32),
        put=np.array([explorer.is_put(state) for state in explorer.states]),
    )


def _beginning(phase: int) -> _State:
    return _State(AddedText.start, AddedText.start, phase)


class _Explorer:
    """All reachable states, numbered in the order of discovery, with their rows."""

    def __init__(
        self,
        added: tuple[AddedToken, ...],
        n_read: int,
        characters: AddedCharacters,
        prefix: Prefix,
        space: int,
    ) -> None:
        """`n_read`: how many of the added tokens, the first ones, have transitions."""
        self.added, self.n_read, self.prefix = added, n_read, prefix
        self.n_atoms, self.atoms, self.space = characters.n_atoms, characters.atoms, space
        self.words = [characters.of(token) for token in added]
        self.first = AddedText(tuple(t for t in added if not t.normalized), characters)
        self.second = AddedText(tuple(t for t in added if t.normalized), characters)
        self.position = _positions(added)
        self.numbered = tuple(
            np.flatnonzero(self.position[0] == second).tolist() for second in (0, 1)
        )
        self.states: list[_State] = []
        self.numbers: dict[_State, int] = {}
        self.rows: list[np.ndarray] = []
        self.after_row: list[int] = []
        self.afters = DistinctRows()
        self.number(_beginning(INSIDE))

    def number(self, state: _State) -> int:
        if state not in self.numbers:
            if len(self.states) >= MOST_STATES:
                raise BudgetExceededError(
                    "text states", MOST_STATES, "the added tokens are too intricate"
                )
            self.numbers[state] = len(self.states)
            self.states.append(state)
        return self.numbers[state]

    def explore(self) -> None:
        for state in self.states:  # grows while we go
            check_bytes(4 * len(self.rows) * self.n_atoms, "the states of the text")
            check_bytes(
                4 * len(self.afters.rows) * len(self.added), "the states after added tokens"
            )
            self.rows.append(self._row(state))
            self.after_row.append(self.afters.number(self._after(state)))

    def ends(self, state: _State) -> bool:
        passes = self.first.ends(state.first) and self.second.ends(state.second)
        return passes and state.phase != PUT

    def is_put(self, state: _State) -> bool:
        return state.phase == BEFORE

    # ------------------------------------------------------------ characters

    def _row(self, state: _State) -> np.ndarray:
        row = np.full(self.n_atoms, IMPOSSIBLE, dtype=np.int32)
        if self.is_put(state):
            if self.space >= 0:
                row[self.space] = self.number(state._replace(phase=PUT))
            return row
        for trait, atoms in self.atoms.items():
            row[atoms] = self._inside(
                self.first.step_by_trait(state.first, trait),
                self.second.step_by_trait(state.second, trait),
            )
        for atom in self.first.continuing(state.first) | self.second.continuing(state.second):
            check()
            row[atom] = self._inside(
                self.first.step(state.first, atom), self.second.step(state.second, atom)
            )
        if state.phase == SPACE_NEXT:
            row[np.arange(self.n_atoms) != self.space] = IMPOSSIBLE
        if state.phase == PUT and self.prefix in _UNLESS_SPACE and self.space >= 0:
            row[self.space] = IMPOSSIBLE
        return row

    def _inside(self, first: AddedState | None, second: AddedState | None) -> int:
        if first is None or second is None:
            return IMPOSSIBLE
        return self.number(_State(first, second, INSIDE))

    # ------------------------------------------------------------ added tokens

    def _after(self, state: _State) -> np.ndarray:
        """The row of `after`, which most states share with those where no token is partly read."""
        idle = state._replace(first=AddedText.start, second=AddedText.start)
        if state == idle:
            tokens: Iterable[int] = range(len(self.added))
            row = np.full(len(self.added), IMPOSSIBLE, dtype=np.int32)
        else:
            row = self._after_of(idle).copy()
            tokens = self._depending(state)
        for k in tokens:
            check()
            row[k] = self._after_token(state, k)
        return row

    def _depending(self, state: _State) -> set[int]:
        """The added tokens whose transition may differ from that of the idle state: those that
        continue a partly read token, or whose neighbours matter."""
        first, second = self.numbered
        found = {first[k] for k in self.first.depending(state.first)}
        found.update(second[k] for k in self.second.depending(state.second))
        if not self.second.ends(state.second):
            found.update(first)
        if state.first.next or state.first.word or state.first.space:
            found.update(second)
        begun = {atom for node, _ in state.first.nodes for atom in self.first.trie.children[node]}
        if begun:
            found.update(k for k in second if self.words[k][0] in begun)
        return found

    def _after_of(self, state: _State) -> np.ndarray:
        """The row of `after` of a state that may not have been explored yet."""
        number = self.numbers.get(state)
        if number is not None and number < len(self.after_row):
            return self.afters.rows[self.after_row[number]]
        return self._after(state)

    def _after_token(self, state: _State, k: int) -> int:
        if k >= self.n_read or state.phase == (BEFORE if self.prefix is Prefix.TEXT else PUT):
            return IMPOSSIBLE
        after = self._after_second if self.added[k].normalized else self._after_first
        passes = after(state, k, int(self.position[1][k]))
        if passes is None:
            return IMPOSSIBLE
        return self.number(_State(*passes, _AFTER_ADDED.get(self.prefix, INSIDE)))

    def _after_first(
        self, state: _State, _k: int, position: int
    ) -> tuple[AddedState, AddedState] | None:
        """The states after a token that the first pass cuts out: the second begins a new text."""
        first = self.first.after(state.first, position)
        if first is None or not self.second.ends(state.second):
            return None
        return first, AddedText.start

    def _after_second(
        self, state: _State, k: int, position: int
    ) -> tuple[AddedState, AddedState] | None:
        """The states after a token that the second pass cuts out, and that is text to the first."""
        second = self.second.after(state.second, position)
        first: AddedState | None = state.first
        if self.first.added:
            for atom in self.words[k]:
                first = None if first is None else self.first.step(first, atom)
        return None if first is None or second is None else (first, second)


def _positions(added: tuple[AddedToken, ...]) -> tuple[np.ndarray, np.ndarray]:
    """(bool: is it cut out by the second pass; int: its number within its pass), for each token."""
    second = np.array([token.normalized for token in added], dtype=bool)
    return second, np.where(second, np.cumsum(second), np.cumsum(~second)) - 1
