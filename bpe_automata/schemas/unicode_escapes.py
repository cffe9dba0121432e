"""The states inside `\\uXXXX`, for any character a text automaton may read next.

    q  --\\uXXXX-->  p        iff  the automaton goes from q to p by that character's UTF-8

Four hexadecimal digits cut a code point into 4 + 4 + 4 + 4 bits, UTF-8 into groups of 6 from the
right. So what the last digit selects is a quarter of what the last byte does; and what is left to
select inside the escape depends only on a state that the automaton has inside the character.
"""

from __future__ import annotations

import numpy as np

from bpe_automata.automata.dfa import ByteDFA
from bpe_automata.schemas.escape_nodes import HEX_BOTH, Nodes, chunks

_Z = np.arange(16)
_QUARTER = _Z & 3


class UnicodeEscapes:
    """The trees of digits over one automaton.

    left: int8 [n], the bytes that the character begun at each state still needs. Each table holds
    states of `nodes`, by state of the automaton; 0 where the state is of another kind.
    """

    def __init__(self, dfa: ByteDFA, left: np.ndarray, nodes: Nodes) -> None:
        self._trans, self._class, self._nodes = dfa.trans, dfa.byte_class, nodes
        n = dfa.n_states
        self._last = np.zeros((n, 4), np.int32)  # one digit to go, by quarter
        self._two = np.zeros((n, 16), np.int32)  # two to go, by the digit before
        self._high = np.zeros((n, 4, 4), np.int32)  # a high surrogate's last digit to go
        for states in chunks(np.flatnonzero(left == 1)):
            targets = self._after(states[:, None, None], np.arange(64).reshape(4, 16))
            self._last[states] = nodes.add(targets, HEX_BOTH)
        for states in chunks(np.flatnonzero(left == 2)):
            self._two[states] = nodes.add(self._by_two_digits(states), HEX_BOTH)
        low = np.zeros((n, 4), np.int32)  # before a low surrogate, by two bits of the high one
        for states in chunks(np.flatnonzero(left == 2)):
            low[states] = self._low_surrogates(states)
        for states in chunks(np.flatnonzero(left == 3)):
            self._high[states] = nodes.add(self._high_surrogates(states, low), HEX_BOTH)

    def _after(self, states: np.ndarray, continuation: np.ndarray) -> np.ndarray:
        """The states after a continuation byte, given by its 6 bits."""
        return self._trans[states, self._class[0x80 + continuation]]

    def _by(self, states: np.ndarray, first: int) -> np.ndarray:
        """The states after a byte."""
        return self._trans[states, self._class[first]]

    def _by_two_digits(self, states: np.ndarray) -> np.ndarray:
        """int32 [m, 16, 16]: what two digits lead to, with one more to go."""
        inside = self._after(states[:, None, None], _Z[:, None] * 4 + (_Z >> 2))
        return self._last[inside, _QUARTER]

    def _low_surrogates(self, states: np.ndarray) -> np.ndarray:
        """int32 [m, 4]: `\\uDXXX` for the last ten bits of a character, the four before them being
        what is left of the byte before last."""
        high, third = np.arange(4)[:, None, None], np.arange(4)[:, None]
        inside = self._after(states[:, None, None, None], high * 16 + third * 4 + (_Z >> 2))
        third_digit = self._nodes.add(self._last[inside, _QUARTER], HEX_BOTH)
        second_digit = self._nodes.add(third_digit, (b"cC", b"dD", b"eE", b"fF"))
        before = self._nodes.single(second_digit, b"dD")
        return self._nodes.single(self._nodes.single(before, b"u"), b"\\")

    def _high_surrogates(self, states: np.ndarray, low: np.ndarray) -> np.ndarray:
        """int32 [m, 4, 4, 16]: the last digit of a high surrogate, by the two last bits of the
        plane and the two first bits of the 16 in the plane."""
        plane, first = np.arange(4)[:, None, None], np.arange(4)[:, None]
        inside = self._after(states[:, None, None, None], plane * 16 + first * 4 + (_Z >> 2))
        return low[inside, _QUARTER]

    def from_states(self, states: np.ndarray) -> np.ndarray:
        """int32 [m]: after `\\u`, four digits to go, for states between two characters."""
        found = np.zeros((len(states), 16), np.int32)
        for first in range(1, 16):
            two = self._two[self._by(states, 0xE0 + first)]
            if first == 0xD:
                two = two.copy()
                two[:, 8:12] = self._nodes.add(self._pairs(states), HEX_BOTH)
            found[:, first] = self._nodes.add(two, HEX_BOTH)
        found[:, 0] = self._nodes.add(self._below_1000(states), HEX_BOTH)
        return self._nodes.add(found, HEX_BOTH)

    def _pairs(self, states: np.ndarray) -> np.ndarray:
        """int32 [m, 4, 16]: after `\\uD` and 8, 9, A or B, what the next digit leads to."""
        plane = np.arange(4)[:, None] * 4 + (_Z >> 2) + 1
        inside = self._trans[states[:, None, None], self._class[0xF0 + (plane >> 2)]]
        return self._high[inside, plane & 3, _QUARTER]

    def _below_1000(self, states: np.ndarray) -> np.ndarray:
        """int32 [m, 16]: after `\\u0`, what the next digit leads to."""
        ascii_targets = self._trans[states[:, None, None], self._class[:128].reshape(8, 16)]
        two = np.zeros((len(states), 8, 16), np.int32)
        two[:, 0, :8] = self._nodes.add(ascii_targets, HEX_BOTH)
        for second in range(8):
            for third in range(8 if second == 0 else 0, 16):
                inside = self._by(states, 0xC0 + second * 4 + (third >> 2))
                two[:, second, third] = self._last[inside, third & 3]
        found = np.zeros((len(states), 16), np.int32)
        found[:, :8] = self._nodes.add(two, HEX_BOTH)
        found[:, 8:] = self._two[self._by(states, 0xE0)][:, 8:]
        return found
